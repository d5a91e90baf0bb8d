#include "formats/io/list_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>

#include "formats/io/file.h"

namespace shardpack {

absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path) {
  std::vector<std::string> names;
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const absl::Status read = ListOpenFolder(folder, path, [&](const dirent& entry) {
    names.emplace_back(entry.d_name);
    return true;
  });
  if (!read.ok()) return read;
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status ListOpenFolder(int descriptor, const std::string& path,
                            const std::function<bool(const dirent& entry)>& take) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(
      descriptor < 0 ? nullptr : ::fdopendir(descriptor), ::closedir);
  if (folder == nullptr) {
    const int error = errno;
    if (descriptor >= 0) ::close(descriptor);
    return IoStatus("list", path, error);
  }
  for (;;) {
    errno = 0;  // an error and the end look alike
    const dirent* const entry = ::readdir(folder.get());
    if (entry == nullptr && errno != 0) return IoStatus("list", path, errno);
    if (entry == nullptr) return absl::OkStatus();
    const std::string_view name = entry->d_name;
    if (name != "." && name != ".." && !take(*entry)) return absl::OkStatus();
  }
}

}  // namespace shardpack
