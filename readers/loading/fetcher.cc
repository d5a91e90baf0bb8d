#include "readers/loading/fetcher.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "formats/io/hash.h"
#include "formats/io/status_macros.h"
#include "readers/dataset/scattered_read.h"
#include "readers/loading/batch_content.h"
#include "readers/order/order.h"

namespace shardpack {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr size_t kMinSlabBytes = size_t{64} << 10, kMaxSlabBytes = size_t{16} << 20;
// Size of a piece of work: large enough to make taking it cheap, small enough to spread.
constexpr uint64_t kPieceBytes = 128 << 10;
constexpr size_t kPieceItems = 64;

uint64_t Aligned(uint64_t bytes) { return (bytes + kAlignment - 1) & ~(kAlignment - 1); }

uint64_t MeanSampleBytes(const Dataset& dataset) {
  uint64_t bytes = 0, records = 0;
  for (const DatasetShard& shard : dataset.shards()) {
    bytes += shard.bytes;
    records += shard.records;
  }
  return bytes / std::max<uint64_t>(records, 1) + 1;
}

}  // namespace

absl::StatusOr<Fetcher> Fetcher::Create(Dataset dataset, FetchOptions options, HostMemory& memory) {
  if (options.fields.empty()) return absl::InvalidArgumentError("no fields to fetch");
  if (dataset.size() == 0) return absl::InvalidArgumentError("the dataset has no samples");
  const uint64_t mean = MeanSampleBytes(dataset);
  uint64_t batch_bytes = 0;
  if (__builtin_mul_overflow(mean + kAlignment, options.batch_samples, &batch_bytes)) {
    return absl::InvalidArgumentError("the batch is too large");
  }
  if (options.slab_bytes == 0) {
    // A quarter more than the mean batch, so that most batches fit one slab; at most its share.
    const uint64_t share = options.memory_bytes / std::max<size_t>(options.batches, 1);
    options.slab_bytes = std::clamp<uint64_t>(std::min(batch_bytes + batch_bytes / 4, share),
                                              kMinSlabBytes, kMaxSlabBytes);
    options.slab_bytes = (options.slab_bytes + kMinSlabBytes - 1) / kMinSlabBytes * kMinSlabBytes;
  }
  options.slab_bytes = Aligned(options.slab_bytes);
  const size_t each = batch_bytes / options.slab_bytes + 1;
  const size_t slabs = std::clamp<size_t>(options.memory_bytes / options.slab_bytes, 1,
                                          each * std::max<size_t>(options.batches, 1));
  Fetcher fetcher;
  ASSIGN_OR_RETURN(fetcher.pool_, SlabPool::Create(memory, options.slab_bytes, slabs));
  fetcher.field_names_ = std::make_shared<const std::vector<std::string>>(options.fields);
  auto table = std::make_shared<ShardTable>(std::move(dataset), options.fields);
  RETURN_IF_ERROR(table->CheckFields());
  fetcher.table_ = std::move(table);
  fetcher.options_ = std::move(options);
  return fetcher;
}

// Locates all samples first, so that the index's columns are being loaded from memory before they
// are read.
absl::Status Fetcher::Locate(std::span<const uint64_t> ids, FetchPlan& plan) const {
  plan.locations.resize(ids.size());
  plan.shards.resize(ids.size());
  for (size_t slot = 0; slot < ids.size(); ++slot) {
    if (ids[slot] == kPaddingId) continue;
    if (ids[slot] >= table_->dataset().size()) {
      return absl::OutOfRangeError(
          absl::StrCat("sample ", ids[slot], " of ", table_->dataset().size(), " samples"));
    }
    plan.locations[slot] = table_->dataset().Locate(ids[slot]);
    ASSIGN_OR_RETURN(const ShardTable::Shard* const shard, table_->Get(plan.locations[slot].shard));
    plan.shards[slot] = shard;
    for (const size_t column : shard->columns) {
      if (column != ShardTable::kNoColumn)
        shard->index->Prefetch(plan.locations[slot].record, column);
    }
  }
  return absl::OkStatus();
}

