#include "cli/flags/failure.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/terminal/stop_signal.h"

namespace shardpack::cli {

namespace {

// There are no flags after "--".
CommandLine WithFlags(CommandLine line, const FlagWords& flags) {
  line.words.insert(std::find(line.words.begin(), line.words.end(), "--"), flags.begin(),
                    flags.end());
  return line;
}

}  // namespace

ExitCode Fail(const absl::Status& status, Terminal& terminal) {
  const int signal = StopSignal();
  const bool stopped = absl::IsCancelled(status) && signal != 0;
  terminal.Fail(stopped ? "interrupted" : std::string(status.message()));
  return ExitCodeOf(status, signal);
}

void SayHowToGoOn(ExitCode code, const std::string& kept, const CommandLine& line,
                  Terminal& terminal, const FlagWords& more) {
  const bool stopped =
      code == ExitCode::kInterrupted || code == ExitCode::kTerminated || code == ExitCode::kHungUp;
  if (code != ExitCode::kIo && !stopped) return;
  terminal.Raw(
      absl::StrCat(kept, " To go on, run again:\n  ", TypedCommand(WithFlags(line, more)), "\n"));
}

namespace {

// The command to convert the same source to the same place; a plan has no such command, so it names
// its source.
std::string ConvertCommand(const CommandLine& line) {
  const PackFlags& pack = line.pack();
  if (pack.out.empty()) return TypedCommand(WithFlags(line, {"--input-format", "dataset"}));
  return absl::StrCat(ShellQuoted(line.program), " convert ", ShellQuoted(line.arguments[0]),
                      " -o ", ShellQuoted(pack.out),
                      pack.request.format.empty() ? "" : absl::StrCat(" -f ", pack.request.format));
}

// Removes a flag that is suggested with another value.
void RemoveValue(const std::string& flag, std::vector<std::string>& words) {
  std::erase_if(words, [&](const std::string& word) { return word.starts_with(flag + "="); });
  const auto end = std::find(words.begin(), words.end(), "--");
  const auto at = std::find(words.begin(), end, flag);
  if (at != end && at + 1 != end) words.erase(at, at + 2);
}

}  // namespace

absl::Status WithCommands(const absl::Status& status, const CommandLine& line) {
  std::string text(status.message());
  const std::vector<FlagWords> offers = OfferedFlags(status);
  for (size_t i = 0; i < offers.size(); ++i) {
    const FlagWords& words = offers[i];
    const bool from_input = !line.arguments.empty() && line.arguments[0] == "-";
    const std::string lead =
        i > 0 ? "\n  "
              : absl::StrCat(from_input ? ". Give the same list on standard input to" : ". Type",
                             offers.size() > 1 ? " one of:\n  " : ":\n  ");
    if (!words.empty() && words[0] == kOfferConvert) {
      absl::StrAppend(&text, lead, ConvertCommand(line));
      continue;
    }
    CommandLine typed = line;
    // The suggested value is higher than --strict allows.
    if (!words.empty() && words[0] == "--max-skip") {
      std::erase(typed.words, "--strict");
      RemoveValue(words[0], typed.words);
    }
    if (!words.empty() && words[0] == "--overwrite") std::erase(typed.words, "--compare");
    absl::StrAppend(&text, lead, TypedCommand(WithFlags(std::move(typed), words)));
  }
  return absl::Status(status.code(), text);
}

std::string AsTyped(const CommandLine& line, const std::string& flag) {
  const auto end = std::find(line.words.begin(), line.words.end(), "--");
  const std::string negated = absl::StrCat("--no-", flag);
  return std::find(line.words.begin(), end, negated) != end ? negated : absl::StrCat("--", flag);
}

bool AsksForJson(std::span<const std::string> words) {
  const auto end = std::find(words.begin(), words.end(), "--");  // the words after it are not flags
  return std::find(words.begin(), end, "--json") != end;
}

ExitCode FinishCommand(bool json, ExitCode code, Terminal& terminal) {
  const std::string message = terminal.failure();
  if (!json || message.empty()) return code;
  const nlohmann::ordered_json error = {
      {"schema", "shardpack.error/1"}, {"code", static_cast<int>(code)}, {"message", message}};
  Results results;
  // A message only contains valid text; but nothing may stop an error from being reported.
  results.Write(error.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
                "\n");
  (void)results.Finish();  // the exit code already reports an error
  return code;
}

ExitCode FinishResults(Results& results, ExitCode code, Terminal& terminal) {
  const absl::Status written = results.Finish();
  return written.ok() ? code : Worse(code, Fail(written, terminal));
}

ExitCode PrintResult(std::string_view text, Terminal& terminal) {
  Results results;
  results.Write(text);
  return FinishResults(results, ExitCode::kDone, terminal);
}

}  // namespace shardpack::cli
