// ShellQuoted: a word in a command that the user is told to type.
//
//   message = StrCat("run\n  pack repair ", ShellQuoted(folder));
//
// Lifetime, thread-safety: a pure function. Errors: none.
#ifndef SHARDPACK_FORMATS_IO_SHELL_QUOTED_H_
#define SHARDPACK_FORMATS_IO_SHELL_QUOTED_H_

#include <string>
#include <string_view>

namespace shardpack {

// `word` as a POSIX shell reads it back, escaped for the terminal.
std::string ShellQuoted(std::string_view word);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_SHELL_QUOTED_H_
