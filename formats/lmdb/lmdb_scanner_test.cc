#include "formats/lmdb/reading/lmdb_scanner.h"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/lmdb/lmdb_format.h"
#include "formats/lmdb/reading/lmdb_pages.h"
#include "formats/testing/scratch_folder.h"
#include "formats/testing/test_shard.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using testing::FoundRecord;
using testing::GenerateSamples;
using testing::ScanBytes;
using testing::ScanResult;
using testing::ScratchFolder;
using testing::WriteShard;

constexpr size_t kPage = 4096;

std::string Golden(std::string_view name) {
  auto bytes = ReadWholeFile(absl::StrCat("formats/lmdb/testdata/", std::string(name)), 1 << 20);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.ok() ? *bytes : "";
}

// image() of testdata/make_testdata.py.
std::string GoldenImage(size_t number) {
  std::string image("\xFF\xD8\xFF");
  const size_t size = number % 7 == 3 ? 5000 + number : 20 + 37 * number % 900;
  for (size_t i = 0; i < size; ++i) image.push_back(static_cast<char>((number + i) % 251));
  return image;
}

void ExpectImage(const FoundRecord& record, size_t number) {
  const std::string image = GoldenImage(number);
  ASSERT_EQ(record.fields.size(), 1u);
  EXPECT_EQ(record.fields[0].length, image.size()) << number;
  EXPECT_EQ(record.fields[0].hash, Xxh3_64(AsBytes(image))) << number;
}

size_t Count(const ScanResult& scan, FindingId id) {
  const auto& all = scan.findings.findings();
  return static_cast<size_t>(
      std::count_if(all.begin(), all.end(), [&](const Finding& f) { return f.id == id; }));
}

TEST(LmdbScanner, CaffeByPyLmdb) {
  const ScanResult scan = ScanBytes(kLmdbFormat, Golden("caffe.mdb"));
  EXPECT_EQ(scan.Complaints(), "");
  ASSERT_EQ(scan.records.size(), 32u);
  for (size_t i = 0; i < 32; ++i) {
    ExpectImage(scan.records[i], i);
    EXPECT_EQ(scan.records[i].key, "");
    EXPECT_EQ(scan.records[i].source_path, absl::StrCat("class/", i, ".jpg"));
    EXPECT_EQ(scan.records[i].label, i < 31 ? static_cast<int64_t>(i % 5) : kNoLabel);
  }
}

TEST(LmdbScanner, RawByPyLmdb) {
  const ScanResult scan = ScanBytes(kLmdbFormat, Golden("raw.mdb"));
  EXPECT_EQ(scan.Complaints(), "");
  ASSERT_EQ(scan.records.size(), 20u);
  for (size_t i = 0; i < 20; ++i) {
    const size_t number = i / 2 * 3 + i % 2 + 1;
    ExpectImage(scan.records[i], number);
    EXPECT_EQ(scan.records[i].key, absl::StrFormat("img/%03d", number));
    EXPECT_EQ(scan.records[i].label, kNoLabel);
  }
}

TEST(LmdbScanner, PicklesByCPython) {
  const ScanResult scan = ScanBytes(kLmdbFormat, Golden("pickle.mdb"));
  EXPECT_EQ(scan.Complaints(), "");
  ASSERT_EQ(scan.records.size(), 25u);
  for (size_t i = 0; i < 25; ++i) {
    ExpectImage(scan.records[i], i);
    EXPECT_EQ(scan.records[i].label, static_cast<int64_t>(i * 100));
    EXPECT_EQ(scan.records[i].key, "");
  }
}

TEST(LmdbScanner, PicklesThatRunCodeAreFindings) {
  const ScanResult scan = ScanBytes(kLmdbFormat, Golden("hostile_pickle.mdb"));
  EXPECT_TRUE(scan.status.ok());
  ASSERT_EQ(scan.records.size(), 1u);
  ExpectImage(scan.records[0], 0);
  ASSERT_EQ(Count(scan, FindingId::kLmdbPickle), 2u) << scan.Complaints();
  EXPECT_EQ(scan.findings.findings()[0].key, "1");
  EXPECT_NE(scan.Complaints().find("opcode 0x63"), std::string::npos) << scan.Complaints();
}

