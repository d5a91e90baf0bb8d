// Flags: the one table of the flags of `pack`. Parsing, help, completions, manual and docs/cli.md
// come from it, so that adding a flag is adding a row to flags.cc.
//
//   for (const Flag* flag : FlagsOf(Verb::kBuild)) std::cout << "--" << flag->name << '\n';
//   absl::Status stored = StoreFlag(*flag, "256MB", line);
//
// Thread-safety: any thread.
// Errors: StoreFlag answers InvalidArgument (exit 2) with the whole message for the user, the
// nearest allowed value included.
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
  kValue,      // --name VALUE; the last one counts
  kRepeated,   // --name VALUE, any number of times
};

inline constexpr std::string_view kFirst = "(first)";

struct Flag {
  std::string_view name;  // without the dashes
  char letter;            // of the short form; 0 = none
  FlagKind kind;
  std::string_view
      value;  // what stands for the value in help: "DIR", "a|b"; DIR and FILE complete to paths
  std::string_view fallback;  // the default, for help; "" = none, kFirst = the first allowed value
  // The allowed values: those of `value` when it has the form a|b, else what this answers; free
  // when nullptr.
  std::vector<std::string> (*allowed)();
  std::string_view group;
  VerbSet verbs;
  bool common;  // has a line of its own in --help; the others are named there and explained in the
                // manual
  std::string_view doc;  // one line, lower case, no full stop
  // `text` is the value; "true" or "false" for a switch.
  absl::Status (*store)(const std::string& text, CommandLine& line);
};

std::span<const Flag> AllFlags();
std::vector<const Flag*> FlagsOf(Verb verb);
// The flag of that long name (without dashes) which the verb has; nullptr when there is none.
const Flag* FindFlag(Verb verb, std::string_view name);
// Empty when any value will do.
std::vector<std::string> AllowedValues(const Flag& flag);
// "-f, --format webdataset|tfrecord": as help shows it.
std::string Spelling(const Flag& flag, bool with_letter);
// What stands for the value, with the names of the formats filled in.
std::string ValueWord(const Flag& flag);
// The default in words; "" when there is none.
std::string DefaultWord(const Flag& flag);

absl::Status StoreFlag(const Flag& flag, const std::string& text, CommandLine& line);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_FLAGS_FLAGS_H_
