// Terminal: the capabilities of stderr (colour, live block, width), and messages on it. Results:
// the output on stdout.
//
//   Terminal terminal(ProgressMode::kAuto);
//   terminal.Warn("3 classes hold one image each; --exclude leaves them out");
//   Results results;
//   results.Write("dataset xxh3:...\n");
//   absl::Status written = results.Finish();
//
// Lifetime: a Terminal erases its live block when destroyed.
// Thread-safety: Terminal any thread; Results one caller.
// Errors: those of stderr are ignored, because they cannot be reported; those of stdout come from
// Write and Finish (exit 6), except that a closed pipe (EPIPE) is not an error: see closed().
// Units: columns.
#ifndef SHARDPACK_CLI_TERMINAL_TERMINAL_H_
#define SHARDPACK_CLI_TERMINAL_TERMINAL_H_

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "formats/io/shell_quoted.h"

namespace shardpack::cli {

enum class ProgressMode : uint8_t { kAuto, kAlways, kNever, kJson };

enum class Style : uint8_t { kPlain, kBold, kRed, kYellow };

class Terminal {
 public:
  explicit Terminal(ProgressMode mode = ProgressMode::kAuto, bool quiet = false);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  bool live() const { return live_; }  // a block can be redrawn in place
  bool quiet() const { return quiet_; }
  bool utf8() const { return utf8_; }
  ProgressMode mode() const { return mode_; }
  int width() const;

  // `text` in that style if stderr shows colours.
  std::string Styled(Style style, std::string_view text) const;

  void Say(std::string_view line);    // a line of the summary; not with --quiet
  void Warn(std::string_view text);   // "warning: ..."
  void Error(std::string_view text);  // "pack: error: ..."
  void Fail(std::string_view text);   // an Error that ends the command
  std::string failure();              // the message of the last Fail; empty if there was none
  void Raw(std::string_view text);    // unchanged, including the line end
  // Control characters in a message (from names or libraries) never reach a terminal.

  // Draws these lines in place of those drawn before; no lines: erases them.
  void Draw(const std::vector<std::string>& lines);

 private:
  void Erase(std::string* out);
  void Put(std::string text);

  const ProgressMode mode_;
  const bool quiet_;
  bool live_ = false, colour_ = false, utf8_ = false;
  std::mutex mutex_;
  size_t drawn_ = 0;  // lines
  std::string failure_;
};

class Results {
 public:
  void Write(std::string_view text);       // characters that could harm a terminal are escaped
  void WriteBytes(std::string_view text);  // unchanged
  bool closed() const { return closed_; }  // the reader is gone: stop producing output
  // Flushes the buffer; returns the first error of all writes.
  absl::Status Finish();

 private:
  void Flush();
  std::string buffer_;
  bool closed_ = false;
  absl::Status status_;
};

// The width of `text` (UTF-8) on a terminal: 2 columns for each wide character, 0 for marks.
size_t DisplayColumns(std::string_view text);
// `text` cut to that many columns between characters.
std::string FitColumns(std::string_view text, int columns);
using shardpack::ShellQuoted;
// Appends spaces up to this width.
std::string PaddedTo(size_t columns, std::string text);
// Wraps lines at spaces, and within a longer word after a "/"; a word without one is kept whole.
// Lines that begin with a space are kept: they are rows and commands.
std::string WrappedTo(size_t columns, std::string_view text);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_TERMINAL_TERMINAL_H_
