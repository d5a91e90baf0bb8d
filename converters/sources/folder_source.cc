#include "converters/sources/folder_source.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "converters/listing/hidden_entries.h"
#include "converters/listing/input_failure.h"
#include "converters/listing/other_pictures.h"
#include "converters/sources/folder_access.h"
#include "converters/sources/folder_listing.h"
#include "converters/sources/folder_meaning.h"
#include "converters/sources/folder_parts.h"
#include "formats/core/sample.h"
#include "formats/io/error_facts.h"
#include "formats/io/file.h"
#include "formats/io/resources.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr uint64_t kMaxPartBytes = uint64_t{64} << 30;

// "12 files of other kinds (txt 10, csv 2)", most frequent first.
std::string DescribeIgnored(const std::map<std::string, uint64_t>& ignored) {
  std::vector<std::pair<uint64_t, std::string>> kinds;
  uint64_t files = 0;
  for (const auto& [extension, count] : ignored) {
    kinds.emplace_back(count, extension.empty()           ? "no extension"
                              : extension == kHiddenFiles ? extension
                                                          : "." + EscapeForTerminal(extension));
    files += count;
  }
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  const size_t shown = std::min<size_t>(kinds.size(), 8);
  std::vector<std::string> texts;
  for (size_t i = 0; i < shown; ++i)
    texts.push_back(absl::StrCat(kinds[i].second, " ", kinds[i].first));
  if (shown < kinds.size()) texts.push_back("...");
  return absl::StrCat(files, files == 1 ? " other file (" : " other files (",
                      absl::StrJoin(texts, ", "), ")");
}

absl::Status NoInput(const std::string& root, const Listing& listing) {
  const std::string name = EscapeForTerminal(root);
  if (listing.ignored.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "source ", name,
        " holds no image: there is no file in it that --include and --exclude leave (a pattern of "
        "the files of a folder is 'cat/*')",
        listing.notes.empty() ? "" : absl::StrCat("; ", listing.notes[0])));
  }
  std::string hint;
  bool others = false;
  for (const auto& [extension, count] : listing.ignored) {
    if (IsOtherPicture(extension)) {
      others = true;
    } else if (!extension.empty() && extension != kHiddenFiles && hint.size() < 40) {
      absl::StrAppend(&hint, hint.empty() ? "" : ",", EscapeForTerminal(extension));
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "source ", name, " holds no image that is taken, only ", DescribeIgnored(listing.ignored),
      others ? "; pack does not read AVIF, HEIC, JPEG XL and the like: convert them, for example "
               "to png"
             : absl::StrCat("; --ext ", hint.empty() ? "any" : hint, " takes them as images")));
}

absl::Status BadRoot(const std::string& root, int error) {
  const std::string name = EscapeForTerminal(root);
  struct stat info;
  if (error == ENOENT && lstat(root.c_str(), &info) == 0) {
    return absl::InvalidArgumentError(absl::StrCat("source ", name, " is a link to nothing"));
  }
  if (error == ENOENT) {
    return absl::InvalidArgumentError(absl::StrCat("source ", name, " does not exist"));
  }
  if (error == ENOTDIR) {
    return absl::InvalidArgumentError(
        absl::StrCat("source ", name, " is not a folder; give the folder that holds the images"));
  }
  return IoStatus("open", root, error);
}

std::string AbsolutePath(const std::string& path, const Descriptor& folder) {
  if (auto resolved = DescriptorPath(folder.get())) return *std::move(resolved);
  const std::unique_ptr<char, decltype(&free)> real(realpath(path.c_str(), nullptr), &free);
  return real != nullptr ? real.get() : path;
}

template <typename T>
void PutList(std::map<std::string, std::string>& map, const std::string& name, const T& list) {
  if (!list.empty()) map[name] = absl::StrJoin(list, ",");
}

// A comma in a glob is escaped with a backslash, which does not change the glob's meaning.
void PutGlobs(std::map<std::string, std::string>& map, const std::string& name,
              const std::vector<std::string>& globs) {
  std::vector<std::string> escaped;
  for (const std::string& glob : globs)
    escaped.push_back(absl::StrReplaceAll(glob, {{",", "\\,"}}));
  PutList(map, name, escaped);
}

absl::StatusOr<FolderWalk> ReadParts(const ListedParts& parts, const std::string& root,
                                     std::atomic<uint64_t>& listed) {
  FolderParts all(parts.division);
  for (uint32_t n = 0; n < parts.files.size(); ++n) {
    ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(parts.files[n], kMaxPartBytes));
    if (const absl::Status added = all.Add(n, bytes); !added.ok())
      return NotThisPart(added, parts.files[n], parts.list_again);
  }
  ASSIGN_OR_RETURN(FolderWalk walk, std::move(all).Join(root));
  listed = walk.listing.rows();
  return walk;
}

}  // namespace

