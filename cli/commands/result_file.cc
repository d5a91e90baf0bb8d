#include "cli/commands/result_file.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <span>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "cli/commands/out_folder.h"
#include "cli/terminal/stop_signal.h"
#include "converters/listing/key_list.h"
#include "formats/core/manifest.h"
#include "formats/formats.h"
#include "formats/io/escape.h"
#include "formats/io/exists.h"
#include "formats/io/file.h"
#include "formats/io/relative_path.h"
#include "formats/io/same_file.h"
#include "formats/io/status_macros.h"
#include "validators/looking/dataset_report.h"

namespace shardpack::cli {
namespace {

using absl::StrCat;

absl::StatusOr<std::string> BeginningOf(const std::string& path) {
  ASSIGN_OR_RETURN(const File file, File::OpenRead(path));
  std::string beginning(1024, '\0');
  ASSIGN_OR_RETURN(const size_t got, file.ReadAt(0, std::as_writable_bytes(std::span(beginning))));
  beginning.resize(got);
  return beginning;
}

// Whether a manifest of pack is there. Others call files so, too.
bool IsDataset(const std::string& folder) {
  const absl::StatusOr<std::string> text =
      BeginningOf(StrCat(folder, "/", std::string(kManifestName)));
  return text.ok() && text->starts_with("{\n \"classes\": ");  // of its sorted members the first
}

// The folder of a dataset that `folder` lies below; empty if there is none.
std::string DatasetAbove(const std::string& folder) {
  std::error_code error;
  std::filesystem::path at = std::filesystem::canonical(folder, error);
  if (error) return "";
  for (; at != at.parent_path(); at = at.parent_path()) {
    if (IsDataset(at.string())) return at.string();
  }
  return "";
}

// The input that holds the path: a folder, or a shard indexed in place wherever it is. Empty if
// there is none.
std::string InputAbove(const std::string& path, const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    std::error_code error;
    if (!std::filesystem::is_directory(input, error)) continue;
    if (LiesIn(path, input)) return input;
    const absl::StatusOr<Manifest> manifest = Manifest::Read(input);
    if (!manifest.ok() || !manifest->indexed_in_place()) continue;
    for (const ManifestShard& shard : manifest->shards) {
      std::filesystem::path data = PathInDataset(input, manifest->DataFileOf(shard));
      const Format* format = FindFormat(manifest->format);
      if (format != nullptr && data.filename() == format->traits.data_file)
        data = data.parent_path();  // the shard is a folder
      if (LiesIn(path, data.string())) return data.string();
    }
  }
  return "";
}

}  // namespace

const ResultKind kPage = {"page of pack report", &IsReport};
const ResultKind kKeyList = {"list of pack dups", [](std::string_view beginning) {
                               return beginning.starts_with(kKeyListMark);
                             }};

absl::StatusOr<bool> IsOfKind(const std::string& path, const ResultKind& kind) {
  ASSIGN_OR_RETURN(const std::string beginning, BeginningOf(path));
  return kind.written(beginning);
}

absl::Status CheckResultFile(std::string_view flag, const std::string& path,
                             const std::vector<std::string>& inputs, const ResultKind& kind) {
  const std::string named = StrCat(std::string(flag), " ", EscapeForTerminal(path));
  const auto refused = [&](const std::string& why) {
    return absl::InvalidArgumentError(StrCat(named, why));
  };
  if (path == "-" || path == "./-")  // as the command line keeps it from being a flag
    return refused(": it is written to a file, not to standard output; name one");
  const std::string folder = ParentFolder(path);
  struct stat facts;
  const bool there = ::stat(path.c_str(), &facts) == 0;
  if (there && !S_ISREG(facts.st_mode)) return refused(" is not a file");
  for (const std::string& input : inputs) {
    struct stat other;
    if (there && ::stat(input.c_str(), &other) == 0 && IsSameFile(facts, other))
      return refused(" is one of the inputs, which it would replace");
  }
  ASSIGN_OR_RETURN(const bool in_dataset, Exists(StrCat(folder, "/", std::string(kManifestName))));
  if (in_dataset) {
    return refused(
        ": that folder is a dataset, whose manifest would not list the file; put it elsewhere");
  }
  if (const std::string dataset = DatasetAbove(folder); !dataset.empty()) {
    return refused(StrCat(" lies in the dataset ", EscapeForTerminal(dataset),
                          ", whose manifest would not list it; put it elsewhere"));
  }
  if (const std::string input = InputAbove(path, inputs); !input.empty()) {
    return refused(StrCat(" lies in the source ", EscapeForTerminal(input),
                          ", which is only read; put it elsewhere"));
  }
  if (!there || facts.st_size == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const bool replaceable, IsOfKind(path, kind));
  if (replaceable) return absl::OkStatus();
  return absl::FailedPreconditionError(StrCat(EscapeForTerminal(path), " is in the way of ",
                                              std::string(flag), ", and no ", kind.name,
                                              "; name another file, or move it away"));
}

absl::Status CheckFolderOf(std::string_view flag, const std::string& path) {
  const std::string folder = ParentFolder(path);
  if (std::error_code error; std::filesystem::is_directory(folder, error)) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat(std::string(flag), " ", EscapeForTerminal(path),
                                           ": there is no folder ", EscapeForTerminal(folder)));
}

absl::Status WriteResultFile(const std::string& path, std::string_view text) {
  const std::string part = StrCat(path, ".part-", ::getpid());
  EndAtOnceOnSignal(false);
  RETURN_IF_ERROR(RemoveFile(part));
  ASSIGN_OR_RETURN(File file, File::CreateExclusive(part));
  const Bytes bytes = AsBytes(text);
  absl::Status written = file.Write({&bytes, 1});
  if (written.ok()) written = file.Close();
  if (written.ok() && StopSignal() != 0) written = absl::CancelledError("interrupted");
  if (written.ok() && ::rename(part.c_str(), path.c_str()) != 0)
    written = IoStatus("rename", path, errno);
  if (!written.ok()) (void)RemoveFile(part);
  return written;
}

}  // namespace shardpack::cli
