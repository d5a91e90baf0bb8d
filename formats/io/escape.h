// Escapes: file names and other bytes that need not be UTF-8, as text that is, and back.
//
//   std::string text = PercentEscape("caf\xE9 50%");             // "caf%E9 50%25"
//   std::optional<std::string> bytes = PercentUnescape(text);    // the same bytes again
//   size_t length = Utf8SequenceLength(text);
//
// Errors: PercentUnescape answers nullopt.
// Units: bytes. For a name on a terminal see EscapeForTerminal in file.h.
#ifndef SHARDPACK_FORMATS_IO_ESCAPE_H_
#define SHARDPACK_FORMATS_IO_ESCAPE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace shardpack {

// The length of the well-formed UTF-8 sequence at the start of `text` (RFC 3629); 0 when there is
// none.
size_t Utf8SequenceLength(std::string_view text);

// How many bytes at the start of `text` a terminal must not get as they are: a control character
// (C0, DEL, C1), a mark that turns the direction of text or ends its line, a byte that is not
// UTF-8. 0 for a character that may be printed.
size_t HarmfulLength(std::string_view text);

// `text` for a terminal, with its line ends, tabs and style sequences (ESC); all else that is
// harmful as \uNNNN or, where it is not UTF-8, \xNN. What is well-formed JSON stays so, with the
// same meaning.
std::string EscapeHarmful(std::string_view text);

// Control characters (below 0x20, and 0x7F), `%`, and every byte that is not part of well-formed
// UTF-8 as %XX with upper-case digits: one spelling for all of manifest.json and skipped.jsonl.
std::string PercentEscape(std::string_view bytes);

// The inverse; nullopt for anything that PercentEscape does not write.
std::optional<std::string> PercentUnescape(std::string_view text);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_ESCAPE_H_