std::map<std::string, std::string> FolderSourceOptions::ToMap() const {
  const FolderSourceOptions defaults;
  std::map<std::string, std::string> map;
  if (label_from == LabelFrom::kNone) {
    map["label-from"] = "none";
  } else if (label_dir_given) {
    map["label-from"] = absl::StrCat("dir:", label_dir);
  }
  if (class_order == ClassOrder::kNatural) map["class-order"] = "natural";
  // Their names are part of the listing's digest.
  if (!classes.empty()) map["classes"] = absl::StrCat(classes.size(), " names");
  if (any_extension) {
    map["ext"] = "any";
  } else {
    PutList(map, "ext", extensions);
  }
  PutGlobs(map, "include", include);
  PutGlobs(map, "exclude", exclude);
  if (follow) map["follow"] = "on";
  if (max_file_bytes != defaults.max_file_bytes)
    map["max-file-size"] = absl::StrCat(max_file_bytes);
  if (split_from_dir) map["split-by"] = "dir";
  if (!sidecars.empty()) {
    map["sidecars"] = absl::StrJoin(sidecars, ",", [](std::string* out, const Sidecar& sidecar) {
      absl::StrAppend(out, sidecar.suffix, ":", sidecar.field);
    });
    if (missing != MissingPart::kSkip) map["missing-part"] = std::string(MissingPartName(missing));
  }
  return map;
}

LabelOptions LabelOptionsOf(const FolderSourceOptions& options) {
  LabelOptions labels{.component = options.split_from_dir ? 1 : 0,
                      .component_given = options.label_dir_given,
                      .order = options.class_order,
                      .classes = options.classes,
                      .parts = options.sidecars};
  if (options.label_dir_given) labels.component = options.label_dir;
  return labels;
}

// Open descriptors of the root and of as many folders as the process can spare, opened on first
// use.
class FolderSource::FolderHandles {
 public:
  explicit FolderHandles(Descriptor root) : root_(std::move(root)) {
    spare_ = static_cast<int64_t>(std::min<size_t>(OpenFilesLimit() / 4, 4096));
  }
  ~FolderHandles() {
    for (size_t i = 0; i < size_; ++i) {
      const Descriptor closed(folders_[i].load());
    }
  }

  int root() const { return root_.get(); }

  // The descriptor of a folder, or -1: then open paths from the root.
  int Get(const Listing& listing, uint32_t folder) {
    std::call_once(once_, [&] {
      size_ = listing.folders.size();
      folders_ = std::make_unique<std::atomic<int>[]>(size_);
      for (size_t i = 0; i < size_; ++i) folders_[i] = kClosed;
    });
    if (folder >= size_) return -1;
    const int cached = folders_[folder].load(std::memory_order_acquire);
    if (cached != kClosed) return cached;
    if (spare_.fetch_sub(1, std::memory_order_relaxed) <= 0) {
      spare_.fetch_add(1, std::memory_order_relaxed);
      return -1;
    }
    Descriptor opened(OpenBelow(root(), listing.folders[folder], O_PATH | O_DIRECTORY));
    int expected = kClosed;
    if (opened.ok() && folders_[folder].compare_exchange_strong(expected, opened.get(),
                                                                std::memory_order_acq_rel)) {
      return opened.Release();
    }
    // Another thread was first, or it cannot be opened: opening the file itself will report why.
    spare_.fetch_add(1, std::memory_order_relaxed);
    return expected;
  }

  std::atomic<bool> no_atime{true};  // until the system refuses O_NOATIME

 private:
  static constexpr int kClosed = -1;
  const Descriptor root_;
  std::atomic<int64_t> spare_;
  std::once_flag once_;
  size_t size_ = 0;
  std::unique_ptr<std::atomic<int>[]> folders_;
};

FolderSource::FolderSource(std::string root, FolderSourceOptions options, IoPool& pool)
    : root_(std::move(root)), options_(std::move(options)), pool_(pool) {
  Descriptor opened(OpenAt(AT_FDCWD, root_.c_str(), O_PATH | O_DIRECTORY));
  root_error_ = opened.ok() ? 0 : errno;
  handles_ = std::make_unique<FolderHandles>(std::move(opened));
}

FolderSource::~FolderSource() = default;