TEST(LmdbScanner, OtherLayoutsAreNamed) {
  for (const auto& [file, name] :
       {std::pair("ocr.mdb", "ocr"), std::pair("stylegan2.mdb", "stylegan2"),
        std::pair("caffe2.mdb", "caffe2"), std::pair("named.mdb", "named database")}) {
    const ScanResult scan = ScanBytes(kLmdbFormat, Golden(file));
    EXPECT_TRUE(scan.status.ok());
    EXPECT_TRUE(scan.records.empty()) << file;
    ASSERT_EQ(scan.findings.findings().size(), 1u) << file << scan.Complaints();
    EXPECT_EQ(scan.findings.findings()[0].id, FindingId::kLmdbLayout);
    EXPECT_NE(scan.Complaints().find(name), std::string::npos) << scan.Complaints();
  }
}

// A sound shard, and helpers to break it in one place.
class Damage : public ::testing::Test {
 protected:
  void SetUp() override {
    bytes_ = *WriteShard(kLmdbFormat, {.layout = "raw"},
                         GenerateSamples({.count = 60, .max_bytes = 1500}), scratch_.File("clean"));
    // Most values are stored in their leaves; a second shard has values on pages of their own.
    large_ = *WriteShard(kLmdbFormat, {.layout = "raw"},
                         GenerateSamples({.count = 12,
                                          .payloads = testing::Payloads::kRandom,
                                          .min_bytes = 5000,
                                          .max_bytes = 9000}),
                         scratch_.File("large"));
    meta_ = MetaOf(bytes_);
  }

  static LmdbMeta MetaOf(std::string_view bytes) {
    LmdbMeta first, second;
    EXPECT_EQ(ParseMeta(AsBytes(bytes), 0, first), nullptr);
    EXPECT_EQ(ParseMeta(AsBytes(bytes.substr(kPage)), 1, second), nullptr);
    return second.transaction > first.transaction ? second : first;
  }
  size_t MetaAt() const { return meta_.transaction % 2 * kPage; }  // of the current meta page

  template <typename T>
  static std::string With(std::string bytes, size_t at, T value) {
    StoreLittle<T>(bytes.data() + at, value);
    return bytes;
  }
  static LmdbTreePage PageOf(std::string_view bytes, uint64_t page) {
    LmdbTreePage parsed;
    EXPECT_EQ(ParseTreePage(AsBytes(bytes.substr(page * kPage, kPage)), page, parsed), nullptr);
    return parsed;
  }

  // The scan returns OK and reports the finding.
  ScanResult Expect(std::string_view bytes, FindingId id, std::string_view says = "") {
    ScanResult scan = ScanBytes(kLmdbFormat, bytes);
    EXPECT_TRUE(scan.status.ok()) << scan.status;
    EXPECT_GE(Count(scan, id), 1u) << scan.Complaints();
    EXPECT_NE(scan.Complaints().find(says), std::string::npos) << scan.Complaints();
    return scan;
  }

  ScratchFolder scratch_;
  std::string bytes_, large_;
  LmdbMeta meta_;
};

TEST_F(Damage, TheShardIsSound) {
  EXPECT_EQ(ScanBytes(kLmdbFormat, bytes_).Complaints(), "");
  EXPECT_EQ(ScanBytes(kLmdbFormat, large_).Complaints(), "");
  EXPECT_EQ(meta_.entries.depth, 2);
}

TEST_F(Damage, MetaPages) {
  const size_t at = MetaAt();
  Expect(With<uint32_t>(bytes_, at + 16, 1), FindingId::kLmdbMeta, "magic");
  Expect(With<uint32_t>(bytes_, at + 20, 999), FindingId::kLmdbMeta, "version");
  for (const uint32_t size : {0u, 1u, 100u, 128u, 4097u, 65536u, 1u << 31}) {
    Expect(With<uint32_t>(bytes_, at + 40, size), FindingId::kLmdbMeta, "page size");
    // With both pages damaged nothing can be read.
    const std::string both = With<uint32_t>(With<uint32_t>(bytes_, 40, size), kPage + 40, size);
    EXPECT_TRUE(Expect(both, FindingId::kLmdbMeta, "page size").records.empty());
  }
  Expect(With<uint64_t>(bytes_, at + 136, 0), FindingId::kLmdbMeta, "last page");
  Expect(With<uint64_t>(bytes_, at + 136, ~uint64_t{0}), FindingId::kLmdbMeta, "last page");
  Expect(With<uint64_t>(bytes_, at + 128, uint64_t{1} << 40), FindingId::kLmdbMeta, "root");
  Expect(With<uint64_t>(bytes_, at + 128, ~uint64_t{0}), FindingId::kLmdbMeta, "without a root");
  Expect(With<uint16_t>(bytes_, at + 94, 40), FindingId::kLmdbMeta, "depth");
  Expect(With<uint16_t>(bytes_, at + 92, 4), FindingId::kLmdbLayout, "several values");
}

