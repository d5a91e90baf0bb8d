// BuildExceptionStatus: an exception that ended a build, as a status.
//
//   try { ... } catch (...) { return BuildExceptionStatus(std::current_exception()); }
//
// Errors: ResourceExhausted for a lack of memory or threads, with the flags that lower what is
// needed; Internal for anything else. Throws std::bad_alloc if there is no memory for the message.
#ifndef SHARDPACK_CONVERTERS_BUILDING_BUILD_EXCEPTION_H_
#define SHARDPACK_CONVERTERS_BUILDING_BUILD_EXCEPTION_H_

#include <exception>

#include "absl/status/status.h"

namespace shardpack {

absl::Status BuildExceptionStatus(const std::exception_ptr& thrown);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_BUILDING_BUILD_EXCEPTION_H_
