#include "readers/dataset/dataset.h"

#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/foreign_formats.h"
#include "api/handles.h"
#include "api/options.h"
#include "api/structs.h"
#include "formats/io/error_facts.h"
#include "formats/io/status_macros.h"
#include "readers/order/order.h"

using shardpack::Dataset;
using shardpack::DatasetShard;
using shardpack::ErrorFacts;
using shardpack::SampleLocation;
using shardpack::ShardIndex;
using shardpack::api::ContentOf;
using shardpack::api::Guarded;
using shardpack::api::Making;
using shardpack::api::NotNull;
using shardpack::api::TextOf;

namespace {

// Sorted; a shard without a split counts as none.
std::set<std::string_view> SplitsOf(const Dataset& dataset) {
  std::set<std::string_view> splits;
  for (const DatasetShard& shard : dataset.shards()) {
    if (!shard.split.empty()) splits.insert(shard.split);
  }
  return splits;
}

absl::StatusOr<SampleLocation> Locate(const Dataset& dataset, uint64_t id) {
  if (id < dataset.size()) return dataset.Locate(id);
  return shardpack::WithFacts(
      absl::OutOfRangeError(absl::StrCat("sample ", id, " of ", dataset.size(), " samples")),
      {.id = static_cast<int64_t>(id)});
}

absl::Status CheckShard(const Dataset& dataset, uint32_t shard) {
  if (shard < dataset.shards().size()) return absl::OkStatus();
  return absl::OutOfRangeError(
      absl::StrCat("shard ", shard, " of ", dataset.shards().size(), " shards"));
}

// Most significant byte first, as in the text form.
void PutDigest(const shardpack::Digest& digest, uint8_t into[16]) {
  for (size_t i = 0; i < 8; ++i) {
    into[i] = static_cast<uint8_t>(digest.high >> (8 * (7 - i)));
    into[8 + i] = static_cast<uint8_t>(digest.low >> (8 * (7 - i)));
  }
}

}  // namespace

shardpack_code shardpack_dataset_open(const char* path, shardpack_dataset** dataset,
                                      shardpack_error** error) {
  return Making(dataset, error, [&]() -> absl::StatusOr<shardpack_dataset*> {
    RETURN_IF_ERROR(NotNull(path, "path"));
    if (*path == '\0') return absl::InvalidArgumentError("the path of the dataset is empty");
    ASSIGN_OR_RETURN(const std::string absolute, shardpack::api::AbsolutePath(path));
    absl::StatusOr<Dataset> opened = Dataset::Open(absolute);
    // Perhaps a shard of another program; if not, the first error says what a dataset is.
    if (absl::IsInvalidArgument(opened.status())) {
      absl::StatusOr<Dataset> foreign = Dataset::Open(absolute, shardpack::api::ForeignFormats());
      if (!absl::IsInvalidArgument(foreign.status())) opened = std::move(foreign);
    }
    if (!opened.ok()) return opened.status();
    return new shardpack_dataset(*std::move(opened));
  });
}

shardpack_code shardpack_dataset_open_shards(const char* const* paths, size_t count,
                                             shardpack_dataset** dataset, shardpack_error** error) {
  return Making(dataset, error, [&]() -> absl::StatusOr<shardpack_dataset*> {
    ASSIGN_OR_RETURN(std::vector<std::string> copies,
                     shardpack::api::TextsOf(paths, count, "a path"));
    for (std::string& path : copies) {
      ASSIGN_OR_RETURN(path, shardpack::api::AbsolutePath(path.c_str()));
    }
    ASSIGN_OR_RETURN(Dataset opened, Dataset::OpenShards(copies, shardpack::api::ForeignFormats()));
    return new shardpack_dataset(std::move(opened));
  });
}

shardpack_code shardpack_dataset_join(const shardpack_dataset* const* parts, size_t count,
                                      shardpack_dataset** dataset, shardpack_error** error) {
  return Making(dataset, error, [&]() -> absl::StatusOr<shardpack_dataset*> {
    if (count > 0) RETURN_IF_ERROR(NotNull(parts, "parts"));
    std::vector<Dataset> copies;
    for (size_t i = 0; i < count; ++i) {
      ASSIGN_OR_RETURN(const Dataset* const part, ContentOf(parts[i], "a part"));
      copies.push_back(*part);
    }
    ASSIGN_OR_RETURN(Dataset joined, Dataset::Join(copies));
    return new shardpack_dataset(std::move(joined));
  });
}

shardpack_code shardpack_dataset_split(const shardpack_dataset* dataset, const char* name,
                                       shardpack_dataset** split, shardpack_error** error) {
  return Making(split, error, [&]() -> absl::StatusOr<shardpack_dataset*> {
    ASSIGN_OR_RETURN(const Dataset* const content, ContentOf(dataset, "dataset"));
    RETURN_IF_ERROR(NotNull(name, "name"));
    ASSIGN_OR_RETURN(Dataset part, content->Split(name));
    return new shardpack_dataset(std::move(part));
  });
}

shardpack_code shardpack_dataset_select(const shardpack_dataset* dataset, const uint64_t* ids,
                                        size_t count, shardpack_dataset** selected,
                                        shardpack_error** error) {
  return Making(selected, error, [&]() -> absl::StatusOr<shardpack_dataset*> {
    ASSIGN_OR_RETURN(const Dataset* const content, ContentOf(dataset, "dataset"));
    if (count > 0) RETURN_IF_ERROR(NotNull(ids, "ids"));
    if (count > shardpack::kMaxOrderSamples)
      return absl::InvalidArgumentError("the selection has too many ids");
    ASSIGN_OR_RETURN(Dataset made, content->Select({ids, count}));
    return new shardpack_dataset(std::move(made));
  });
}

