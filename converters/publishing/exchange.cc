#include "converters/publishing/exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "converters/publishing/conflict.h"
#include "converters/publishing/pack_folder.h"
#include "converters/publishing/pack_names.h"
#include "converters/publishing/replacement.h"
#include "formats/core/manifest.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/io/list_folder.h"
#include "formats/io/same_file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr uint64_t kMaxMarkBytes = 64;
constexpr char kOtherFolder[] = "; build into another folder";

absl::Status CannotBeReplaced(const std::string& out, const std::string& why) {
  return Conflict(out, absl::StrCat(why, kOtherFolder));
}

// The first line is a mark, or a power failure kept the text from reaching the disk.
std::string_view MarkIn(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  return ParseDigest(line) ? line : std::string_view();
}

absl::StatusOr<bool> BearsMark(const OwnedFolder& folder, std::string_view mark) {
  const absl::StatusOr<std::string> text = folder.Read(kReplacedByName, kMaxMarkBytes);
  if (text.ok()) return !mark.empty() && MarkIn(*text) == mark;
  if (IsAboutThePath(text.status()) || absl::IsFailedPrecondition(text.status())) return false;
  return text.status();
}

// Removes the folder itself; false if it is not empty.
absl::StatusOr<bool> RemoveEmpty(const std::string& path) {
  if (::rmdir(path.c_str()) == 0 || errno == ENOENT) return true;
  if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR) return false;
  return IoStatus("remove", path, errno);
}

// Removes what is left when a run was killed after it removed the mark.
absl::StatusOr<bool> RemoveUnmarked(const OwnedFolder& folder) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(folder.path()));
  if (!names.empty() && names != std::vector<std::string>{std::string(kPackFolder)}) return false;
  const absl::Status removed = folder.RemoveEmptyFolder(kPackFolder);
  if (absl::IsFailedPrecondition(removed)) return false;  // a link or a file
  if (!removed.ok()) return removed;
  return RemoveEmpty(folder.path());
}

}  // namespace

std::string NewMark() {
  std::random_device chance;
  return absl::StrFormat("%08x%08x%08x%08x", chance(), chance(), chance(), chance());
}

std::string ReplacedText(const ReplacedNote& note) {
  return absl::StrCat(note.mark, "\n", NamesText(note.names));
}

bool IsReplacedText(std::string_view text) {
  text = text.substr(0, text.find('\0'));
  return text.empty() || (!MarkIn(text).empty() && IsNamesText(text));
}

std::string ReplacesText(const std::string& out) {
  const std::string last = std::filesystem::path(out).filename().native();
  const std::string name = IsDatasetFileName(last) ? last : Xxh3_128(AsBytes(last)).ToHex();
  return absl::StrCat(name, "\n", Xxh3_128(AsBytes(name)).ToHex(), "\n");
}

bool IsReplacesText(std::string_view text) {
  text = text.substr(0, text.find('\0'));
  return text.empty() || text == ReplacesText(std::string(text.substr(0, text.find('\n'))));
}

absl::Status CheckNotMounted(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().native();
  struct stat of_path, of_parent;
  if (::lstat(path.c_str(), &of_path) != 0)
    return errno == ENOENT ? absl::OkStatus() : IoStatus("look at", path, errno);
  if (::stat(parent.c_str(), &of_parent) != 0) return IoStatus("look at", parent, errno);
  // Only this attribute reveals that a folder of the same file system is mounted here; kernels
  // before 5.8 do not have it.
  struct statx facts;
  const bool root =
      ::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &facts) == 0 &&
      (facts.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
  if (!root && of_path.st_dev == of_parent.st_dev) return absl::OkStatus();
  return CannotBeReplaced(path,
                          "is a mount point or a volume of its own, which no other folder can take "
                          "the place of, as with --overwrite");
}

absl::Status TryExchange(const OwnedFolder& beside, const std::string& out) {
  absl::Status status;
  for (const std::string_view name : kTriedFolders) {
    if (status.ok()) status = MakeDirectory(beside.PathOf(name));
  }
  if (status.ok()) {
    status = ExchangeFolders(beside.PathOf(kTriedFolders[0]), beside.PathOf(kTriedFolders[1]), out);
  }
  for (const std::string_view name : kTriedFolders) status.Update(beside.RemoveEmptyFolder(name));
  return status;
}

