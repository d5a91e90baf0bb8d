// Files from other writers, and files each broken in one way.
#include "formats/hdf5/reading/hdf5_scanner.h"

#include <algorithm>
#include <string>
#include <vector>

#include "formats/hdf5/hdf5_format.h"
#include "formats/hdf5/hdf5_layout.h"
#include "formats/hdf5/reading/hdf5_reader.h"
#include "formats/io/file.h"
#include "formats/testing/sample_generator.h"
#include "formats/testing/scratch_folder.h"
#include "formats/testing/test_shard.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using testing::GenerateSamples;
using ::testing::HasSubstr;
using testing::ScanBytes;
using testing::ScanResult;
using testing::ScratchFolder;

constexpr std::string_view kKeys[] = {"cat/1", "dog/22", "owl/333", "dog/4444", "cat/55555"};
constexpr int64_t kLabels[] = {0, 1, 2, 1, 0};

std::string Golden(const std::string& name) {
  return *ReadWholeFile("formats/hdf5/testdata/" + name, 1 << 20);
}

// testdata/make_testdata.py, image().
std::string GoldenImage(size_t i) {
  return "\xff\xd8\xff\xe0" + std::string(40 + 7 * i, static_cast<char>(i));
}

void ExpectGolden(const std::string& name, bool has_keys, bool has_paths = false) {
  SCOPED_TRACE(name);
  const std::string bytes = Golden(name);
  const ScanResult scan = ScanBytes(kHdf5Format, bytes);
  EXPECT_EQ(scan.Complaints(), "");
  ASSERT_EQ(scan.records.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    const auto& record = scan.records[i];
    EXPECT_EQ(record.key, has_keys ? kKeys[i] : "");
    EXPECT_EQ(record.source_path, has_paths ? std::string(kKeys[i]) + ".JPEG" : "");
    EXPECT_EQ(record.label, kLabels[i]);
    ASSERT_EQ(record.fields.size(), 1u);
    EXPECT_EQ(record.fields[0].name, kImageField);
    EXPECT_EQ(bytes.substr(record.fields[0].offset, record.fields[0].length), GoldenImage(i));
  }
}

TEST(Hdf5Scanner, ReadsWhatH5pyWrites) {
  ExpectGolden("h5py-contiguous.h5", true);
  ExpectGolden("h5py-chunked.h5", true);
  ExpectGolden("h5py-user-block.h5", true);
  ExpectGolden("h5py-latest.h5", true);
  ExpectGolden("h5py-latest-single.h5", true);
  ExpectGolden("h5py-v108.h5", true);
  ExpectGolden("h5py-packed.h5", true);
  ExpectGolden("h5py-fuel.h5", false, true);
}

TEST(Hdf5Scanner, ReadsWhatPyTablesWrites) { ExpectGolden("pytables-vlarray.h5", false); }

TEST(Hdf5Scanner, FiltersAreNamed) {
  const auto status = [](const std::string& name) {
    const ScanResult scan = ScanBytes(kHdf5Format, Golden(name));
    EXPECT_TRUE(scan.records.empty());
    EXPECT_TRUE(absl::IsUnimplemented(scan.status)) << scan.Complaints();
    return std::string(scan.status.message());
  };
  EXPECT_THAT(status("h5py-gzip.h5"), HasSubstr("/images is stored through filter 1 (deflate)"));
  EXPECT_THAT(status("h5py-packed-fletcher32.h5"), HasSubstr("filter 3 (fletcher32)"));
  EXPECT_THAT(status("h5py-packed-lzf.h5"), HasSubstr("filter 32000 (lzf)"));
  EXPECT_THAT(status("pytables-blosc.h5"), HasSubstr("filter 32001 (blosc)"));
}

void ExpectOnly(const ScanResult& scan, FindingId id, const std::string& detail) {
  ASSERT_TRUE(scan.status.ok()) << scan.status;
  EXPECT_TRUE(scan.records.empty());
  ASSERT_EQ(scan.findings.findings().size(), 1u) << scan.Complaints();
  EXPECT_EQ(scan.findings.findings()[0].id, id) << scan.Complaints();
  EXPECT_THAT(scan.findings.findings()[0].detail, HasSubstr(detail));
}

TEST(Hdf5Scanner, OtherFilesAreNotOpened) {
  const auto expect = [](const std::string& name, const std::string& detail) {
    ExpectOnly(ScanBytes(kHdf5Format, Golden(name)), FindingId::kHdf5External, detail);
  };
  expect("h5py-external-link.h5", "/images is a link to another file");
  expect("h5py-external-storage.h5", "/images/data keeps its data in external files");
  expect("h5py-virtual.h5", "/images/data is a virtual dataset");
}