// The other meta page is used, and its tree is the previous one.
TEST_F(Damage, OneMetaPageIsEnoughToGoOn) {
  std::string other = bytes_;
  const size_t spare = kPage - MetaAt();
  std::fill_n(other.begin() + static_cast<ptrdiff_t>(spare), kPage, '\0');
  const ScanResult scan = Expect(other, FindingId::kLmdbMeta);
  EXPECT_EQ(scan.records, ScanBytes(kLmdbFormat, bytes_).records);
}

TEST_F(Damage, Counts) {
  const size_t entries = MetaAt() + 88;
  for (const size_t count : {8, 16, 24, 32}) {
    Expect(With<uint64_t>(bytes_, entries + count, 1000), FindingId::kLmdbTree, "counts");
  }
}

TEST_F(Damage, PagesOutOfRangeCyclesAndSharedPages) {
  const LmdbTreePage root = PageOf(bytes_, meta_.entries.root);
  ASSERT_GE(root.nodes.size(), 3u);
  const size_t node = meta_.entries.root * kPage + root.nodes[1].offset;
  Expect(With<uint32_t>(bytes_, node, 0xFFFFFFFF), FindingId::kLmdbPage, "outside the file");
  Expect(With<uint16_t>(bytes_, node + 4, 0xFFFF), FindingId::kLmdbPage, "outside the file");
  Expect(With<uint32_t>(bytes_, node, 0), FindingId::kLmdbPage, "outside");
  Expect(With<uint32_t>(bytes_, node, static_cast<uint32_t>(meta_.entries.root)),
         FindingId::kLmdbTree, "in use already");
  const ScanResult shared =
      Expect(With<uint32_t>(bytes_, node, static_cast<uint32_t>(root.nodes[2].child)),
             FindingId::kLmdbTree);
  EXPECT_LT(shared.records.size(), 60u);
}

TEST_F(Damage, TreePages) {
  const uint64_t leaf = PageOf(bytes_, meta_.entries.root).nodes[1].child;
  const size_t at = leaf * kPage;
  Expect(With<uint64_t>(bytes_, at, leaf + 1), FindingId::kLmdbPage, "another page number");
  Expect(With<uint16_t>(bytes_, at + 10, 0x22), FindingId::kLmdbPage, "flags");
  Expect(With<uint16_t>(bytes_, at + 10, 1), FindingId::kLmdbTree, "wrong level");
  Expect(With<uint16_t>(bytes_, at + 12, 17), FindingId::kLmdbPage, "bounds");
  Expect(With<uint16_t>(bytes_, at + 12, 0xFFFE), FindingId::kLmdbPage, "bounds");
  Expect(With<uint16_t>(bytes_, at + 14, 0xFFFF), FindingId::kLmdbPage, "bounds");
  Expect(With<uint16_t>(bytes_, at + 12, 16), FindingId::kLmdbTree, "without nodes");
  Expect(With<uint16_t>(bytes_, at + 16, 16), FindingId::kLmdbPage, "outside its part");
  Expect(With<uint16_t>(bytes_, at + 16, kPage - 4), FindingId::kLmdbPage, "passes the page");
  Expect(With<uint16_t>(bytes_, at + 16, 0xFFFE), FindingId::kLmdbPage, "passes the page");
  const size_t node = at + PageOf(bytes_, leaf).nodes[0].offset;
  Expect(With<uint16_t>(bytes_, node + 6, 0xFFFF), FindingId::kLmdbPage, "a key passes");
  Expect(With<uint16_t>(bytes_, node + 2, 0xFFFF), FindingId::kLmdbPage, "a value passes");
  Expect(With<uint16_t>(bytes_, node + 4, 0x80), FindingId::kLmdbPage, "unknown flags");
  Expect(With<uint16_t>(bytes_, node + 4, 2), FindingId::kLmdbLayout, "named database");
  // All pointers point to one node: many nodes in the space of one.
  std::string same = bytes_;
  const uint16_t first = LoadLittle<uint16_t>(same.data() + at + 16);
  StoreLittle<uint16_t>(same.data() + at + 12, 16 + 2 * 40);
  for (size_t i = 0; i < 40; ++i) StoreLittle<uint16_t>(same.data() + at + 16 + 2 * i, first);
  Expect(same, FindingId::kLmdbPage, "overlap");
}

