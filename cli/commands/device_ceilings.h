// What a device can do at most with the batches that bench brings to it, one thing at a time.
//
//   absl::StatusOr<double> copy = PinnedCopyCeiling(device);            // bytes a second
//   absl::StatusOr<KernelCeiling> kernel = PreprocessCeiling(device, 224);
//   absl::StatusOr<DecodeCeilings> decode = DeviceDecodeCeiling(device, dataset, options, decode);
//
// Each takes about half a second.
//
// Lifetime: borrow for the call.
// Thread-safety: one at a time, or they measure each other.
// Errors: those of the device and of reading.
// Units: bytes, images, seconds.
#ifndef SHARDPACK_CLI_COMMANDS_DEVICE_CEILINGS_H_
#define SHARDPACK_CLI_COMMANDS_DEVICE_CEILINGS_H_

#include <string>

#include "absl/status/statusor.h"
#include "cuda/device/device.h"
#include "cuda/loading/device_decoder.h"
#include "readers/loading/loader.h"

namespace shardpack::cli {

// Of page-locked memory, 16 MiB a call, one behind the other.
absl::StatusOr<double> PinnedCopyCeiling(Device& device);

struct KernelCeiling {
  double images = 0;  // a second: 256 of 500 x 375 pixels to squares of f16
  double of_copy =
      0;  // its bytes a second, of those that a copy within the device reads and writes
};
absl::StatusOr<KernelCeiling> PreprocessCeiling(Device& device, uint32_t side);

struct DecodeCeilings {
  double images = 0;  // a second, of one batch again and again
  JpegDecoderStats stats;
  std::string backends;
};
// `loader`: without a decoder, with image_infos.
absl::StatusOr<DecodeCeilings> DeviceDecodeCeiling(Device& device, Loader& loader,
                                                   const DeviceDecode& options);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_COMMANDS_DEVICE_CEILINGS_H_
