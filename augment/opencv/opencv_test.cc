#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>
#include <string>
#include <thread>
#include <vector>

#include "augment/opencv_functions.h"
#include "augment/opencv_table.h"
#include "augment/plan.h"
#include "augment/program.h"

namespace shardpack {
namespace {

cv::Mat Image(int width, int height, int channels) {
  cv::Mat image(height, width, CV_MAKETYPE(CV_8U, channels));
  for (int y = 0; y < height; ++y) {
    for (int i = 0; i < width * channels; ++i)
      image.ptr(y)[i] = static_cast<uint8_t>((i * 37 + y * 11 + (i * y) % 97) % 256);
  }
  return image;
}

cv::Mat Applied(const std::string& text, const cv::Mat& image) {
  cv::Mat made = image.clone();
  const auto program = SampleProgram::Parse(text);
  EXPECT_TRUE(program.ok()) << program.status();
  ProgramRunner runner;
  const absl::Status done = runner.Apply(
      *program, {made.data, static_cast<uint32_t>(made.cols), static_cast<uint32_t>(made.rows),
                 static_cast<uint32_t>(made.channels()), made.step[0]});
  EXPECT_TRUE(done.ok()) << done;
  return made;
}

bool Same(const cv::Mat& a, const cv::Mat& b) {
  return cv::countNonZero(a.reshape(1) != b.reshape(1)) == 0;
}

class OpenCvOperationsTest : public ::testing::Test {
 protected:
  // Before these tests call OpenCV themselves, which would start threads.
  static void SetUpTestSuite() { ASSERT_TRUE(OpenCv().ok()); }
};

TEST_F(OpenCvOperationsTest, AreThoseOfOpenCv) {
  for (const int channels : {1, 3}) {
    const cv::Mat image = Image(70, 51, channels);
    cv::Mat wanted;
    cv::GaussianBlur(image, wanted, {23, 23}, 1.7);
    EXPECT_TRUE(Same(Applied("gaussian_blur(23, 1.7)", image), wanted));
    cv::medianBlur(image, wanted, 5);
    EXPECT_TRUE(Same(Applied("median(5)", image), wanted));
    EXPECT_TRUE(Same(Applied("gaussian_blur(1, 3) median(1)", image), image));
  }
  const cv::Mat gray = Image(70, 51, 1);
  cv::Mat wanted;
  cv::createCLAHE(3, {8, 8})->apply(gray, wanted);
  EXPECT_TRUE(Same(Applied("clahe(3)", gray), wanted));
  EXPECT_FALSE(Same(Applied("clahe(3, 2)", gray), wanted));
}

// A mean of 3 x 3 pixels by definition, of any library.
TEST_F(OpenCvOperationsTest, ABlurIsWhatTheFormulaSays) {
  const cv::Mat image = Image(20, 15, 1);
  const cv::Mat made = Applied("gaussian_blur(3, 0.8)", image);
  const double side = std::exp(-0.5 / (0.8 * 0.8)), sum = 1 + 2 * side;
  for (int y = 1; y + 1 < image.rows; ++y) {
    for (int x = 1; x + 1 < image.cols; ++x) {
      double level = 0;
      for (int dy = -1; dy <= 1; ++dy) {
        for (int dx = -1; dx <= 1; ++dx)
          level += image.at<uint8_t>(y + dy, x + dx) * (dx ? side : 1) * (dy ? side : 1);
      }
      EXPECT_NEAR(made.at<uint8_t>(y, x), level / (sum * sum), 1.5);
    }
  }
}

// Of colours, the luma is what CLAHE makes of it, and the colours stay beside it.
TEST_F(OpenCvOperationsTest, ClaheChangesTheLumaOfColours) {
  cv::Mat image = Image(64, 64, 3) / 4;
  image += cv::Scalar(60, 80, 70);
  const cv::Mat made = Applied("clahe(3)", image);
  cv::Mat before, after, luma;
  cv::cvtColor(image, before, cv::COLOR_RGB2GRAY);
  cv::cvtColor(made, after, cv::COLOR_RGB2GRAY);
  cv::createCLAHE(3, {8, 8})->apply(before, luma);
  cv::Mat red, green, off;
  cv::extractChannel(made, red, 0);
  cv::extractChannel(made, green, 1);
  int clipped = 0;
  for (int y = 0; y < 64; ++y) {
    for (int x = 0; x < 64; ++x) {
      const auto was = image.at<cv::Vec3b>(y, x), is = made.at<cv::Vec3b>(y, x);
      if (*std::max_element(is.val, is.val + 3) == 255 ||
          *std::min_element(is.val, is.val + 3) == 0) {
        ++clipped;
        continue;
      }
      EXPECT_EQ(is[0] - is[1], was[0] - was[1]);
      EXPECT_NEAR(after.at<uint8_t>(y, x), luma.at<uint8_t>(y, x), 1);
    }
  }
  EXPECT_LT(clipped, 64 * 64 / 2);
}

TEST_F(OpenCvOperationsTest, SmallImagesStay) {
  for (const auto& [width, height] : {std::pair(2, 9), std::pair(9, 2), std::pair(1, 1)}) {
    const cv::Mat image = Image(width, height, 3);
    EXPECT_TRUE(Same(Applied("gaussian_blur(23, 2) median(5) clahe(2)", image), image));
  }
  Applied("gaussian_blur(255, 100) median(255) clahe(256, 64)", Image(3, 3, 3));
}

TEST_F(OpenCvOperationsTest, BytesBetweenRowsStay) {
  cv::Mat whole(30, 40, CV_8UC3, cv::Scalar(1, 2, 3));
  cv::Mat part = whole(cv::Rect(4, 5, 20, 15));
  part.setTo(cv::Scalar(200, 100, 50));
  const auto program = SampleProgram::Parse("gaussian_blur(9, 2) median(3) clahe(3)");
  ASSERT_TRUE(ProgramRunner().Apply(*program, {part.data, 20, 15, 3, part.step[0]}).ok());
  part.setTo(cv::Scalar(1, 2, 3));
  EXPECT_TRUE(Same(whole, cv::Mat(30, 40, CV_8UC3, cv::Scalar(1, 2, 3))));
}

TEST_F(OpenCvOperationsTest, ManyThreadsMakeTheSame) {
  const cv::Mat image = Image(224, 224, 3);
  const std::string text = "gaussian_blur(23, 1.7) median(5) clahe(3)";
  const cv::Mat wanted = Applied(text, image);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] { EXPECT_TRUE(Same(Applied(text, image), wanted)); });
  for (std::thread& thread : threads) thread.join();
  // OpenCV has started none of its own, and does not where there is more to do.
  Applied(text, Image(3000, 2000, 3));
  const auto tasks = std::filesystem::directory_iterator("/proc/self/task");
  EXPECT_EQ(std::distance(begin(tasks), end(tasks)), 1);
}

