// The report on a machine with GPUs (from a fake driver library), with a driver that does not
// start, and without a driver.
#include "cuda/dynload/gpu_probe.h"

#include <cstdlib>

#include "cuda/dynload/driver_floor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kFake[] = "cuda/dynload/libcuda_fake.so";

TEST(GpuProbe, NamesWhatTheDriverSees) {
  const GpuProbe probe = ProbeGpus(kFake);
  ASSERT_EQ(probe.gpus.size(), 2u) << probe.why_none;
  EXPECT_EQ(probe.gpus[0].name, "Fake H100");
  EXPECT_EQ(probe.gpus[1].name, "Fake L4");
  EXPECT_EQ(probe.gpus[0].memory_bytes, uint64_t{80} << 30);
  EXPECT_EQ(probe.gpus[0].major, 9);
  EXPECT_EQ(probe.gpus[0].copy_engines, 3);
  EXPECT_EQ(probe.driver_cuda, 13000);
  EXPECT_EQ(probe.why_none, "");
  EXPECT_NE(probe.nvjpeg.empty(), probe.why_no_nvjpeg.empty());
}

// GPUs that the driver sees and this program cannot use are no GPUs to be silent about.
TEST(GpuProbe, SaysThatTheDriverIsTooOld) {
  ::setenv("FAKE_CUDA_VERSION", "11080", 1);
  const GpuProbe probe = ProbeGpus(kFake);
  ::unsetenv("FAKE_CUDA_VERSION");
  EXPECT_EQ(probe.gpus.size(), 2u);
  EXPECT_EQ(probe.runtime > 0, probe.built_with_cuda);
  if (!probe.built_with_cuda) return;
  EXPECT_FALSE(probe.needed_driver.empty());
  EXPECT_THAT(probe.why_unusable,
              AllOf(HasSubstr("for CUDA 11.8"), HasSubstr(probe.needed_driver + " or newer")));
  EXPECT_EQ(ProbeGpus(kFake).why_unusable, "");
}

// By NVIDIA's table of minor version compatibility.
TEST(DriverFloor, IsTheFirstDriverOfTheMajorVersion) {
  EXPECT_EQ(DriverTooOld(12080, 12000), "");
  EXPECT_EQ(DriverTooOld(12080, 13000), "");
  EXPECT_EQ(DriverTooOld(12080, 11080),
            "the driver is for CUDA 11.8, this program needs 12.0: driver 525.60.13 or newer");
  EXPECT_EQ(DriverTooOld(13000, 12080),
            "the driver is for CUDA 12.8, this program needs 13.0: driver 580.65.06 or newer");
  EXPECT_EQ(DriverTooOld(14010, 13000), "the driver is for CUDA 13.0, this program needs 14.0");
}

TEST(GpuProbe, SaysWhyThereIsNone) {
  EXPECT_THAT(ProbeGpus("libcuda-not-there.so.1").why_none,
              AllOf(HasSubstr("libcuda-not-there.so.1"), HasSubstr("cannot be opened")));
  EXPECT_THAT(ProbeGpus("libdl.so.2").why_none, HasSubstr("lacks functions"));
  ::setenv("FAKE_CUDA_INIT", "999", 1);
  EXPECT_THAT(ProbeGpus(kFake).why_none, HasSubstr("CUDA_ERROR_FAKE (error 999)"));
  ::unsetenv("FAKE_CUDA_INIT");
  ::setenv("FAKE_CUDA_NONE", "1", 1);
  ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
  EXPECT_THAT(ProbeGpus(kFake).why_none,
              AllOf(HasSubstr("sees no GPU"), HasSubstr("CUDA_VISIBLE_DEVICES is \"\"")));
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  ::unsetenv("FAKE_CUDA_NONE");
}

}  // namespace
}  // namespace shardpack
