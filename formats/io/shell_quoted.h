// Parts of a command that a message asks the user to type: the program, and quoted arguments.
//
//   message = StrCat("run\n  ", TypedProgram(), " repair ", ShellQuoted(folder));
//
// Thread-safety: pure functions; call SetProgram before starting threads.
#ifndef SHARDPACK_FORMATS_IO_SHELL_QUOTED_H_
#define SHARDPACK_FORMATS_IO_SHELL_QUOTED_H_

#include <string>
#include <string_view>

namespace shardpack {

// Quotes `word` so that a POSIX shell reads it back, escaped for the terminal.
std::string ShellQuoted(std::string_view word);

// The program as the user called it, quoted; "pack" if SetProgram was not called.
std::string TypedProgram();
void SetProgram(std::string program);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_SHELL_QUOTED_H_
