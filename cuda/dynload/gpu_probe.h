// ProbeGpus: which GPUs this machine has and what part of CUDA can be used; the driver is asked at
// run time, and nothing here links CUDA.
//
//   const GpuProbe probe = ProbeGpus();
//   if (probe.gpus.empty()) std::puts(probe.why_none.c_str());
//
// Opens libcuda.so.1 and calls cuDeviceGetName and the like, which make no context and so take no
// memory on a GPU.
//
// Lifetime: a value; the driver's library stays open.
// Thread-safety: any thread.
// Errors: as text in the result.
// Units: bytes.
#ifndef SHARDPACK_CUDA_DYNLOAD_GPU_PROBE_H_
#define SHARDPACK_CUDA_DYNLOAD_GPU_PROBE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace shardpack {

struct GpuFacts {
  std::string name, pci_bus_id;
  uint64_t memory_bytes = 0;
  int major = 0, minor = 0;  // compute capability
  int copy_engines = 0;
};

struct GpuProbe {
  std::vector<GpuFacts> gpus;
  std::string why_none;               // empty if there is one
  std::string driver;                 // "580.65.06", from the kernel's module; empty without
  int driver_cuda = 0;                // the newest CUDA that the driver knows: 13000 is 13.0
  bool built_with_cuda = false;       // with a toolkit: the libraries have kernels and the runtime
  int runtime = 0;                    // the runtime's version, as driver_cuda; 0 without one
  std::string needed_driver;          // the oldest driver for it, "580.65.06"
  std::string why_unusable;           // why this driver's GPUs cannot be used, if it is too old
  std::string nvjpeg, why_no_nvjpeg;  // path and version, or why there is none
};

GpuProbe ProbeGpus(const std::string& driver_library = "libcuda.so.1");

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_DYNLOAD_GPU_PROBE_H_
