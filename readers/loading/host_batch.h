// HostBatch: the samples of one step, in leased slabs of host memory.
//
//   for (size_t i = 0; i < batch.size(); ++i) Use(batch.labels()[i], batch.bytes(0, i));
//   if (batch.pixels()) Upload(batch.pixels()->bytes);        // where the loader decodes
//
// A field's bytes are 64-byte aligned and lie in slabs of equal size, in slot order, so that a few
// large copies move a batch to a device. A sample larger than a slab takes as many contiguous slabs
// as it needs.
//
// Lifetime: move-only. All views are valid as long as the batch; the destructor returns the slabs.
// A batch may outlive the loader that made it, but not the HostMemory.
// Thread-safety: const, any thread.
// Units: bytes; a slot is a sample's position in this rank's batch.
#ifndef SHARDPACK_READERS_LOADING_HOST_BATCH_H_
#define SHARDPACK_READERS_LOADING_HOST_BATCH_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "augment/geometry/object_batch.h"
#include "augment/geometry/projection.h"
#include "formats/core/image_info.h"
#include "formats/io/bytes.h"
#include "images/augment/crop.h"
#include "images/pixels/pixel_output.h"
#include "readers/loading/field_decode.h"
#include "readers/loading/slab_pool.h"

namespace shardpack {

enum class SampleState : uint8_t {
  kOk,
  kPadding,      // not a sample: fills up the last batch of the epoch (Tail::kPad)
  kSubstituted,  // another sample replaces one that could not be read
};

struct SampleStatus {
  SampleState state = SampleState::kOk;
  uint64_t wanted_id = 0;  // if substituted: the id that belongs in this slot
  std::string why = {};    // if substituted: what was wrong with it, with shard, key and offset
};

// Decoded images of equal size, contiguous: all slots of the first view, then of the second, ...
struct PixelBatch {
  std::span<const std::byte> bytes;
  size_t sample_bytes = 0;
  uint32_t views = 1;
  uint32_t height = 0, width = 0, channels = 0;
  PixelType type = PixelType::kU8;
  PixelLayout layout = PixelLayout::kNhwc;
};

// What LoaderOptions::mix did, per slot.
struct MixedBatch {
  uint32_t classes = 0;
  std::vector<float> soft_labels;  // [slots, classes]; a slot without a label, and padding: zeros
  std::vector<uint64_t> partners;  // the id of the other sample; kPaddingId if there is none
  std::vector<float> weights;      // the other sample's share of the label
};

// The decoded masks of one field: [slots, height, width] of the pixels, a byte each, contiguous.
struct MaskBatch {
  size_t field = 0;
  std::span<const std::byte> bytes;
};

// What became of a slot's image. Of padding: no size, and the identity.
struct SampleGeometry {
  uint32_t width = 0, height = 0;  // of the image as displayed
  Crop crop;
  // From the image as displayed to the pixels, warps included but elastic ones, in edge
  // coordinates.
  Projection map;
  // One after the other, after crop and flip; of a loader without decode_fields none.
  std::vector<Projection> warps = {};
};

// One of LoaderOptions::decode_fields.
struct DecodedField {
  size_t field = 0;
  FieldAs as = FieldAs::kLabels;
  // kImage: as PixelBatch::bytes. kLabels, kCocoLabels: [slots, height, width] of the pixels.
  // kCoco: empty.
  std::span<const std::byte> bytes = {};
  uint32_t label_bytes = 0;  // of kLabels: 1 or 2
};

class HostBatch {
 public:
  struct Content;  // filled by Fetcher and Loader (readers/loading/batch_content.h)
  explicit HostBatch(std::unique_ptr<Content> content);
  HostBatch(HostBatch&&) noexcept;
  HostBatch& operator=(HostBatch&&) noexcept;
  ~HostBatch();

  uint64_t epoch() const;
  uint64_t step() const;
  size_t size() const;                      // including padding
  std::span<const uint64_t> ids() const;    // of the samples delivered; kPaddingId for padding
  std::span<const int64_t> labels() const;  // kNoLabel for samples without a label
  std::span<const SampleStatus> status() const;
  // The index's facts about each slot's image; empty without LoaderOptions::image_infos.
  std::span<const ImageInfo> image_infos() const;
  size_t fields() const;
  const std::string& field_name(size_t field) const;
  // Whether the sample has this field; false for padding. With a decoder, the image's encoded bytes
  // are not kept.
  bool has(size_t field, size_t slot) const;
  Bytes bytes(size_t field, size_t slot) const;  // empty if absent
  // The used part of each slab or run of slabs; each takes one copy to a device.
  std::span<const Bytes> slabs() const;
  const PixelBatch* pixels() const;  // nullptr without a decoder
  const MixedBatch* mixed() const;   // nullptr without LoaderOptions::mix
  // In the order of LoaderOptions::mask_fields. 0 where the sample has no such field.
  std::span<const MaskBatch> masks() const;
  // Of each slot, with a decoder; else empty.
  std::span<const SampleGeometry> geometry() const;
  // In the order of LoaderOptions::decode_fields.
  std::span<const DecodedField> decoded_fields() const;
  const ObjectBatch* objects() const;  // nullptr without a field FieldAs::kCoco

 private:
  std::unique_ptr<Content> content_;
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_LOADING_HOST_BATCH_H_
