#include "cli/commands/report_page.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "cli/commands/out_folder.h"
#include "cli/commands/result_file.h"
#include "cli/commands/summary.h"
#include "cli/flags/failure.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/stop_signal.h"
#include "cli/terminal/units.h"
#include "formats/io/escape.h"
#include "formats/io/exists.h"
#include "formats/io/shell_quoted.h"
#include "formats/io/status_macros.h"

namespace shardpack::cli {
namespace {

using absl::InvalidArgumentError;
using absl::StrCat;

// The file of --report; without a name, beside the dataset.
std::string PagePath(const std::string& out, const CommandLine& line) {
  const std::string& given = *line.pack().report;
  if (!given.empty()) return given;
  std::filesystem::path folder(out);
  if (!folder.has_filename()) folder = folder.parent_path();
  if (folder.filename() == "." || folder.filename() == ".." || folder.empty()) {
    std::error_code error;
    folder = std::filesystem::weakly_canonical(std::filesystem::absolute(out, error), error);
  }
  return StrCat(folder.string(), "-report.html");
}

std::string ReportCommand(const std::string& out, const std::string& path) {
  return StrCat(TypedProgram(), " report ", ShellQuoted(out), " -o ", ShellQuoted(path));
}

// A name that nobody has typed replaces no file but such a page.
absl::Status CheckReplaced(const std::string& path, const CommandLine& line) {
  ASSIGN_OR_RETURN(const bool exists, Exists(path));
  if (!exists || !line.pack().report->empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const bool page, IsOfKind(path, kPage));
  if (page) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat(EscapeForTerminal(path),
             " is in the way of --report, and no page of pack report; name another file, as in "
             "--report page.html"));
}

struct WrittenPage {
  uint64_t bytes;
  bool damaged;  // the dataset that it shows
};

absl::StatusOr<WrittenPage> WritePage(const std::string& out, const std::string& path,
                                      const CommandLine& line, Terminal& terminal) {
  RETURN_IF_ERROR(CheckReplaced(path, line));
  ASSIGN_OR_RETURN(const Dataset dataset, Dataset::Open(out));
  ReportOptions options;
  options.name = DatasetName({out});
  options.folder = out;
  options.jobs = line.run.Jobs();
  ASSIGN_OR_RETURN(const DatasetReport report, MakePage(dataset, options, terminal));
  RETURN_IF_ERROR(WriteResultFile(path, report.html));
  return WrittenPage{report.html.size(), report.damaged};
}

}  // namespace

absl::StatusOr<DatasetReport> MakePage(const Dataset& dataset, const ReportOptions& options,
                                       Terminal& terminal) {
  NearProgress counts;
  Progress progress(terminal);
  progress.Watch([&] {
    ProgressView view;
    view.stage = options.near ? "hashing" : "looking";
    view.done = counts.done;
    view.total = counts.total;
    view.bytes_in = counts.bytes;
    view.errors = counts.bad;
    return view;
  });
  absl::StatusOr<DatasetReport> report = MakeReport(dataset, options, counts, StopSignal());
  progress.End();
  return report;
}

std::string DatasetName(const std::vector<std::string>& paths) {
  std::filesystem::path name(paths[0]);
  if (!name.has_filename()) name = name.parent_path();
  std::string text = name.filename().string();
  if (text.empty() || text == "." || text == "..") text = paths[0];
  return paths.size() == 1 ? text : StrCat(text, " and ", paths.size() - 1, " more");
}

absl::Status CheckPageOf(const std::string& out, const CommandLine& line,
                         const std::vector<std::string>& inputs) {
  if (!line.pack().report.has_value()) return absl::OkStatus();
  const std::string path = PagePath(out, line), shown = EscapeForTerminal(path);
  RETURN_IF_ERROR(CheckResultFile("--report", path, inputs));
  if (LiesIn(path, out)) {
    return InvalidArgumentError(StrCat("--report ", shown, " lies in the dataset ",
                                       EscapeForTerminal(out),
                                       ", whose manifest would not list it; put it elsewhere"));
  }
  // The folder of the default name is that of the dataset, which the run makes.
  if (!line.pack().report->empty()) RETURN_IF_ERROR(CheckFolderOf("--report", path));
  return CheckReplaced(path, line);
}

void PublishedPage::AddTo(nlohmann::json& summary) const {
  if (!asked) return;
  summary["report"] = nullptr;
  if (bytes > 0) summary["report"] = {{"out", PercentEscape(path)}, {"bytes", bytes}};
}

PublishedPage WritePageOf(const std::string& out, const CommandLine& line, Terminal& terminal) {
  PublishedPage page;
  if (!line.pack().report.has_value()) return page;
  page.asked = true;
  page.path = PagePath(out, line);
  const absl::StatusOr<WrittenPage> written = WritePage(out, page.path, line, terminal);
  const std::string shown = EscapeForTerminal(page.path);
  if (!written.ok()) {
    const absl::Status& status = written.status();
    page.code =
        Fail(absl::Status(status.code(), StrCat(status.message(), "; ", EscapeForTerminal(out),
                                                " is published all the same")),
             terminal);
    terminal.Raw(StrCat("For the page, type:\n  ", ReportCommand(out, page.path), "\n"));
    return page;
  }
  page.bytes = written->bytes;
  SayRow("report", StrCat(shown, ", ", FormatBytes(page.bytes)), terminal);
  if (written->damaged) {
    page.code =
        Fail(absl::DataLossError(StrCat(EscapeForTerminal(out), " is published, and damaged; ",
                                        shown, " says what of it could be read")),
             terminal);
  }
  return page;
}

}  // namespace shardpack::cli
