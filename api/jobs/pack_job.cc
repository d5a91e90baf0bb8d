#include "api/jobs/pack_job.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "formats/io/escape.h"
#include "formats/io/signals_blocked.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kProgressSchema = "shardpack.progress/1";
constexpr std::string_view kBuildSchema = "shardpack.build/1";
constexpr std::string_view kValidationSchema = "shardpack.validation/1";
constexpr std::string_view kErrorSchema = "shardpack.error/1";
constexpr int64_t kMostWaitMs = int64_t{1} << 40;  // more would be beyond the clock
constexpr size_t kMostMessages = size_t{1} << 20;  // bytes of stderr that are kept
constexpr size_t kMostOutput = size_t{64} << 20;   // bytes of stdout that are kept
constexpr size_t kEndOfOutput = size_t{1} << 20;  // of more than that: an error is in the last line
constexpr int kSomeSkipped = 3, kDamage = 4;      // exit codes of pack
constexpr size_t kPiece = size_t{64} << 10;       // bytes that are read at once
constexpr int kAskForEndMs = 100;                 // where the kernel does not say it
constexpr std::chrono::seconds kPatienceAfterKill(2);

Json Parse(std::string_view text) {
  return Json::parse(text, /*cb=*/nullptr, /*allow_exceptions=*/false);
}

bool HasSchema(const Json& json, std::string_view schema) {
  return json.is_object() && json.contains("schema") && json["schema"] == schema;
}

uint64_t CountOf(const Json& json, const char* name) {
  const auto at = json.find(name);
  return at != json.end() && at->is_number_unsigned() ? at->get<uint64_t>() : 0;
}

double NumberOf(const Json& json, const char* name, double otherwise) {
  const auto at = json.find(name);
  return at != json.end() && at->is_number() ? at->get<double>() : otherwise;
}

std::string TextOf(const Json& json, const char* name) {
  const auto at = json.find(name);
  return at != json.end() && at->is_string() ? at->get<std::string>() : std::string();
}

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// What pack wrote to stdout: its report, and the error that it ends with if it failed.
struct Output {
  Json report, error;
  std::string other;  // what is neither
};

Output OutputOf(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  Output output;
  const size_t line = text.rfind('\n') == std::string_view::npos ? 0 : text.rfind('\n') + 1;
  if (Json last = Parse(text.substr(line)); HasSchema(last, kErrorSchema)) {
    output.error = std::move(last);
    text = text.substr(0, line);
  }
  if (Json whole = Parse(text); !whole.is_discarded()) {
    output.report = std::move(whole);
  } else {
    output.other = text;
  }
  return output;
}

int ExitCodeOfValidation(const Json& report, bool was_cancelled) {
  const auto stopped = report.find("stopped");
  if (stopped == report.end() || !stopped->is_boolean()) return -1;
  // Else by its time limit or somebody else's signal, which nobody can tell from each other.
  if (stopped->get<bool>()) return was_cancelled ? 128 + SIGINT : -1;
  return CountOf(report, "errors") > 0 ? kDamage : 0;
}

// What pack wrote last, where somebody else has waited for the child: an error, the report of a
// dataset that is published, or that of a validation.
int ExitCodeOf(const Output& output, bool was_cancelled) {
  if (output.error.is_object()) return static_cast<int>(NumberOf(output.error, "code", -1));
  if (HasSchema(output.report, kValidationSchema))
    return ExitCodeOfValidation(output.report, was_cancelled);
  if (!HasSchema(output.report, kBuildSchema)) return -1;
  const auto counts = output.report.find("counts");
  if (counts == output.report.end() || !counts->is_object()) return -1;
  return CountOf(*counts, "skipped") + CountOf(*counts, "failed") == 0 ? 0 : kSomeSkipped;
}

int ExitCodeOf(std::optional<int> status) {
  if (!status.has_value()) return -1;
  if (WIFSIGNALED(*status)) return 128 + WTERMSIG(*status);
  return WEXITSTATUS(*status);
}

}  // namespace

struct PackJob::Core {
  explicit Core(ChildProcess started) : child(std::move(started)) {}

  void Run();
  void Read();
  void Drain(pollfd& pipe);
  size_t ReadOnce(pollfd& pipe);  // bytes
  bool IsCancelled() const {
    const std::lock_guard lock(mutex);
    return cancelled;
  }
  bool WaitForEnd(std::chrono::seconds most) {
    std::unique_lock lock(mutex);
    return news.wait_for(lock, most, [this] { return ended; });
  }
  void TakeOutput(std::string_view text);
  void TakeMessages(std::string_view text);
  void TakeLine(std::string_view line);
  void TakeProgress(const Json& json);
  std::string Result(Output output, bool was_cancelled);

