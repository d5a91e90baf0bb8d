#include "cli/flags/command_line.h"

#include "absl/strings/str_cat.h"
#include "formats/io/resources.h"
#include "formats/io/shell_quoted.h"

namespace shardpack::cli {
namespace {

VerbFlags FlagsOfVerb(Verb verb) {
  switch (verb) {
    case Verb::kStatus:
      return StatusFlags();
    case Verb::kIndex:
      return IndexFlags();
    case Verb::kValidate:
      return ValidateFlags();
    case Verb::kRepair:
      return RepairFlags();
    case Verb::kInfo:
    case Verb::kLs:
    case Verb::kCat:
    case Verb::kExtract:
      return SampleFlags();
    case Verb::kStats:
    case Verb::kDiff:
    case Verb::kDups:
    case Verb::kReport:
      return LookFlags();
    case Verb::kBench:
      return BenchFlags();
    case Verb::kCompletions:
    case Verb::kMan:
      return PrintFlags();
    default:
      return PackFlags();
  }
}

}  // namespace

int RunFlags::Jobs() const { return jobs > 0 ? jobs : AvailableCores(); }

uint64_t RunFlags::MemoryBytes() const {
  return memory_bytes > 0
             ? memory_bytes
             : static_cast<uint64_t>(static_cast<double>(AvailableMemoryBytes()) * memory_share);
}

void CommandLine::SetVerb(Verb to) {
  verb = to;
  flags = FlagsOfVerb(to);
}

std::string TypedCommand(const CommandLine& line) {
  std::string text = ShellQuoted(line.program);
  for (const std::string& word : line.words) absl::StrAppend(&text, " ", ShellQuoted(word));
  return text;
}

}  // namespace shardpack::cli
