// The launch links and answers, with a toolkit or without, and without a GPU; its results are
// tested by //cuda/kernels:preprocess_gpu_test.
#include <gtest/gtest.h>

#include <vector>

#include "cuda/testing/preprocess_testing.h"

namespace shardpack {
namespace {

TEST(LaunchPreprocess, AnswersWithoutAGpu) {
  constexpr int kInvalidValue = 1, kNotSupported = 801;
  const TestBatch batch = MakeTestBatch({.count = 1});
  std::vector<uint8_t> out(3);
  PreprocessLaunch nothing = LaunchOf(batch, 1, 1, ResizeFilter::kBox, {}, out.data());
  nothing.count = 0;
  PreprocessLaunch invalid = nothing;
  invalid.channels = 2;
  const int code = LaunchPreprocess(nothing, nullptr);
  if (code == kNotSupported) {
    EXPECT_EQ(LaunchPreprocess(invalid, nullptr), kNotSupported);
  } else {
    EXPECT_EQ(code, 0);
    EXPECT_EQ(LaunchPreprocess(invalid, nullptr), kInvalidValue);
  }
}

}  // namespace
}  // namespace shardpack