absl::Status Fetcher::Plan(std::span<const uint64_t> ids, FetchPlan& plan,
                           HostBatch::Content& content) const {
  const size_t slots = ids.size(), fields = options_.fields.size();
  content.ids.assign(ids.begin(), ids.end());
  content.labels.assign(slots, kNoLabel);
  content.status.assign(slots, {});
  content.field_names = field_names_;
  content.bytes.assign(slots * fields, {});
  plan = {};
  plan.items.reserve(slots * fields);
  if (options_.image_infos) plan.infos.resize(slots);
  RETURN_IF_ERROR(Locate(ids, plan));
  uint64_t buffer_offset = options_.slab_bytes;  // full: the first item opens a slab
  bool open = false;  // whether the last run is a single slab that more items may join
  for (size_t slot = 0; slot < slots; ++slot) {
    if (ids[slot] == kPaddingId) {
      content.status[slot].state = SampleState::kPadding;
      continue;
    }
    const SampleLocation at = plan.locations[slot];
    const ShardTable::Shard& shard = *plan.shards[slot];
    const ShardIndex& index = *shard.index;
    content.labels[slot] = index.label(at.record);
    if (options_.image_infos) plan.infos[slot] = index.image(at.record);
    for (size_t f = 0; f < fields; ++f) {
      const size_t column = shard.columns[f];
      if (column == ShardTable::kNoColumn || !index.has_field(at.record, column)) continue;
      const Extent extent = index.field(at.record, column);
      const uint64_t room = Aligned(std::max<uint64_t>(extent.length, 1));
      if (!open || buffer_offset + room > options_.slab_bytes) {
        const uint64_t slabs = (room + options_.slab_bytes - 1) / options_.slab_bytes;
        plan.run_slabs.push_back(slabs);
        plan.run_bytes.push_back(0);
        open = slabs == 1;
        buffer_offset = 0;
      }
      plan.items.push_back({.offset = extent.offset,
                            .length = extent.length,
                            .hash = index.hash(at.record, column),
                            .record = at.record,
                            .shard = at.shard,
                            .slot = static_cast<uint32_t>(slot),
                            .field = static_cast<uint16_t>(f),
                            .column = static_cast<uint16_t>(column),
                            .run = static_cast<uint32_t>(plan.run_slabs.size() - 1),
                            .buffer_offset = buffer_offset,
                            .into = nullptr});
      buffer_offset += room;
      plan.run_bytes.back() = buffer_offset;
      plan.bytes += extent.length;
    }
  }
  std::sort(plan.items.begin(), plan.items.end(), [](const FetchItem& a, const FetchItem& b) {
    return a.shard != b.shard ? a.shard < b.shard : a.offset < b.offset;
  });
  return absl::OkStatus();
}

void Fetcher::Place(SlabLease lease, FetchPlan& plan, HostBatch::Content& content) const {
  const std::span<const std::span<std::byte>> runs = lease.runs();
  for (size_t r = 0; r < runs.size(); ++r)
    content.slabs.push_back(runs[r].first(plan.run_bytes[r]));
  const size_t slots = content.ids.size();
  for (FetchItem& item : plan.items) {
    item.into = runs[item.run].data() + item.buffer_offset;
    content.bytes[item.field * slots + item.slot] = Bytes(item.into, item.length);
  }
  content.lease = std::move(lease);
}

size_t Fetcher::PieceEnd(const FetchPlan& plan, size_t begin) const {
  uint64_t bytes = 0;
  size_t end = begin;
  while (end < plan.items.size() && end - begin < kPieceItems && bytes < kPieceBytes)
    bytes += plan.items[end++].length;
  return end;
}

ItemRange Fetcher::ReadNeighbours(const FetchPlan& plan, ItemRange range, const File& file,
                                  bool may_wait, bool& read) const {
  ScatteredRead neighbours(options_.max_gap_bytes);
  ItemRange group{range.begin, range.begin};
  for (; group.end < range.end; ++group.end) {
    const FetchItem& item = plan.items[group.end];
    if (!neighbours.Add(item.offset, {item.into, item.length})) break;
  }
  if (may_wait) {
    read = file.ReadExactlyAt(neighbours.offset(), neighbours.parts()).ok();
    return group;
  }
  read = file.ReadCachedAt(neighbours.offset(), neighbours.parts());
  if (options_.map_warm_shards)
    table_->dataset().Warm(plan.items[range.begin].shard).RecordRead(file, read);
  return group;
}