absl::Status MarkReplaced(const OwnedFolder& out, const std::string& mark, bool sync) {
  RETURN_IF_ERROR(out.RemoveFile(kReplacedByName));  // from an earlier attempt
  ASSIGN_OR_RETURN(File file, File::CreateExclusive(out.PathOf(kReplacedByName)));
  const std::string line = absl::StrCat(mark, "\n");
  RETURN_IF_ERROR(file.Write(std::array{AsBytes(line)}));
  if (sync) {
    RETURN_IF_ERROR(file.SyncData());
  }
  RETURN_IF_ERROR(file.Close());
  if (!sync) return absl::OkStatus();
  RETURN_IF_ERROR(SyncDirectory(out.PathOf(kPackFolder)));
  return SyncDirectory(out.path());
}

absl::Status ExchangeFolders(const std::string& one, const std::string& other,
                             const std::string& out) {
  struct stat before, after;
  if (::lstat(one.c_str(), &before) != 0) return IoStatus("look at", one, errno);
  if (SyscallsForTesting().renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(),
                                     RENAME_EXCHANGE) == 0)
    return absl::OkStatus();
  const int error = errno;
  // Perhaps only a server's reply was lost.
  if (::lstat(other.c_str(), &after) == 0 && IsSameFile(before, after)) return absl::OkStatus();
  if (error != EINVAL && error != ENOSYS && error != EOPNOTSUPP && error != EXDEV && error != EBUSY)
    return IoStatus("exchange with the new dataset", out, error);
  return CannotBeReplaced(
      out, absl::StrCat("cannot be exchanged with the new dataset, as --overwrite does: its file "
                        "system answers \"",
                        std::generic_category().message(error), "\""));
}

absl::StatusOr<bool> IsReplacement(const std::string& dataset) {
  const absl::StatusOr<std::string> text =
      ReadWholeFile(absl::StrCat(dataset, "/", std::string(kReplacedName)), kMaxNamesBytes);
  if (absl::IsNotFound(text.status())) return false;
  if (!text.ok()) return text.status();
  return IsReplacedText(*text);
}

absl::StatusOr<bool> FinishReplacement(const std::string& dataset, const std::string& old) {
  const std::string note = absl::StrCat(dataset, "/", std::string(kReplacedName));
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(note, kMaxNamesBytes));
  const absl::StatusOr<OwnedFolder> folder = OwnedFolder::OpenNoLink(old);
  if (absl::IsNotFound(folder.status())) return true;  // an earlier run has already done this
  if (absl::IsFailedPrecondition(folder.status()) || absl::IsPermissionDenied(folder.status()))
    return false;
  if (!folder.ok()) return folder.status();
  const std::string_view mark = MarkIn(text);
  ASSIGN_OR_RETURN(const bool is_old, BearsMark(*folder, mark));
  if (!is_old) return RemoveUnmarked(*folder);
  // The manifest, removed next, lists what the stages hold.
  RETURN_IF_ERROR(RemoveStage(*folder));
  RETURN_IF_ERROR(RemoveMade(*folder, ParseNames(text.substr(mark.size()))));
  constexpr char kAdvice[] =
      "the new dataset is in place; move these away and run the same command again";
  RETURN_IF_ERROR(CheckHoldsOnly(old, {}, kAdvice));
  RETURN_IF_ERROR(RemovePackFolder(*folder));
  ASSIGN_OR_RETURN(const bool gone, RemoveEmpty(old));
  if (!gone) {  // something was added just now
    RETURN_IF_ERROR(CheckHoldsOnly(old, {}, kAdvice));
  }
  return true;
}

std::string NotTheReplaced(const std::string& path) {
  return absl::StrCat(EscapeForTerminal(path),
                      " is not the dataset that was replaced; nothing in it was touched");
}

}  // namespace shardpack
