#include "cli/terminal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "formats/io/escape.h"
#include "formats/io/file.h"

namespace shardpack::cli {
namespace {

std::string_view Variable(const char* name) {
  const char* value = ::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

bool SpeaksUtf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view value = Variable(name);
    if (value.empty()) continue;
    return value.find("UTF-8") != std::string_view::npos ||
           value.find("utf8") != std::string_view::npos ||
           value.find("utf-8") != std::string_view::npos;
  }
  return false;
}

// All of it, or the errno.
int WriteAll(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    text.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

}  // namespace

Terminal::Terminal(ProgressMode mode, bool quiet) : mode_(mode), quiet_(quiet) {
  const std::string_view term = Variable("TERM");
  const bool terminal = ::isatty(STDERR_FILENO) == 1 && term != "dumb";
  colour_ = terminal && Variable("NO_COLOR").empty();
  live_ = !quiet && ((terminal && mode == ProgressMode::kAuto) || mode == ProgressMode::kAlways);
  utf8_ = SpeaksUtf8();
}

Terminal::~Terminal() { Draw({}); }

int Terminal::width() const {
  winsize size;
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20) return size.ws_col;
  return 80;
}

std::string Terminal::Styled(Style style, std::string_view text) const {
  static constexpr const char* kCodes[] = {"",         "\033[1m",  "\033[2m",
                                           "\033[31m", "\033[32m", "\033[33m"};
  if (!colour_ || style == Style::kPlain) return std::string(text);
  return absl::StrCat(kCodes[static_cast<size_t>(style)], std::string(text), "\033[0m");
}

void Terminal::Say(std::string_view line) {
  if (!quiet_) Put(absl::StrCat(std::string(line), "\n"));
}

void Terminal::Warn(std::string_view text) {
  Put(absl::StrCat(Styled(Style::kYellow, "warning:"), " ", std::string(text), "\n"));
}

void Terminal::Error(std::string_view text) {
  Put(absl::StrCat("pack: ", Styled(Style::kRed, "error:"), " ", std::string(text), "\n"));
}

void Terminal::Raw(std::string_view text) { Put(std::string(text)); }

void Terminal::Erase(std::string* out) {
  if (drawn_ == 0) return;
  absl::StrAppend(out, "\r");
  if (drawn_ > 1) absl::StrAppend(out, "\033[", drawn_ - 1, "A");
  absl::StrAppend(out, "\033[J");
  drawn_ = 0;
}

void Terminal::Put(std::string text) {
  const std::lock_guard lock(mutex_);
  std::string out;
  Erase(&out);
  WriteAll(STDERR_FILENO, out + EscapeHarmful(text));
}

void Terminal::Draw(const std::vector<std::string>& lines) {
  if (!live_) return;
  const std::lock_guard lock(mutex_);
  std::string out;
  Erase(&out);
  for (size_t i = 0; i < lines.size(); ++i) absl::StrAppend(&out, i == 0 ? "" : "\n", EscapeHarmful(lines[i]));
  drawn_ = lines.size();
  if (!out.empty()) WriteAll(STDERR_FILENO, out);
}

void Results::Write(std::string_view text) { WriteBytes(EscapeHarmful(text)); }

void Results::WriteBytes(std::string_view text) {
  if (closed_ || !status_.ok()) return;
  buffer_.append(text);
  if (buffer_.size() >= size_t{64} << 10) Flush();
}

void Results::Flush() {
  if (closed_ || !status_.ok()) return;
  const int error = WriteAll(STDOUT_FILENO, buffer_);
  buffer_.clear();
  if (error == EPIPE) {
    closed_ = true;
  } else if (error != 0) {
    status_ = IoStatus("write", "standard output", error);
  }
}

absl::Status Results::Finish() {
  if (!buffer_.empty()) Flush();
  return status_;
}

std::string FitColumns(std::string_view text, int columns) {
  int used = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    // Continuation bytes take no column.
    if ((static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) continue;
    if (used == columns) return std::string(text.substr(0, i));
    ++used;
  }
  return std::string(text);
}

std::string TypedCommand(const CommandLine& line) {
  std::string text = ShellQuoted(line.program);
  for (const std::string& word : line.words) absl::StrAppend(&text, " ", ShellQuoted(word));
  return text;
}

}  // namespace shardpack::cli
