#include "formats/formats.h"

#include <errno.h>
#include <sys/stat.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "formats/core/find_shard.h"
#include "formats/hdf5/hdf5_format.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"
#include "formats/lmdb/lmdb_format.h"
#include "formats/npy/npy_format.h"
#include "formats/tfrecord/tfrecord_format.h"
#include "formats/webdataset/webdataset_format.h"

namespace shardpack {
namespace {

constexpr const Format* kFormats[] = {
    &kWebDatasetFormat, &kTfrecordFormat, &kLmdbFormat, &kHdf5Format, &kNpyFormat,
};

// True for a regular file, false for a folder.
absl::StatusOr<bool> IsRegularFile(const std::string& path) {
  struct stat facts;
  if (::stat(path.c_str(), &facts) != 0) return IoStatus("stat", path, errno);
  if (S_ISREG(facts.st_mode)) return true;
  if (S_ISDIR(facts.st_mode)) return false;
  return absl::InvalidArgumentError(
      absl::StrCat(EscapeForTerminal(path), " is neither a file nor a folder"));
}

}  // namespace

std::span<const Format* const> AllFormats() { return kFormats; }

const Format* FindFormat(std::string_view name) {
  for (const Format* format : kFormats) {
    if (format->name == name) return format;
  }
  return nullptr;
}

absl::StatusOr<const Format*> SniffFormat(const std::string& path) {
  ASSIGN_OR_RETURN(bool is_file, IsRegularFile(path));
  ASSIGN_OR_RETURN(const FoundShard found, FindShard(path, !is_file, kFormats));
  return found.format;
}

}  // namespace shardpack
