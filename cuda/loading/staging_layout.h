// StagingLayout: what lies where in the staging memory of one upload: the labels of a batch, and
// after them what the host adds to it (parameters, ids, preprocessed pixels).
//
//   const StagingLayout layout(slots, slots * sizeof(PreprocessSample));
//   auto uploader = Uploader::Create(device, 2, layout.bytes(), memory);
//   copies.push_back(layout.PutLabels(uploader->staging(), info.labels, buffer.labels));
//   std::byte* const payload = layout.Payload(uploader->staging());
//
// Thread-safety: a value.
// Units: bytes.
#ifndef SHARDPACK_CUDA_LOADING_STAGING_LAYOUT_H_
#define SHARDPACK_CUDA_LOADING_STAGING_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "cuda/device/device.h"
#include "cuda/loading/uploader.h"

namespace shardpack {

class StagingLayout {
 public:
  StagingLayout(size_t slots, size_t payload_bytes)
      : label_bytes_(DeviceAligned(slots * sizeof(int64_t))), payload_bytes_(payload_bytes) {}

  size_t bytes() const { return label_bytes_ + payload_bytes_; }
  std::byte* Payload(std::span<std::byte> staging) const { return staging.data() + label_bytes_; }
  // The copy that brings them to `to` on the device.
  UploadCopy PutLabels(std::span<std::byte> staging, std::span<const int64_t> labels,
                       int64_t* to) const {
    std::memcpy(staging.data(), labels.data(), labels.size_bytes());
    return {staging.data(), to, labels.size_bytes()};
  }

 private:
  size_t label_bytes_, payload_bytes_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_LOADING_STAGING_LAYOUT_H_
