// The column of a shard, as a view of its index.
#include <string_view>

#include "absl/strings/str_cat.h"
#include "api/handles.h"
#include "formats/core/index_columns.h"
#include "formats/io/error_facts.h"
#include "formats/io/escape.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

using shardpack::Dataset;
using shardpack::ImageInfo;
using shardpack::IndexColumn;
using shardpack::ShardIndex;
using shardpack::api::ContentOf;
using shardpack::api::NotNull;

static_assert(sizeof(shardpack_image) == sizeof(ImageInfo) &&
              offsetof(shardpack_image, format) == offsetof(ImageInfo, format) &&
              offsetof(shardpack_image, orientation) == offsetof(ImageInfo, orientation) &&
              offsetof(shardpack_image, flags) == offsetof(ImageInfo, flags));

namespace {

struct ColumnKind {
  IndexColumn column;
  char type;
  uint32_t item_bytes;
  bool of_field;
};

// By the numbers of the C interface.
constexpr ColumnKind kColumns[] = {
    {IndexColumn::kLabels, 'q', 8, false},
    {IndexColumn::kImages, 'V', sizeof(ImageInfo), false},
    {IndexColumn::kKeyEnds, 'Q', 8, false},
    {IndexColumn::kKeyText, 'B', 1, false},
    {IndexColumn::kPathEnds, 'Q', 8, false},
    {IndexColumn::kPathText, 'B', 1, false},
    {IndexColumn::kRecordOffsets, 'Q', 8, false},
    {IndexColumn::kRecordLengths, 'Q', 8, false},
    {IndexColumn::kOffsets, 'Q', 8, true},
    {IndexColumn::kLengths, 'Q', 8, true},
    {IndexColumn::kHashes, 'Q', 8, true},
};
static_assert(std::size(kColumns) == SHARDPACK_COLUMN_HASH + 1);

}  // namespace

shardpack_code shardpack_dataset_column(const shardpack_dataset* dataset, uint32_t shard,
                                        uint32_t column, const char* field, shardpack_column* view,
                                        shardpack_error** error) {
  return shardpack::api::Guarded(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const Dataset* const content, ContentOf(dataset, "dataset"));
    RETURN_IF_ERROR(NotNull(view, "view"));
    if (column >= std::size(kColumns))
      return absl::InvalidArgumentError(absl::StrCat("there is no column ", column));
    const ColumnKind& kind = kColumns[column];
    ASSIGN_OR_RETURN(const ShardIndex* const index, content->BorrowIndex(shard));
    size_t number = 0;
    if (kind.of_field) {
      const std::string_view name = field == nullptr ? shardpack::kImageField : field;
      const std::optional<size_t> found = index->FindField(name);
      if (!found) {
        const std::string& shard_name = content->shards()[shard].name;
        return shardpack::WithFacts(
            absl::NotFoundError(absl::StrCat(shardpack::EscapeForTerminal(shard_name),
                                             " has no field ", shardpack::EscapeForTerminal(name))),
            {.shard = shard_name, .field = std::string(name)});
      }
      number = *found;
    }
    const shardpack::Bytes bytes = shardpack::ColumnOf(*index, kind.column, number);
    *view = {bytes.data(), bytes.size() / kind.item_bytes, kind.item_bytes, kind.type, {}};
    return absl::OkStatus();
  });
}
