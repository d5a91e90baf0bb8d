#include "readers/loading/host_batch.h"

#include <utility>

#include "readers/loading/batch_content.h"

namespace shardpack {

HostBatch::HostBatch(std::unique_ptr<Content> content) : content_(std::move(content)) {}
HostBatch::HostBatch(HostBatch&&) noexcept = default;
HostBatch& HostBatch::operator=(HostBatch&&) noexcept = default;
HostBatch::~HostBatch() = default;

uint64_t HostBatch::epoch() const { return content_->epoch; }
uint64_t HostBatch::step() const { return content_->step; }
size_t HostBatch::size() const { return content_->ids.size(); }
std::span<const uint64_t> HostBatch::ids() const { return content_->ids; }
std::span<const int64_t> HostBatch::labels() const { return content_->labels; }
std::span<const SampleStatus> HostBatch::status() const { return content_->status; }
std::span<const ImageInfo> HostBatch::image_infos() const { return content_->infos; }
size_t HostBatch::fields() const { return content_->field_names->size(); }
const std::string& HostBatch::field_name(size_t field) const {
  return (*content_->field_names)[field];
}
bool HostBatch::has(size_t field, size_t slot) const {
  return content_->bytes[field * size() + slot].data() != nullptr;
}
Bytes HostBatch::bytes(size_t field, size_t slot) const {
  return content_->bytes[field * size() + slot];
}
std::span<const Bytes> HostBatch::slabs() const { return content_->slabs; }
const PixelBatch* HostBatch::pixels() const {
  return content_->pixels ? &*content_->pixels : nullptr;
}
const MixedBatch* HostBatch::mixed() const { return content_->mixed ? &*content_->mixed : nullptr; }
std::span<const MaskBatch> HostBatch::masks() const { return content_->masks; }
std::span<const SampleGeometry> HostBatch::geometry() const { return content_->geometry; }
std::span<const DecodedField> HostBatch::decoded_fields() const { return content_->decoded_fields; }
const ObjectBatch* HostBatch::objects() const {
  return content_->objects ? &*content_->objects : nullptr;
}

}  // namespace shardpack
