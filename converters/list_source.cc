#include "converters/list_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "converters/folder_access.h"
#include "converters/list_labels.h"
#include "formats/io/file.h"

namespace shardpack {
namespace {

constexpr uint64_t kMaxListBytes = uint64_t{16} << 30;
constexpr uint64_t kStatChunk = 256;  // rows a task
constexpr size_t kReadBytes = 1 << 20;

absl::StatusOr<std::string> ReadStandardInput() {
  std::string text;
  for (;;) {
    const size_t at = text.size();
    text.resize(at + kReadBytes);
    const ssize_t got = ::read(STDIN_FILENO, text.data() + at, kReadBytes);
    if (got < 0 && errno != EINTR) return IoStatus("read", "standard input", errno);
    text.resize(at + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) return text;
    if (text.size() > kMaxListBytes) {
      return absl::InvalidArgumentError(absl::StrCat("the list on standard input has more than ", kMaxListBytes, " bytes"));
    }
  }
}

absl::StatusOr<std::string> ReadList(const std::string& list) {
  if (list == "-") return ReadStandardInput();
  absl::StatusOr<std::string> text = ReadWholeFile(list, kMaxListBytes);
  if (absl::IsNotFound(text.status()) || absl::IsOutOfRange(text.status())) {
    return absl::InvalidArgumentError(text.status().message());
  }
  return text;
}

std::string RootOf(const ListSourceOptions& options) {
  if (!options.root.empty()) return options.root;
  const size_t slash = options.list == "-" ? std::string::npos : options.list.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : options.list.substr(0, slash);
}

// What is known of one file once it was looked at.
struct FileFacts {
  uint64_t bytes = 0;
  int64_t mtime_ns = 0;
  std::optional<SkipReason> reason = std::nullopt;
  std::string detail = {};
};

SkipReason ReasonOf(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return SkipReason::kVanished;
    case EACCES:
    case EPERM:
      return SkipReason::kPermission;
    case ELOOP:
      return SkipReason::kSymlinkLoop;
    default:
      return SkipReason::kIoError;
  }
}

FileFacts Unusable(SkipReason reason, std::string detail) { return {.reason = reason, .detail = std::move(detail)}; }

FileFacts Failed(int error) {
  if (error == ENOENT || error == ENOTDIR) return Unusable(SkipReason::kVanished, "there is no such file");
  return Unusable(ReasonOf(error), strerrordesc_np(error) == nullptr ? "" : strerrordesc_np(error));
}

// Looks at files of one folder after the other.
class Looker {
 public:
  Looker(int root, const std::string& root_path, bool follow) : root_(root), root_path_(root_path), follow_(follow) {}