TEST(Hdf5Scanner, WhatIsNotReadIsTold) {
  const auto expect = [](const std::string& name, const std::string& detail) {
    ExpectOnly(ScanBytes(kHdf5Format, Golden(name)), FindingId::kHdf5Layout, detail);
  };
  expect("h5py-extensible.h5", "extensible array");
  expect("h5py-packed-chunked.h5", "/images/data is not contiguous");
  expect("h5py-pixels-channels-first.h5", "/images holds no images");
  expect("h5py-pixels-chunked.h5", "/images is not contiguous");
  EXPECT_TRUE(absl::IsUnimplemented(ScanBytes(kHdf5Format, Golden("h5py-pixels-gzip.h5")).status));
}

TEST(Hdf5Scanner, Pixels) {
  const std::string rgb = Golden("h5py-pixels.h5"), gray = Golden("h5py-pixels-gray.h5");
  ScanResult scan = ScanBytes(kHdf5Format, rgb);
  EXPECT_EQ(scan.Complaints(), "");
  ASSERT_EQ(scan.records.size(), 2u);
  EXPECT_EQ(scan.records[0].label, 7);
  EXPECT_EQ(scan.records[1].label, 3);
  for (int i = 0; i < 2; ++i) {
    const auto* image = scan.records[size_t(i)].Find(kImageField);
    ASSERT_NE(image, nullptr);
    ASSERT_EQ(image->length, 48u);
    for (int b = 0; b < 48; ++b) {
      EXPECT_EQ(static_cast<uint8_t>(rgb[image->offset + size_t(b)]), 48 * i + b);
    }
    EXPECT_EQ(scan.records[size_t(i)].image, RawImageInfo(4, 4, 3));
  }
  scan = ScanBytes(kHdf5Format, gray);
  EXPECT_EQ(scan.Complaints(), "");
  ASSERT_EQ(scan.records.size(), 3u);
  EXPECT_EQ(scan.records[2].image, RawImageInfo(5, 10, 1));
  EXPECT_EQ(static_cast<uint8_t>(gray[scan.records[2].fields[0].offset]), 100);
  EXPECT_EQ(scan.records[2].label, kNoLabel);
}

// A field has one name; other hard links to its data are left out, as soft links are.
TEST(Hdf5Scanner, FurtherNamesOfAField) {
  for (const char* name : {"h5py-aliases.h5", "h5py-packed-aliases.h5"}) {
    SCOPED_TRACE(name);
    const ScanResult scan = ScanBytes(kHdf5Format, Golden(name));
    EXPECT_EQ(scan.Complaints(), "");
    ASSERT_EQ(scan.records.size(), 5u);
    ASSERT_EQ(scan.records[0].fields.size(), 2u);
    EXPECT_EQ(scan.records[0].fields[0].name, kImageField);
    EXPECT_EQ(scan.records[0].fields[1].name, "masks");
  }
}

// Positions that fields share would make their extents larger than any multiple of the file.
TEST(Hdf5Scanner, FieldsForWhichTheFileHasNoRoom) {
  const ScanResult scan = ScanBytes(kHdf5Format, Golden("h5py-shared-offsets.h5"));
  ASSERT_TRUE(scan.status.ok()) << scan.status;
  ASSERT_EQ(scan.records.size(), 400u);
  EXPECT_LT(scan.records[0].fields.size(), 5u);
  ASSERT_FALSE(scan.findings.findings().empty());
  EXPECT_EQ(scan.findings.findings()[0].id, FindingId::kHdf5Structure);
  EXPECT_THAT(scan.findings.findings()[0].detail,
              HasSubstr("/offsets has more elements than the file has room for"));
}

