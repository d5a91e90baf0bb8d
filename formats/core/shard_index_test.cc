#include "formats/core/shard_index.h"

#include <fstream>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/io/file.h"
#include "formats/testing/datasets/test_dataset.h"
#include "formats/testing/sample_generator.h"
#include "formats/testing/scratch_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kShardBytes = 100'000;

// Offsets in the bytes; docs/formats/pidx.md.
constexpr size_t kVersionAt = 8, kFieldsAt = 12, kRecordsAt = 16, kNamesBytesAt = 24,
                 kKeysBytesAt = 32;
constexpr size_t kHeaderBytes = 48, kFooterBytes = 40;

struct Row {
  std::string key, source_path;
  int64_t label = kNoLabel;
  ImageInfo image;
  Extent extent;
  std::vector<ScannedField> fields;
};

void AddTo(ShardIndexBuilder& builder, const Row& row) {
  builder.Add({.offset = row.extent.offset, .length = row.extent.length, .fields = row.fields},
              row.key, row.source_path, row.label, row.image);
}

std::vector<Row> SomeRows() {
  const ImageInfo jpeg = {
      .width = 640, .height = 480, .format = ImageFormat::kJpeg, .orientation = 6};
  return {
      {"cat/1", "cat/1.JPEG", 0, jpeg, {0, 1024}, {{"image", 512, 100, 1}, {"json", 700, 50, 2}}},
      {"", "", kNoLabel, {}, {1024, 1024}, {{"image", 1536, 0, 3}}},
      {"dog/\xFF",
       "dog/caf\xE9.png",
       7,
       {},
       {2048, 97952},
       {{"txt", 3000, 9, 4}, {"image", 2048, 97952, 5}}},
      {"last", "x", std::numeric_limits<int64_t>::max(), jpeg, {100'000, 0}, {}}};
}

std::string BytesOf(const std::vector<Row>& rows, uint64_t shard_bytes = kShardBytes) {
  ShardIndexBuilder builder;
  for (const Row& row : rows) AddTo(builder, row);
  return builder.Finish(shard_bytes);
}

template <typename T>
std::string With(std::string bytes, size_t at, T value) {
  StoreLittle(bytes.data() + at, value);
  return testing::ResealedIndex(std::move(bytes));
}

absl::Status Refusal(const std::string& bytes, uint64_t shard_bytes = kShardBytes) {
  return ShardIndex::FromBytes(bytes, shard_bytes).status();
}

TEST(ShardIndex, EverythingComesBack) {
  const std::vector<Row> rows = SomeRows();
  const absl::StatusOr<ShardIndex> index = ShardIndex::FromBytes(BytesOf(rows), kShardBytes);
  ASSERT_TRUE(index.ok()) << index.status();
  ASSERT_EQ(index->records(), rows.size());
  ASSERT_EQ(index->fields(), 3u);
  EXPECT_EQ(index->field_name(0), "image");
  EXPECT_EQ(index->field_name(1), "json");
  EXPECT_EQ(index->field_name(2), "txt");
  EXPECT_EQ(index->shard_bytes(), kShardBytes);
  for (size_t r = 0; r < rows.size(); ++r) {
    EXPECT_EQ(index->key(r), rows[r].key);
    EXPECT_EQ(index->source_path(r), rows[r].source_path);
    EXPECT_EQ(index->label(r), rows[r].label);
    EXPECT_EQ(index->image(r), rows[r].image);
    EXPECT_EQ(index->record(r), rows[r].extent);
    for (size_t f = 0; f < index->fields(); ++f) {
      const ScannedField* expected = nullptr;
      for (const ScannedField& field : rows[r].fields) {
        if (field.name == index->field_name(f)) expected = &field;
      }
      ASSERT_EQ(index->has_field(r, f), expected != nullptr) << r << " " << f;
      if (expected == nullptr) {
        EXPECT_EQ(index->field(r, f), Extent());
        continue;
      }
      EXPECT_EQ(index->field(r, f), (Extent{expected->offset, expected->length}));
      EXPECT_EQ(index->hash(r, f), expected->hash);
    }
  }
}

TEST(ShardIndex, AnEmptyShard) {
  const absl::StatusOr<ShardIndex> index = ShardIndex::FromBytes(BytesOf({}, 0), 0);
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ(index->records(), 0u);
  EXPECT_EQ(index->fields(), 0u);
}

TEST(ShardIndex, TheBuilderStartsAgain) {
  ShardIndexBuilder builder;
  AddTo(builder, SomeRows()[0]);
  EXPECT_EQ(builder.records(), 1u);
  const std::string first = builder.Finish(kShardBytes);
  EXPECT_EQ(builder.records(), 0u);
  AddTo(builder, SomeRows()[0]);
  EXPECT_EQ(builder.Finish(kShardBytes), first);
}

TEST(ShardIndex, ForeignFieldNames) {
  std::vector<Row> rows = {SomeRows()[0]};
  const std::string with_nul("a\0b", 3);
  rows[0].fields = {{"image", 1, 2, 3}, {with_nul, 4, 5, 6}, {"image", 7, 8, 9}, {"", 10, 11, 12}};
  const absl::StatusOr<ShardIndex> index = ShardIndex::FromBytes(BytesOf(rows), kShardBytes);
  ASSERT_TRUE(index.ok()) << index.status();
  ASSERT_EQ(index->fields(), 2u) << "the one with a NUL is left out";
  EXPECT_EQ(index->field(0, 0), (Extent{1, 2})) << "of two fields of a name the first counts";
  EXPECT_EQ(index->field_name(1), "");
  rows[0].fields.clear();
  std::vector<std::string> names;
  for (int i = 0; i < 300; ++i) names.push_back(absl::StrCat("field", i));
  for (const std::string& name : names) rows[0].fields.push_back({name, 1, 2, 3});
  const absl::StatusOr<ShardIndex> many = ShardIndex::FromBytes(BytesOf(rows), kShardBytes);
  ASSERT_TRUE(many.ok()) << many.status();
  EXPECT_EQ(many->fields(), 256u);
}

// Each record takes 24 bytes in each field, even if it has none of them.
TEST(ShardIndex, OfAForeignShardNoMoreFieldsThanItIsWorth) {
  EXPECT_EQ(MostFieldsOfForeign(0, 0), kMaxIndexFields);
  EXPECT_EQ(MostFieldsOfForeign(10'000, 0), kMaxIndexFields);
  EXPECT_EQ(MostFieldsOfForeign(100'000, 0), 27u);
  EXPECT_EQ(MostFieldsOfForeign(100'000, 100 << 20), kMaxIndexFields);
  EXPECT_EQ(MostFieldsOfForeign(uint64_t{1} << 60, ~uint64_t{0}), 1u);

  constexpr uint64_t kRecords = 100'000, kBytes = 16 * kRecords;
  std::vector<std::string> names;
  for (size_t f = 0; f < kMaxIndexFields; ++f) names.push_back(absl::StrCat("f", f));
  std::vector<ScannedField> all;
  for (const std::string& name : names) all.push_back({name, 0, 1, 0});
  // Whether they come first or last.
  for (const uint64_t full : {uint64_t{0}, kRecords - 1}) {
    ShardIndexBuilder builder(kBytes);
    for (uint64_t r = 0; r < kRecords; ++r) {
      builder.Add({.fields = r == full ? std::span<const ScannedField>(all)
                                       : std::span<const ScannedField>(all).first(1)},
                  "", "", kNoLabel, {});
    }
    const absl::StatusOr<ShardIndex> index = ShardIndex::FromBytes(builder.Finish(kBytes), kBytes);
    ASSERT_TRUE(index.ok()) << index.status();
    EXPECT_EQ(index->fields(), 27u);
    EXPECT_TRUE(index->FindField("f26"));
    EXPECT_LT(index->bytes().size(), 80u << 20);
    EXPECT_TRUE(index->has_field(full, 26));
    EXPECT_TRUE(index->has_field(kRecords / 2, 0));
  }
}

TEST(ShardIndex, EveryBitFlipIsRefused) {
  const std::string bytes = BytesOf(SomeRows());
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    ASSERT_TRUE(absl::IsDataLoss(Refusal(flipped))) << "bit " << bit;
  }
}

TEST(ShardIndex, EveryOtherLengthIsRefused) {
  const std::string bytes = BytesOf(SomeRows());
  for (size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_TRUE(absl::IsDataLoss(Refusal(bytes.substr(0, size)))) << size;
  }
  for (size_t more = 1; more < 20; ++more) {
    ASSERT_TRUE(absl::IsDataLoss(Refusal(bytes + std::string(more, '\0')))) << more;
  }
  EXPECT_TRUE(absl::IsDataLoss(Refusal(bytes + bytes)));
}

TEST(ShardIndex, AnotherShardsIndexIsRefused) {
  const absl::Status refusal = Refusal(BytesOf(SomeRows()), kShardBytes + 1);
  EXPECT_TRUE(absl::IsDataLoss(refusal));
  EXPECT_THAT(refusal.message(),
              HasSubstr("made for a shard of 100000 bytes, the shard has 100001"));
}

TEST(ShardIndex, ExtentsOutsideTheShardAreRefused) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  const std::pair<uint64_t, uint64_t> kOutside[] = {{0, kShardBytes + 1}, {kShardBytes, 1},
                                                    {kShardBytes + 1, 0}, {1, kMax},
                                                    {kMax - 1, 2},        {kMax - 1, kMax}};
  for (const auto& [offset, length] : kOutside) {
    std::vector<Row> rows = SomeRows();
    rows[2].extent = {offset, length};
    EXPECT_THAT(Refusal(BytesOf(rows)).message(), HasSubstr("record 2 lies outside")) << offset;
    rows = SomeRows();
    rows[2].fields[0].offset = offset;
    rows[2].fields[0].length = length;
    EXPECT_THAT(Refusal(BytesOf(rows)).message(), HasSubstr("field 2 of record 2 lies outside"))
        << offset;
  }
}

// Crafted bytes with a valid hash.
TEST(ShardIndex, MadeUpNumbersAreRefused) {
  const std::string bytes = BytesOf(SomeRows());
  ASSERT_TRUE(Refusal(testing::ResealedIndex(bytes)).ok());
  const absl::Status other = Refusal(With(bytes, kVersionAt, uint32_t{2}));
  EXPECT_TRUE(absl::IsUnimplemented(other)) << other;
  EXPECT_THAT(other.message(), HasSubstr("version 2, expected 1; another version of pack"));
  for (const uint64_t n :
       {uint64_t{0}, uint64_t{3}, uint64_t{5}, uint64_t{1} << 61, ~uint64_t{0}}) {
    std::string both = With(bytes, bytes.size() - kFooterBytes + 8, n);
    EXPECT_TRUE(absl::IsDataLoss(Refusal(With(both, kRecordsAt, n)))) << n;
    EXPECT_TRUE(absl::IsDataLoss(Refusal(With(bytes, kRecordsAt, n)))) << n;
    EXPECT_TRUE(absl::IsDataLoss(Refusal(With(bytes, kNamesBytesAt, n)))) << n;
    EXPECT_TRUE(absl::IsDataLoss(Refusal(With(bytes, kKeysBytesAt, n)))) << n;
  }
  for (const uint32_t fields : {0u, 2u, 4u, 257u, ~0u}) {
    EXPECT_TRUE(absl::IsDataLoss(Refusal(With(bytes, kFieldsAt, fields)))) << fields;
  }
  // The names run together, or end without a NUL.
  EXPECT_THAT(Refusal(With(bytes, kHeaderBytes + 5, 'x')).message(), HasSubstr("field names"));
  // Ends of keys that decrease or exceed the keys; their column comes before the paths' column and
  // the two texts.
  const size_t text_bytes = 16 + 24;  // keys and paths, padded
  const size_t key_ends = bytes.size() - kFooterBytes - text_bytes - 4 * 8 - 4 * 8;
  ASSERT_EQ(LoadLittle<uint64_t>(bytes.data() + key_ends), 5u);
  for (const uint64_t end : {uint64_t{6}, uint64_t{1000}, ~uint64_t{0}}) {
    EXPECT_THAT(Refusal(With(bytes, key_ends, end)).message(), HasSubstr("out of bounds")) << end;
    EXPECT_THAT(Refusal(With(bytes, key_ends + 3 * 8, end)).message(), HasSubstr("out of bounds"))
        << end;
    EXPECT_THAT(Refusal(With(bytes, key_ends + 4 * 8, end + 64)).message(),
                HasSubstr("out of bounds"))
        << "path, " << end;
  }
}

TEST(ShardIndex, OpenChecksTheExpectedDigest) {
  const testing::ScratchFolder scratch;
  const std::string path = scratch.File("a.tar.pidx"), bytes = BytesOf(SomeRows());
  std::ofstream(path, std::ios::binary) << bytes;
  const Digest digest = Xxh3_128(AsBytes(bytes));
  EXPECT_TRUE(ShardIndex::Open(path, kShardBytes).ok());
  EXPECT_TRUE(ShardIndex::Open(path, kShardBytes, digest).ok());
  const absl::Status other = ShardIndex::Open(path, kShardBytes, Digest{1, 2}).status();
  EXPECT_TRUE(absl::IsDataLoss(other));
  EXPECT_THAT(other.message(), HasSubstr(path + ": its hash differs from the manifest"));
  EXPECT_TRUE(absl::IsNotFound(ShardIndex::Open(path + "x", kShardBytes).status()));
  std::ofstream(path + "0");
  EXPECT_TRUE(absl::IsDataLoss(ShardIndex::Open(path + "0", kShardBytes).status()));
}

TEST(ShardIndex, ACopyKeepsTheBytes) {
  std::optional<ShardIndex> copy;
  {
    const absl::StatusOr<ShardIndex> index =
        ShardIndex::FromBytes(BytesOf(SomeRows()), kShardBytes);
    copy = *index;
  }
  EXPECT_EQ(copy->key(0), "cat/1");
  EXPECT_EQ(copy->field_name(1), "json");
}

TEST(ShardIndex, RandomRoundTrips) {
  testing::Random random(8);
  for (int round = 0; round < 200; ++round) {
    std::vector<Row> rows(random.Below(20));
    const char* const names[] = {"image", "json", "txt", "mask.png"};
    for (Row& row : rows) {
      row.key = random.Bytes(random.Below(12));
      row.source_path = random.Bytes(random.Below(12));
      row.label = static_cast<int64_t>(random.Next());
      for (const char* name : names) {
        if (random.Below(2) == 0)
          row.fields.push_back({name, random.Below(50'000), random.Below(50'000), random.Next()});
      }
    }
    const absl::StatusOr<ShardIndex> index = ShardIndex::FromBytes(BytesOf(rows), kShardBytes);
    ASSERT_TRUE(index.ok()) << index.status();
    for (size_t r = 0; r < rows.size(); ++r) {
      ASSERT_EQ(index->key(r), rows[r].key);
      ASSERT_EQ(index->source_path(r), rows[r].source_path);
      size_t fields = 0;
      for (size_t f = 0; f < index->fields(); ++f) fields += index->has_field(r, f) ? 1 : 0;
      ASSERT_EQ(fields, rows[r].fields.size());
    }
  }
}

// These rows' bytes as they were first written: any change to them is a new version.
TEST(ShardIndex, Golden) {
  const absl::StatusOr<std::string> golden =
      ReadWholeFile("formats/core/testdata/four-rows.pidx", 1 << 20);
  ASSERT_TRUE(golden.ok()) << golden.status();
  EXPECT_TRUE(BytesOf(SomeRows()) == *golden);
}

}  // namespace
}  // namespace shardpack
