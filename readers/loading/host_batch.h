// HostBatch: the samples of one step, in leased slabs of host memory.
//
//   for (size_t i = 0; i < batch.size(); ++i) Use(batch.labels()[i], batch.bytes(0, i));
//   if (batch.pixels()) Upload(batch.pixels()->bytes);        // where the loader decodes
//
// Bytes of a field lie at 64-byte-aligned places within slabs of equal size (a sample larger than a
// slab: within as many as it takes, one behind the other), in the order of slots, so that a batch
// is a few large copies for a device.
//
// Lifetime: move-only; all views live as long as it, and the destructor gives the slabs back; it
// may outlive the loader that made it, not the HostMemory.
// Thread-safety: const, any thread.
// Units: bytes; a slot is a sample's place in the batch of this rank.
#ifndef SHARDPACK_READERS_LOADING_HOST_BATCH_H_
#define SHARDPACK_READERS_LOADING_HOST_BATCH_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/core/image_info.h"
#include "formats/io/bytes.h"
#include "images/pixels/pixel_output.h"
#include "readers/loading/slab_pool.h"

namespace shardpack {

enum class SampleState : uint8_t {
  kOk,
  kPadding,      // no sample: the epoch's last batch is filled up (Tail::kPad)
  kSubstituted,  // another sample stands in for one that could not be read
};

struct SampleStatus {
  SampleState state = SampleState::kOk;
  uint64_t wanted_id = 0;  // substituted: whose place this is
  std::string why = {};    // substituted: what was wrong with it, with shard, key and offset
};

// Decoded images of equal size, one behind the other.
struct PixelBatch {
  std::span<const std::byte> bytes;
  size_t sample_bytes = 0;
  uint32_t height = 0, width = 0, channels = 0;
  PixelType type = PixelType::kU8;
  PixelLayout layout = PixelLayout::kNhwc;
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
  size_t size() const;                      // slots, padding included
  std::span<const uint64_t> ids() const;    // of what is here; kPaddingId for padding
  std::span<const int64_t> labels() const;  // kNoLabel where there is none
  std::span<const SampleStatus> status() const;
  // What the index knows of each slot's image; empty without LoaderOptions::image_infos.
  std::span<const ImageInfo> image_infos() const;
  size_t fields() const;
  const std::string& field_name(size_t field) const;
  // Whether the sample has this field; padding has none. With a decoder the image's encoded bytes
  // are not kept.
  bool has(size_t field, size_t slot) const;
  Bytes bytes(size_t field, size_t slot) const;  // empty where it has none
  // The used part of each slab or run of slabs: one copy to a device each.
  std::span<const Bytes> slabs() const;
  const PixelBatch* pixels() const;  // nullptr without a decoder

 private:
  std::unique_ptr<Content> content_;
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_LOADING_HOST_BATCH_H_
