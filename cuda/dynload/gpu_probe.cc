#include "cuda/dynload/gpu_probe.h"

#ifdef SHARDPACK_WITH_CUDA
#include <cuda_runtime_api.h>
#endif

#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "cuda/dynload/cuda_driver.h"
#include "cuda/dynload/driver_floor.h"
#include "cuda/dynload/nvjpeg_library.h"

namespace shardpack {
namespace {

// From CUDA's driver interface (cuda.h): results are CUresult, 0 is success; attributes 75 and 76
// are the compute capability, 40 the number of copy engines.
constexpr int kMajor = 75, kMinor = 76, kCopyEngines = 40;

std::string ErrorName(const CudaDriver& driver, int result) {
  const char* name = nullptr;
  if (driver.error_name != nullptr && driver.error_name(result, &name) == 0 && name != nullptr)
    return absl::StrCat(name, " (error ", result, ")");
  return absl::StrCat("error ", result);
}

// "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build ...".
std::string KernelModuleVersion() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line, word;
  std::getline(file, line);
  std::istringstream words(line);
  while (words >> word) {
    if (word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == word.npos)
      return word;
  }
  return "";
}

std::string WhyNoLibrary(const std::string& library, const std::string& error,
                         const std::string& module) {
  if (!module.empty()) {
    return absl::StrCat("the kernel has NVIDIA's driver ", module, ", but ", library,
                        " cannot be opened (", error,
                        "): in a container, start it with the driver's libraries");
  }
  return absl::StrCat("no NVIDIA driver: ", library, " cannot be opened (", error, ")");
}

GpuFacts FactsOf(const CudaDriver& driver, int device) {
  GpuFacts facts;
  std::array<char, 256> text = {};
  if (driver.name(text.data(), static_cast<int>(text.size()) - 1, device) == 0)
    facts.name = text.data();
  text = {};
  if (driver.bus_id != nullptr &&
      driver.bus_id(text.data(), static_cast<int>(text.size()) - 1, device) == 0)
    facts.pci_bus_id = text.data();
  size_t bytes = 0;
  if (driver.memory(&bytes, device) == 0) facts.memory_bytes = bytes;
  (void)driver.attribute(&facts.major, kMajor, device);
  (void)driver.attribute(&facts.minor, kMinor, device);
  (void)driver.attribute(&facts.copy_engines, kCopyEngines, device);
  return facts;
}

void AskDriver(const std::string& library, GpuProbe& probe) {
  const absl::StatusOr<CudaDriver> opened = OpenCudaDriver(library);
  if (!opened.ok()) {
    const std::string why(opened.status().message());
    probe.why_none =
        absl::IsNotFound(opened.status()) ? WhyNoLibrary(library, why, probe.driver) : why;
    return;
  }
  const CudaDriver& driver = *opened;
  int result = driver.init(0);
  (void)driver.version(&probe.driver_cuda);
  int count = 0;
  if (result == 0) result = driver.count(&count);
  if (result != 0 || count == 0) {
    probe.why_none = result == 0
                         ? "the driver sees no GPU"
                         : absl::StrCat("the driver cannot start: ", ErrorName(driver, result));
    if (const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES"))
      absl::StrAppend(&probe.why_none, "; CUDA_VISIBLE_DEVICES is \"", visible, "\"");
    return;
  }
  for (int i = 0; i < count; ++i) {
    int device = 0;
    if (driver.get(&device, i) == 0) probe.gpus.push_back(FactsOf(driver, device));
  }
  if (probe.gpus.empty()) probe.why_none = "the driver counts GPUs and gives none";
}

}  // namespace

GpuProbe ProbeGpus(const std::string& driver_library) {
  GpuProbe probe;
#ifdef SHARDPACK_WITH_CUDA
  probe.built_with_cuda = true;
  probe.runtime = CUDART_VERSION;
  probe.needed_driver = OldestDriver(CUDART_VERSION);
#endif
  probe.driver = KernelModuleVersion();
  AskDriver(driver_library, probe);
  if (probe.driver_cuda > 0) probe.why_unusable = DriverTooOld(probe.runtime, probe.driver_cuda);
  const absl::StatusOr<NvjpegLibrary> nvjpeg = NvjpegLibrary::Open();
  if (nvjpeg.ok()) {
    probe.nvjpeg = absl::StrCat(nvjpeg->path(), " (", nvjpeg->major(), ".", nvjpeg->minor(), ")");
  } else {
    probe.why_no_nvjpeg = std::string(nvjpeg.status().message());
  }
  return probe;
}

}  // namespace shardpack
