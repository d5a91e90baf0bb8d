// The table of opencv_functions.h, by OpenCV's core and imgproc: the functions whose bytes do not
// depend on the processor.
#include <cstddef>
#include <cstdint>
#include <exception>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>
#include <string>

#include "augment/opencv_table.h"

namespace shardpack {
namespace {

cv::Mat MatOf(const OpenCvPixels& image) {
  return cv::Mat(static_cast<int>(image.height), static_cast<int>(image.width),
                 CV_MAKETYPE(CV_8U, static_cast<int>(image.channels)), image.pixels,
                 image.stride_bytes);
}

// OpenCV says by exceptions what is wrong, and none may leave a table of C.
template <typename Work>
const char* Guarded(const Work& work) {
  thread_local std::string why;
  try {
    work();
    return nullptr;
  } catch (const std::exception& error) {
    why = error.what();
  } catch (...) {
    why = "an unknown exception";
  }
  return why.c_str();
}

// Some functions of OpenCV write to a Mat that they read, by a copy of their own; the memory of
// that which is kept here is used again.
cv::Mat& CopyOf(const cv::Mat& mat) {
  thread_local cv::Mat copy;
  mat.copyTo(copy);
  return copy;
}

const char* GaussianBlur(OpenCvPixels image, uint32_t kernel, double sigma) {
  return Guarded([&] {
    cv::Mat mat = MatOf(image);
    const auto size = static_cast<int>(kernel);
    cv::GaussianBlur(CopyOf(mat), mat, {size, size}, sigma, sigma, cv::BORDER_REFLECT_101);
  });
}

const char* Median(OpenCvPixels image, uint32_t kernel) {
  return Guarded([&] {
    cv::Mat mat = MatOf(image);
    cv::medianBlur(CopyOf(mat), mat, static_cast<int>(kernel));
  });
}

// OpenCV's luma of 8-bit RGB (imgproc's color_yuv, 14 bits).
uint8_t LumaOf(const uint8_t* pixel) {
  return static_cast<uint8_t>((pixel[0] * 4899 + pixel[1] * 9617 + pixel[2] * 1868 + 8192) >> 14);
}

const char* Clahe(OpenCvPixels image, double clip, uint32_t tiles) {
  return Guarded([&] {
    thread_local const cv::Ptr<cv::CLAHE> clahe = cv::createCLAHE();
    clahe->setClipLimit(clip);
    clahe->setTilesGridSize({static_cast<int>(tiles), static_cast<int>(tiles)});
    cv::Mat mat = MatOf(image);
    if (image.channels == 1) {
      clahe->apply(CopyOf(mat), mat);
      return;
    }
    thread_local cv::Mat before, after;
    before.create(mat.rows, mat.cols, CV_8UC1);
    for (int y = 0; y < mat.rows; ++y) {
      const uint8_t* const row = mat.ptr(y);
      uint8_t* const luma = before.ptr(y);
      for (int x = 0; x < mat.cols; ++x) luma[x] = LumaOf(row + ptrdiff_t{3} * x);
    }
    clahe->apply(before, after);
    for (int y = 0; y < mat.rows; ++y) {
      uint8_t* const row = mat.ptr(y);
      const uint8_t *const from = before.ptr(y), *const to = after.ptr(y);
      for (int i = 0; i < 3 * mat.cols; ++i)
        row[i] = cv::saturate_cast<uint8_t>(row[i] + to[i / 3] - from[i / 3]);
    }
  });
}

constexpr OpenCvFunctions kFunctions = {.version = CV_VERSION,
                                        .gaussian_blur = GaussianBlur,
                                        .median = Median,
                                        .clahe = Clahe,
                                        .no_threads = [] { cv::setNumThreads(0); }};

}  // namespace
}  // namespace shardpack

extern "C" __attribute__((visibility("default"))) const shardpack::OpenCvFunctions*
shardpack_opencv_v1() {
  return &shardpack::kFunctions;
}
