// pack: the command line of Shardpack.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <system_error>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/commands/commands.h"
#include "cli/flags/failure.h"
#include "cli/flags/help.h"
#include "cli/flags/parse.h"
#include "cli/terminal/stop_signal.h"
#include "cli/terminal/version.h"
#include "formats/io/resources.h"

namespace shardpack::cli {
namespace {

// Otherwise a file opened later would become standard output and receive the results. Returns false
// if standard output was closed.
bool FillStandardDescriptors() {
  bool has_output = true;
  for (int descriptor = 0; descriptor < 3; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    if (::open("/dev/null", O_RDWR) < 0) ::_exit(1);
    has_output = has_output && descriptor != STDOUT_FILENO;
  }
  return has_output;
}

// For commands that only print results: writing to a closed standard output is an error, like a
// full disk.
void FailToWriteResults(Verb verb) {
  switch (verb) {
    case Verb::kInfo:
    case Verb::kLs:
    case Verb::kCat:
    case Verb::kValidate:
    case Verb::kStats:
    case Verb::kDiff:
    case Verb::kDups:
    case Verb::kStatus:
      break;
    default:
      return;
  }
  const int unwritable = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (unwritable < 0 || ::dup2(unwritable, STDOUT_FILENO) < 0) ::_exit(1);
  ::close(unwritable);
}

// In commands suggested to the user, such a path would be parsed as a flag.
void KeepFromFlags(std::string& path) {
  if (path.size() > 1 && path.starts_with('-')) path.insert(0, "./");
}

// `bazel run` starts programs in another folder, and reports the user's folder here.
void EnterUsersFolder() {
  const char* folder = ::getenv("BUILD_WORKING_DIRECTORY");
  if (folder != nullptr && ::chdir(folder) != 0) ::unsetenv("BUILD_WORKING_DIRECTORY");
}

ExitCode Run(const CommandLine& line, Terminal& terminal) {
  switch (line.verb) {
    case Verb::kBuild:
      return RunBuild(line, terminal);
    case Verb::kList:
      return RunList(line, terminal);
    case Verb::kPlan:
      return RunPlan(line, terminal);
    case Verb::kStatus:
      return RunStatus(line, terminal);
    case Verb::kCommit:
      return RunCommit(line, terminal);
    case Verb::kConvert:
      return RunConvert(line, terminal);
    case Verb::kIndex:
      return RunIndex(line, terminal);
    case Verb::kValidate:
      return RunValidate(line, terminal);
    case Verb::kRepair:
      return RunRepair(line, terminal);
    case Verb::kInfo:
      return RunInfo(line, terminal);
    case Verb::kLs:
      return RunLs(line, terminal);
    case Verb::kCat:
      return RunCat(line, terminal);
    case Verb::kExtract:
      return RunExtract(line, terminal);
    case Verb::kStats:
      return RunStats(line, terminal);
    case Verb::kDiff:
      return RunDiff(line, terminal);
    case Verb::kDups:
      return RunDups(line, terminal);
    case Verb::kReport:
      return RunReportPage(line, terminal);
    case Verb::kBench:
      return RunBench(line, terminal);
    case Verb::kCompletions:
      return RunCompletions(line, terminal);
    case Verb::kMan:
      return RunMan(line, terminal);
    case Verb::kCount:
      break;
  }
  return ExitCode::kInternal;
}

// -h prints one screen, --help everything.
bool AsksForAll(const std::vector<std::string>& words) {
  return std::find(words.begin(), words.end(), "--help") != words.end();
}

ExitCode Main(std::string program, std::vector<std::string> words, bool has_output) {
  const bool no_words = words.empty(), json = AsksForJson(words);
  SetProgram(program);
  absl::StatusOr<CommandLine> line = ParseCommandLine(std::move(program), std::move(words));
  if (!line.ok()) {
    Terminal terminal;
    if (no_words) terminal.Raw(Overview());
    return no_words ? ExitCode::kUsage
                    : FinishCommand(json, Fail(line.status(), terminal), terminal);
  }
  Terminal terminal(line->progress, line->quiet);
  if (line->version) return PrintResult(VersionText(), terminal);
  if (!line->help_flag.empty()) return PrintResult(FlagHelp(line->help_flag), terminal);
  if (line->help)
    return PrintResult(
        line->Given("verb") ? VerbHelp(line->verb, AsksForAll(line->words)) : Overview(), terminal);
  if (!has_output) FailToWriteResults(line->verb);
  std::visit(
      [](auto& flags) {
        if constexpr (requires { flags.out; }) KeepFromFlags(flags.out);
      },
      line->flags);
  EndWithJson(line->json);
  if (!line->arguments.empty()) KeepFromFlags(line->arguments[0]);
  const ExitCode code = Run(*line, terminal);
  return FinishCommand(line->json, code, terminal);
}

ExitCode Explain(const std::exception& error) {
  if (IsLackOfResources(error)) {
    // Unbuffered: there may be no memory for a buffer.
    for (const std::string_view text :
         {std::string_view("pack: error: "), DescribeLackOfResources(),
          std::string_view("; --memory, --io-depth and -j lower what is needed\n")}) {
      [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    }
    return ExitCode::kIo;
  }
  Terminal().Error(absl::StrCat("internal error: ", error.what(), "; please report it"));
  return ExitCode::kInternal;
}

// Ends the process after an uncaught exception in any thread. The files on disk are as after a
// kill: resumable.
void EndUnfinished() {
  ExitCode code = ExitCode::kInternal;
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    code = Explain(error);
  } catch (...) {
  }
  std::_Exit(static_cast<int>(code));
}

}  // namespace
}  // namespace shardpack::cli

int main(int argc, char** argv) {
  using shardpack::cli::ExitCode;
  std::set_terminate(shardpack::cli::EndUnfinished);
  ExitCode code = ExitCode::kInternal;
  const bool has_output = shardpack::cli::FillStandardDescriptors();
  shardpack::cli::InstallSignals();
  shardpack::cli::EnterUsersFolder();
  try {
    code = shardpack::cli::Main(argc > 0 ? argv[0] : "pack",
                                std::vector<std::string>(argv + std::min(argc, 1), argv + argc),
                                has_output);
  } catch (const std::exception& error) {
    code = shardpack::cli::Explain(error);
  }
  return static_cast<int>(code);
}
