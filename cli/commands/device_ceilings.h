// The most that a device can do with the batches of bench, one operation at a time.
//
//   absl::StatusOr<double> copy = PinnedCopyCeiling(device);            // bytes per second
//   absl::StatusOr<KernelCeiling> kernel = PreprocessCeiling(device, 224, PixelLayout::kNchw);
//   absl::StatusOr<DecodeCeilings> decode = DeviceDecodeCeiling(device, loader, decode);
//   absl::StatusOr<double> step = ResidentStepCost(device, dataset);   // microseconds
//
// Each takes about half a second.
//
// Lifetime: borrows during the call.
// Thread-safety: one at a time, because they would measure each other.
// Errors: those of the device and read errors.
// Units: bytes, images, seconds.
#ifndef SHARDPACK_CLI_COMMANDS_DEVICE_CEILINGS_H_
#define SHARDPACK_CLI_COMMANDS_DEVICE_CEILINGS_H_

#include <string>

#include "absl/status/statusor.h"
#include "cuda/device/device.h"
#include "cuda/loading/device_decoder.h"
#include "images/pixels/pixel_output.h"
#include "readers/dataset/dataset.h"
#include "readers/loading/loader.h"

namespace shardpack::cli {

// Copies page-locked memory, 16 MiB per call, one call after the other.
absl::StatusOr<double> PinnedCopyCeiling(Device& device);

struct KernelCeiling {
  double images = 0;   // per second: 256 of 500 x 375 pixels to squares of f16
  double of_copy = 0;  // bytes per second of a copy within the device, reads plus writes
};
absl::StatusOr<KernelCeiling> PreprocessCeiling(Device& device, uint32_t side, PixelLayout layout);

struct DecodeCeilings {
  double images = 0;  // per second, decoding one batch repeatedly
  JpegDecoderStats stats;
  std::string backends;
};
// `loader`: without decoding, with image_infos.
absl::StatusOr<DecodeCeilings> DeviceDecodeCeiling(Device& device, Loader& loader,
                                                   const DeviceDecode& options);

// What a step of a resident set costs the thread that asks for it, in microseconds: the first 2048
// images at most, as 32 x 32 pixels, in batches of 256. On the host device, which has no other
// thread, the pixels as well.
absl::StatusOr<double> ResidentStepCost(Device& device, const Dataset& dataset);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_COMMANDS_DEVICE_CEILINGS_H_
