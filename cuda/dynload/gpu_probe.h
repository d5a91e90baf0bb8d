// ProbeGpus: which GPUs this machine has and what of CUDA can be used, asked of the driver at run
// time: nothing here links CUDA.
//
//   const GpuProbe probe = ProbeGpus();
//   if (probe.gpus.empty()) std::puts(probe.why_none.c_str());
//
// Opens libcuda.so.1 and asks it as cuDeviceGetName and its like do; makes no context, so no memory
// of a GPU is taken.
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
  std::string why_none;          // empty where there is one
  std::string driver;            // "580.65.06", from the kernel's module; empty without
  int driver_cuda = 0;           // the newest CUDA that the driver knows: 13000 is 13.0
  bool built_with_cuda = false;  // this build knew a toolkit: kernels and runtime are in libraries
  std::string nvjpeg, why_no_nvjpeg;  // path and version, or why there is none
};

GpuProbe ProbeGpus(const std::string& driver_library = "libcuda.so.1");

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_DYNLOAD_GPU_PROBE_H_
