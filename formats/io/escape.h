// Escapes: convert file names and other bytes that may not be UTF-8 to valid text, and back.
//
//   std::string text = PercentEscape("caf\xE9 50%");             // "caf%E9 50%25"
//   std::optional<std::string> bytes = PercentUnescape(text);    // the same bytes again
//   size_t length = Utf8SequenceLength(text);
//
// Errors: PercentUnescape returns nullopt.
// Units: bytes. For a name on a terminal see EscapeForTerminal in file.h.
#ifndef SHARDPACK_FORMATS_IO_ESCAPE_H_
#define SHARDPACK_FORMATS_IO_ESCAPE_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardpack {

// The length of the well-formed UTF-8 sequence at the start of `text` (RFC 3629); 0 if there is
// none.
size_t Utf8SequenceLength(std::string_view text);
bool IsUtf8(std::string_view text);
bool IsAscii(std::string_view text);

// How many bytes at the start of `text` must not go to a terminal unescaped: a control character
// (C0, DEL, C1), a mark that changes the direction of text or ends its line, or a byte that is not
// UTF-8. 0 for a printable character.
size_t HarmfulLength(std::string_view text);

// Escapes `text` for a terminal. Line ends, tabs and style sequences (ESC) stay; everything else
// that is harmful becomes \uNNNN or, if it is not UTF-8, \xNN. Well-formed JSON stays well-formed,
// with the same meaning.
std::string EscapeHarmful(std::string_view text);

// Writes control characters (below 0x20, and 0x7F), `%`, and every byte outside well-formed UTF-8
// as %XX with upper-case digits. manifest.json and skipped.jsonl both use this form.
std::string PercentEscape(std::string_view bytes);
std::vector<std::string> PercentEscapeAll(std::span<const std::string> texts);

// The inverse; nullopt for any text that PercentEscape does not produce.
std::optional<std::string> PercentUnescape(std::string_view text);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_ESCAPE_H_
