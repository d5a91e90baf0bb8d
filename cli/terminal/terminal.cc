#include "cli/terminal/terminal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utf8proc.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cli/terminal/stop_signal.h"
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

// Returns the bytes of the first character and adds its columns. A byte that is not UTF-8 takes one
// column.
size_t Character(std::string_view text, size_t* columns) {
  utf8proc_int32_t character = -1;
  const utf8proc_ssize_t bytes =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                       static_cast<utf8proc_ssize_t>(text.size()), &character);
  *columns += bytes > 0 ? static_cast<size_t>(std::max(0, utf8proc_charwidth(character))) : 1;
  return bytes > 0 ? static_cast<size_t>(bytes) : 1;
}

// Writes all of the text, or returns the errno.
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
  static constexpr const char* kCodes[] = {"", "\033[1m", "\033[31m", "\033[33m"};
  if (!colour_ || style == Style::kPlain) return std::string(text);
  return absl::StrCat(kCodes[static_cast<size_t>(style)], std::string(text), "\033[0m");
}

void Terminal::Say(std::string_view line) {
  if (!quiet_) Put(absl::StrCat(std::string(line), "\n"));
}

void Terminal::Warn(std::string_view text) {
  constexpr std::string_view kWord = "warning:";
  const std::string all = absl::StrCat(std::string(kWord), " ", std::string(text), "\n");
  // A terminal would break lines in the middle of names.
  const std::string lines =
      ::isatty(STDERR_FILENO) == 1 ? WrappedTo(static_cast<size_t>(width()), all) : all;
  Put(absl::StrCat(Styled(Style::kYellow, kWord), lines.substr(kWord.size())));
}

void Terminal::Error(std::string_view text) {
  Put(absl::StrCat("pack: ", Styled(Style::kRed, "error:"), " ", std::string(text), "\n"));
}

void Terminal::Fail(std::string_view text) {
  Error(text);
  const std::lock_guard lock(mutex_);
  failure_ = text;
}

std::string Terminal::failure() {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void Terminal::Raw(std::string_view text) { Put(std::string(text)); }

void Terminal::Erase(std::string* out) {
  if (drawn_ == 0) return;
  absl::StrAppend(out, "\r");
  if (drawn_ > 1) absl::StrAppend(out, "\033[", drawn_ - 1, "A");
  absl::StrAppend(out, "\033[J");
  drawn_ = 0;
  EraseOnSecondSignal(0);
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
  for (size_t i = 0; i < lines.size(); ++i)
    absl::StrAppend(&out, i == 0 ? "" : "\n", EscapeHarmful(lines[i]));
  drawn_ = lines.size();
  EraseOnSecondSignal(static_cast<int>(drawn_));
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
  if (!buffer_.empty()) SetWithinLine(true);  // as long as only a part of it is written
  const int error = WriteAll(STDOUT_FILENO, buffer_);
  SetWithinLine(!buffer_.empty() && buffer_.back() != '\n');
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

size_t DisplayColumns(std::string_view text) {
  size_t columns = 0;
  for (size_t at = 0; at < text.size();) at += Character(text.substr(at), &columns);
  return columns;
}

std::string FitColumns(std::string_view text, int columns) {
  size_t used = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = Character(text.substr(at), &used);
    if (used > static_cast<size_t>(std::max(columns, 0))) return std::string(text.substr(0, at));
    at += bytes;
  }
  return std::string(text);
}

std::string PaddedTo(size_t columns, std::string text) {
  const size_t used = DisplayColumns(text);
  if (used < columns) text.append(columns - used, ' ');
  return text;
}

std::string WrappedTo(size_t columns, std::string_view text) {
  std::string out;
  size_t used = 0;
  const auto put = [&](std::string_view piece) {
    const size_t wide = DisplayColumns(piece.substr(0, piece.find_last_not_of(' ') + 1));
    if (used > 0 && used + wide > columns) {
      out.erase(out.find_last_not_of(' ') + 1);
      out += '\n';
      used = 0;
    }
    out += piece;
    used += DisplayColumns(piece);
  };
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.starts_with(' ')) {
      out += line;
    } else {
      for (size_t at = 0; at < line.size();) {
        const size_t end = std::min(line.find(' ', at), line.size() - 1) + 1;
        std::string_view word = line.substr(at, end - at);
        at = end;
        while (DisplayColumns(word) > columns && word.find('/') < word.size() - 1) {
          const size_t part = word.find('/') + 1;
          put(word.substr(0, part));
          word.remove_prefix(part);
        }
        put(word);
      }
    }
    used = 0;
    text.remove_prefix(line.size());
    if (text.empty()) break;
    out += '\n';
    text.remove_prefix(1);
  }
  return out;
}

}  // namespace shardpack::cli
