#include "converters/publishing/file_damage.h"

#include <errno.h>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "formats/io/file.h"
#include "formats/io/sequential_reader.h"
#include "formats/io/status_macros.h"

namespace shardpack {

absl::StatusOr<std::string> DamageOf(const std::string& path, const FileEntry& entry, bool full,
                                     const std::function<absl::Status(uint64_t bytes)>& on_block) {
  struct stat facts;
  if (::stat(path.c_str(), &facts) != 0) {
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return std::string("missing");
    return IoStatus("look at", path, errno);
  }
  if (!S_ISREG(facts.st_mode)) return std::string("not a file");
  const auto bytes = static_cast<uint64_t>(facts.st_size);
  if (bytes != entry.bytes)
    return absl::StrCat(bytes, " bytes where ", entry.bytes, " are expected");
  if (!full) return std::string();
  ASSIGN_OR_RETURN(File file, File::OpenRead(path));
  SequentialReader in(file, bytes);
  in.OnBlock(on_block);
  absl::StatusOr<Digest> digest = in.Finish();
  if (absl::IsCancelled(digest.status())) return digest.status();
  // A disk that does not give its bytes back, or a file that changes while it is read.
  if (!digest.ok()) return std::string(digest.status().message());
  return std::string(*digest == entry.xxh3_128 ? "" : "other bytes");
}

}  // namespace shardpack
