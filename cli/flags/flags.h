// Flags: the single table of `pack`'s flags. Parsing, help, completions, manual and docs/cli.md
// come from it, so that adding a flag is adding a row to flag_table.cc.
//
//   for (const Flag* flag : FlagsOf(Verb::kBuild)) std::cout << "--" << flag->name << '\n';
//   absl::Status stored = StoreFlag(*flag, "256MB", line);
//
// Thread-safety: any thread.
// Errors: StoreFlag returns InvalidArgument (exit 2) with the complete message for the user,
// including the nearest allowed value.
#ifndef SHARDPACK_CLI_FLAGS_FLAGS_H_
#define SHARDPACK_CLI_FLAGS_FLAGS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "cli/flags/command_line.h"
#include "cli/flags/verbs.h"

namespace shardpack::cli {

enum class FlagKind : uint8_t {
  kSwitch,     // --name
  kNegatable,  // --name and --no-name
  kValue,      // --name VALUE; the last one wins
  kRepeated,   // --name VALUE, any number of times
  kOptional,   // --name and --name VALUE; the value of the first is empty
};

inline constexpr std::string_view kFirst = "(first)";

struct Flag {
  std::string_view name;  // without the dashes
  char letter;            // of the short form; 0 = none
  FlagKind kind;
  std::string_view
      value;  // placeholder for the value in help: "DIR", "a|b"; DIR and FILE complete to paths
  std::string_view fallback;  // the default, for help; "" = none, kFirst = the first allowed value
  // Returns the allowed values. nullptr: those of `value` if it has the form a|b, else any value.
  std::vector<std::string> (*allowed)();
  std::string_view group;
  VerbSet verbs;
  bool common;  // has its own line in --help; the others are only named there and explained in the
                // manual
  std::string_view doc;  // one line, lower case, no full stop
  // `text` is the value; "true" or "false" for a switch.
  absl::Status (*store)(const std::string& text, CommandLine& line);
  std::string_view old_name = {};  // still accepted, and not shown
};

std::span<const Flag> AllFlags();
std::vector<const Flag*> FlagsOf(Verb verb);
// The verb's flag of this long name (without dashes); nullptr if there is none.
const Flag* FindFlag(Verb verb, std::string_view name);
// Empty if any value is allowed.
std::vector<std::string> AllowedValues(const Flag& flag);
// "-f, --format webdataset|tfrecord", as in help.
std::string Spelling(const Flag& flag, bool with_letter);
// The placeholder for the value, with the names of the formats filled in.
std::string ValueWord(const Flag& flag);
// The default in words; "" if there is none.
std::string DefaultWord(const Flag& flag);

absl::Status StoreFlag(const Flag& flag, const std::string& text, CommandLine& line);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_FLAGS_FLAGS_H_
