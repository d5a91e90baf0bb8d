#include "formats/io/staged_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/same_file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

// At this size, a write's overhead is small compared with the page-cache copy.
constexpr size_t kBufferBytes = 256 << 10;
// Copying fewer bytes than this into the buffer is cheaper than a separate vector.
constexpr size_t kGatherBytes = 32 << 10;

}  // namespace

absl::StatusOr<std::unique_ptr<StagedFile>> StagedFile::Create(const std::string& path) {
  ASSIGN_OR_RETURN(File file, File::CreateExclusive(path));
  return std::unique_ptr<StagedFile>(new StagedFile(std::move(file)));
}

StagedFile::StagedFile(File file) : file_(std::move(file)) { buffer_.reserve(kBufferBytes); }

StagedFile::~StagedFile() {
  if (!published_) ::unlink(file_.path().c_str());
}

absl::Status StagedFile::Remember(absl::Status status) {
  if (!status.ok() && failed_.ok()) failed_ = status;
  return status;
}

absl::Status StagedFile::Append(std::span<const Bytes> parts) {
  if (!failed_.ok()) return failed_;
  for (const Bytes part : parts) {
    size_ += part.size();
    if (part.size() >= kGatherBytes) {
      const std::array<Bytes, 2> both = {Bytes(buffer_), part};
      RETURN_IF_ERROR(Remember(file_.Write(both)));
      buffer_.clear();
      continue;
    }
    if (buffer_.size() + part.size() > kBufferBytes) {
      RETURN_IF_ERROR(Flush());
    }
    buffer_.insert(buffer_.end(), part.begin(), part.end());
  }
  return absl::OkStatus();
}

absl::Status StagedFile::Skip(uint64_t bytes) {
  RETURN_IF_ERROR(Flush());
  if (::lseek(file_.descriptor(), static_cast<off_t>(bytes), SEEK_CUR) < 0)
    return Remember(IoStatus("seek in", file_.path(), errno));
  size_ += bytes;
  return absl::OkStatus();
}

absl::Status StagedFile::Flush() {
  if (!failed_.ok()) return failed_;
  if (size_ == 0) {
    absl::StatusOr<uint64_t> size = file_.Size();
    if (!size.ok()) return Remember(size.status());
    size_ = *size;
    return absl::OkStatus();
  }
  const Bytes all(buffer_);
  absl::Status written = Remember(file_.Write(std::span(&all, 1)));
  buffer_.clear();
  return written;
}

absl::Status StagedFile::StartSync() {
  RETURN_IF_ERROR(Flush());
  // Without effect where a file system has no such call. A failed write is reported by fdatasync.
  (void)::sync_file_range(file_.descriptor(), 0, 0, SYNC_FILE_RANGE_WRITE);
  return absl::OkStatus();
}

absl::Status StagedFile::SyncData() {
  absl::Status flushed = Flush();
  return flushed.ok() ? Remember(file_.SyncData()) : flushed;
}

absl::Status StagedFile::Link(const std::string& final_path) {
  RETURN_IF_ERROR(Flush());
  struct stat mine, there;
  if (::fstat(file_.descriptor(), &mine) != 0)
    return Remember(IoStatus("look at", file_.path(), errno));
  RETURN_IF_ERROR(Remember(file_.Close()));
  if (::link(file_.path().c_str(), final_path.c_str()) != 0) {
    const int error = errno;
    // A network file system repeats a call whose reply was lost, and the repetition then sees the
    // result of the first call.
    const bool done =
        error == EEXIST && ::lstat(final_path.c_str(), &there) == 0 && IsSameFile(mine, there);
    if (!done) return Remember(IoStatus("link to", final_path, error));
  }
  failed_ = absl::FailedPreconditionError(
      absl::StrCat(EscapeForTerminal(final_path), " is already published"));
  return absl::OkStatus();
}

absl::Status StagedFile::Publish(const std::string& final_path) {
  return PublishBy(RenameNoReplace, final_path);
}

absl::Status StagedFile::Replace(const std::string& final_path) {
  const auto rename = [](const std::string& from, const std::string& to) {
    return ::rename(from.c_str(), to.c_str()) == 0 ? absl::OkStatus()
                                                   : IoStatus("rename to", to, errno);
  };
  return PublishBy(rename, final_path);
}

absl::Status StagedFile::PublishBy(Rename rename, const std::string& final_path) {
  RETURN_IF_ERROR(Flush());
  const std::string staged_path = file_.path();
  RETURN_IF_ERROR(Remember(file_.Close()));
  absl::Status renamed = Remember(rename(staged_path, final_path));
  if (!renamed.ok()) return renamed;
  published_ = true;
  // Bytes appended now would stay in the buffer, never written.
  failed_ = absl::FailedPreconditionError(
      absl::StrCat(EscapeForTerminal(final_path), " is already published"));
  return renamed;
}

}  // namespace shardpack
