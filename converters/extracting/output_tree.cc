#include "converters/extracting/output_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "converters/sources/extract_mark.h"
#include "formats/core/manifest.h"
#include "formats/io/hash.h"
#include "formats/io/list_folder.h"
#include "formats/io/named_lock.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

using absl::StrAppend;
using absl::StrCat;

constexpr char kPart[] = ".pack-extract-part";
constexpr size_t kMaxRequestBytes = 1 << 20;
constexpr size_t kHashBytes = 17;  // "~" and 16 digits
constexpr size_t kMaxEnding = 64;  // of a shortened name
constexpr size_t kCompareBytes = 64 << 10;

// The last position up to `at` at which `text` can be cut without splitting a character or an
// escape (%0A).
size_t CutBefore(std::string_view text, size_t at) {
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  for (size_t back = 1; back <= 2 && back <= at; ++back) {
    if (text[at - back] == '%') return at - back;
  }
  return at;
}

std::string Hash(Bytes bytes) { return absl::StrFormat("~%016x", Xxh3_64(bytes)); }

struct Place {
  std::string_view folder, name;
  size_t ending_bytes;
};

Place PlaceOf(const OutputTree::NewFile& file) {
  const std::string_view path = file.path;
  const size_t slash = path.rfind('/');
  const std::string_view name = path.substr(slash == path.npos ? 0 : slash + 1);
  return {path.substr(0, slash == path.npos ? 0 : slash), name,
          std::min(file.ending_bytes, name.size())};
}

// How much of the extension a name keeps after its hash.
size_t KeptEnding(size_t ending_bytes) { return ending_bytes > kMaxEnding ? 0 : ending_bytes; }

// Inserts a hash into the name, before its extension.
std::string Renamed(std::string_view name, size_t ending_bytes, size_t longest,
                    std::string_view hash) {
  const std::string_view ending = name.substr(name.size() - ending_bytes);
  const size_t room = longest - kHashBytes - ending_bytes;
  std::string_view stem = name.substr(0, name.size() - ending_bytes);
  if (stem.size() > room) stem = stem.substr(0, CutBefore(stem, room));
  return StrCat(std::string(stem), std::string(hash), std::string(ending));
}

absl::Status RefuseLink(const std::string& path) {
  return absl::FailedPreconditionError(
      StrCat(EscapeForTerminal(path),
             " is a link, or was replaced meanwhile; nothing is written through it. Extract into a "
             "new folder"));
}

// If the file system does not accept a name, the name is at fault, not the disk.
absl::Status NameStatus(const std::string& path, int error) {
  absl::Status status = IoStatus("create", path, error);
  const bool name = error == EINVAL || error == EILSEQ || error == ENAMETOOLONG;
  return name ? absl::InvalidArgumentError(status.message()) : status;
}

absl::StatusOr<bool> HasBytes(const File& file, Bytes bytes) {
  ASSIGN_OR_RETURN(uint64_t size, file.Size());
  if (size != bytes.size()) return false;
  std::array<std::byte, kCompareBytes> block;
  for (uint64_t at = 0; at < bytes.size(); at += block.size()) {
    const std::span<std::byte> part(block.data(),
                                    std::min<uint64_t>(block.size(), bytes.size() - at));
    RETURN_IF_ERROR(file.ReadExactlyAt(at, part));
    if (!std::ranges::equal(part, bytes.subspan(at, part.size()))) return false;
  }
  return true;
}

// Gives the file a name in the folder that is not in use; returns an errno.
int MoveInto(const File& from, const char* part, const File& folder, const char* name) {
  if (::renameat2(from.descriptor(), part, folder.descriptor(), name, RENAME_NOREPLACE) == 0)
    return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // NFS and others do not support the flags; some of them do not support links either.
  if (::linkat(from.descriptor(), part, folder.descriptor(), name, 0) == 0)
    return ::unlinkat(from.descriptor(), part, 0) == 0 ? 0 : errno;
  if (errno != EPERM && errno != EOPNOTSUPP && errno != EMLINK && errno != ENOSYS) return errno;
  struct stat facts;
  if (::fstatat(folder.descriptor(), name, &facts, AT_SYMLINK_NOFOLLOW) == 0) return EEXIST;
  if (errno != ENOENT) return errno;
  return ::renameat(from.descriptor(), part, folder.descriptor(), name) == 0 ? 0 : errno;
}

absl::Status NotOurMark(const std::string& path) {
  return absl::FailedPreconditionError(
      StrCat(EscapeForTerminal(path),
             " is not a file that this version of pack extract has made; move it away, or extract "
             "into a new folder"));
}

