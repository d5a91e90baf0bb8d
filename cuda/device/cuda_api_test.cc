// Where there is a GPU it is found; where there is none the reason is said, quickly and each time.
#include "cuda/device/cuda_api.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

TEST(CudaApi, FindsAGpuOrSaysWhyNot) {
  for (int again = 0; again < 2; ++again) {
    const absl::StatusOr<const DeviceApi*> api = CudaDeviceApi(0);
    if (!api.ok()) {
      EXPECT_EQ(std::getenv("SHARDPACK_REQUIRE_GPU"), nullptr) << api.status();
      EXPECT_THAT(std::string(api.status().message()),
                  AnyOf(HasSubstr("built without CUDA"), HasSubstr("no NVIDIA driver"),
                        HasSubstr("no GPU can be used")));
      continue;
    }
    EXPECT_EQ((*api)->kind, DeviceKind::kCuda);
    DeviceInfo info;
    ASSERT_TRUE((*api)->info((*api)->self, &info).ok());
    EXPECT_GT(info.memory_bytes, 0u);
    EXPECT_EQ(*CudaDeviceApi(0), *api);
    EXPECT_EQ(CudaDeviceApi(1000).status().code(), absl::StatusCode::kNotFound);
  }
}

// Where CUDA could not be used the child is told the same as its parent.
TEST(CudaApi, AForkedChildIsToldSo) {
  const absl::StatusCode code = CudaDeviceApi(0).status().code();
  const absl::StatusCode expected =
      code == absl::StatusCode::kOk ? absl::StatusCode::kFailedPrecondition : code;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(CudaDeviceApi(0).status().code() == expected ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace shardpack
