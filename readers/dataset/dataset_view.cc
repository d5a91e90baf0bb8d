#include "readers/dataset/dataset_view.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "formats/io/mapped_file.h"
#include "formats/io/status_macros.h"
#include "readers/dataset/shard_table.h"

namespace shardpack {

struct DatasetView::State {
  struct Shard {
    const std::byte* base = nullptr;
    const ShardIndex* index = nullptr;
    size_t column = ShardTable::kNoColumn;
  };

  State(Dataset dataset, std::string field) : table(std::move(dataset), {std::move(field)}) {}

  ShardTable table;
  std::vector<MappedFile> files;
  std::vector<Shard> shards;
};

absl::StatusOr<DatasetView> DatasetView::Open(Dataset dataset, std::string field) {
  auto state = std::make_shared<State>(std::move(dataset), std::move(field));
  RETURN_IF_ERROR(state->table.CheckFields());
  const std::span<const DatasetShard> shards = state->table.dataset().shards();
  for (uint32_t s = 0; s < shards.size(); ++s) {
    ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(shards[s].data_path));
    if (file.bytes().size() != shards[s].bytes) {
      return absl::DataLossError(absl::StrCat(EscapeForTerminal(shards[s].data_path), " has ",
                                              file.bytes().size(),
                                              " bytes, its index was made for ", shards[s].bytes));
    }
    ASSIGN_OR_RETURN(const ShardTable::Shard* const shard, state->table.Get(s));
    state->shards.push_back({file.bytes().data(), shard->index, shard->columns[0]});
    state->files.push_back(std::move(file));
  }
  return DatasetView(std::move(state));
}

uint64_t DatasetView::size() const { return state_->table.dataset().size(); }

Bytes DatasetView::bytes(uint64_t id) const {
  const SampleLocation at = state_->table.dataset().Locate(id);
  const State::Shard& shard = state_->shards[at.shard];
  if (shard.column == ShardTable::kNoColumn || !shard.index->has_field(at.record, shard.column))
    return {};
  const Extent extent = shard.index->field(at.record, shard.column);
  return {shard.base + extent.offset, extent.length};
}

uint64_t DatasetView::hash(uint64_t id) const {
  const SampleLocation at = state_->table.dataset().Locate(id);
  const State::Shard& shard = state_->shards[at.shard];
  return shard.column == ShardTable::kNoColumn ? 0 : shard.index->hash(at.record, shard.column);
}

int64_t DatasetView::label(uint64_t id) const {
  const SampleLocation at = state_->table.dataset().Locate(id);
  return state_->shards[at.shard].index->label(at.record);
}

std::string_view DatasetView::key(uint64_t id) const {
  const SampleLocation at = state_->table.dataset().Locate(id);
  return state_->shards[at.shard].index->key(at.record);
}

}  // namespace shardpack