absl::Status NotEmpty(const std::string& out) {
  return absl::FailedPreconditionError(
      StrCat(EscapeForTerminal(out), " is not empty; extract into a new folder"));
}

// The line that identifies a request, and the text for messages.
std::string_view KeyOf(std::string_view request) { return request.substr(0, request.find('\n')); }

std::string TextOf(std::string_view request) {
  const size_t line = request.find('\n');
  return EscapeForTerminal(line == request.npos ? request : request.substr(line + 1));
}

}  // namespace

absl::StatusOr<OutputTree> OutputTree::Create(const std::string& out, std::string_view request) {
  OutputTree tree;
  std::error_code error;
  std::filesystem::path parent = std::filesystem::path(out).lexically_normal();
  if (!parent.has_filename()) parent = parent.parent_path();
  for (parent = parent.parent_path(); !parent.empty() && !std::filesystem::exists(parent, error);
       parent = parent.parent_path()) {
    tree.made_parent_ = parent.native();
  }
  std::filesystem::create_directories(out, error);  // reports nothing if a file is there
  if (error && error != std::errc::file_exists && error != std::errc::not_a_directory) {
    return IoStatus("create folder", out, error.value());
  }
  struct stat facts;
  if (::stat(out.c_str(), &facts) == 0 && !S_ISDIR(facts.st_mode)) {
    return absl::FailedPreconditionError(
        StrCat(EscapeForTerminal(out), " is a file; extract needs a new or empty folder"));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(out));
  const auto has = [&](std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  tree.resumed_ = has(kExtractMarkName);
  if (!tree.resumed_ && (has(kManifestName) || has(".pack"))) {
    return absl::InvalidArgumentError(
        StrCat(EscapeForTerminal(out), " holds a dataset; extract into another folder"));
  }
  if (!tree.resumed_ && !names.empty()) {
    return NotEmpty(out);
  }
  ASSIGN_OR_RETURN(tree.root_, File::OpenDirectory(out));
  RETURN_IF_ERROR(tree.Begin(request));
  const long longest = ::fpathconf(tree.root_.descriptor(), _PC_NAME_MAX);
  if (longest > 0) tree.max_name_ = static_cast<size_t>(std::clamp(longest, 100L, 255L));
  return tree;
}

absl::Status OutputTree::Lock() {
  const std::string path = StrCat(root_.path(), "/", kExtractMarkName);
  constexpr int kFlags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  int descriptor = ::openat(root_.descriptor(), kExtractMarkName, kFlags | O_EXCL, 0666);
  const bool created = descriptor >= 0;
  if (!created && errno == EEXIST)
    descriptor = ::openat(root_.descriptor(), kExtractMarkName, kFlags, 0666);
  const int error = errno;
  mark_ = File(descriptor, path);
  struct stat facts;
  const bool other = !mark_.is_open()
                         ? error == EISDIR || error == ELOOP || error == ENXIO
                         : ::fstat(mark_.descriptor(), &facts) == 0 && !S_ISREG(facts.st_mode);
  if (other) return NotOurMark(path);
  if (!mark_.is_open()) return IoStatus("open", path, error);
  const absl::StatusOr<bool> locked = LockNamed(mark_, root_.descriptor(), kExtractMarkName);
  if (locked.ok() && *locked) return absl::OkStatus();
  if (locked.ok()) {
    return absl::FailedPreconditionError(StrCat(
        EscapeForTerminal(root_.path()), " is being written by another run of pack extract"));
  }
  // Nothing was begun, so leave nothing there.
  if (created) (void)::unlinkat(root_.descriptor(), kExtractMarkName, 0);
  return locked.status();
}

absl::StatusOr<size_t> OutputTree::OtherFiles(bool begun) const {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(root_.path()));
  return static_cast<size_t>(std::ranges::count_if(names, [&](const std::string& name) {
    return name != kExtractMarkName && !(begun && name == kPart);
  }));
}

