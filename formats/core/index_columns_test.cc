#include "formats/core/index_columns.h"

#include <string>

#include "formats/core/shard_index.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

template <typename T>
T At(Bytes column, size_t row) {
  EXPECT_GE(column.size(), (row + 1) * sizeof(T));
  return LoadLittle<T>(column.data() + row * sizeof(T));
}

// Odd numbers of bytes and records, so that every section is padded.
ShardIndex MakeIndex() {
  ShardIndexBuilder builder;
  for (uint64_t r = 0; r < 3; ++r) {
    ScannedRecord record;
    record.offset = 100 * r;
    record.length = 90 + r;
    const ScannedField fields[] = {
        {.name = "image", .offset = 100 * r + 1, .length = 10 + r, .hash = ~r},
        {.name = "json", .offset = 150, .length = 5, .hash = 77}};
    record.fields = std::span(fields).first(r == 1 ? 2 : 1);
    builder.Add(record, "key" + std::string(r, 'x'), "dir/" + std::string(r + 1, 'p'),
                static_cast<int64_t>(r) - 1, {.width = static_cast<uint32_t>(5 + r), .height = 9});
  }
  return *ShardIndex::FromBytes(builder.Finish(1000), 1000);
}

TEST(IndexColumns, EqualTheRows) {
  const ShardIndex index = MakeIndex();
  ASSERT_EQ(index.records(), 3);
  ASSERT_EQ(index.fields(), 2);
  uint64_t key_begin = 0, path_begin = 0;
  for (uint64_t r = 0; r < index.records(); ++r) {
    EXPECT_EQ(At<int64_t>(ColumnOf(index, IndexColumn::kLabels), r), index.label(r));
    EXPECT_EQ(At<ImageInfo>(ColumnOf(index, IndexColumn::kImages), r), index.image(r));
    EXPECT_EQ(At<uint64_t>(ColumnOf(index, IndexColumn::kRecordOffsets), r),
              index.record(r).offset);
    EXPECT_EQ(At<uint64_t>(ColumnOf(index, IndexColumn::kRecordLengths), r),
              index.record(r).length);
    for (size_t f = 0; f < index.fields(); ++f) {
      const auto offset = At<uint64_t>(ColumnOf(index, IndexColumn::kOffsets, f), r);
      EXPECT_EQ(offset == ~uint64_t{0}, !index.has_field(r, f));
      if (!index.has_field(r, f)) continue;
      EXPECT_EQ(offset, index.field(r, f).offset);
      EXPECT_EQ(At<uint64_t>(ColumnOf(index, IndexColumn::kLengths, f), r),
                index.field(r, f).length);
      EXPECT_EQ(At<uint64_t>(ColumnOf(index, IndexColumn::kHashes, f), r), index.hash(r, f));
    }
    const auto key_end = At<uint64_t>(ColumnOf(index, IndexColumn::kKeyEnds), r);
    EXPECT_EQ(AsText(ColumnOf(index, IndexColumn::kKeyText)).substr(key_begin, key_end - key_begin),
              index.key(r));
    key_begin = key_end;
    const auto path_end = At<uint64_t>(ColumnOf(index, IndexColumn::kPathEnds), r);
    EXPECT_EQ(
        AsText(ColumnOf(index, IndexColumn::kPathText)).substr(path_begin, path_end - path_begin),
        index.source_path(r));
    path_begin = path_end;
  }
  EXPECT_EQ(ColumnOf(index, IndexColumn::kKeyText).size(), key_begin);
  EXPECT_EQ(ColumnOf(index, IndexColumn::kPathText).size(), path_begin);
}

TEST(IndexColumns, OfAnEmptyShard) {
  ShardIndexBuilder builder;
  const ShardIndex index = *ShardIndex::FromBytes(builder.Finish(0), 0);
  for (const IndexColumn column : {IndexColumn::kLabels, IndexColumn::kImages,
                                   IndexColumn::kKeyText, IndexColumn::kRecordOffsets}) {
    EXPECT_TRUE(ColumnOf(index, column).empty());
  }
}

}  // namespace
}  // namespace shardpack
