#include "converters/publishing/run_stage.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "converters/publishing/pack_folder.h"
#include "converters/publishing/pack_names.h"
#include "formats/io/exists.h"
#include "formats/io/list_folder.h"
#include "formats/io/same_file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr int kAttempts = 8;
constexpr std::string_view kUnknownBoot = "unknown";
constexpr std::string_view kTried = "tried", kTriedLink = "tried-link";

// The first digits of the boot id; containers on one machine share it, and its locks.
const std::string& BootName() {
  static const std::string& name = *new std::string([] {
    std::string id(8, '\0');
    const bool read = bool(std::ifstream("/proc/sys/kernel/random/boot_id").read(id.data(), 8));
    return read && OwnedFolder::IsName(id) ? id : std::string(kUnknownBoot);
  }());
  return name;
}

std::string HostName() {
  char host[65] = {};
  if (::gethostname(host, sizeof(host) - 1) != 0) return "host";
  std::string name;
  for (const char c : std::string_view(host)) {
    if (OwnedFolder::IsName(std::string_view(&c, 1)) || c == '.') name.push_back(c);
  }
  return name.empty() ? "host" : name;
}

std::string NewOwner() {
  std::random_device chance;
  const unsigned high = chance(), low = chance();
  return absl::StrFormat("%s-%s-%d-%08x%08x", HostName(), BootName(), ::getpid(), high, low);
}

std::string InStage(const std::string& name) {
  return absl::StrCat(std::string(kStageFolder), "/", name);
}

std::string LockOf(const std::string& run) {
  return absl::StrCat(InStage(run), std::string(kLockSuffix));
}

bool LockWhole(int fd) {
  struct flock whole = {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return ::fcntl(fd, F_OFD_SETLK, &whole) == 0;
}

bool StillNamed(int fd, const std::string& path) {
  struct stat opened, named;
  return ::fstat(fd, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         IsSameFile(opened, named);
}

// What a file system without hard links answers. Other errors say nothing about it.
bool IsLackOfLinks(int error) {
  return error == EPERM || error == EACCES || error == EOPNOTSUPP || error == ENOSYS ||
         error == EINVAL || error == EMLINK || error == EXDEV;
}

// Removes what killed runs of this machine have left. Errors are harmless.
void RemoveDead(const OwnedFolder& dataset) {
  const absl::StatusOr<std::vector<std::string>> names = ListFolder(dataset.PathOf(kStageFolder));
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (!name.ends_with(kLockSuffix) || !RunStage::IsOfThisMachine(name) ||
        !OwnedFolder::IsName(name))
      continue;
    const std::string lock_name = InStage(name), path = dataset.PathOf(lock_name);
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) continue;
    const File lock(fd, path);
    if (!LockWhole(fd)) continue;  // still running
    const std::string run = name.substr(0, name.size() - kLockSuffix.size());
    if (IsRunName(run) && RemoveRunStage(dataset, run).ok()) (void)dataset.RemoveFile(lock_name);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunStage>> RunStage::Create(const std::string& dataset) {
  ASSIGN_OR_RETURN(OwnedFolder folder, OwnedFolder::Open(dataset));
  RemoveDead(folder);
  absl::Status status;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    ASSIGN_OR_RETURN(OwnedFolder again, OwnedFolder::Open(dataset));
    auto stage = std::unique_ptr<RunStage>(new RunStage(std::move(again), NewOwner()));
    status = stage->Lock();
    if (absl::IsAborted(status)) continue;
    if (!status.ok()) return status;
    return stage;
  }
  return absl::UnavailableError(std::string(status.message()));
}

absl::Status RunStage::Lock() {
  const std::string path = folder_.PathOf(LockOf(owner_));
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) return IoStatus("create", path, errno);
  lock_ = File(fd, path);
  // Another run took this one for a dead run before it was locked. On a file system without locks
  // no run does that.
  if ((!LockWhole(fd) && (errno == EAGAIN || errno == EACCES)) || !StillNamed(fd, path)) {
    lock_ = File();
    return absl::AbortedError(
        absl::StrCat(EscapeForTerminal(path), " was taken away by another run"));
  }
  return MakeDirectory(folder_.PathOf(InStage(owner_)));
}

RunStage::~RunStage() {
  if (!lock_.is_open()) return;
  // If that fails, the lock file stays, so that the next run removes both; finally the commit does.
  if (!RemoveRunStage(folder_, owner_).ok()) return;
  (void)folder_.RemoveFile(LockOf(owner_));
}

