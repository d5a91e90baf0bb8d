#include "formats/formats.h"

#include <errno.h>
#include <sys/stat.h>

#include <array>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "formats/hdf5/hdf5_format.h"
#include "formats/io/bytes.h"
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

// What Format::sniff may look at.
constexpr size_t kHeadBytes = 1024;

std::string_view BaseName(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// True for a regular file, false for a folder.
absl::StatusOr<bool> IsRegularFile(const std::string& path) {
  struct stat facts;
  if (::stat(path.c_str(), &facts) != 0) return IoStatus("stat", path, errno);
  if (S_ISREG(facts.st_mode)) return true;
  if (S_ISDIR(facts.st_mode)) return false;
  return absl::InvalidArgumentError(
      absl::StrCat(EscapeForTerminal(path), " is neither a file nor a folder"));
}

absl::StatusOr<const Format*> SniffFile(const std::string& path, std::string_view name,
                                        bool in_folder) {
  ASSIGN_OR_RETURN(File file, File::OpenRead(path));
  std::array<std::byte, kHeadBytes> buffer;
  ASSIGN_OR_RETURN(size_t got, file.ReadAt(0, buffer));
  const Bytes head = Bytes(buffer).first(got);
  // A file's content says more than its name.
  for (const std::string_view hint : {std::string_view(), name}) {
    for (const Format* format : kFormats) {
      const bool is_folder_format = !format->traits.data_file.empty();
      if (is_folder_format != in_folder) continue;
      if (in_folder && format->traits.data_file != BaseName(path)) continue;
      if (format->sniff(head, hint)) return format;
    }
  }
  return nullptr;
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
  if (is_file) return SniffFile(path, BaseName(path), /*in_folder=*/false);
  for (const Format* format : kFormats) {
    if (format->traits.data_file.empty()) continue;
    const std::string data_path = absl::StrCat(path, "/", std::string(format->traits.data_file));
    absl::StatusOr<bool> data_is_file = IsRegularFile(data_path);
    if (absl::IsNotFound(data_is_file.status())) continue;
    if (!data_is_file.ok()) return data_is_file.status();
    if (!*data_is_file) continue;
    return SniffFile(data_path, BaseName(path), /*in_folder=*/true);
  }
  return nullptr;
}

}  // namespace shardpack
