#include "converters/sources/folder_listing.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "converters/listing/hidden_entries.h"
#include "converters/listing/path_filter.h"
#include "converters/listing/sidecars.h"
#include "converters/sources/extract_mark.h"
#include "converters/sources/folder_access.h"
#include "converters/sources/walked_folder.h"
#include "converters/threads/worklist.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr size_t kStatChunk = 2048;  // files per task; all threads share one huge folder
// On the path to one folder; limits how much links can multiply the tree.
constexpr int kMaxFolderLinks = 4;

// The kernel's own layout; readdir's buffer is too small for huge folders.
struct KernelEntry {
  uint64_t inode;
  int64_t next;
  uint16_t record_bytes;
  uint8_t type;
  char name[];
};

class Walker {
 public:
  Walker(int root, const std::string& root_path, const FolderSourceOptions& options,
         const PartWalk& part, IoPool& pool, std::atomic<uint64_t>& listed, WalkedFolders& into)
      : root_(root),
        root_path_(root_path),
        options_(options),
        filter_(options.extensions, options.any_extension, options.include, options.exclude),
        part_(part),
        pool_(pool),
        listed_(listed),
        calls_(FolderSyscallsForTesting()),
        above_(into.above),
        folders_(into.folders),
        lost_folders_(into.lost) {}

  absl::Status Walk() {
    for (const std::string& path : part_.folders)
      AddFolder(path, path.empty() ? nullptr : &Above(FolderAbove(path)), 0, "");
    worklist_.Run(pool_);
    return failure_;
  }
  std::vector<std::string> Unmatched() const { return filter_.Unmatched(); }

 private:
  // A folder that those of the part lie in: links to it are loops.
  WalkedFolder& Above(std::string_view path) {
    const auto [found, is_new] = above_.try_emplace(std::string(path));
    WalkedFolder& folder = found->second;
    if (!is_new) return folder;
    folder.path = found->first;
    if (!path.empty()) folder.parent = &Above(FolderAbove(path));
    const Descriptor opened(OpenBelow(root_, folder.path, O_PATH | O_DIRECTORY));
    struct stat info;
    if (opened.ok() && calls_.fstatat(opened.get(), "", &info, AT_EMPTY_PATH) == 0) {
      folder.device = info.st_dev;
      folder.inode = info.st_ino;
    }
    return folder;
  }

  WalkedFolder& NewFolder() {
    const std::lock_guard lock(mutex_);
    return folders_.emplace_back();
  }

  void AddFolder(std::string path, WalkedFolder* parent, int links, std::string link_target) {
    WalkedFolder* folder = &NewFolder();
    folder->path = std::move(path);
    folder->parent = parent;
    folder->links = links;
    folder->link_target = std::move(link_target);
    worklist_.Push([this, folder] { ReadFolder(*folder); });
  }

  void Fail(absl::Status status) {
    {
      const std::lock_guard lock(mutex_);
      if (failure_.ok()) failure_ = std::move(status);
    }
    worklist_.Stop();
  }
  bool Stopped() {
    if (part_.stop == nullptr || part_.stop->load(std::memory_order_relaxed) == 0) return false;
    Fail(absl::CancelledError("stopped by a signal"));
    return true;
  }
  void FailIo(std::string_view operation, std::string_view path, int error) {
    const std::string full =
        path.empty() ? root_path_ : absl::StrCat(root_path_, "/", std::string(path));
    const absl::Status status = IoStatus(operation, full, error);
    // A listing must never lose a folder silently, so every such error ends it.
    Fail(absl::IsResourceExhausted(status) || absl::IsPermissionDenied(status)
             ? status
             : absl::UnavailableError(status.message()));
  }

  // A folder that cannot be listed is one row: its own path.
  void SkipFolder(WalkedFolder& folder, SkipReason reason, std::string detail) {
    const std::lock_guard lock(mutex_);
    lost_folders_.push_back({&folder, reason, std::move(detail)});
  }

