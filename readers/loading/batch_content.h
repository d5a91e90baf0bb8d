// HostBatch::Content: the contents of a batch, for the code that fills it.
//
//   auto content = std::make_unique<HostBatch::Content>();
//   content->ids = {3, 1, 2};  ...  return HostBatch(std::move(content));
//
// Lifetime: the leases own all memory that the views refer to.
// Units: bytes.
#ifndef SHARDPACK_READERS_LOADING_BATCH_CONTENT_H_
#define SHARDPACK_READERS_LOADING_BATCH_CONTENT_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "readers/loading/host_batch.h"

namespace shardpack {

struct HostBatch::Content {
  uint64_t epoch = 0, step = 0;
  std::vector<uint64_t> ids;
  std::vector<int64_t> labels;
  std::vector<SampleStatus> status;
  std::vector<ImageInfo> infos;  // per slot; empty unless requested
  std::shared_ptr<const std::vector<std::string>> field_names;
  std::vector<Bytes> bytes;  // [field * slots + slot]; data() == nullptr: absent
  std::vector<Bytes> slabs;
  std::optional<PixelBatch> pixels;
  std::optional<MixedBatch> mixed;
  std::vector<MaskBatch> masks;
  std::vector<SampleGeometry> geometry;  // per slot, with pixels
  std::vector<DecodedField> decoded_fields;
  std::vector<MovedObjects> moved_objects;  // per slot, until they are joined
  std::optional<ObjectBatch> objects;
  SlabLease lease;
  SlabLease pixel_lease;  // pixels, then masks, then decoded fields
  std::vector<SlabLease> substitutes;
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_LOADING_BATCH_CONTENT_H_