TEST_F(Damage, KeysOutOfOrder) {
  const uint64_t leaf = PageOf(bytes_, meta_.entries.root).nodes[1].child;
  std::string swapped = bytes_;
  std::swap_ranges(&swapped[leaf * kPage + 16], &swapped[leaf * kPage + 18],
                   &swapped[leaf * kPage + 18]);
  Expect(swapped, FindingId::kLmdbTree, "do not ascend");
  // Smaller than its separator.
  const size_t node = leaf * kPage + PageOf(bytes_, leaf).nodes[0].offset;
  Expect(With<char>(bytes_, node + 8, '\0'), FindingId::kLmdbTree, "do not ascend");
  Expect(With<uint16_t>(bytes_, node + 6, 0), FindingId::kLmdbTree, "empty key");
}

TEST_F(Damage, OverflowPages) {
  const LmdbMeta meta = MetaOf(large_);
  uint64_t leaf = meta.entries.root;
  if (meta.entries.depth == 2) leaf = PageOf(large_, leaf).nodes[0].child;
  const LmdbTreePage nodes = PageOf(large_, leaf);
  ASSERT_TRUE(nodes.nodes[0].is_overflow);
  const size_t node = leaf * kPage + nodes.nodes[0].offset, value = nodes.nodes[0].child * kPage;
  const size_t pointer = node + 8 + nodes.nodes[0].key.size();
  Expect(With<uint64_t>(large_, pointer, 1), FindingId::kLmdbPage, "a value lies outside");
  Expect(With<uint64_t>(large_, pointer, ~uint64_t{0}), FindingId::kLmdbPage, "outside");
  Expect(With<uint16_t>(large_, node + 2, 0xFFFF), FindingId::kLmdbPage, "outside");  // 4 GiB
  const LmdbNode& other = nodes.nodes[1];
  const bool more = other.value_bytes >= nodes.nodes[0].value_bytes;
  const LmdbNode& thief = more ? nodes.nodes[0] : other;
  Expect(With<uint64_t>(large_, leaf * kPage + thief.value_offset(),
                        (more ? other : nodes.nodes[0]).child),
         FindingId::kLmdbTree, "in use");
  Expect(With<uint64_t>(large_, value, 7777), FindingId::kLmdbPage, "another page number");
  Expect(With<uint16_t>(large_, value + 10, 2), FindingId::kLmdbPage, "overflow page");
  Expect(With<uint32_t>(large_, value + 12, 0), FindingId::kLmdbPage, "fewer pages");
  Expect(With<uint32_t>(large_, value + 12, ~0u), FindingId::kLmdbPage, "outside the file");
}

TEST_F(Damage, FreeList) {
  const std::string golden = Golden("caffe.mdb");
  const LmdbMeta meta = MetaOf(golden);
  ASSERT_EQ(meta.free_pages.depth, 1);
  const uint64_t leaf = meta.free_pages.root;
  const LmdbTreePage nodes = PageOf(golden, leaf);
  const size_t list = leaf * kPage + nodes.nodes[0].value_offset();
  Expect(With<uint64_t>(golden, list, 1 << 20), FindingId::kLmdbFreeList, "contradicts its size");
  Expect(With<uint64_t>(golden, list + 8, meta.entries.root), FindingId::kLmdbFreeList, "in use");
  Expect(With<uint64_t>(golden, list + 8, 1), FindingId::kLmdbFreeList, "does not exist");
  Expect(With<uint64_t>(golden, list, 0), FindingId::kLmdbLostPages);
  const uint64_t count = LoadLittle<uint64_t>(golden.data() + list);
  if (count > 1) {
    const auto twice = LoadLittle<uint64_t>(golden.data() + list + 16);
    Expect(With<uint64_t>(golden, list + 8, twice), FindingId::kLmdbFreeList, "twice");
  }
}

