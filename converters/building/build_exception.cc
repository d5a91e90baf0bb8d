#include "converters/building/build_exception.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "formats/io/resources.h"

namespace shardpack {

absl::Status BuildExceptionStatus(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    absl::Status status = StatusOfException("build", error);
    if (!absl::IsResourceExhausted(status)) return status;
    return absl::ResourceExhaustedError(
        absl::StrCat(std::string(status.message()),
                     "; lower values of --memory, --jobs or --io-depth need less"));
  } catch (...) {
    return absl::InternalError("build: an exception of an unknown type");
  }
}

}  // namespace shardpack
