// The report on a machine with GPUs (from a fake driver library), with a driver that does not
// start, and without a driver.
#include "cuda/dynload/gpu_probe.h"

#include <cstdlib>

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