// Marks the folder as unfinished and locks it for this run. The complete request is written before
// any other file.
absl::Status OutputTree::Begin(std::string_view request) {
  RETURN_IF_ERROR(Lock());
  ASSIGN_OR_RETURN(const uint64_t size, mark_.Size());
  std::string was(std::min<uint64_t>(size, kMaxRequestBytes), '\0');
  RETURN_IF_ERROR(mark_.ReadExactlyAt(0, std::as_writable_bytes(std::span(was))));
  const bool begun = !was.empty();
  if (begun && !was.starts_with(kExtractMarkBegin)) return NotOurMark(mark_.path());
  if (begun) was.erase(0, kExtractMarkBegin.size());
  // Another run may have ended since the folder was checked.
  ASSIGN_OR_RETURN(const size_t others, OtherFiles(begun));
  if (others > 0 && !begun) {
    if (!resumed_) RETURN_IF_ERROR(Finish());
    return NotEmpty(root_.path());
  }
  if (others > 0 && KeyOf(was) != KeyOf(request)) {
    return absl::FailedPreconditionError(StrCat(
        EscapeForTerminal(root_.path()),
        " holds what an unfinished run of pack extract has written of ", TextOf(was),
        ", and this is ", TextOf(request), "; finish that one, or extract into a new folder"));
  }
  if (begun) RETURN_IF_ERROR(RemovePart());
  if (others > 0) return absl::OkStatus();
  if (::ftruncate(mark_.descriptor(), 0) != 0) return IoStatus("cut", mark_.path(), errno);
  const std::string text = StrCat(std::string(kExtractMarkBegin), std::string(request));
  const Bytes bytes = AsBytes(text);
  return mark_.WriteAt(0, {&bytes, 1});
}

// Atomic: a folder without the marker is finished.
absl::Status OutputTree::Finish() {
  if (::unlinkat(root_.descriptor(), kExtractMarkName, 0) == 0 || errno == ENOENT)
    return absl::OkStatus();
  return IoStatus("remove", mark_.path(), errno);
}

