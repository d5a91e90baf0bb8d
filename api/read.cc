// shardpack_dataset_read: samples as a batch, read on the calling thread; and how they are read.
#include <stdint.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/handles.h"
#include "api/host_loader.h"
#include "api/options.h"
#include "formats/io/error_facts.h"
#include "formats/io/escape.h"
#include "formats/io/status_macros.h"
#include "readers/loading/batch_content.h"

using shardpack::Bytes;
using shardpack::Dataset;
using shardpack::EscapeForTerminal;
using shardpack::Extent;
using shardpack::FieldRead;
using shardpack::HostBatch;
using shardpack::SampleLocation;
using shardpack::ShardIndex;

namespace {

// Where the bytes of one field of one slot are, and where they go.
struct Read {
  SampleLocation at;
  size_t column;
  uint64_t offset, length;
  size_t place;   // in the buffer
  size_t number;  // in HostBatch::Content::bytes
};

constexpr size_t kMostSlots = size_t{1} << 31;
constexpr size_t kMostBytes = PTRDIFF_MAX;

absl::Status TooMuch() {
  return absl::ResourceExhaustedError(
      "these fields of these samples are together larger than memory can be; read fewer at once");
}

class SampleReader {
 public:
  SampleReader(const Dataset& dataset, std::span<const uint64_t> ids, bool map_shards)
      : dataset_(dataset), ids_(ids), map_shards_(map_shards) {}

  absl::StatusOr<std::shared_ptr<shardpack::api::AnyBatch>> Run(std::vector<std::string> fields) {
    RETURN_IF_ERROR(Locate());
    if (fields.empty()) {
      fields = AllFields();
    } else {
      RETURN_IF_ERROR(CheckFields(fields));
    }
    RETURN_IF_ERROR(Plan(fields));
    return ReadAll(std::move(fields));
  }

 private:
  absl::Status Locate() {
    for (const uint64_t id : ids_) {
      if (id >= dataset_.size()) {
        return shardpack::WithFacts(
            absl::OutOfRangeError(absl::StrCat("sample ", id, " of ", dataset_.size(), " samples")),
            {.id = static_cast<int64_t>(id)});
      }
      const SampleLocation at = dataset_.Locate(id);
      ASSIGN_OR_RETURN(const ShardIndex* const index, dataset_.BorrowIndex(at.shard));
      locations_.push_back(at);
      indexes_.push_back(index);
      content_->labels.push_back(index->label(at.record));
      content_->infos.push_back(index->image(at.record));
    }
    content_->ids.assign(ids_.begin(), ids_.end());
    content_->status.resize(ids_.size());
    return absl::OkStatus();
  }

  // A misspelt name is not a field that samples happen to lack.
  absl::Status CheckFields(const std::vector<std::string>& fields) const {
    for (const std::string& field : fields) {
      ASSIGN_OR_RETURN(const bool known, IsKnown(field));
      if (known) continue;
      return shardpack::WithFacts(
          absl::NotFoundError(absl::StrCat("no sample has a field ", EscapeForTerminal(field))),
          {.field = field});
    }
    return absl::OkStatus();
  }

  // The shards that are read come first: mostly they answer it.
  absl::StatusOr<bool> IsKnown(const std::string& field) const {
    for (const ShardIndex* const index : indexes_) {
      if (index->FindField(field)) return true;
    }
    for (uint32_t shard = 0; shard < dataset_.shards().size(); ++shard) {
      ASSIGN_OR_RETURN(const ShardIndex* const index, dataset_.BorrowIndex(shard));
      if (index->FindField(field)) return true;
    }
    return false;
  }

  // Of the shards that are read, in the order in which they are met.
  std::vector<std::string> AllFields() const {
    std::vector<std::string> names;
    const ShardIndex* last = nullptr;
    for (const ShardIndex* const index : indexes_) {
      if (std::exchange(last, index) == index) continue;
      for (size_t f = 0; f < index->fields(); ++f) {
        const std::string name(index->field_name(f));
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      }
    }
    return names;
  }

