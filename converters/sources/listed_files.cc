#include "converters/sources/listed_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "converters/listing/first_few.h"
#include "converters/listing/hidden_entries.h"
#include "converters/listing/input_failure.h"
#include "converters/listing/offered_flags.h"
#include "converters/sources/folder_access.h"
#include "formats/io/file.h"
#include "formats/io/list_folder.h"
#include "formats/io/relative_path.h"
#include "formats/io/url.h"

namespace shardpack {
namespace {

constexpr uint64_t kStatChunk = 256;  // rows per task
constexpr size_t kNamedRoots = 5;

// The facts about one file after checking it.
struct FileFacts {
  uint64_t bytes = 0;
  int64_t mtime_ns = 0;
  std::optional<SkipReason> reason = std::nullopt;
  std::string detail = {};
  absl::Status failed = absl::OkStatus();  // nothing is known about the file
};

FileFacts Unusable(SkipReason reason, std::string detail) {
  return {.reason = reason, .detail = std::move(detail)};
}

FileFacts Failed(const std::string& path, int error) {
  if (error == ENOENT || error == ENOTDIR)
    return Unusable(SkipReason::kVanished, "there is no such file");
  std::variant<Skip, absl::Status> failure = InputFailure(0, "look at", path, error);
  if (absl::Status* status = std::get_if<absl::Status>(&failure))
    return {.failed = std::move(*status)};
  return Unusable(std::get<Skip>(failure).reason, strerrordesc_np(error));
}

// Checks files folder by folder.
class Looker {
 public:
  Looker(int root, const std::string& root_path, bool follow)
      : root_(root), root_path_(root_path), follow_(follow) {}