// `created`: whether the file is this run's, written whole or not.
absl::Status OutputTree::CreatePart(Bytes bytes, bool& created) const {
  const std::string path = StrCat(root_.path(), "/", kPart);
  const int descriptor =
      ::openat(root_.descriptor(), kPart, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  created = descriptor >= 0;
  if (!created) return IoStatus("create", path, errno);
  File file(descriptor, path);
  absl::Status written = file.Write({&bytes, 1});
  return written.ok() ? file.Close() : written;
}

absl::Status OutputTree::RemovePart() const {
  if (::unlinkat(root_.descriptor(), kPart, 0) == 0 || errno == ENOENT) return absl::OkStatus();
  return IoStatus("remove", StrCat(root_.path(), "/", kPart), errno);
}

std::string OutputTree::Fitting(std::string_view name, size_t ending_bytes) const {
  if (name.size() <= max_name_) return std::string(name);
  const size_t ending = KeptEnding(ending_bytes);
  // The same for all files of a sample, so that they stay together.
  return Renamed(name, ending, max_name_, Hash(AsBytes(name.substr(0, name.size() - ending))));
}

// `name` is changed if a file has it.
absl::StatusOr<File> OutputTree::OpenFolder(const File& parent, std::string& name) const {
  for (bool again = false;; again = true) {
    const std::string path = StrCat(parent.path(), "/", name);
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int descriptor = ::openat(parent.descriptor(), name.c_str(), kFlags);
    if (descriptor < 0 && errno == ENOENT) {
      if (::mkdirat(parent.descriptor(), name.c_str(), 0777) != 0 && errno != EEXIST)
        return NameStatus(path, errno);
      descriptor = ::openat(parent.descriptor(), name.c_str(), kFlags);
    }
    if (descriptor >= 0) return File(descriptor, path);
    const int error = errno;
    struct stat facts;
    const bool known =
        ::fstatat(parent.descriptor(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0;
    if (known && S_ISLNK(facts.st_mode)) return RefuseLink(path);
    if (!known || !S_ISREG(facts.st_mode) || again) return NameStatus(path, error);
    name = Renamed(name, 0, max_name_, Hash(AsBytes(name)));
  }
}

absl::Status OutputTree::Enter(std::string_view folders) {
  if (folders == entered_) return absl::OkStatus();
  File folder;
  std::string real;
  for (std::string_view rest = folders; !rest.empty();) {
    const size_t slash = std::min(rest.find('/'), rest.size());
    std::string name = Fitting(rest.substr(0, slash), 0);
    rest.remove_prefix(std::min(slash + 1, rest.size()));
    ASSIGN_OR_RETURN(folder, OpenFolder(folder.is_open() ? folder : root_, name));
    StrAppend(&real, real.empty() ? "" : "/", name);
  }
  folder_ = std::move(folder);
  entered_ = std::string(folders);
  real_ = std::move(real);
  return absl::OkStatus();
}

// For an existing name: OK if it has these bytes, AlreadyExists if this run has written other bytes
// to it.
absl::Status OutputTree::CheckTaken(const File& folder, const std::string& name, Bytes bytes) {
  const std::string path = StrCat(folder.path(), "/", name);
  File there(
      ::openat(folder.descriptor(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC),
      path);
  if (!there.is_open()) return errno == ELOOP ? RefuseLink(path) : IoStatus("open", path, errno);
  struct stat facts;
  if (::fstat(there.descriptor(), &facts) != 0) return IoStatus("stat", path, errno);
  ASSIGN_OR_RETURN(const bool same, S_ISREG(facts.st_mode) ? HasBytes(there, bytes) : false);
  // Two images of one name share the files next to them.
  if (same) return absl::OkStatus();
  if (!resumed_ || written_.contains(Xxh3_64(AsBytes(path))))
    return absl::AlreadyExistsError(StrCat(EscapeForTerminal(path), " is taken"));
  return absl::FailedPreconditionError(
      StrCat(EscapeForTerminal(path),
             " is there, and is not what the dataset has under this name; it is kept. Move it "
             "away and run again, or extract into a new folder"));
}

absl::Status OutputTree::WriteNew(const std::string& name, Bytes bytes, bool& fresh) {
  const File& folder = folder_.is_open() ? folder_ : root_;
  const uint64_t path = Xxh3_64(AsBytes(StrCat(folder.path(), "/", name)));
  bool created = false;
  absl::Status status = CreatePart(bytes, created);
  const int error = status.ok() ? MoveInto(root_, kPart, folder, name.c_str()) : 0;
  // A file left by an unfinished run counts as written by this one.
  fresh = error == 0 || (resumed_ && !written_.contains(path));
  if (error == EEXIST) {
    status = CheckTaken(folder, name, bytes);
  } else if (error != 0) {
    status = NameStatus(StrCat(folder.path(), "/", name), error);
  }
  if (created && (!status.ok() || error != 0)) {
    const absl::Status removed = RemovePart();
    if (status.ok()) status = removed;
  }
  if (status.ok() && resumed_) written_.insert(path);
  return status;
}

// If a hash is given, the name gets it; otherwise only if the name is taken or too long.
absl::StatusOr<std::string> OutputTree::WriteAs(const NewFile& file, std::string_view hash,
                                                bool& fresh) {
  const Place place = PlaceOf(file);
  RETURN_IF_ERROR(Enter(place.folder));
  const auto renamed = [&](std::string_view with) {
    return Renamed(place.name, KeptEnding(place.ending_bytes), max_name_, with);
  };
  std::string name = hash.empty() ? Fitting(place.name, place.ending_bytes) : renamed(hash);
  absl::Status status = WriteNew(name, file.bytes, fresh);
  if (absl::IsAlreadyExists(status)) {
    name = renamed(Hash(file.bytes));
    status = WriteNew(name, file.bytes, fresh);
  }
  if (!status.ok()) return status;
  return real_.empty() ? name : StrCat(real_, "/", name);
}

absl::StatusOr<std::string> OutputTree::Write(std::string_view path, size_t ending_bytes,
                                              Bytes bytes) {
  bool fresh = false;
  return WriteAs({std::string(path), ending_bytes, bytes}, "", fresh);
}

// Taken by this run, with other bytes. Writing reports names that are not possible.
absl::StatusOr<bool> OutputTree::IsTaken(const NewFile& file) {
  const Place place = PlaceOf(file);
  const absl::Status entered = Enter(place.folder);
  if (absl::IsInvalidArgument(entered)) return false;
  if (!entered.ok()) return entered;
  const std::string name = Fitting(place.name, place.ending_bytes);
  const File& folder = folder_.is_open() ? folder_ : root_;
  struct stat facts;
  if (::fstatat(folder.descriptor(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) return false;
  const absl::Status status = CheckTaken(folder, name, file.bytes);
  if (absl::IsAlreadyExists(status)) return true;
  if (!status.ok()) return status;
  return false;
}

absl::StatusOr<std::vector<OutputTree::Written>> OutputTree::WriteTogether(
    std::span<const NewFile> files) {
  bool taken = false;
  for (const NewFile& file : files) {
    ASSIGN_OR_RETURN(const bool other, IsTaken(file));
    taken = taken || other;
  }
  std::string hash;
  if (taken) {
    std::string hashes;
    for (const NewFile& file : files) StrAppend(&hashes, Hash(file.bytes), "/");
    hash = Hash(AsBytes(hashes));
  }
  std::vector<Written> written;
  for (const NewFile& file : files) {
    bool fresh = false;
    absl::StatusOr<std::string> path = WriteAs(file, hash, fresh);
    const absl::Status& status = path.status();
    if (!status.ok() && !absl::IsInvalidArgument(status) && !absl::IsAlreadyExists(status))
      return status;
    written.push_back({std::move(path), fresh});
  }
  return written;
}

}  // namespace shardpack
