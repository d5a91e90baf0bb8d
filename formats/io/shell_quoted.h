// A command that the user is told to type: its program, and its words.
//
//   message = StrCat("run\n  ", TypedProgram(), " repair ", ShellQuoted(folder));
//
// Thread-safety: pure functions; SetProgram before there are threads.
#ifndef SHARDPACK_FORMATS_IO_SHELL_QUOTED_H_
#define SHARDPACK_FORMATS_IO_SHELL_QUOTED_H_

#include <string>
#include <string_view>

namespace shardpack {

// `word` as a POSIX shell reads it back, escaped for the terminal.
std::string ShellQuoted(std::string_view word);

// The program as its user has called it, quoted; "pack" where none was set.
std::string TypedProgram();
void SetProgram(std::string program);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_SHELL_QUOTED_H_