bool RunStage::IsThere() const {
  struct stat opened, named;
  if (::fstat(lock_.descriptor(), &opened) != 0) return false;
  // Only what is known to be gone counts.
  if (::lstat(folder_.PathOf(LockOf(owner_)).c_str(), &named) != 0)
    return errno != ENOENT && errno != ENOTDIR;
  return IsSameFile(opened, named);
}

std::string RunStage::NameOf(std::string_view name) const {
  return absl::StrCat(InStage(owner_), "/", std::string(name));
}

bool RunStage::IsOfThisMachine(std::string_view run) {
  // Without /proc, machines with the same name cannot be distinguished, and locks may not work
  // between them.
  return BootName() != kUnknownBoot &&
         run.starts_with(absl::StrCat(HostName(), "-", BootName(), "-"));
}

bool RunStage::IsDeadHere(const OwnedFolder& dataset, const std::string& run) {
  if (!IsRunName(run) || !IsOfThisMachine(run)) return false;
  const std::string path = dataset.PathOf(LockOf(run));
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return errno == ENOENT;
  const File lock(fd, path);
  return LockWhole(fd);
}

// Named like the lock of a run, so that one that is left by a kill is removed like it.
std::optional<double> RunStage::FileSystemSeconds(const OwnedFolder& dataset) {
  const std::string path = dataset.PathOf(LockOf(NewOwner()));
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) return std::nullopt;
  const File file(fd, path);
  struct stat facts;
  const bool known = ::fstat(fd, &facts) == 0;
  ::unlink(path.c_str());
  if (!known) return std::nullopt;
  return static_cast<double>(facts.st_mtim.tv_sec) +
         1e-9 * static_cast<double>(facts.st_mtim.tv_nsec);
}

absl::StatusOr<std::unique_ptr<StagedFile>> RunStage::Stage(std::string_view name) const {
  RETURN_IF_ERROR(folder_.RemoveFile(NameOf(name)));
  return StagedFile::Create(PathOf(name));
}

absl::StatusOr<std::unique_ptr<StagedFile>> RunStage::StageWhole(std::string_view name,
                                                                 std::string_view bytes,
                                                                 bool sync) const {
  ASSIGN_OR_RETURN(std::unique_ptr<StagedFile> staged, Stage(name));
  RETURN_IF_ERROR(staged->Append(AsBytes(bytes)));
  RETURN_IF_ERROR(sync ? staged->SyncData() : staged->Flush());
  return staged;
}

absl::Status RunStage::TestFileSystem(std::string_view so) const {
  const std::string tried = NameOf(kTried), linked = NameOf(kTriedLink);
  RETURN_IF_ERROR(folder_.RemoveFile(tried));
  RETURN_IF_ERROR(folder_.RemoveFile(linked));
  const std::string from = folder_.PathOf(tried), to = folder_.PathOf(linked);
  const auto unfit = [&](const std::string& what) {
    (void)folder_.RemoveFile(tried);
    (void)folder_.RemoveFile(linked);
    return absl::UnimplementedError(absl::StrCat(EscapeForTerminal(folder_.path()),
                                                 " lies on a file system where ", what,
                                                 ", so that ", std::string(so)));
  };
  ASSIGN_OR_RETURN(File file, File::CreateExclusive(from));
  RETURN_IF_ERROR(file.Close());
  const absl::StatusOr<File> again = File::CreateExclusive(from);
  if (again.ok()) return unfit("two programs can create the same file");
  if (!absl::IsAlreadyExists(again.status())) return again.status();
  // EEXIST: the reply to a first try was lost; then it is this very file, which is looked at below.
  if (::link(from.c_str(), to.c_str()) != 0 && errno != EEXIST) {
    const int error = errno;
    if (!IsLackOfLinks(error)) return IoStatus("link", to, error);
    return unfit(absl::StrCat("a file cannot have two names (link: ", ::strerror(error), ")"));
  }
  if (::link(from.c_str(), to.c_str()) == 0) return unfit("a second link replaces the first");
  if (errno != EEXIST) return IoStatus("link", to, errno);
  struct stat first, second;
  if (::lstat(from.c_str(), &first) != 0) return IoStatus("look at", from, errno);
  if (::lstat(to.c_str(), &second) != 0) return IoStatus("look at", to, errno);
  if (first.st_ino != second.st_ino || first.st_dev != second.st_dev)
    return unfit("two names of one file look like two files");
  RETURN_IF_ERROR(folder_.RemoveFile(linked));
  RETURN_IF_ERROR(folder_.Replace(tried, linked));
  return folder_.RemoveFile(linked);
}

}  // namespace shardpack