shardpack_dataset* shardpack_dataset_retain(shardpack_dataset* dataset) {
  return shardpack::api::Retain(dataset);
}
void shardpack_dataset_release(shardpack_dataset* dataset) { shardpack::api::Release(dataset); }

shardpack_code shardpack_dataset_info_of(const shardpack_dataset* dataset,
                                         shardpack_dataset_info* info, shardpack_error** error) {
  return Guarded(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const Dataset* const content, ContentOf(dataset, "dataset"));
    return shardpack::api::Fill(info, "dataset info", [&](shardpack_dataset_info& all) {
      all.samples = content->size();
      for (const DatasetShard& shard : content->shards()) all.bytes += shard.bytes;
      all.shards = static_cast<uint32_t>(content->shards().size());
      all.splits = static_cast<uint32_t>(SplitsOf(*content).size());
      all.classes = static_cast<uint32_t>(content->classes().size());
      PutDigest(content->identity(), all.identity);
      all.format = TextOf(content->format());
    });
  });
}

shardpack_code shardpack_dataset_shard(const shardpack_dataset* dataset, uint32_t shard,
                                       shardpack_shard_info* info, shardpack_error** error) {
  return Guarded(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const Dataset* const content, ContentOf(dataset, "dataset"));
    RETURN_IF_ERROR(CheckShard(*content, shard));
    return shardpack::api::Fill(info, "shard info", [&](shardpack_shard_info& all) {
      const DatasetShard& row = content->shards()[shard];
      all.name = TextOf(row.name);
      all.split = TextOf(row.split);
      all.path = TextOf(row.data_path);
      all.bytes = row.bytes;
      all.records = row.records;
      all.first_id = row.first_id;
    });
  });
}

shardpack_code shardpack_dataset_name(const shardpack_dataset* dataset, uint32_t what, uint32_t n,
                                      shardpack_text* name, shardpack_error** error) {
  return Guarded(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const Dataset* const content, ContentOf(dataset, "dataset"));
    RETURN_IF_ERROR(NotNull(name, "name"));
    if (what == SHARDPACK_CLASS) {
      if (n < content->classes().size()) {
        *name = TextOf(content->classes()[n]);
        return absl::OkStatus();
      }
      return absl::OutOfRangeError(
          absl::StrCat("class ", n, " of ", content->classes().size(), " classes"));
    }
    if (what != SHARDPACK_SPLIT)
      return absl::InvalidArgumentError("only classes and splits have names");
    const std::set<std::string_view> splits = SplitsOf(*content);
    if (n >= splits.size())
      return absl::OutOfRangeError(absl::StrCat("split ", n, " of ", splits.size(), " splits"));
    *name = TextOf(*std::next(splits.begin(), n));
    return absl::OkStatus();
  });
}

shardpack_code shardpack_dataset_fields(const shardpack_dataset* dataset, uint32_t shard,
                                        shardpack_text* names, size_t room, size_t* count,
                                        shardpack_error** error) {
  return Guarded(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const Dataset* const content, ContentOf(dataset, "dataset"));
    if (room > 0) RETURN_IF_ERROR(NotNull(names, "names"));
    RETURN_IF_ERROR(NotNull(count, "count"));
    ASSIGN_OR_RETURN(const ShardIndex* const index, content->BorrowIndex(shard));
    *count = index->fields();
    for (size_t f = 0; f < std::min(room, index->fields()); ++f)
      names[f] = TextOf(index->field_name(f));
    return absl::OkStatus();
  });
}

shardpack_code shardpack_dataset_locate(const shardpack_dataset* dataset, uint64_t id,
                                        uint32_t* shard, uint64_t* record,
                                        shardpack_error** error) {
  return Guarded(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const Dataset* const content, ContentOf(dataset, "dataset"));
    RETURN_IF_ERROR(NotNull(shard, "shard"));
    RETURN_IF_ERROR(NotNull(record, "record"));
    ASSIGN_OR_RETURN(const SampleLocation at, Locate(*content, id));
    *shard = at.shard;
    *record = at.record;
    return absl::OkStatus();
  });
}

shardpack_code shardpack_dataset_key(const shardpack_dataset* dataset, uint64_t id,
                                     shardpack_text* key, shardpack_error** error) {
  return Guarded(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const Dataset* const content, ContentOf(dataset, "dataset"));
    RETURN_IF_ERROR(NotNull(key, "key"));
    ASSIGN_OR_RETURN(const SampleLocation at, Locate(*content, id));
    ASSIGN_OR_RETURN(const ShardIndex* const index, content->BorrowIndex(at.shard));
    *key = TextOf(index->key(at.record));
    return absl::OkStatus();
  });
}

shardpack_code shardpack_dataset_find_key(const shardpack_dataset* dataset, const char* key,
                                          size_t key_bytes, uint64_t* id, shardpack_error** error) {
  return Guarded(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const Dataset* const content, ContentOf(dataset, "dataset"));
    if (key_bytes > 0) RETURN_IF_ERROR(NotNull(key, "key"));
    RETURN_IF_ERROR(NotNull(id, "id"));
    const std::string_view wanted = key_bytes == 0 ? "" : std::string_view(key, key_bytes);
    ASSIGN_OR_RETURN(*id, content->FindKey(wanted));
    return absl::OkStatus();
  });
}