TEST_F(OpenCvOperationsTest, ThePlanKnowsItsLibrary) {
  const AugmentPlan plan = *AugmentPlan::Parse("invert perspective");
  EXPECT_TRUE(plan.CheckReady().ok());
  EXPECT_EQ(plan.Facts(), "augment/1 invert perspective");
  EXPECT_TRUE(AugmentPlan::Parse("median(3)")->CheckReady().ok());
  EXPECT_EQ(AugmentPlan::Parse("median(3)")->Facts(),
            std::string("augment/1 median(kernel=3) opencv{") + CV_VERSION + "}");
}

// What programs do that do not link OpenCV.
TEST(OpenCvLibraryTest, IsOpenedAtRunTime) {
  const auto opened = OpenOpenCv("augment/opencv/libshardpack_opencv.so.0");
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_STREQ((*opened)->version, CV_VERSION);
  cv::Mat image = Image(40, 30, 3), wanted;
  cv::medianBlur(image, wanted, 3);
  EXPECT_EQ((*opened)->median({image.data, 40, 30, 3, image.step[0]}, 3), nullptr);
  EXPECT_TRUE(Same(image, wanted));
  // What OpenCV refuses is a text, and no exception.
  const char* const why = (*opened)->median({image.data, 40, 30, 3, image.step[0]}, 4);
  ASSERT_NE(why, nullptr);
  EXPECT_NE(std::string(why).find("ksize"), std::string::npos) << why;
}

TEST(OpenCvLibraryTest, OneThatIsMissingOrOfAnotherKindIsNamed) {
  const absl::Status missing = OpenOpenCv("/nowhere/libshardpack_opencv.so.0").status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kFailedPrecondition);
  for (const char* part : {"libshardpack-opencv0", "/nowhere/libshardpack_opencv.so.0"})
    EXPECT_NE(missing.message().find(part), absl::string_view::npos) << missing;
  const absl::Status other = OpenOpenCv("libopencv_core.so.406").status();
  EXPECT_EQ(other.message(),
            "libopencv_core.so.406 has no shardpack_opencv_v1: it is of another version");
}

}  // namespace
}  // namespace shardpack
