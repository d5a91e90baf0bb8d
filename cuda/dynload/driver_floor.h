// DriverTooOld: which drivers a program runs with, by the CUDA runtime that it was built with.
//
//   const std::string why = DriverTooOld(CUDART_VERSION, driver_cuda);   // empty: new enough
//
// A runtime works with the drivers of its major version from the first one on, and with all newer
// ones ("minor version compatibility": NVIDIA, CUDA Compatibility, table 1:
// docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html; the versions for
// Linux are those of table 2 of the toolkit's release notes).
//
// Lifetime: plain values.
// Thread-safety: pure functions.
// Units: versions as cudaDriverGetVersion has them: 12040 is 12.4.
#ifndef SHARDPACK_CUDA_DYNLOAD_DRIVER_FLOOR_H_
#define SHARDPACK_CUDA_DYNLOAD_DRIVER_FLOOR_H_

#include <string>

#include "absl/strings/str_cat.h"

namespace shardpack {

// The oldest driver for this runtime, "525.60.13"; empty if it is not in the table.
inline std::string OldestDriver(int runtime) {
  switch (runtime / 1000) {
    case 12:
      return "525.60.13";
    case 13:
      return "580.65.06";
    default:
      return "";
  }
}

inline std::string CudaVersion(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

// `driver`: the newest CUDA that the driver knows.
inline std::string DriverTooOld(int runtime, int driver) {
  const int needed = runtime / 1000 * 1000;
  if (driver >= needed) return "";
  const std::string oldest = OldestDriver(runtime);
  return absl::StrCat("the driver is for CUDA ", CudaVersion(driver), ", this program needs ",
                      CudaVersion(needed),
                      oldest.empty() ? "" : absl::StrCat(": driver ", oldest, " or newer"));
}

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_DYNLOAD_DRIVER_FLOOR_H_