// Overwrites each occurrence of a number in a shard that we wrote.
class BrokenShard : public ::testing::TestWithParam<std::string_view> {
 protected:
  explicit BrokenShard(size_t count = 10)
      : samples_(GenerateSamples({.count = count, .max_bytes = 900})) {
    bytes_ =
        *testing::WriteShard(kHdf5Format, {.layout = GetParam()}, samples_, scratch_.File("shard"));
  }
  size_t Find(std::string_view what, size_t from = 0) const { return bytes_.find(what, from); }
  ScanResult Scan() const { return ScanBytes(kHdf5Format, bytes_); }
  template <typename T>
  void Store(size_t at, T value) {
    ASSERT_LE(at + sizeof(T), bytes_.size());
    StoreLittle<T>(bytes_.data() + at, value);
  }
  // Of the root group's header.
  size_t FirstMessage() const { return LoadLittle<uint64_t>(bytes_.data() + 64) + 16; }
  // Appends bytes and returns their offset.
  size_t Grow(size_t bytes) {
    const size_t begin = bytes_.size();
    bytes_.resize(begin + bytes);
    Store<uint64_t>(40, bytes_.size());
    return begin;
  }
  // Writes a message that continues the object header elsewhere.
  void Continue(size_t at, uint64_t address, uint64_t bytes) {
    Store<uint16_t>(at, 0x10);
    Store<uint16_t>(at + 2, 16);
    Store<uint64_t>(at + 8, address);
    Store<uint64_t>(at + 16, bytes);
  }
  void ExpectFinding(FindingId id, const std::string& text) {
    const ScanResult scan = Scan();
    ASSERT_TRUE(scan.status.ok()) << scan.status;
    ASSERT_FALSE(scan.findings.findings().empty());
    EXPECT_EQ(scan.findings.findings()[0].id, id) << scan.Complaints();
    EXPECT_THAT(scan.Complaints(), HasSubstr(text));
  }

  const ScratchFolder scratch_;
  const std::vector<testing::OwnedSample> samples_;
  std::string bytes_;
};

TEST_P(BrokenShard, ATreeThatLeadsBackToItself) {
  const size_t tree = Find("TREE");
  ASSERT_NE(tree, std::string::npos);
  bytes_[tree + 5] = 1;  // one level up, so that children are nodes
  Store<uint64_t>(tree + 32, tree);
  ExpectFinding(FindingId::kHdf5Structure, "wrong level");
}

TEST_P(BrokenShard, ATreeBeyondTheFile) {
  Store<uint64_t>(Find("TREE") + 32, uint64_t{1} << 63);
  ExpectFinding(FindingId::kHdf5Structure, "outside the file");
}

TEST_P(BrokenShard, ANameOutsideItsHeap) {
  Store<uint64_t>(Find("SNOD") + 8, uint64_t{1} << 40);
  ExpectFinding(FindingId::kHdf5Structure, "name lies outside the group's heap");
}

TEST_P(BrokenShard, NamesThatShareTheirBytes) {
  // Every entry of a full node has the same long name, which ends at the end of the heap.
  const size_t heap = Find("HEAP"), node = Find("SNOD");
  const auto bytes = LoadLittle<uint64_t>(bytes_.data() + heap + 8);
  const auto data = LoadLittle<uint64_t>(bytes_.data() + heap + 24);
  const auto entries = LoadLittle<uint16_t>(bytes_.data() + node + 6);
  ASSERT_GE(entries, 2);
  std::fill_n(bytes_.begin() + static_cast<ptrdiff_t>(data), bytes - 1, 'n');
  bytes_[data + bytes - 1] = 0;
  for (size_t i = 0; i < entries; ++i) Store<uint64_t>(node + 8 + 40 * i, 0);
  ExpectFinding(FindingId::kHdf5Structure, "more than its heap and the file hold");
}

TEST_P(BrokenShard, AbsurdDimensions) {
  // Every place where the number of samples in /labels and /keys (10) is stored as a dimension.
  std::string dims(16, '\0');
  StoreLittle<uint64_t>(dims.data(), 10);
  StoreLittle<uint64_t>(dims.data() + 8, 10);  // dimension and largest dimension
  size_t changed = 0;
  for (size_t at = Find(dims); at != std::string::npos; at = Find(dims, at + 1)) {
    Store<uint64_t>(at, uint64_t{1} << 60);
    ++changed;
  }
  EXPECT_GT(changed, 0u);
  const ScanResult scan = Scan();
  EXPECT_TRUE(scan.status.ok());
  EXPECT_GT(scan.findings.errors(), 0u);
}

TEST_P(BrokenShard, AHeaderThatContinuesInItself) {
  // The root group's first message points back to itself.
  Continue(FirstMessage(), FirstMessage(), 24);
  ExpectFinding(FindingId::kHdf5Structure, "continues in itself");
}

TEST_P(BrokenShard, AHeaderOfVeryManyBlocks) {
  const size_t count = 1100, begin = Grow(count * 24);
  for (size_t i = 0; i < count; ++i) Continue(begin + i * 24, 8 * i + 1, 8);
  Continue(FirstMessage(), begin, count * 24);
  ExpectFinding(FindingId::kHdf5Structure, "goes on and on");
}

