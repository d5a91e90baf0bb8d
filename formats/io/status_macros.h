// RETURN_IF_ERROR, ASSIGN_OR_RETURN: return the error of an absl::Status or absl::StatusOr from the
// function.
//
//   RETURN_IF_ERROR(file.Close());
//   ASSIGN_OR_RETURN(File file, File::OpenRead(path));
//
// For source files only: a header that defines these names would force them on its users.
#ifndef SHARDPACK_FORMATS_IO_STATUS_MACROS_H_
#define SHARDPACK_FORMATS_IO_STATUS_MACROS_H_

#include <utility>

#define RETURN_IF_ERROR(...)                                                                 \
  do {                                                                                       \
    if (auto returned_status = (__VA_ARGS__); !returned_status.ok()) return returned_status; \
  } while (false)

#define ASSIGN_OR_RETURN(declaration, ...) \
  SHARDPACK_ASSIGN_OR_RETURN(SHARDPACK_JOINED(status_or_, __LINE__), declaration, __VA_ARGS__)

#define SHARDPACK_JOINED(a, b) SHARDPACK_JOINED_NOW(a, b)
#define SHARDPACK_JOINED_NOW(a, b) a##b
#define SHARDPACK_ASSIGN_OR_RETURN(temporary, declaration, ...) \
  auto temporary = (__VA_ARGS__);                               \
  if (!temporary.ok()) return std::move(temporary).status();    \
  declaration = *std::move(temporary)

#endif  // SHARDPACK_FORMATS_IO_STATUS_MACROS_H_
