// A GPU is found where there is one; elsewhere the reason is given, quickly and each time.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "cuda/device/cuda_device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

TEST(OpenCudaDevice, FindsAGpuOrSaysWhyNot) {
  for (int again = 0; again < 2; ++again) {
    const absl::StatusOr<Device*> gpu = OpenCudaDevice(0);
    if (!gpu.ok()) {
      EXPECT_EQ(std::getenv("SHARDPACK_REQUIRE_GPU"), nullptr) << gpu.status();
      EXPECT_THAT(std::string(gpu.status().message()),
                  AnyOf(HasSubstr("built without CUDA"), HasSubstr("no NVIDIA driver"),
                        HasSubstr("no GPU can be used")));
      continue;
    }
    EXPECT_EQ((*gpu)->kind(), DeviceKind::kCuda);
    const absl::StatusOr<DeviceInfo> info = (*gpu)->Info();
    ASSERT_TRUE(info.ok()) << info.status();
    EXPECT_GT(info->memory_bytes, 0u);
    EXPECT_EQ(*OpenCudaDevice(0), *gpu);
    EXPECT_EQ(OpenCudaDevice(1000).status().code(), absl::StatusCode::kNotFound);
  }
}

// Where CUDA could not be used the child is told the same as its parent.
TEST(OpenCudaDevice, AForkedChildIsToldSo) {
  const absl::StatusCode code = OpenCudaDevice(0).status().code();
  const absl::StatusCode expected =
      code == absl::StatusCode::kOk ? absl::StatusCode::kFailedPrecondition : code;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(OpenCudaDevice(0).status().code() == expected ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace shardpack