TEST_P(BrokenShard, AHeaderLongerThanItsFile) {
  const size_t begin = Grow(48), size = bytes_.size();
  Continue(begin, 0, size);
  Continue(begin + 24, 8, size - 8);
  Continue(FirstMessage(), begin, 48);
  ExpectFinding(FindingId::kHdf5Structure, "goes on and on");
}

TEST_P(BrokenShard, AHeaderOfVeryManyMessages) {
  const size_t count = 65537, begin = Grow(count * 8);
  for (size_t i = 0; i < count; ++i) Store<uint16_t>(begin + i * 8, 0x01);  // of zero bytes
  Continue(FirstMessage(), begin, count * 8);
  ExpectFinding(FindingId::kHdf5Structure, "too many messages");
}

TEST_P(BrokenShard, ACutFile) {
  bytes_.resize(bytes_.size() - 1);
  ExpectFinding(FindingId::kContainerTruncated, "the superblock tells its size");
}

INSTANTIATE_TEST_SUITE_P(Layouts, BrokenShard, ::testing::Values(kPackedLayout, kVlenLayout),
                         [](const auto& info) { return std::string(info.param); });

class BrokenPacked : public BrokenShard {};

TEST_P(BrokenPacked, OffsetsThatDoNotAscend) {
  std::string offsets(16, '\0');
  StoreLittle<uint64_t>(offsets.data() + 8, samples_[0].fields[0].second.size());
  const size_t at = Find(offsets);
  ASSERT_NE(at, std::string::npos);
  Store<uint64_t>(at + 8, uint64_t{1} << 50);
  const ScanResult scan = Scan();
  ASSERT_TRUE(scan.status.ok());
  ASSERT_EQ(scan.findings.findings().size(), 2u) << scan.Complaints();
  for (uint64_t i = 0; i < 2; ++i) {
    EXPECT_EQ(scan.findings.findings()[i].id, FindingId::kHdf5Extent);
    EXPECT_EQ(scan.findings.findings()[i].record, i);
  }
  EXPECT_EQ(scan.records.size(), 8u) << "the others are handed on";
}

INSTANTIATE_TEST_SUITE_P(Packed, BrokenPacked, ::testing::Values(kPackedLayout));

class BrokenVlen : public BrokenShard {
 protected:
  using BrokenShard::BrokenShard;
  // The heap object of an image, found by the image's bytes.
  size_t ObjectOf(size_t sample) const { return Find(samples_[sample].fields[0].second) - 16; }
};

TEST_P(BrokenVlen, TwoElementsWithTheSameBytes) {
  // Replaces the second sample's reference with the first one's.
  const size_t collection = Find("GCOL");
  const size_t object = ObjectOf(0), other = ObjectOf(1);
  std::string reference(16, '\0');
  const auto make = [&](size_t of) {
    StoreLittle<uint32_t>(reference.data(), LoadLittle<uint64_t>(bytes_.data() + of + 8));
    StoreLittle<uint64_t>(reference.data() + 4, collection);
    StoreLittle<uint32_t>(reference.data() + 12, LoadLittle<uint16_t>(bytes_.data() + of));
    return reference;
  };
  const size_t at = Find(make(other));
  ASSERT_NE(at, std::string::npos);
  bytes_.replace(at, 16, make(object));
  ExpectFinding(FindingId::kHdf5Extent, "bytes that another record or field has, too");
  EXPECT_EQ(Scan().records.size(), 9u);
}

TEST_P(BrokenVlen, AnObjectBeyondItsCollection) {
  Store<uint64_t>(ObjectOf(1) + 8, uint64_t{1} << 40);
  ExpectFinding(FindingId::kHdf5Structure, "passes the end of its collection");
}

// Enough samples for several heap collections.
class BrokenCollection : public BrokenVlen {
 protected:
  BrokenCollection() : BrokenVlen(100) {}
};

