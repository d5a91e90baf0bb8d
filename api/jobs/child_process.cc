#include "api/jobs/child_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "formats/io/error_facts.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

extern "C" char** environ;

namespace shardpack {
namespace {

constexpr int kFirstOther = 3;  // descriptor

absl::StatusCode CodeOf(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::StatusCode::kNotFound;
    case EACCES:
    case EPERM:
      return absl::StatusCode::kPermissionDenied;
    case ENOMEM:
    case EAGAIN:  // processes
      return absl::StatusCode::kResourceExhausted;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

absl::Status Failed(const std::string& what, int error, const std::string& path = "") {
  return WithFacts(absl::Status(CodeOf(error), absl::StrCat(what, ": ", ::strerror(error))),
                   {.system_errno = error, .path = path});
}

struct Pipe {
  Descriptor read, write;
};

// Not among the standard descriptors, which a process may have closed: the spawn would overwrite
// one end with another.
absl::StatusOr<Descriptor> Above(Descriptor descriptor) {
  if (descriptor.get() >= kFirstOther) return descriptor;
  const int moved = ::fcntl(descriptor.get(), F_DUPFD_CLOEXEC, kFirstOther);
  if (moved < 0) return Failed("a descriptor of a pipe", errno);
  return Descriptor(moved);
}

absl::StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Failed("making a pipe", errno);
  Descriptor read(ends[0]), write(ends[1]);
  ASSIGN_OR_RETURN(read, Above(std::move(read)));
  ASSIGN_OR_RETURN(write, Above(std::move(write)));
  return Pipe{std::move(read), std::move(write)};
}

// Free what they hold.
struct Actions {
  Actions() { ::posix_spawn_file_actions_init(&value); }
  ~Actions() { ::posix_spawn_file_actions_destroy(&value); }
  posix_spawn_file_actions_t value;
};
struct Attributes {
  Attributes() { ::posix_spawnattr_init(&value); }
  ~Attributes() { ::posix_spawnattr_destroy(&value); }
  posix_spawnattr_t value;
};

// A group of its own; every signal as at the start of a program, none blocked.
int SetOwnGroup(Attributes& attributes) {
  sigset_t none, every;
  ::sigemptyset(&none);
  ::sigfillset(&every);
  int error = ::posix_spawnattr_setpgroup(&attributes.value, 0);
  if (error == 0) error = ::posix_spawnattr_setsigmask(&attributes.value, &none);
  if (error == 0) error = ::posix_spawnattr_setsigdefault(&attributes.value, &every);
  if (error == 0) {
    error = ::posix_spawnattr_setflags(
        &attributes.value, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  return error;
}

int SetDescriptors(Actions& actions, int out, int err) {
  int error =
      ::posix_spawn_file_actions_addopen(&actions.value, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (error == 0) error = ::posix_spawn_file_actions_adddup2(&actions.value, out, STDOUT_FILENO);
  if (error == 0) error = ::posix_spawn_file_actions_adddup2(&actions.value, err, STDERR_FILENO);
  if (error == 0) error = ::posix_spawn_file_actions_addclosefrom_np(&actions.value, kFirstOther);
  return error;
}

// Linux 5.3 has it, which glibc before 2.36 does not say.
Descriptor EndOf(pid_t pid) {
#ifdef SYS_pidfd_open
  return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
#else
  return Descriptor(-1);
#endif
}

// Of this process, without the variable by which Bazel moves a program to another folder: paths are
// relative to the folder of this process.
std::vector<char*> Environment() {
  constexpr char kMoves[] = "BUILD_WORKING_DIRECTORY=";
  std::vector<char*> variables;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    if (::strncmp(*variable, kMoves, sizeof kMoves - 1) != 0) variables.push_back(*variable);
  }
  variables.push_back(nullptr);
  return variables;
}

}  // namespace

void Descriptor::Close() {
  if (number_ >= 0) ::close(std::exchange(number_, -1));
}

ChildProcess::ChildProcess(pid_t pid, Descriptor out, Descriptor err, Descriptor end)
    : state_(std::make_unique<State>()),
      out_(std::move(out)),
      err_(std::move(err)),
      end_(std::move(end)) {
  state_->pid = pid;
}

absl::StatusOr<ChildProcess> ChildProcess::Start(const std::string& program,
                                                 const std::vector<std::string>& words,
                                                 const std::string& folder) {
  ASSIGN_OR_RETURN(Pipe out, MakePipe());
  ASSIGN_OR_RETURN(Pipe err, MakePipe());
  Actions actions;
  Attributes attributes;
  int error = SetOwnGroup(attributes);
  if (error == 0) error = SetDescriptors(actions, out.write.get(), err.write.get());
  if (error == 0 && !folder.empty())
    error = ::posix_spawn_file_actions_addchdir_np(&actions.value, folder.c_str());
  std::vector<char*> arguments = {const_cast<char*>(program.c_str())};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::vector<char*> environment = Environment();
  pid_t pid = -1;
  if (error == 0) {
    error = ::posix_spawn(&pid, program.c_str(), &actions.value, &attributes.value,
                          arguments.data(), environment.data());
  }
  if (error != 0) {
    struct stat facts;
    const bool in_folder = folder.empty() || ::stat(folder.c_str(), &facts) == 0;
    return Failed(absl::StrCat("starting ", EscapeForTerminal(program),
                               folder.empty() ? "" : " in ", EscapeForTerminal(folder)),
                  error, in_folder ? program : folder);
  }
  return ChildProcess(pid, std::move(out.read), std::move(err.read), EndOf(pid));
}

ChildProcess::~ChildProcess() {
  if (state_ == nullptr || state_->waited) return;
  Signal(SIGKILL);
  Wait();
}

void ChildProcess::CloseOutput() {
  out_.Close();
  err_.Close();
}

void ChildProcess::Signal(int signal) {
  const std::lock_guard lock(state_->mutex);
  if (state_->waited) return;
  // Its number may be another process's by now, if somebody else has waited for it.
  siginfo_t info;
  if (::waitid(P_PID, static_cast<id_t>(state_->pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0)
    return;
  ::kill(-state_->pid, signal);
}

bool ChildProcess::HasEnded() const {
  siginfo_t info = {};
  return ::waitid(P_PID, static_cast<id_t>(state_->pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid != 0;
}

std::optional<int> ChildProcess::Wait() {
  // Until it ends, without taking its number away from Signal.
  siginfo_t info;
  while (::waitid(P_PID, static_cast<id_t>(state_->pid), &info, WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
  const std::lock_guard lock(state_->mutex);
  state_->waited = true;
  int status = 0;
  pid_t waited = -1;
  do {
    waited = ::waitpid(state_->pid, &status, 0);
  } while (waited < 0 && errno == EINTR);
  return waited == state_->pid ? std::optional<int>(status) : std::nullopt;
}

}  // namespace shardpack