absl::StatusOr<SourceFolder> OpenSourceFolder(const std::string& path) {
  SourceFolder folder{Descriptor(OpenAt(AT_FDCWD, path.c_str(), O_PATH | O_DIRECTORY)), ""};
  if (!folder.descriptor.ok()) return BadRoot(path, errno);
  folder.path = AbsolutePath(path, folder.descriptor);
  return folder;
}

absl::StatusOr<Listing> FolderSource::List() {
  if (root_error_ != 0) return BadRoot(root_, root_error_);
  ASSIGN_OR_RETURN(SourceFolder root, OpenSourceFolder(root_));
  listed_.store(0, std::memory_order_relaxed);
  ASSIGN_OR_RETURN(FolderWalk walk,
                   options_.listed_parts
                       ? ReadParts(*options_.listed_parts, root.path, listed_)
                       : WalkFolder(root.descriptor.get(), root.path, options_, pool_, listed_));
  handles_ = std::make_unique<FolderHandles>(std::move(root.descriptor));
  Listing& listing = walk.listing;
  if (!options_.sidecars.empty()) {
    RETURN_IF_ERROR(PairSidecars(options_.sidecars, options_.missing, listing));
  }
  if (listing.rows() == 0) {
    const absl::Status none = NoInput(root_, listing);
    if (!options_.listed_parts) return none;
    return Reworded(none, absl::StrCat("the list says: ", std::string(none.message()),
                                       "; the source may differ now: list it again into another "
                                       "folder"));
  }
  if (options_.extensions.empty()) WarnOfOtherPictures(listing);
  RETURN_IF_ERROR(AssignFolders(options_, LabelOptionsOf(options_), walk.empty_folders,
                                SourceKind::kFolder, listing));
  return std::move(listing);
}

// Opens a file for reading. Links are not followed at first: only the rare link needs a second
// call.
int FolderSource::Open(const Listing& listing, const Wanted& wanted, bool follow_link) const {
  FolderHandles& handles = *handles_;
  const uint32_t number = listing.folder[wanted.row];
  const int folder = handles.Get(listing, number);
  thread_local std::string name;
  name.clear();
  if (folder < 0 && !listing.folders[number].empty()) {
    name.append(listing.folders[number]).push_back('/');
  }
  if (wanted.suffix == nullptr) {
    name.append(listing.Name(wanted.row));
  } else {
    name.append(Stem(listing.Name(wanted.row))).append(".").append(*wanted.suffix);
  }
  // O_NONBLOCK: a FIFO in the file's place must not block. O_NOCTTY: a terminal must not become
  // ours.
  int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | (follow_link ? 0 : O_NOFOLLOW);
  const bool no_atime = handles.no_atime.load(std::memory_order_relaxed);
  if (no_atime) flags |= O_NOATIME;
  const auto open_it = [&](int with_flags) {
    return folder >= 0 ? OpenAt(folder, name.c_str(), with_flags)
                       : OpenBelow(handles.root(), name, with_flags);
  };
  int fd = open_it(flags);
  if (fd < 0 && errno == EPERM && no_atime) {
    handles.no_atime.store(false, std::memory_order_relaxed);
    fd = open_it(flags & ~O_NOATIME);
  }
  return fd;
}

LoadResult FolderSource::Load(const Listing& listing, uint64_t row, Arena& arena,
                              const MadeFields* made) const {
  const size_t parts = listing.fields.size();
  const std::span<std::byte> room = arena.Allocate((1 + parts) * sizeof(FieldView));
  auto* const views = reinterpret_cast<FieldView*>(room.data());
  size_t count = 0;
  for (size_t i = 0; i <= parts; ++i) {
    if (i > 0 && !listing.HasField(row, i - 1)) continue;
    if (i > 0 && listing.fields[i - 1].suffix.empty()) {
      const uint64_t place = listing.places.empty() ? 0 : listing.places[row * (1 + parts) + i];
      const auto bytes =
          made == nullptr ? std::nullopt : made->Get(place, listing.FieldBytes(row, i - 1));
      if (!bytes) {
        return Skip{row, SkipReason::kChanged,
                    absl::StrCat("its field ", listing.fields[i - 1].name, " is gone")};
      }
      new (views + count++) FieldView{listing.fields[i - 1].name, *bytes};
      continue;
    }
    Wanted wanted{row, nullptr, listing.bytes[row], listing.mtime_ns[row]};
    if (i > 0) {
      const uint64_t at = row * parts + i - 1;
      // A damaged plan may lack the times; the files then count as changed.
      const int64_t mtime_ns = listing.field_mtime_ns.empty() ? 0 : listing.field_mtime_ns[at];
      wanted = {row, &listing.fields[i - 1].suffix, listing.field_bytes[at], mtime_ns};
    }
    FileResult loaded = LoadFile(listing, wanted, arena);
    if (absl::Status* failed = std::get_if<absl::Status>(&loaded)) return std::move(*failed);
    if (Skip* skip = std::get_if<Skip>(&loaded)) {
      if (i > 0) {
        skip->detail = absl::StrCat("its part ", listing.fields[i - 1].name,
                                    skip->detail.empty() ? "" : ": ", skip->detail);
      }
      return std::move(*skip);
    }
    new (views + count++)
        FieldView{i == 0 ? kImageField : std::string_view(listing.fields[i - 1].name),
                  std::get<Bytes>(loaded)};
  }
  return LoadedSample{{views, count}};
}