  bool OpenFolder(WalkedFolder& folder) {
    const int flags = O_RDONLY | O_DIRECTORY | (folder.link_target.empty() ? O_NOFOLLOW : 0);
    folder.fd = Descriptor(OpenBelow(root_, folder.path, flags));
    struct stat info;
    if (folder.fd.ok() && calls_.fstatat(folder.fd.get(), "", &info, AT_EMPTY_PATH) == 0) {
      folder.device = info.st_dev;
      folder.inode = info.st_ino;
      if (folder.link_target.empty() || !IsLoop(folder)) return true;
      SkipFolder(folder, SkipReason::kSymlinkLoop, "a link to a folder that it lies in");
      return false;
    }
    const int error = errno;
    if (folder.parent == nullptr) {
      FailIo("open", folder.path, error);
    } else if (error == EACCES || error == EPERM) {
      SkipFolder(folder, SkipReason::kPermission, "the folder cannot be listed");
    } else if (error == ENOENT || error == ENOTDIR) {
      SkipFolder(folder, SkipReason::kVanished, "the folder vanished while it was listed");
    } else if (error == ELOOP) {
      SkipFolder(folder, SkipReason::kSymlinkLoop, "the folder turned into a link");
    } else {
      FailIo("open", folder.path, error);
    }
    return false;
  }

  static bool IsLoop(const WalkedFolder& folder) {
    for (const WalkedFolder* above = folder.parent; above != nullptr; above = above->parent) {
      if (above->device == folder.device && above->inode == folder.inode) return true;
    }
    return false;
  }

  void ReadFolder(WalkedFolder& folder) {
    if (!OpenFolder(folder) || !ReadEntries(folder)) {
      folder.fd = Descriptor();
      folder.entries.clear();
      return;
    }
    std::sort(folder.entries.begin(), folder.entries.end(),
              [](const WalkedFile& a, const WalkedFile& b) {
                return a.inode_or_bytes < b.inode_or_bytes;
              });
    const size_t chunks = (folder.entries.size() + kStatChunk - 1) / kStatChunk;
    folder.chunks_left = std::max<size_t>(chunks, 1);
    for (size_t i = 1; i < chunks; ++i) worklist_.Push([this, &folder, i] { LookAt(folder, i); });
    LookAt(folder, 0);
  }

  bool ReadEntries(WalkedFolder& folder) {
    static constexpr size_t kBufferBytes = size_t{256} << 10;
    thread_local const std::unique_ptr<char[]> buffer(new char[kBufferBytes]);
    for (;;) {
      if (Stopped()) return false;
      const ssize_t got = calls_.getdents(folder.fd.get(), buffer.get(), kBufferBytes);
      if (got == 0) return true;
      if (got < 0) {
        if (errno == EINTR) continue;
        if (errno == ENOENT && folder.parent != nullptr) {
          SkipFolder(folder, SkipReason::kVanished, "the folder vanished while it was listed");
        } else {
          FailIo("list", folder.path, errno);
        }
        return false;
      }
      for (const char* at = buffer.get(); at < buffer.get() + got;) {
        KernelEntry entry;
        std::memcpy(&entry, at, offsetof(KernelEntry, name));
        const char* name = at + offsetof(KernelEntry, name);
        if (!AddEntry(folder, entry, std::string_view(name))) return false;
        at += entry.record_bytes;
      }
    }
  }

  bool AddEntry(WalkedFolder& folder, const KernelEntry& entry, std::string_view name) {
    if (name == "." || name == "..") return true;
    LookForPack(folder, name);
    if (entry.type == DT_DIR) {
      AddSubfolder(folder, name);
      return true;
    }
    // The type of a link or unknown entry, and whether it counts, is determined by a later stat.
    const bool plain = entry.type != DT_LNK && entry.type != DT_UNKNOWN;
    const bool part = IsPart(name);
    if (plain && !part && !filter_.HasInputExtension(name)) {
      Ignore(folder, name);
      return true;
    }
    if (plain && !part && !filter_.Accepts(folder.path, name)) return true;
    if (plain && IsHiddenFile(name)) {
      HideFile(folder, name);
      return true;
    }
    // The NUL stays, so that the name can be passed to the kernel directly.
    if (folder.names.size() + name.size() + 1 > std::numeric_limits<uint32_t>::max() ||
        name.size() > std::numeric_limits<uint16_t>::max()) {
      Fail(absl::ResourceExhaustedError(absl::StrCat(EscapeForTerminal(root_path_), "/",
                                                     EscapeForTerminal(folder.path),
                                                     ": more than 4 GiB of names in one folder")));
      return false;
    }
    folder.entries.push_back({.inode_or_bytes = entry.inode,
                              .mtime_ns = 0,
                              .name_at = static_cast<uint32_t>(folder.names.size()),
                              .name_bytes = static_cast<uint16_t>(name.size()),
                              .type = entry.type,
                              .outcome = WalkedFile::kUsable});
    folder.names.append(name.data(), name.size() + 1);
    return true;
  }