TEST_P(BrokenCollection, OtherObjectsAreFoundBesideADamagedOne) {
  // From this object on, the rest of its collection is lost.
  constexpr size_t kDamaged = 2;
  const size_t begin = ObjectOf(kDamaged), collection = bytes_.rfind("GCOL", begin);
  const size_t end = collection + LoadLittle<uint64_t>(bytes_.data() + collection + 8);
  ASSERT_LT(collection, ObjectOf(0));
  ASSERT_LT(ObjectOf(0), begin);
  std::vector<std::string_view> sound;
  for (size_t i = 0; i < samples_.size(); ++i) {
    if (ObjectOf(i) < begin || ObjectOf(i) >= end) sound.push_back(samples_[i].key);
  }
  ASSERT_GT(ObjectOf(samples_.size() - 1), end) << "there is no other collection";
  ASSERT_LT(sound.size(), samples_.size() - 1);
  Store<uint64_t>(begin + 8, uint64_t{1} << 40);
  const ScanResult scan = Scan();
  ASSERT_TRUE(scan.status.ok()) << scan.status;
  ASSERT_EQ(scan.records.size(), sound.size()) << scan.Complaints();
  for (size_t i = 0; i < sound.size(); ++i) EXPECT_EQ(scan.records[i].key, sound[i]);
  // One for the damage itself, and one for each lost sample.
  EXPECT_EQ(scan.findings.errors(), 1 + samples_.size() - sound.size()) << scan.Complaints();
}

TEST_P(BrokenCollection, ADamagedCollectionTakesNothingFromOthers) {
  // The collection claims the rest of the file, and its first object is damaged.
  const size_t object = ObjectOf(0), collection = bytes_.rfind("GCOL", object);
  ASSERT_NE(collection, std::string::npos);
  const size_t end = collection + LoadLittle<uint64_t>(bytes_.data() + collection + 8);
  size_t sound = 0;
  for (size_t i = 0; i < samples_.size(); ++i) sound += ObjectOf(i) >= end ? 1 : 0;
  ASSERT_GT(sound, 0u);
  Store<uint64_t>(collection + 8, bytes_.size() - collection);
  Store<uint64_t>(collection + 24, uint64_t{1} << 40);
  const ScanResult scan = Scan();
  ASSERT_TRUE(scan.status.ok()) << scan.status;
  EXPECT_EQ(scan.records.size(), sound) << scan.Complaints();
}

TEST_P(BrokenVlen, AnObjectShorterThanItsElement) {
  Store<uint64_t>(ObjectOf(1) + 8, LoadLittle<uint64_t>(bytes_.data() + ObjectOf(1) + 8) - 1);
  ExpectFinding(FindingId::kHdf5Extent, "not as long as its element");
}

TEST_P(BrokenVlen, AnObjectLongerThanItsElement) {
  const size_t object = ObjectOf(1);
  const auto length = LoadLittle<uint64_t>(bytes_.data() + object + 8);
  std::string reference(16, '\0');
  StoreLittle<uint32_t>(reference.data(), length);
  StoreLittle<uint64_t>(reference.data() + 4, bytes_.rfind("GCOL", object));
  StoreLittle<uint32_t>(reference.data() + 12, LoadLittle<uint16_t>(bytes_.data() + object));
  const size_t at = Find(reference);
  ASSERT_NE(at, std::string::npos);
  Store<uint32_t>(at, length - 1);
  ExpectFinding(FindingId::kHdf5Extent, "not as long as its element");
  EXPECT_EQ(Scan().records.size(), 9u);
}

TEST_P(BrokenVlen, ACollectionOfImpossibleSize) {
  Store<uint64_t>(Find("GCOL") + 8, ~uint64_t{0});
  ExpectFinding(FindingId::kHdf5Structure, "impossible size");
}

INSTANTIATE_TEST_SUITE_P(Vlen, BrokenVlen, ::testing::Values(kVlenLayout));
INSTANTIATE_TEST_SUITE_P(Vlen, BrokenCollection, ::testing::Values(kVlenLayout));

TEST(Hdf5Scanner, AWrongChecksumIsDamage) {
  std::string bytes = Golden("h5py-latest.h5");
  bytes[20] = static_cast<char>(bytes[20] ^ 1);
  ExpectOnly(ScanBytes(kHdf5Format, bytes), FindingId::kHdf5Structure, "superblock's checksum");
  bytes = Golden("h5py-latest.h5");
  const size_t header = bytes.find("OHDR");
  ASSERT_NE(header, std::string::npos);
  bytes[header + 20] = static_cast<char>(bytes[header + 20] ^ 1);
  ExpectOnly(ScanBytes(kHdf5Format, bytes), FindingId::kHdf5Structure,
             "checksum of an object header");
}

// The examples of Bob Jenkins, its author (burtleburtle.net/bob/c/lookup3.c, driver5).
TEST(Lookup3, IsTheOneOfItsAuthor) {
  EXPECT_EQ(Lookup3({}), 0xdeadbeefu);
  EXPECT_EQ(Lookup3(AsBytes("Four score and seven years ago")), 0x17770551u);
}

}  // namespace
}  // namespace shardpack