FolderSource::FileResult FolderSource::Failed(const Listing& listing, const Wanted& wanted,
                                              std::string_view operation, int error) const {
  std::string path = listing.Path(wanted.row);
  if (wanted.suffix != nullptr) path = absl::StrCat(std::string(Stem(path)), ".", *wanted.suffix);
  return InputFailure(wanted.row, operation, absl::StrCat(root_, "/", path), error);
}

FolderSource::FileResult FolderSource::LoadFile(const Listing& listing, const Wanted& wanted,
                                                Arena& arena) const {
  const uint64_t row = wanted.row;
  Descriptor file(Open(listing, wanted, false));
  if (!file.ok() && errno == ELOOP) {
    file = Descriptor(Open(listing, wanted, true));
    if (file.ok() && !options_.follow) {
      const auto target = DescriptorPath(file.get());
      const auto root = DescriptorPath(handles_->root());
      if (target && root && !IsBelow(*root, *target)) {
        return Skip{row, SkipReason::kOutsideRoot, "the link changed since the source was listed"};
      }
    } else if (!file.ok() && errno == ENOENT) {
      return Skip{row, SkipReason::kDangling, ""};
    }
  }
  if (!file.ok()) return Failed(listing, wanted, "open", errno);

  struct stat info;
  if (FolderSyscallsForTesting().fstatat(file.get(), "", &info, AT_EMPTY_PATH) != 0) {
    return Failed(listing, wanted, "stat", errno);
  }
  if (!S_ISREG(info.st_mode)) return Skip{row, SkipReason::kNotRegular, ""};
  const uint64_t bytes = wanted.bytes;
  if (static_cast<uint64_t>(info.st_size) != bytes) {
    return Skip{row, SkipReason::kChanged,
                absl::StrCat("listed with ", bytes, " bytes, now ", info.st_size)};
  }
  if (info.st_mtim.tv_sec * int64_t{1'000'000'000} + info.st_mtim.tv_nsec != wanted.mtime_ns) {
    return Skip{row, SkipReason::kChanged, "modified since it was listed"};
  }
  // A part may be empty, for example a caption.
  if (bytes == 0 && wanted.suffix == nullptr) return Skip{row, SkipReason::kEmpty, ""};
  if (bytes > options_.max_file_bytes) {
    return Skip{row, SkipReason::kTooLarge,
                absl::StrCat(bytes, " bytes, the limit is ", options_.max_file_bytes)};
  }
  return Read(file.get(), listing, wanted, arena);
}

FolderSource::FileResult FolderSource::Read(int file, const Listing& listing, const Wanted& wanted,
                                            Arena& arena) const {
  // One byte more than expected, so that a single call also shows that the file has not grown.
  const uint64_t row = wanted.row, bytes = wanted.bytes;
  const std::span<std::byte> payload = arena.Allocate(bytes + 1);
  uint64_t got = 0;
  while (got < bytes) {
    const ssize_t n = FolderSyscallsForTesting().read(file, payload.data() + got, bytes + 1 - got);
    if (n < 0) {
      if (errno == EINTR) continue;
      const int error = errno;
      arena.TrimLast(payload, 0);
      return Failed(listing, wanted, "read", error);
    }
    if (n == 0) break;
    got += static_cast<uint64_t>(n);
  }
  if (got != bytes) {
    arena.TrimLast(payload, 0);
    return Skip{
        row, SkipReason::kChanged,
        absl::StrCat("listed with ", bytes, " bytes, ",
                     got < bytes ? "ended after " : "has more than ", std::min(got, bytes))};
  }
  arena.TrimLast(payload, bytes);
  return Bytes(payload.first(bytes));
}

}  // namespace shardpack