  FileFacts Look(const Listing& listing, uint32_t folder, const std::string& name) {
    if (!opened_ || folder_ != folder) {
      opened_ = true;
      folder_ = folder;
      handle_ = Descriptor(OpenBelow(root_, listing.folders[folder], O_PATH | O_DIRECTORY));
      error_ = handle_.ok() ? 0 : errno;
      leaves_ = handle_.ok() && !follow_ && !LiesInside(handle_);
    }
    const auto failed = [&](int error) {
      return Failed(absl::StrCat(root_path_, "/", listing.folders[folder], "/", name), error);
    };
    if (error_ != 0) return failed(error_);
    if (leaves_)
      return Unusable(SkipReason::kOutsideRoot,
                      "behind a link to a folder; --follow packs what it holds");
    struct stat info;
    if (::fstatat(handle_.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
      return failed(errno);
    if (S_ISLNK(info.st_mode)) {
      const Descriptor target(OpenAt(handle_.get(), name.c_str(), O_PATH));
      if (!target.ok() && errno == ENOENT) return Unusable(SkipReason::kDangling, "");
      if (!target.ok()) return failed(errno);
      if (!follow_ && !LiesInside(target)) {
        return Unusable(SkipReason::kOutsideRoot, "a link; --follow packs its target");
      }
      if (::fstatat(target.get(), "", &info, AT_EMPTY_PATH) != 0) return failed(errno);
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

bool HoldsAll(int folder, const Listing& listing) {
  std::string path;
  for (uint64_t row = 0; row < listing.rows(); ++row) {
    path.clear();
    listing.AppendPath(row, path);
    if (!Descriptor(OpenBelow(folder, path, O_PATH)).ok()) return false;
  }
  return true;
}

// The folders below the root that have every file of the list, sorted by name; stops one after
// those that a message names. Names cannot show which of several is meant: the same number may
// stand for another picture in each.
std::vector<std::string> RootsThatFit(int root, const Listing& listing) {
  std::vector<std::string> roots;
  const absl::StatusOr<std::vector<std::string>> names = ListFolder(listing.root);
  if (!names.ok()) return roots;
  for (const std::string& name : *names) {
    if (IsHiddenFolder(name)) continue;
    const Descriptor folder(OpenBelow(root, name, O_PATH | O_DIRECTORY));
    if (folder.ok() && HoldsAll(folder.get(), listing))
      roots.push_back(absl::StrCat(listing.root, "/", name));
    if (roots.size() > kNamedRoots) break;
  }
  return roots;
}

}  // namespace

std::string RootOf(const std::string& given, const std::string& list) {
  return given.empty() ? ParentFolder(list) : given;
}

absl::StatusOr<std::string> PathBelowRoot(std::string_view path, std::string_view root) {
  if (!SchemeOf(path).empty()) {
    return absl::InvalidArgumentError(
        "a URL; copy the files here, and list their paths below the folder of --root");
  }
  if (path.starts_with('/')) {
    if (!IsBelow(root, path) || path.size() <= root.size()) {
      return absl::InvalidArgumentError(absl::StrCat("the path is absolute and not below ",
                                                     EscapeForTerminal(root),
                                                     " (--root says what it shall be below)"));
    }
    path.remove_prefix(root.size());
  }
  if (HasParentComponent(path)) return absl::InvalidArgumentError("the path has a component ..");
  const std::string_view last = path.substr(path.rfind('/') + 1);
  if (last.empty() || last == ".") return absl::InvalidArgumentError("the path ends with a folder");
  return PlainPath(path);
}

absl::Status LookAtFiles(int root, const FolderSourceOptions& options, IoPool& pool,
                         Listing& listing, std::atomic<uint64_t>& listed) {
  const std::vector<Sidecar>& parts = options.sidecars;
  const uint64_t count = listing.name_ends.size();
  for (const Sidecar& part : parts) listing.fields.push_back({part.field, part.suffix});
  listing.bytes.assign(count, 0);
  listing.mtime_ns.assign(count, 0);
  listing.field_bytes.assign(count * parts.size(), 0);
  listing.field_mtime_ns.assign(count * parts.size(), 0);
  std::mutex mutex;  // guards the next two
  absl::Status failed;
  const auto take = [&](uint64_t row, const FileFacts& facts, const std::string& what,
                        bool* skipped) {
    const std::lock_guard lock(mutex);
    failed.Update(facts.failed);
    if (!facts.reason || *skipped) return;
    *skipped = true;
    listing.skips.push_back({row, *facts.reason, absl::StrCat(what, facts.detail)});
  };
  pool.ForEach((count + kStatChunk - 1) / kStatChunk, [&](size_t chunk) {
    Looker looker(root, listing.root, options.follow);
    const uint64_t end = std::min(count, (chunk + 1) * kStatChunk);
    for (uint64_t row = chunk * kStatChunk; row < end; ++row) {
      const FileFacts image =
          looker.Look(listing, listing.folder[row], std::string(listing.Name(row)));
      listing.bytes[row] = image.bytes;
      listing.mtime_ns[row] = image.mtime_ns;
      bool skipped = false;
      if (image.reason || !image.failed.ok()) take(row, image, "", &skipped);
      for (size_t p = 0; p < parts.size(); ++p) {
        const std::string name =
            absl::StrCat(std::string(Stem(listing.Name(row))), ".", parts[p].suffix);
        const FileFacts part = looker.Look(listing, listing.folder[row], name);
        // A part that exists but cannot be read is not missing.
        if ((part.reason && *part.reason != SkipReason::kVanished) || !part.failed.ok())
          take(row, part, absl::StrCat("its part ", parts[p].field, ": "), &skipped);
        listing.field_bytes[row * parts.size() + p] = part.reason ? kNoPart : part.bytes;
        listing.field_mtime_ns[row * parts.size() + p] = part.mtime_ns;
      }
    }
    listed.fetch_add(end - chunk * kStatChunk, std::memory_order_relaxed);
  });
  std::sort(listing.skips.begin(), listing.skips.end(),
            [](const Skip& a, const Skip& b) { return a.row < b.row; });
  return failed;
}

absl::Status CheckFound(int root, const std::string& named_by, const Listing& listing) {
  const auto vanished = [](const Skip& skip) { return skip.reason == SkipReason::kVanished; };
  if (listing.rows() == 0 || listing.skips.size() < listing.rows() ||
      !std::all_of(listing.skips.begin(), listing.skips.end(), vanished))
    return absl::OkStatus();
  const std::string first = listing.Path(0);
  absl::Status missing = absl::InvalidArgumentError(
      absl::StrCat("none of the ", listing.rows(), " images that ", EscapeForTerminal(named_by),
                   " names is there; the first would be ", EscapeForTerminal(listing.root), "/",
                   EscapeForTerminal(first), ". Paths are relative to ",
                   EscapeForTerminal(listing.root), "; --root DIR gives another folder"));
  const std::vector<std::string> roots = RootsThatFit(root, listing);
  if (roots.size() == 1) return OfferFlags(missing, {{"--root", roots[0]}});
  if (roots.empty()) return missing;
  return absl::InvalidArgumentError(
      absl::StrCat(missing.message(),
                   ". More than one folder there has files of all these names, and "
                   "which of them are meant is not told by names: ",
                   FirstFew(roots, kNamedRoots)));
}

}  // namespace shardpack
