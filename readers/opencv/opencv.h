// Pixels as cv::Mat and back, without a copy.
//
//   absl::StatusOr<cv::Mat> image = MatOf(*batch.pixels(), slot);
//   cv::GaussianBlur(*image, *image, {5, 5}, 1.2);     // the batch's pixels are blurred
//   absl::StatusOr<PixelView> view = ViewOf(mat);      // for ProgramRunner, Resizer, ImageEncoder
//
// Channels are red, green, blue, where OpenCV's own reading and writing of files and its
// conversions named BGR2... have them the other way round: use those named RGB2....
//
// Lifetime: a Mat or view borrows; what it was made of must outlive it. Batches may be written to.
// Thread-safety: as the pixels. cv::setNumThreads(0) keeps OpenCV's own threads from those of a
// loader.
// Errors: InvalidArgument for planes (NCHW) and for numbers that OpenCV does not have; OutOfRange
// for a slot that is not there.
#ifndef SHARDPACK_READERS_OPENCV_OPENCV_H_
#define SHARDPACK_READERS_OPENCV_OPENCV_H_

#include <cstddef>
#include <opencv2/core.hpp>

#include "absl/status/statusor.h"
#include "images/pixels/pixels.h"
#include "readers/loading/host_batch.h"

namespace shardpack {

// Read only: a const Mat of CV_8U or CV_16U with the view's channels.
const cv::Mat MatOf(const PixelView& view);
// CV_8U, CV_32F or CV_16F with the batch's channels. `view`: of PixelBatch::views.
absl::StatusOr<cv::Mat> MatOf(const PixelBatch& pixels, size_t slot, size_t view = 0);
// Of a Mat of CV_8U or CV_16U with 1 to 4 channels.
absl::StatusOr<PixelView> ViewOf(const cv::Mat& mat);

}  // namespace shardpack

#endif  // SHARDPACK_READERS_OPENCV_OPENCV_H_
