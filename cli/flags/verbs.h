// Verbs: the verbs of `pack`, one row each. Help, completions, manual and suggestions are made from
// the table.
//
//   const VerbSpec* verb = FindVerb("validate");            // nullptr: no such verb
//   for (const VerbSpec& each : AllVerbs()) std::cout << each.name << "  " << each.summary << '\n';
//
// Thread-safety: any thread.
#ifndef SHARDPACK_CLI_FLAGS_VERBS_H_
#define SHARDPACK_CLI_FLAGS_VERBS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/terminal/exit_code.h"

namespace shardpack::cli {

enum class Verb : uint8_t {
  kBuild,
  kPlan,
  kList,
  kStatus,
  kCommit,
  kConvert,
  kIndex,
  kValidate,
  kRepair,
  kInfo,
  kLs,
  kCat,
  kExtract,
  kStats,
  kDiff,
  kDups,
  kReport,
  kBench,
  kCompletions,
  kMan,
  kCount,  // not a verb
};

// A set of verbs, used in the table of flags.
using VerbSet = uint32_t;
constexpr VerbSet In(Verb verb) { return VerbSet{1} << static_cast<uint32_t>(verb); }
inline constexpr VerbSet kEveryVerb = In(Verb::kCount) - 1;

struct VerbSpec {
  Verb verb;
  std::string_view name;
  std::string_view summary;    // one line
  std::string_view arguments;  // "SRC", "DATASET|SHARD..."; the arguments besides flags
  size_t min_arguments, max_arguments;
  std::string_view example;  // a real command
  std::string_view about;    // additional help; a few lines of at most 100 columns
  std::span<const ExitCode> exit_codes;
};

// In the order of the enum.
std::span<const VerbSpec> AllVerbs();
const VerbSpec& SpecOf(Verb verb);
const VerbSpec* FindVerb(std::string_view name);
std::vector<std::string> VerbNames();

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_FLAGS_VERBS_H_
