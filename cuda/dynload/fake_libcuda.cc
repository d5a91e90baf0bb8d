// A driver library with two GPUs, for gpu_probe_test: FAKE_CUDA_INIT is what cuInit returns,
// FAKE_CUDA_VERSION the CUDA that it knows.
#include <cstdlib>
#include <cstring>

extern "C" {
int cuInit(unsigned) {
  const char* const answer = std::getenv("FAKE_CUDA_INIT");
  return answer == nullptr ? 0 : std::atoi(answer);
}
int cuDriverGetVersion(int* version) {
  const char* const told = std::getenv("FAKE_CUDA_VERSION");
  *version = told == nullptr ? 13000 : std::atoi(told);
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = std::getenv("FAKE_CUDA_NONE") == nullptr ? 2 : 0;
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}
int cuDeviceGetName(char* name, int bytes, int device) {
  std::strncpy(name, device == 0 ? "Fake H100" : "Fake L4", static_cast<size_t>(bytes));
  return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = size_t{80} << 30;
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? 9 : attribute == 76 ? 0 : 3;
  return 0;
}
// Programs that use a GPU call these; the probe only looks them up.
int cuDevicePrimaryCtxRetain(void**, int) { return 999; }
int cuDevicePrimaryCtxGetState(int, unsigned*, int*) { return 999; }
int cuCtxPushCurrent_v2(void*) { return 999; }
int cuCtxPopCurrent_v2(void**) { return 999; }
int cuCtxGetCurrent(void**) { return 999; }
int cuGetErrorName(int, const char** name) {
  *name = "CUDA_ERROR_FAKE";
  return 0;
}
}
