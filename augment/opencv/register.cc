// A program that contains this opens no library for OpenCV.
#include "augment/opencv_functions.h"
#include "augment/opencv_table.h"

extern "C" const shardpack::OpenCvFunctions* shardpack_opencv_v1();

namespace shardpack {
namespace {

[[maybe_unused]] const bool g_used = UseOpenCv(shardpack_opencv_v1());

}  // namespace
}  // namespace shardpack