void Fetcher::Check(const FetchPlan& plan, ItemRange range, bool read,
                    std::vector<BadRead>& bad) const {
  for (size_t i = range.begin; i < range.end; ++i) {
    const FetchItem& item = plan.items[i];
    const std::span<std::byte> into(item.into, item.length);
    if (read && (!options_.verify || Xxh3_64(into) == item.hash)) continue;
    // Read again with the function that reports what is wrong.
    absl::Status again = table_->dataset().ReadField({item.shard, item.record}, item.column, into);
    if (!again.ok()) bad.push_back({item.slot, std::move(again)});
  }
}

void Fetcher::CopyMapped(const FetchPlan& plan, ItemRange range, const MappedShard& shard,
                         std::vector<BadRead>& bad) const {
  const uint32_t number = plan.items[range.begin].shard;
  const bool slow = CopyFields(
      shard, range.end - range.begin, options_.verify,
      [&](size_t i) {
        const FetchItem& item = plan.items[range.begin + i];
        return MappedField{item.offset, {item.into, item.length}, item.hash};
      },
      [&](size_t i) {
        Check(plan, {range.begin + i, range.begin + i + 1}, false, bad);
      });
  // The rest of the page after the end of a file reads as zeros, so without hashes only the size
  // reveals a truncated file.
  if (options_.verify && !slow) return;
  const absl::StatusOr<std::shared_ptr<const File>> file = table_->dataset().OpenFile(number);
  const absl::StatusOr<uint64_t> size = file.ok() ? (*file)->Size() : file.status();
  const uint64_t expected = table_->dataset().shards()[number].bytes;
  if (!options_.verify && (!size.ok() || *size != expected)) Check(plan, range, false, bad);
  if (file.ok() && slow) table_->dataset().Warm(number).LookAgain(**file);
}

void Fetcher::Read(const FetchPlan& plan, ItemRange range, std::vector<ItemRange>* missed,
                   std::vector<BadRead>& bad) const {
  while (range.begin < range.end) {
    const uint32_t shard = plan.items[range.begin].shard;
    size_t end = range.begin + 1;
    while (end < range.end && plan.items[end].shard == shard) ++end;
    const ItemRange here{std::exchange(range.begin, end), end};
    if (const std::shared_ptr<const MappedShard> mapped =
            options_.map_warm_shards ? table_->dataset().Warm(shard).Get() : nullptr) {
      CopyMapped(plan, here, *mapped, bad);
      continue;
    }
    const absl::StatusOr<std::shared_ptr<const File>> file = table_->dataset().OpenFile(shard);
    if (!file.ok()) {
      Check(plan, here, false, bad);
      continue;
    }
    for (size_t begin = here.begin; begin < here.end;) {
      bool read = false;
      const ItemRange group =
          ReadNeighbours(plan, {begin, here.end}, **file, missed == nullptr, read);
      if (!read && missed != nullptr) {
        missed->push_back(group);
      } else {
        Check(plan, group, read, bad);
      }
      begin = group.end;
    }
  }
}

absl::StatusOr<std::unique_ptr<HostBatch::Content>> Fetcher::FetchContent(
    std::span<const uint64_t> ids, FetchPlan& plan) const {
  auto content = std::make_unique<HostBatch::Content>();
  RETURN_IF_ERROR(Plan(ids, plan, *content));
  // Urgent: the caller itself may hold all slabs.
  ASSIGN_OR_RETURN(SlabLease lease,
                   pool_->Acquire(plan.run_slabs, [] { return SlabPool::Patience::kUrgent; }));
  Place(std::move(lease), plan, *content);
  std::vector<BadRead> bad;
  Read(plan, {0, plan.items.size()}, nullptr, bad);
  if (!bad.empty()) return bad.front().why;
  return content;
}

absl::StatusOr<HostBatch> Fetcher::Fetch(std::span<const uint64_t> ids) const {
  FetchPlan plan;
  ASSIGN_OR_RETURN(std::unique_ptr<HostBatch::Content> content, FetchContent(ids, plan));
  return HostBatch(std::move(content));
}

}  // namespace shardpack
