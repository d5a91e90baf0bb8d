// Terminal: what stderr can show (colour, a live block, how wide), and messages on it. Results:
// what goes to stdout.
//
//   Terminal terminal(ProgressMode::kAuto);
//   terminal.Warn("3 classes hold one image each; --exclude leaves them out");
//   Results results;
//   results.Write("dataset xxh3:...\n");
//   absl::Status written = results.Finish();
//
// Lifetime: a Terminal erases its live block when destroyed.
// Thread-safety: Terminal any thread; Results one caller.
// Errors: those of stderr are ignored, since there is nowhere left to say so; those of stdout come
// from Write and Finish (exit 6), but that a reader went away (EPIPE) is no error: see closed().
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

enum class Style : uint8_t { kPlain, kBold, kDim, kRed, kGreen, kYellow };

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

  // `text` in that style where stderr shows colours.
  std::string Styled(Style style, std::string_view text) const;

  void Say(std::string_view line);    // a line of the summary; not with --quiet
  void Warn(std::string_view text);   // "warning: ..."
  void Error(std::string_view text);  // "pack: error: ..."
  void Fail(std::string_view text);   // an Error that ends the command
  std::string failure();              // the last of these; empty when there was none
  void Raw(std::string_view text);    // as it is, the line end included
  // Whatever a message holds - names, the words of a library - controls in it reach no terminal.

  // Draws these lines in the place of those drawn before; none erases them.
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
  void Write(std::string_view text);       // what a terminal must not get is escaped
  void WriteBytes(std::string_view text);  // as they are
  bool closed() const { return closed_; }  // the reader went away: nothing more needs to be made
  // What is buffered reaches the kernel; the first error of all writes.
  absl::Status Finish();

 private:
  void Flush();
  std::string buffer_;
  bool closed_ = false;
  absl::Status status_;
};

// How many columns a terminal gives `text`, which is UTF-8: 2 for each wide character, 0 for marks.
size_t DisplayColumns(std::string_view text);
// `text` cut to that many columns at a character's border.
std::string FitColumns(std::string_view text, int columns);
using shardpack::ShellQuoted;
// Blanks behind it until it is that wide.
std::string PaddedTo(size_t columns, std::string text);
// Broken into lines at blanks, and within a longer word behind a "/"; a word without one stays
// whole. Lines that begin with a blank are left alone: they are rows and commands.
std::string WrappedTo(size_t columns, std::string_view text);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_TERMINAL_TERMINAL_H_