  FileFacts Look(const Listing& listing, uint32_t folder, const std::string& name) {
    if (!opened_ || folder_ != folder) {
      opened_ = true;
      folder_ = folder;
      handle_ = Descriptor(OpenBelow(root_, listing.folders[folder], O_PATH | O_DIRECTORY));
      error_ = handle_.ok() ? 0 : errno;
      leaves_ = handle_.ok() && !follow_ && !LiesInside(handle_);
    }
    if (error_ != 0) return Failed(error_);
    if (leaves_) return Unusable(SkipReason::kOutsideRoot, "behind a link to a folder; --follow packs what it holds");
    struct stat info;
    if (::fstatat(handle_.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return Failed(errno);
    if (S_ISLNK(info.st_mode)) {
      const Descriptor target(OpenAt(handle_.get(), name.c_str(), O_PATH));
      if (!target.ok() && errno == ENOENT) return Unusable(SkipReason::kDangling, "");
      if (!target.ok()) return Failed(errno);
      if (!follow_ && !LiesInside(target)) {
        return Unusable(SkipReason::kOutsideRoot, "a link; --follow packs its target");
      }
      if (::fstatat(target.get(), "", &info, AT_EMPTY_PATH) != 0) return Failed(errno);
    }
    if (!S_ISREG(info.st_mode)) return Unusable(SkipReason::kNotRegular, "");
    return {.bytes = static_cast<uint64_t>(info.st_size),
            .mtime_ns = info.st_mtim.tv_sec * int64_t{1'000'000'000} + info.st_mtim.tv_nsec};
  }

 private:
  bool LiesInside(const Descriptor& file) const {
    const auto path = DescriptorPath(file.get());
    return path && IsBelow(root_path_, *path);
  }

  const int root_;
  const std::string& root_path_;
  const bool follow_;
  bool opened_ = false, leaves_ = false;
  uint32_t folder_ = 0;
  Descriptor handle_;
  int error_ = 0;
};

// Collects the rows of a list.
class Rows {
 public:
  Rows(const std::string& root, std::string_view file_name, bool wants_labels)
      : file_name_(file_name), wants_labels_(wants_labels) {
    listing.root = root;
  }

  absl::Status Add(const ListRow& row) {
    const absl::StatusOr<std::string> path = PathBelowRoot(row.path, listing.root);
    if (!path.ok()) return BadLine(file_name_, row.line, std::string(path.status().message()), row.text);
    const size_t slash = path->rfind('/');
    const std::string folder = slash == std::string::npos ? "" : path->substr(0, slash);
    const auto [known, added] = folders_.try_emplace(folder, static_cast<uint32_t>(listing.folders.size()));
    if (added) listing.folders.push_back(folder);
    listing.folder.push_back(known->second);
    listing.names.append(slash == std::string::npos ? *path : path->substr(slash + 1));
    listing.name_ends.push_back(listing.names.size());
    lines_.push_back(row.line);
    if (!wants_labels_) return absl::OkStatus();
    if (row.label) labels.Add(row.line, *row.label);
    if (labels.rows() != 0 && labels.rows() != lines_.size()) {
      return BadLine(file_name_, row.line, row.label ? "a label, where the lines before have none" : "no label, where the lines before have one", row.text);
    }
    return absl::OkStatus();
  }

  // The same path twice would be two samples of one name.
  absl::Status CheckUnique() const {
    std::vector<uint32_t> rows(lines_.size());
    std::iota(rows.begin(), rows.end(), uint32_t{0});
    const auto place = [&](uint32_t row) { return std::pair(listing.folder[row], listing.Name(row)); };
    std::stable_sort(rows.begin(), rows.end(), [&](uint32_t a, uint32_t b) { return place(a) < place(b); });
    uint32_t first = 0, second = 0;  // the second one that comes first in the list
    for (size_t i = 1; i < rows.size(); ++i) {
      if (place(rows[i - 1]) == place(rows[i]) && (second == 0 || rows[i] < second)) {
        first = rows[i - 1];
        second = rows[i];
      }
    }
    if (second == 0) return absl::OkStatus();
    return BadLine(file_name_, lines_[second], absl::StrCat("the path stands on line ", lines_[first], " already"),
                   listing.Path(second));
  }

  Listing listing;
  ListLabels labels;

 private:
  const std::string_view file_name_;
  const bool wants_labels_;
  absl::flat_hash_map<std::string, uint32_t> folders_;
  std::vector<uint64_t> lines_;
};

}  // namespace

absl::StatusOr<std::string> PathBelowRoot(std::string_view path, std::string_view root) {
  if (path.starts_with('/')) {
    if (!IsBelow(root, path) || path.size() <= root.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the path is absolute and not below ", EscapeForTerminal(root), " (--root says what it shall be below)"));
    }
    path.remove_prefix(root.size());
  }
  std::string below;
  for (bool more = true; more;) {
    const size_t slash = path.find('/');
    const std::string_view component = path.substr(0, slash);
    more = slash != std::string_view::npos;
    if (more) path.remove_prefix(slash + 1);
    if (component == "..") return absl::InvalidArgumentError("the path has a component ..");
    if (!more && (component.empty() || component == ".")) return absl::InvalidArgumentError("the path ends with a folder");
    if (component.empty() || component == ".") continue;
    if (!below.empty()) below.push_back('/');
    below.append(component);
  }
  return below;
}

ListSource::ListSource(ListSourceOptions options, FolderSourceOptions folder, IoPool& pool)
    : options_(std::move(options)),
      folder_options_(std::move(folder)),
      root_(RootOf(options_)),
      folder_(root_, folder_options_, pool),
      pool_(pool) {}

absl::StatusOr<Listing> ListSource::List() {
  using Labels = ListSourceOptions::Labels;
  const Descriptor root(OpenAt(AT_FDCWD, root_.c_str(), O_PATH | O_DIRECTORY));
  if (!root.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the root ", EscapeForTerminal(root_), " of the list is no folder that can be opened"));
  }
  const std::unique_ptr<char, decltype(&free)> real(realpath(root_.c_str(), nullptr), &free);
  const std::string root_path = DescriptorPath(root.get()).value_or(real != nullptr ? real.get() : root_);
  const std::string file_name = options_.list == "-" ? "standard input" : options_.list;
  absl::StatusOr<std::string> text = ReadList(options_.list);
  if (!text.ok()) return text.status();
  const bool wants_labels = options_.labels == Labels::kAuto || options_.labels == Labels::kColumn;
  Rows rows(root_path, file_name, wants_labels);
  absl::Status status =
      ParseList(*text, options_.format, file_name, [&](const ListRow& row) { return rows.Add(row); });
  if (status.ok()) status = rows.CheckUnique();
  if (!status.ok()) return status;
  *text = std::string();
  Listing& listing = rows.listing;
  const uint64_t count = listing.name_ends.size();
  if (count == 0) {
    return absl::InvalidArgumentError(absl::StrCat("the list ", EscapeForTerminal(file_name), " names no image"));
  }

  const std::vector<Sidecar>& parts = folder_options_.sidecars;
  for (const Sidecar& part : parts) listing.fields.push_back({part.field, part.suffix});
  listing.bytes.assign(count, 0);
  listing.mtime_ns.assign(count, 0);
  listing.field_bytes.assign(count * parts.size(), 0);
  listing.field_mtime_ns.assign(count * parts.size(), 0);
  std::mutex mutex;  // over the skips
  pool_.ForEach((count + kStatChunk - 1) / kStatChunk, [&](size_t chunk) {
    Looker looker(root.get(), root_path, folder_options_.follow);
    const uint64_t end = std::min(count, (chunk + 1) * kStatChunk);
    for (uint64_t row = chunk * kStatChunk; row < end; ++row) {
      const FileFacts image = looker.Look(listing, listing.folder[row], std::string(listing.Name(row)));
      listing.bytes[row] = image.bytes;
      listing.mtime_ns[row] = image.mtime_ns;
      if (image.reason) {
        const std::lock_guard lock(mutex);
        listing.skips.push_back({row, *image.reason, image.detail});
      }
      for (size_t p = 0; p < parts.size(); ++p) {
        const std::string name = absl::StrCat(std::string(Stem(listing.Name(row))), ".", parts[p].suffix);
        const FileFacts part = looker.Look(listing, listing.folder[row], name);
        listing.field_bytes[row * parts.size() + p] = part.reason ? kNoPart : part.bytes;
        listing.field_mtime_ns[row * parts.size() + p] = part.mtime_ns;
      }
    }
    listed_.fetch_add(end - chunk * kStatChunk, std::memory_order_relaxed);
  });
  std::sort(listing.skips.begin(), listing.skips.end(), [](const Skip& a, const Skip& b) { return a.row < b.row; });
  status = SettleMissingParts(folder_options_.missing, listing);
  if (!status.ok()) return status;

  const bool from_column = wants_labels && rows.labels.rows() > 0;
  if (options_.labels == Labels::kColumn && !from_column) {
    return absl::InvalidArgumentError(absl::StrCat("the list ", EscapeForTerminal(file_name),
                                                   " has no labels; --label-from dir takes the folders of the paths, none "
                                                   "packs without"));
  }
  if (from_column) {
    status = rows.labels.Finish(folder_options_.classes, folder_options_.class_order, file_name, listing);
  } else if (options_.labels == Labels::kNone) {
    listing.label.assign(count, -1);
  } else {
    status = AssignLabels(LabelOptionsOf(folder_options_), {}, listing);
  }
  if (!status.ok()) return status;
  return std::move(listing);
}

}  // namespace shardpack