  const pid_t process = ::getpid();
  std::string verb;
  std::function<void(int)> at_end;
  ChildProcess child;
  std::vector<char> piece = std::vector<char>(kPiece);  // of the thread, as what follows
  std::string out, line, messages;
  bool cut = false, out_cut = false;  // not all messages, not all of stdout were kept
  int code_of_child = -1;

  mutable std::mutex mutex;
  std::condition_variable news;
  std::set<std::string, std::less<>> words;  // of the progress, which refers to them
  JobProgress progress;
  uint64_t lines = 0, lines_seen = 0;  // of progress
  bool cancelled = false, ended = false;
  int code = -1;
  std::string result;

  std::thread thread;  // last, because it uses the others
};

// Takes all output until both pipes are closed, or until the child has ended: a process that the
// caller forked on another thread meanwhile may hold the pipes as long as it runs.
void PackJob::Core::Read() {
  pollfd polled[] = {{.fd = child.out(), .events = POLLIN, .revents = 0},
                     {.fd = child.err(), .events = POLLIN, .revents = 0},
                     {.fd = child.end(), .events = POLLIN, .revents = 0}};
  pollfd& end = polled[2];
  const std::span<pollfd> pipes(polled, 2);
  while (pipes[0].fd >= 0 || pipes[1].fd >= 0) {
    if (::poll(polled, std::size(polled), end.fd >= 0 ? -1 : kAskForEndMs) < 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      return;
    }
    const bool ended = end.fd >= 0 ? end.revents != 0 : child.HasEnded();
    for (pollfd& pipe : pipes) {
      if (ended) {
        Drain(pipe);
      } else if (pipe.fd >= 0 && pipe.revents != 0) {
        ReadOnce(pipe);
      }
    }
    if (ended) return;
  }
}

// What is there now: others may go on writing.
void PackJob::Core::Drain(pollfd& pipe) {
  int left = 0;
  if (pipe.fd < 0 || ::ioctl(pipe.fd, FIONREAD, &left) != 0) return;
  while (left > 0 && pipe.fd >= 0) left -= static_cast<int>(ReadOnce(pipe));
}

// Of a pipe at its end the descriptor becomes -1, which poll passes over.
size_t PackJob::Core::ReadOnce(pollfd& pipe) {
  const ssize_t got = ::read(pipe.fd, piece.data(), piece.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return 0;
  if (got <= 0) {
    pipe.fd = -1;
    return 0;
  }
  const std::string_view text(piece.data(), static_cast<size_t>(got));
  if (pipe.fd == child.out()) {
    TakeOutput(text);
  } else {
    TakeMessages(text);
  }
  return text.size();
}

void PackJob::Core::TakeOutput(std::string_view text) {
  out += text;
  if (out.size() <= (out_cut ? 2 * kEndOfOutput : kMostOutput)) return;
  out = out.substr(out.size() - kEndOfOutput);  // in less memory
  out_cut = true;
}

void PackJob::Core::TakeMessages(std::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view more = text.substr(0, end);
    const size_t room = kMostMessages - line.size();
    if (more.size() > room) cut = true;
    line += more.substr(0, room);
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
    TakeLine(line);
    line.clear();
  }
}

void PackJob::Core::TakeLine(std::string_view text) {
  if (text.starts_with('{')) {
    if (const Json json = Parse(text); HasSchema(json, kProgressSchema)) {
      TakeProgress(json);
      return;
    }
  }
  if (messages.size() + text.size() > kMostMessages) {
    cut = true;
    return;
  }
  messages += text;
  messages += '\n';
}

void PackJob::Core::TakeProgress(const Json& json) {
  const std::lock_guard lock(mutex);
  progress = {.stage = *words.insert(TextOf(json, "stage")).first,
              .done = CountOf(json, "done"),
              .total = CountOf(json, "total"),
              .bytes_in = CountOf(json, "bytes_in"),
              .bytes_total = CountOf(json, "bytes_total"),
              .seconds = NumberOf(json, "seconds", 0),
              .eta_seconds = NumberOf(json, "eta_seconds", -1)};
  ++lines;
  news.notify_all();
}

