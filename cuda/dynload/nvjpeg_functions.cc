#include "cuda/dynload/nvjpeg_functions.h"

namespace shardpack {

const char* NvjpegStatusName(int status) {
  switch (status) {
    case kNvjpegSuccess:
      return "success";
    case 1:
      return "not initialized";
    case kNvjpegInvalidParameter:
      return "invalid parameter";
    case kNvjpegBadJpeg:
      return "bad JPEG";
    case kNvjpegJpegNotSupported:
      return "JPEG not supported";
    case kNvjpegAllocatorFailure:
      return "allocator failure";
    case kNvjpegExecutionFailed:
      return "execution failed";
    case kNvjpegArchMismatch:
      return "not on this GPU";
    case kNvjpegInternalError:
      return "internal error";
    case kNvjpegImplementationNotSupported:
      return "implementation not supported";
    case kNvjpegIncompleteBitstream:
      return "incomplete bitstream";
    default:
      return "unknown status";
  }
}

}  // namespace shardpack