  // A link to a folder that is not followed: what it holds is as unknown as that of a folder that
  // cannot be listed.
  void SkipFolderLink(WalkedFolder& parent, WalkedFile& entry, SkipReason reason,
                      std::string detail) {
    entry.outcome = WalkedFile::kDropped;
    WalkedFolder& folder = NewFolder();
    folder.path = PathIn(parent, parent.Name(entry));
    folder.parent = &parent;
    SkipFolder(folder, reason, std::move(detail));
  }

  static bool IsExtractMark(const WalkedFolder& folder) {
    const Descriptor mark(
        OpenAt(folder.fd.get(), kExtractMarkName, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
    std::array<char, kExtractMarkBegin.size()> head;
    return mark.ok() && ::read(mark.get(), head.data(), head.size()) == std::ssize(head) &&
           std::string_view(head.data(), head.size()) == kExtractMarkBegin;
  }

  // Recognizes the marks that pack leaves in a folder. The source folder itself is left out only
  // for what has not ended: the user has said that it is a folder of images.
  static void LookForPack(WalkedFolder& folder, std::string_view name) {
    if (name == ".pack") {
      folder.packed |= Descriptor(OpenAt(folder.fd.get(), ".pack/lock", O_PATH | O_NOFOLLOW)).ok();
    } else if (name == kExtractMarkName) {
      folder.packed |= IsExtractMark(folder);
    } else if (name == "manifest.json") {
      folder.has_manifest = true;
    } else if (name.ends_with(".pidx")) {
      folder.has_index = true;
    }
    folder.packed |= folder.parent != nullptr && folder.has_manifest && folder.has_index;
  }

  // Files named by --fields always count: the filters select images only.
  bool IsPart(std::string_view name) const {
    return !options_.sidecars.empty() && SidecarOf(options_.sidecars, name).has_value();
  }

  static std::string PathIn(const WalkedFolder& folder, std::string_view name) {
    return folder.path.empty() ? std::string(name)
                               : absl::StrCat(folder.path, "/", std::string(name));
  }

  // Whether a folder is left out, for any reason.
  bool LeavesOut(WalkedFolder& folder, std::string_view name, const std::string& path) {
    if (filter_.ExcludesFolder(path)) return true;
    if (!IsHiddenFolder(name)) return false;
    const std::lock_guard lock(folder.mutex);
    folder.hidden.AddFolder(path);
    return true;
  }

  void HideFile(WalkedFolder& folder, std::string_view name) {
    const std::lock_guard lock(folder.mutex);
    folder.hidden.AddFile(PathIn(folder, name));
  }

  void AddSubfolder(WalkedFolder& folder, std::string_view name, std::string link_target = "") {
    std::string path = PathIn(folder, name);
    if (LeavesOut(folder, name, path)) return;
    if (part_.of_parts != nullptr && part_.of_parts->contains(path)) return;
    const int links = folder.links + (link_target.empty() ? 0 : 1);
    AddFolder(std::move(path), &folder, links, std::move(link_target));
  }

  void LookAt(WalkedFolder& folder, size_t chunk) {
    const size_t begin = chunk * kStatChunk;
    const size_t end = std::min(begin + kStatChunk, folder.entries.size());
    for (size_t i = begin; i < end; ++i) {
      if (Stopped()) return;
      LookAtEntry(folder, folder.entries[i]);
    }
    listed_.fetch_add(end - begin, std::memory_order_relaxed);
    if (folder.chunks_left.fetch_sub(1) == 1) FinishFolder(folder);
  }

  void LookAtEntry(WalkedFolder& folder, WalkedFile& entry) {
    if (entry.type == DT_LNK) return LookAtLink(folder, entry);
    struct stat info;
    const char* name = folder.names.c_str() + entry.name_at;
    if (calls_.fstatat(folder.fd.get(), name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
      return StatFailed(folder, entry, errno);
    }
    if (S_ISLNK(info.st_mode)) return LookAtLink(folder, entry);
    if (S_ISDIR(info.st_mode)) {
      AddSubfolder(folder, folder.Name(entry));
      entry.outcome = WalkedFile::kDropped;
      return;
    }
    if (entry.type != DT_UNKNOWN || Counts(folder, entry)) TakeFile(folder, entry, info);
  }

  // Whether an entry whose type was determined late is an input; if not, drops and counts it.
  bool Counts(WalkedFolder& folder, WalkedFile& entry) {
    const std::string_view name = folder.Name(entry);
    if (IsPart(name) || (filter_.HasInputExtension(name) && filter_.Accepts(folder.path, name))) {
      if (!IsHiddenFile(name)) return true;
      HideFile(folder, name);
    } else if (!filter_.HasInputExtension(name)) {
      Ignore(folder, name);
    }
    entry.outcome = WalkedFile::kDropped;
    return false;
  }

  void Ignore(WalkedFolder& folder, std::string_view name) {
    const std::lock_guard lock(folder.mutex);
    ++folder.ignored[NameExtension(name)];
    if (!options_.sidecars.empty()) folder.other_case.Look(options_.sidecars, folder.path, name);
  }

  void TakeFile(WalkedFolder& folder, WalkedFile& entry, const struct stat& info) {
    const uint64_t bytes = static_cast<uint64_t>(info.st_size);
    entry.inode_or_bytes = S_ISREG(info.st_mode) ? bytes : 0;
    entry.mtime_ns = info.st_mtim.tv_sec * int64_t{1'000'000'000} + info.st_mtim.tv_nsec;
    if (!S_ISREG(info.st_mode)) {
      SkipEntry(folder, entry, SkipReason::kNotRegular, "");
    } else if (bytes == 0) {
      SkipEntry(folder, entry, SkipReason::kEmpty, "");
    } else if (bytes > options_.max_file_bytes) {
      SkipEntry(folder, entry, SkipReason::kTooLarge,
                absl::StrCat(bytes, " bytes, the limit is ", options_.max_file_bytes));
    }
  }

  void SkipEntry(WalkedFolder& folder, WalkedFile& entry, SkipReason reason, std::string detail) {
    entry.outcome = static_cast<uint8_t>(reason);
    if (detail.empty()) return;
    const std::lock_guard lock(folder.mutex);
    folder.details.emplace_back(entry.name_at, std::move(detail));
  }

  void StatFailed(WalkedFolder& folder, WalkedFile& entry, int error) {
    entry.inode_or_bytes = 0;
    if (error == ENOENT) {
      SkipEntry(folder, entry, SkipReason::kVanished, "");
    } else if (error == EACCES || error == EPERM) {
      SkipEntry(folder, entry, SkipReason::kPermission, "");
    } else {
      FailIo("stat",
             absl::StrCat(folder.path, folder.path.empty() ? "" : "/",
                          std::string(folder.Name(entry))),
             error);
    }
  }

  void LookAtLink(WalkedFolder& folder, WalkedFile& entry) {
    const std::string_view name = folder.Name(entry);
    const Descriptor target(OpenAt(folder.fd.get(), name.data(), O_PATH));
    struct stat info;
    if (!target.ok() || calls_.fstatat(target.get(), "", &info, AT_EMPTY_PATH) != 0) {
      return LinkFailed(folder, entry, errno);
    }
    if (S_ISDIR(info.st_mode)) return TakeFolderLink(folder, entry, target, info);
    if (!Counts(folder, entry)) return;
    if (!options_.follow && !IsBelow(root_path_, RealPath(folder, entry, target))) {
      entry.inode_or_bytes = 0;
      return SkipEntry(folder, entry, SkipReason::kOutsideRoot,
                       "a link; --follow packs its target");
    }
    TakeFile(folder, entry, info);
  }

  void TakeFolderLink(WalkedFolder& folder, WalkedFile& entry, const Descriptor& target,
                      const struct stat& info) {
    if (LeavesOut(folder, folder.Name(entry), PathIn(folder, folder.Name(entry)))) {
      entry.outcome = WalkedFile::kDropped;
      return;
    }
    entry.inode_or_bytes = 0;
    std::string real = RealPath(folder, entry, target);
    const bool inside = IsBelow(root_path_, real);
    if (!options_.follow && !inside) {
      return SkipFolderLink(folder, entry, SkipReason::kOutsideRoot,
                            "a link to a folder; --follow packs what it holds");
    }
    for (const WalkedFolder* above = &folder; above != nullptr; above = above->parent) {
      if (above->device != info.st_dev || above->inode != info.st_ino) continue;
      return SkipEntry(folder, entry, SkipReason::kSymlinkLoop,
                       "a link to a folder that it lies in");
    }
    if (folder.links >= kMaxFolderLinks) {
      return SkipEntry(folder, entry, SkipReason::kSymlinkLoop,
                       absl::StrCat("behind more than ", kMaxFolderLinks, " links to folders"));
    }
    if (real.empty()) real = PathIn(folder, folder.Name(entry));  // it has just vanished
    // The root itself is above each link, so that something is left.
    if (inside) real.erase(0, root_path_ == "/" ? 1 : root_path_.size() + 1);
    AddSubfolder(folder, folder.Name(entry), std::move(real));
    entry.outcome = WalkedFile::kDropped;
  }

  void LinkFailed(WalkedFolder& folder, WalkedFile& entry, int error) {
    entry.inode_or_bytes = 0;
    // A broken link without an extension may have been a class folder.
    const std::string_view name = folder.Name(entry);
    const bool may_be_folder = name.find('.') == std::string_view::npos;
    if (may_be_folder && LeavesOut(folder, name, PathIn(folder, name))) {
      entry.outcome = WalkedFile::kDropped;
      return;
    }
    if (!may_be_folder && !Counts(folder, entry)) return;
    const auto skip = [&](SkipReason reason) {
      return may_be_folder ? SkipFolderLink(folder, entry, reason, "")
                           : SkipEntry(folder, entry, reason, "");
    };
    switch (error) {
      case ENOENT:
      case ENOTDIR:
        return skip(SkipReason::kDangling);
      case ELOOP:
        return skip(SkipReason::kSymlinkLoop);
      case EACCES:
      case EPERM:
        return skip(SkipReason::kPermission);
      default:
        FailIo("open", absl::StrCat(folder.path, folder.path.empty() ? "" : "/", std::string(name)),
               error);
    }
  }

  // Of a link's target, absolute; "" if it has vanished.
  std::string RealPath(const WalkedFolder& folder, const WalkedFile& entry,
                       const Descriptor& target) const {
    if (auto path = DescriptorPath(target.get())) return *std::move(path);
    // Without /proc, and for targets whose path is too long for the kernel.
    const std::string full =
        absl::StrCat(root_path_, "/", folder.path, "/", std::string(folder.Name(entry)));
    const std::unique_ptr<char, decltype(&free)> real(realpath(full.c_str(), nullptr), &free);
    return real == nullptr ? "" : real.get();
  }

  void FinishFolder(WalkedFolder& folder) {
    folder.fd = Descriptor();
    std::erase_if(folder.entries,
                  [](const WalkedFile& e) { return e.outcome == WalkedFile::kDropped; });
    std::sort(
        folder.entries.begin(), folder.entries.end(),
        [&](const WalkedFile& a, const WalkedFile& b) { return folder.Name(a) < folder.Name(b); });
    std::sort(folder.details.begin(), folder.details.end());
  }

  const int root_;
  const std::string& root_path_;
  const FolderSourceOptions& options_;
  const PathFilter filter_;
  const PartWalk& part_;
  IoPool& pool_;
  std::atomic<uint64_t>& listed_;
  const FolderSyscalls& calls_;

  std::map<std::string, WalkedFolder>& above_;
  Worklist worklist_;
  std::mutex mutex_;  // guards the next three
  std::deque<WalkedFolder>& folders_;
  std::vector<LostFolder>& lost_folders_;
  absl::Status failure_;
};

}  // namespace

absl::Status WalkPart(int root, const std::string& root_path, const FolderSourceOptions& options,
                      const PartWalk& part, IoPool& pool, std::atomic<uint64_t>& listed,
                      WalkedFolders& into) {
  Walker walker(root, root_path, options, part, pool, listed, into);
  RETURN_IF_ERROR(walker.Walk());
  into.unmatched = walker.Unmatched();
  return absl::OkStatus();
}

absl::StatusOr<FolderWalk> WalkFolder(int root, const std::string& root_path,
                                      const FolderSourceOptions& options, IoPool& pool,
                                      std::atomic<uint64_t>& listed) {
  WalkedFolders walked;
  const FolderPart whole = {""};
  RETURN_IF_ERROR(WalkPart(root, root_path, options, {whole}, pool, listed, walked));
  return JoinFolders(walked, root_path);
}

}  // namespace shardpack