  // An index bounds each field by its shard, not what many of them are together: fields may
  // overlap, an id may come twice, and a sparse shard is of any size.
  absl::Status Plan(const std::vector<std::string>& fields) {
    if (!ids_.empty() && fields.size() > content_->bytes.max_size() / ids_.size()) return TooMuch();
    for (size_t f = 0; f < fields.size(); ++f) {
      for (size_t slot = 0; slot < ids_.size(); ++slot) {
        const std::optional<size_t> column = indexes_[slot]->FindField(fields[f]);
        const uint64_t record = locations_[slot].record;
        if (!column || !indexes_[slot]->has_field(record, *column)) continue;
        const Extent extent = indexes_[slot]->field(record, *column);
        if (extent.length > kMostBytes - kAlignment ||
            Aligned(extent.length) > kMostBytes - total_) {
          return TooMuch();
        }
        reads_.push_back({locations_[slot], *column, extent.offset, extent.length, total_,
                          f * ids_.size() + slot});
        total_ += Aligned(extent.length);
      }
    }
    content_->bytes.resize(fields.size() * ids_.size());
    return absl::OkStatus();
  }

  absl::StatusOr<std::shared_ptr<shardpack::api::AnyBatch>> ReadAll(
      std::vector<std::string> fields) {
    // One byte more: an empty field is not an absent one.
    const std::shared_ptr<std::byte[]> buffer(new std::byte[total_ + 1]);
    std::sort(reads_.begin(), reads_.end(), [](const Read& a, const Read& b) {
      return std::pair(a.at.shard, a.offset) < std::pair(b.at.shard, b.offset);
    });
    std::vector<FieldRead> fields_read;
    fields_read.reserve(reads_.size());
    for (const Read& read : reads_) {
      const std::span<std::byte> into(buffer.get() + read.place, read.length);
      // What is copied as a whole carries nothing of this process's memory from between the values.
      std::fill(into.data() + into.size(), buffer.get() + read.place + Aligned(read.length),
                std::byte{0});
      fields_read.push_back({read.at, read.column, into});
      content_->bytes[read.number] = into;
    }
    for (const absl::Status& read : dataset_.ReadFields(fields_read, map_shards_))
      RETURN_IF_ERROR(read);
    content_->field_names = std::make_shared<const std::vector<std::string>>(std::move(fields));
    return shardpack::api::HostBatchOf(HostBatch(std::move(content_)), buffer, std::nullopt);
  }

  static size_t Aligned(size_t length) {
    return (length + kAlignment - 1) / kAlignment * kAlignment;
  }

  static constexpr size_t kAlignment = 16;

  const Dataset& dataset_;
  const std::span<const uint64_t> ids_;
  const bool map_shards_;
  std::unique_ptr<HostBatch::Content> content_ = std::make_unique<HostBatch::Content>();
  std::vector<SampleLocation> locations_;   // a slot each
  std::vector<const ShardIndex*> indexes_;  // a slot each
  std::vector<Read> reads_;
  size_t total_ = 0;
};

}  // namespace

shardpack_code shardpack_dataset_read(const shardpack_dataset* dataset, const uint64_t* ids,
                                      size_t count, const char* const* fields, size_t field_count,
                                      shardpack_batch** batch, shardpack_error** error) {
  return shardpack::api::Making(batch, error, [&]() -> absl::StatusOr<shardpack_batch*> {
    ASSIGN_OR_RETURN(const Dataset* const content, shardpack::api::ContentOf(dataset, "dataset"));
    if (count > 0) RETURN_IF_ERROR(shardpack::api::NotNull(ids, "ids"));
    if (count > kMostSlots)
      return absl::InvalidArgumentError(absl::StrCat("a batch has at most ", kMostSlots, " slots"));
    ASSIGN_OR_RETURN(std::vector<std::string> names,
                     shardpack::api::TextsOf(fields, field_count, "a field"));
    ASSIGN_OR_RETURN(
        std::shared_ptr<shardpack::api::AnyBatch> read,
        SampleReader(*content, {ids, count}, dataset->map_shards).Run(std::move(names)));
    return new shardpack_batch(std::move(read));
  });
}

shardpack_code shardpack_dataset_map_shards(shardpack_dataset* dataset, uint32_t on,
                                            shardpack_error** error) {
  return shardpack::api::Guarded(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(shardpack::api::ContentOf(dataset, "dataset").status());
    dataset->map_shards = on != 0;
    return absl::OkStatus();
  });
}