TEST_F(Damage, TheEndOfTheFile) {
  Expect(bytes_ + "x", FindingId::kTrailingData);
  Expect(bytes_.substr(0, bytes_.size() - 1), FindingId::kContainerTruncated);
  Expect(std::string_view(bytes_).substr(0, kPage), FindingId::kLmdbMeta);
  Expect("", FindingId::kLmdbMeta);
}

TEST_F(Damage, TheMapSize) {
  Expect(With<uint64_t>(bytes_, MetaAt() + 32, uint64_t{1} << 41), FindingId::kLmdbMapSize);
}

// Values that readers of a layout treat differently, and values of no known layout.
TEST_F(Damage, Values) {
  const std::string golden = Golden("caffe.mdb");
  const FoundRecord last = ScanBytes(kLmdbFormat, golden).records[28];  // with label 3
  const size_t tail = last.fields[0].offset + last.fields[0].length;
  ASSERT_EQ(golden.substr(tail, 4), "\x28\x03\x38\x01");
  const auto with = [&](size_t at, char value) { return With<char>(golden, tail + at, value); };
  Expect(with(3, 0), FindingId::kLmdbDatumStyle, "pixels");
  Expect(with(2, '\x48'), FindingId::kLmdbDatumStyle, "does not say");
  Expect(with(0, '\x48'), FindingId::kLmdbDatumStyle, "no label");
  Expect(with(2, '\x3f'), FindingId::kLmdbDatum, "malformed");
  EXPECT_EQ(ScanBytes(kLmdbFormat, with(3, 0), /*strict=*/false).Complaints(), "");
}

TEST_F(Damage, RawKeysAndValues) {
  const uint64_t leaf = PageOf(bytes_, meta_.entries.root).nodes[1].child;
  const LmdbNode first = PageOf(bytes_, leaf).nodes[0];
  const size_t key = leaf * kPage + first.offset + 8;
  Expect(With<char>(bytes_, key + first.key.size() - 1, '\xFF'), FindingId::kLmdbKeyStyle);
  Expect(With<uint32_t>(bytes_, key - 8, 0), FindingId::kLmdbEmptyValue);
}

TEST_F(Damage, AShorterValueLeavesAGap) {
  const uint64_t leaf = PageOf(bytes_, meta_.entries.root).nodes[1].child;
  for (const LmdbNode& node : PageOf(bytes_, leaf).nodes) {
    if (node.is_overflow || node.value_bytes < 16) continue;
    Expect(With<uint32_t>(bytes_, leaf * kPage + node.offset, node.value_bytes - 8),
           FindingId::kLmdbPage, "leave a gap");
    return;
  }
  FAIL() << "no value in this leaf";
}

// Otherwise the scan would read an older transaction's tree and miss the newest records.
TEST_F(Damage, TransactionsThatDoNotFollowEachOther) {
  constexpr size_t kTransactionAt = 16 + 128;  // MDB_meta.mm_txnid
  for (const uint64_t page : {0, 1}) {
    const auto was = LoadLittle<uint64_t>(bytes_.data() + page * kPage + kTransactionAt);
    for (const uint64_t now : {was + 2, was + 64, was ^ 1}) {
      Expect(With<uint64_t>(bytes_, page * kPage + kTransactionAt, now), FindingId::kLmdbMeta,
             "do not follow each other");
    }
  }
}

TEST_F(Damage, PickleBookkeeping) {
  const std::string golden = Golden("pickle.mdb");
  const size_t length = golden.rfind("__len__");
  ASSERT_NE(length, golden.npos);
  std::string other = golden;
  const size_t value = other.find("K\x19.", length);
  ASSERT_NE(value, golden.npos);
  other[value + 1] = '\x1A';
  Expect(other, FindingId::kLmdbPickle, "states another number");
  other = golden;
  other[other.rfind("__keys__") + 7] = '-';
  Expect(other, FindingId::kLmdbPickle, "its key is not a number");
}

}  // namespace
}  // namespace shardpack
