#include "converters/publishing/file_damage.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "formats/io/file.h"
#include "formats/io/sequential_reader.h"
#include "formats/io/status_macros.h"

namespace shardpack {

absl::StatusOr<std::string> DamageOf(const std::string& path, const FileEntry& entry, bool full,
                                     const std::function<absl::Status(uint64_t bytes)>& on_block,
                                     Unreadable unreadable) {
  const auto unread = [&](const absl::Status& why) -> absl::StatusOr<std::string> {
    if (unreadable == Unreadable::kIsError) return why;
    return std::string(why.message());
  };
  struct stat facts;
  if (::stat(path.c_str(), &facts) != 0) {
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return std::string("missing");
    const int error = errno;
    const absl::Status looked = IoStatus("look at", path, error);
    if (error == EIO || IsAboutThePath(error)) return unread(looked);
    return looked;
  }
  if (!S_ISREG(facts.st_mode)) return std::string("not a file");
  const auto bytes = static_cast<uint64_t>(facts.st_size);
  if (bytes != entry.bytes)
    return absl::StrCat(bytes, " bytes where ", entry.bytes, " are expected");
  if (!full) return std::string();
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    const int error = errno;
    const absl::Status opened = IoStatus("open", path, error);
    // Running out of descriptors or memory is never damage.
    if (error == EIO || IsAboutThePath(error)) return unread(opened);
    return opened;
  }
  const File file(descriptor, path);
  SequentialReader in(file, bytes);
  in.OnBlock(on_block);
  absl::StatusOr<Digest> digest = in.Finish();
  if (absl::IsCancelled(digest.status())) return digest.status();
  // The file changes while it is read.
  if (absl::IsOutOfRange(digest.status())) return std::string(digest.status().message());
  if (!digest.ok()) return unread(digest.status());
  return std::string(*digest == entry.xxh3_128 ? "" : "other bytes");
}

}  // namespace shardpack