std::string PackJob::Core::Result(Output output, bool was_cancelled) {
  Json result = {{"schema", "shardpack.job/1"},
                 {"verb", verb},
                 {"exit_code", code_of_child},
                 {"cancelled", was_cancelled},
                 {"report", std::move(output.report)},
                 {"error", std::move(output.error)},
                 {"stderr", messages},
                 {"stderr_is_whole", !cut && IsUtf8(messages)},
                 {"stdout_is_whole", !out_cut && IsUtf8(output.other)}};
  if (!output.other.empty() && !out_cut) result["stdout"] = output.other;
  return Dump(result);
}

void PackJob::Core::Run() {
  try {
    Read();
    if (!line.empty()) TakeLine(line);
  } catch (...) {  // no memory: the rest of the output is lost
    cut = true;
    child.CloseOutput();
    child.Signal(SIGINT);
  }
  code_of_child = ExitCodeOf(child.Wait());
  Output output;
  try {
    output = OutputOf(out);
    if (out_cut) output.report = nullptr;  // a part of one
    if (code_of_child < 0) code_of_child = ExitCodeOf(output, IsCancelled());
  } catch (...) {  // no memory: there is no report, and no error
  }
  try {
    if (at_end != nullptr) std::exchange(at_end, nullptr)(code_of_child);
  } catch (...) {  // no memory: it has not been done
  }
  // Before the lock, which Poll takes.
  std::string text;
  try {
    text = Result(std::move(output), IsCancelled());
  } catch (...) {  // the text stays empty
  }
  const std::lock_guard lock(mutex);
  result = std::move(text);
  code = code_of_child;
  ended = true;
  news.notify_all();
}

PackJob::PackJob(std::unique_ptr<Core> core) : core_(std::move(core)) {}

absl::StatusOr<std::unique_ptr<PackJob>> PackJob::Start(const std::string& program,
                                                        const std::vector<std::string>& words,
                                                        const std::string& folder,
                                                        std::function<void(int)> at_end) {
  ASSIGN_OR_RETURN(ChildProcess child, ChildProcess::Start(program, words, folder));
  auto core = std::make_unique<Core>(std::move(child));
  if (!words.empty()) core->verb = words.front();
  core->at_end = std::move(at_end);
  const SignalsBlocked blocked;
  core->thread = std::thread([core = core.get()] { core->Run(); });
  return std::unique_ptr<PackJob>(new PackJob(std::move(core)));
}

PackJob::~PackJob() {
  if (!InOwnProcess()) {  // the thread, and its locks, are in the parent alone
    (void)core_.release();
    return;
  }
  if (!core_->IsCancelled()) Cancel();  // a second time would end it at once
  if (!core_->WaitForEnd(std::chrono::seconds(kPatienceSeconds))) {
    core_->child.Signal(SIGKILL);
    if (!core_->WaitForEnd(kPatienceAfterKill)) {  // it hangs in the kernel
      core_->thread.detach();
      (void)core_.release();
      return;
    }
  }
  core_->thread.join();
}

PackJob::Seen PackJob::Poll(int64_t wait_ms, JobProgress* progress) {
  Core& core = *core_;
  if (!InOwnProcess()) return Seen::kEnd;
  std::unique_lock lock(core.mutex);
  const auto has_news = [&] {
    return core.ended || (progress != nullptr && core.lines != core.lines_seen);
  };
  if (wait_ms < 0) {
    core.news.wait(lock, has_news);
  } else {
    core.news.wait_for(lock, std::chrono::milliseconds(std::min(wait_ms, kMostWaitMs)), has_news);
  }
  if (progress == nullptr) return core.ended ? Seen::kEnd : Seen::kNothing;
  *progress = core.progress;
  if (core.lines != std::exchange(core.lines_seen, core.lines)) return Seen::kProgress;
  return core.ended ? Seen::kEnd : Seen::kNothing;
}

void PackJob::Cancel() {
  if (!InOwnProcess()) return;
  {
    const std::lock_guard lock(core_->mutex);
    if (core_->ended) return;
    core_->cancelled = true;
  }
  core_->child.Signal(SIGINT);
}

bool PackJob::InOwnProcess() const { return core_->process == ::getpid(); }

bool PackJob::ended() const {
  if (!InOwnProcess()) return false;
  const std::lock_guard lock(core_->mutex);
  return core_->ended;
}

int PackJob::exit_code() const {
  if (!InOwnProcess()) return -1;
  const std::lock_guard lock(core_->mutex);
  return core_->code;
}

const std::string& PackJob::result() const {
  static const std::string none;
  return ended() ? core_->result : none;
}

}  // namespace shardpack
