#include "readers/opencv/opencv.h"

#include <gtest/gtest.h>

#include <cstring>
#include <opencv2/imgproc.hpp>
#include <vector>

#include "augment/program.h"

namespace shardpack {
namespace {

constexpr uint32_t kWidth = 6, kHeight = 4;

TEST(OpenCvTest, AMatIsTheBatchsOwnMemory) {
  std::vector<uint8_t> bytes(2 * 3 * kWidth * kHeight * 3);  // two views of three slots
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 7);
  const PixelBatch batch{.bytes = std::as_bytes(std::span(bytes)),
                         .sample_bytes = kWidth * kHeight * 3,
                         .views = 2,
                         .height = kHeight,
                         .width = kWidth,
                         .channels = 3};
  const auto mat = MatOf(batch, 1, 1);
  ASSERT_TRUE(mat.ok()) << mat.status();
  EXPECT_EQ(mat->type(), CV_8UC3);
  EXPECT_EQ(mat->size(), cv::Size(kWidth, kHeight));
  EXPECT_EQ(mat->data, bytes.data() + 4 * batch.sample_bytes);
  cv::Mat written = *mat;
  written.setTo(cv::Scalar(1, 2, 3));
  EXPECT_EQ(bytes[4 * batch.sample_bytes + 5], 3);
  EXPECT_EQ(bytes[4 * batch.sample_bytes - 1],
            static_cast<uint8_t>((4 * batch.sample_bytes - 1) * 7));
  EXPECT_EQ(MatOf(batch, 3).status().message(), "slot 3 and view 0 of 3 slots and 2 views");
  EXPECT_EQ(MatOf(batch, 0, 2).status().code(), absl::StatusCode::kOutOfRange);
}

TEST(OpenCvTest, TypesOfNumbers) {
  std::vector<float> numbers(kWidth * kHeight);
  PixelBatch batch{.bytes = std::as_bytes(std::span(numbers)),
                   .sample_bytes = numbers.size() * 4,
                   .height = kHeight,
                   .width = kWidth,
                   .channels = 1,
                   .type = PixelType::kF32};
  EXPECT_EQ(MatOf(batch, 0)->type(), CV_32FC1);
  batch.type = PixelType::kBf16;
  EXPECT_EQ(MatOf(batch, 0).status().code(), absl::StatusCode::kInvalidArgument);
  batch.type = PixelType::kF32;
  batch.layout = PixelLayout::kNchw;
  EXPECT_EQ(MatOf(batch, 0).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(OpenCvTest, ViewsAndMatsSeeTheSamePixels) {
  cv::Mat whole(kHeight, kWidth, CV_8UC3, cv::Scalar(10, 20, 30));
  const cv::Mat part = whole(cv::Rect(1, 1, 3, 2));  // rows with gaps
  const auto view = ViewOf(part);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->stride_bytes, kWidth * 3);
  EXPECT_EQ(view->Row(1)[2], 30);
  const cv::Mat again = MatOf(*view);
  EXPECT_EQ(again.data, part.data);
  EXPECT_EQ(cv::countNonZero(again.reshape(1) != part.clone().reshape(1)), 0);
  EXPECT_EQ(ViewOf(cv::Mat(2, 2, CV_16UC1))->sample_bytes, 2u);
  EXPECT_FALSE(ViewOf(cv::Mat(2, 2, CV_32FC1)).ok());
  EXPECT_FALSE(ViewOf(cv::Mat({2, 2, 2}, CV_8UC1)).ok());
}

// Where both define an operation alike, both make the same pixels.
TEST(OpenCvTest, OperationsOfBothAreApplied) {
  cv::Mat image(40, 50, CV_8UC3);
  cv::randu(image, 0, 255);
  cv::Mat flipped;
  cv::flip(image, flipped, 1);
  cv::GaussianBlur(flipped, flipped, {5, 5}, 1.2);
  ProgramRunner runner;
  const auto program = SampleProgram::Parse("flip_horizontal");
  ASSERT_TRUE(runner.Apply(*program, {image.data, 50, 40, 3, image.step[0]}).ok());
  cv::GaussianBlur(image, image, {5, 5}, 1.2);
  EXPECT_EQ(cv::countNonZero(image.reshape(1) != flipped.reshape(1)), 0);
}

}  // namespace
}  // namespace shardpack
