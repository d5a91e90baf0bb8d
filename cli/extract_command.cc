#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/extract_path.h"
#include "cli/failure.h"
#include "cli/packed_input.h"
#include "cli/progress.h"
#include "cli/stop_signal.h"
#include "cli/units.h"
#include "formats/io/escape.h"
#include "formats/io/file.h"

namespace shardpack::cli {
namespace {

using absl::StrCat;

constexpr uint64_t kNamedLosses = 20;

// Creates OUT, or finds it empty.
absl::Status PrepareOut(const std::string& out) {
  std::error_code error;
  std::filesystem::create_directories(out,
                                      error);  // says nothing when a file is there: opendir does
  if (error && error != std::errc::file_exists && error != std::errc::not_a_directory) {
    return IoStatus("create folder", out, error.value());
  }
  DIR* folder = ::opendir(out.c_str());
  if (folder == nullptr) {
    if (errno == ENOTDIR)
      return absl::FailedPreconditionError(
          StrCat(EscapeForTerminal(out), " is a file; extract needs a new or empty folder"));
    return IoStatus("open", out, errno);
  }
  bool empty = true;
  while (const dirent* entry = ::readdir(folder)) {
    const std::string_view name = entry->d_name;
    empty = empty && (name == "." || name == "..");
  }
  ::closedir(folder);
  if (empty) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat(EscapeForTerminal(out), " is not empty; extract into a new folder"));
}

class Extractor {
 public:
  Extractor(const Dataset& dataset, std::string out, Terminal& terminal)
      : dataset_(dataset), out_(std::move(out)), terminal_(terminal) {}

  // One sample; an error ends the run, what is withheld does not.
  absl::Status Extract(const SampleRow& row) {
    absl::StatusOr<OwnedSample> sample = dataset_.Read(row.id);
    if (absl::IsDataLoss(sample.status())) {
      Withhold(row, std::string(sample.status().message()));
      return absl::OkStatus();
    }
    if (!sample.ok()) return sample.status();
    bool written = false;
    for (const OwnedSample::Field& field : sample->fields) {
      const bool image = field.name == kImageField;
      // Of a dataset of ours the other fields were made from the source, not taken from it.
      if (!image && dataset_.manifest() != nullptr) continue;
      const std::string path = PathOf(row, *sample, field);
      const absl::Status status = Write(path, field.bytes);
      if (absl::IsAlreadyExists(status) || absl::IsInvalidArgument(status) ||
          absl::IsNotFound(status)) {
        Withhold(row, std::string(status.message()));
      } else if (!status.ok()) {
        return status;
      } else {
        written = true;
        ++files;
        bytes += field.bytes.size();
      }
    }
    if (!written && sample->fields.empty()) Withhold(row, "the sample has no field");
    return absl::OkStatus();
  }

  std::atomic<uint64_t> files = 0, withheld = 0, bytes = 0;

 private:
  // Where pixels were changed the image may be of another format than its source.
  std::string WithItsEnding(const std::string& path, ImageFormat format) const {
    if (dataset_.manifest() == nullptr || dataset_.manifest()->facts.pixels.count("format") == 0)
      return path;
    return NamedAs(path, format);
  }

  std::string PathOf(const SampleRow& row, const OwnedSample& sample,
                     const OwnedSample::Field& field) const {
    if (field.name == kImageField && !sample.source_path.empty())
      return HarmlessPath(WithItsEnding(sample.source_path, ImageOf(dataset_, row).format));
    const std::string key =
        sample.key.empty() ? StrCat(row.shard.name, "-", row.record) : sample.key;
    const std::string ending = field.name == kImageField
                                   ? std::string(ImageExtension(ImageOf(dataset_, row).format))
                                   : field.name;
    return HarmlessPath(StrCat(key, ".", ending));
  }

  absl::Status Write(const std::string& path, const std::string& content) {
    for (size_t slash = path.find('/'); slash != std::string::npos;
         slash = path.find('/', slash + 1)) {
      const std::string folder = StrCat(out_, "/", path.substr(0, slash));
      const absl::Status made = MakeDirectory(folder);
      if (!made.ok()) return made;
    }
    absl::StatusOr<File> file = File::CreateExclusive(StrCat(out_, "/", path));
    if (!file.ok()) return file.status();
    const Bytes part = AsBytes(content);
    const absl::Status written = file->Write({&part, 1});
    return written.ok() ? file->Close() : written;
  }

  void Withhold(const SampleRow& row, const std::string& why) {
    if (++withheld <= kNamedLosses) {
      terminal_.Warn(StrCat("withheld ", EscapeForTerminal(row.index.key(row.record)), ": ", why,
                            "; pack validate says what is wrong with the shard"));
    }
  }

  const Dataset& dataset_;
  const std::string out_;
  Terminal& terminal_;
};

std::string Json(const Extractor& extractor, const std::string& out) {
  const nlohmann::json json = {{"schema", "shardpack.extract/1"},
                               {"out", PercentEscape(out)},
                               {"files", extractor.files.load()},
                               {"bytes", extractor.bytes.load()},
                               {"withheld", extractor.withheld.load()}};
  return json.dump() + "\n";
}

}  // namespace

ExitCode RunExtract(const CommandLine& line, Terminal& terminal) {
  const std::string& out = line.arguments.back();
  absl::StatusOr<Dataset> dataset = OpenInput({line.arguments.data(), line.arguments.size() - 1});
  if (!dataset.ok()) return Fail(dataset.status(), terminal);
  absl::StatusOr<Selection> selection = Selection::Make(*dataset, line);
  if (!selection.ok()) return Fail(selection.status(), terminal);
  absl::Status status = PrepareOut(out);
  if (!status.ok()) return Fail(status, terminal);

  EndAtOnceOnSignal(false);
  Extractor extractor(*dataset, out, terminal);
  Progress progress(terminal);
  progress.Watch([&] {
    return ProgressView{.stage = "extracting",
                        .unit = "files",
                        .done = extractor.files,
                        .total = dataset->size(),
                        .bytes_out = extractor.bytes};
  });
  absl::Status failed;
  status = ForEachSample(*dataset, *selection, [&](const SampleRow& row) {
    failed = StopSignal() == 0 ? extractor.Extract(row) : absl::CancelledError();
    return failed.ok();
  });
  progress.End();
  if (status.ok()) status = failed;
  if (!status.ok()) return Fail(status, terminal);
  terminal.Say(StrCat("extracted ", Counted(extractor.files, "file", "files"), ", ",
                      FormatBytes(extractor.bytes), ", into ", EscapeForTerminal(out)));
  if (extractor.withheld > 0)
    terminal.Say(StrCat("withheld  ", FormatCount(extractor.withheld), " samples or fields"));
  Results results;
  if (line.json) results.Write(Json(extractor, out));
  return FinishResults(results, extractor.withheld > 0 ? ExitCode::kSkipped : ExitCode::kDone,
                       terminal);
}

}  // namespace shardpack::cli
