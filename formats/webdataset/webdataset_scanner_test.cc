#include "formats/webdataset/webdataset_scanner.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/io/hash.h"
#include "formats/testing/corruptor.h"
#include "formats/testing/cpu_budget.h"
#include "formats/testing/sample_generator.h"
#include "formats/testing/scratch_folder.h"
#include "formats/testing/tar_builder.h"
#include "formats/testing/test_shard.h"
#include "formats/webdataset/webdataset_format.h"
#include "formats/webdataset/webdataset_writer.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using testing::Corruptor;
using testing::FoundRecord;
using testing::GenerateSamples;
using testing::OwnedSample;
using testing::ScanBytes;
using testing::ScanResult;
using testing::ScratchFolder;
using testing::WriteShard;

ScanResult Scan(std::string_view bytes, bool strict = true) {
  return ScanBytes(kWebDatasetFormat, bytes, strict);
}

// "tar-checksum@512 ...", in the order of the findings.
std::string Names(const ScanResult& scan) {
  std::string text;
  for (const Finding& finding : scan.findings.findings()) {
    if (!text.empty()) text += ' ';
    text += SpecOf(finding.id).name;
    if (finding.offset) text += "@" + std::to_string(*finding.offset);
  }
  return text;
}

// "key:label[image json] ..."
std::string Records(const ScanResult& scan) {
  std::string text;
  for (const FoundRecord& record : scan.records) {
    if (!text.empty()) text += ' ';
    text += record.key + ":" + std::to_string(record.label) + "[";
    for (size_t i = 0; i < record.fields.size(); ++i) {
      text += (i == 0 ? "" : " ") + record.fields[i].name;
    }
    text += "]";
  }
  return text;
}

std::string SmallShard(size_t count, const std::string& layout = "ustar") {
  ScratchFolder scratch;
  std::vector<OwnedSample> samples = GenerateSamples({.count = count,
                                                      .payloads = testing::Payloads::kRandom,
                                                      .min_bytes = 30,
                                                      .max_bytes = 100,
                                                      .extra_fields = {"txt"}});
  if (layout == "pax") {
    for (OwnedSample& sample : samples) sample.key = std::string(110, 'k') + sample.key.substr(5);
  }
  return *WriteShard(kWebDatasetFormat, {.layout = layout}, samples, scratch.File("s.tar"));
}

TEST(WebdatasetScanner, GroupsMembersAsWebdatasetDoes) {
  TarBuilder tar;
  tar.Add("a/x.y/b.cls", " 7\n").Add("a/x.y/b.JPG", "jj").Add("a/x.y/b.seg.png", "s");
  tar.Add("c.jpg", "c").Add("c.cls", "12");
  tar.Add("d/.h", "q").Add("./e.json", "{}");
  const ScanResult scan = Scan(tar.Finish(), /*strict=*/false);
  EXPECT_EQ(Names(scan), "");
  EXPECT_EQ(Records(scan), "a/x.y/b:7[image seg.png] c:12[image] d/:-1[h] ./e:-1[json]");
  EXPECT_EQ(scan.records[0].offset, 0u);
  EXPECT_EQ(scan.records[0].length, 3072u);
  EXPECT_EQ(scan.records[0].fields[0].offset, 1536u);
  EXPECT_EQ(scan.records[0].fields[0].hash, Xxh3_64(AsBytes("jj")));
  EXPECT_EQ(scan.records[1].offset, 3072u);
}

TEST(WebdatasetScanner, PicksTheImage) {
  const auto fields = [](std::vector<std::pair<std::string, std::string>> members) {
    TarBuilder tar;
    for (const auto& [extension, bytes] : members) tar.Add("k." + extension, bytes);
    return Records(Scan(tar.Finish(), false));
  };
  EXPECT_EQ(fields({{"png", "1"}, {"jpg", "2"}}), "k:-1[image png]");
  EXPECT_EQ(fields({{"jpg", "2"}, {"png", "1"}}), "k:-1[image png]");
  EXPECT_EQ(fields({{"json", "{}"}, {"webp", "1"}}), "k:-1[image json]");
  EXPECT_EQ(fields({{"image", "1"}, {"jpg", "2"}}), "k:-1[image jpg]");
  EXPECT_EQ(fields({{"img", "1"}, {"jpg", "2"}}), "k:-1[image jpg]");
  // A further field of this name would be hidden by the image.
  EXPECT_EQ(fields({{"img", "1"}, {"image", "2"}}), "k:-1[image img]");
  EXPECT_EQ(fields({{"a", "x"}, {"photo", "\xff\xd8\xff"}}), "k:-1[image a]");
  EXPECT_EQ(fields({{"bin", "x"}, {"npy", "y"}}), "k:-1[image npy]");
  EXPECT_EQ(fields({{"mask.png", "\x89PNG\r\n\x1a\n"}, {"txt", "BMW"}}), "k:-1[mask.png txt]");
}

TEST(WebdatasetScanner, StrictFindings) {
  struct Case {
    TarBuilder tar;
    std::string strict, lenient;
  };
  const std::string long_name = std::string(60, 'd') + "/" + std::string(60, 'n') + ".jpg";
  TarBuilder prefixed;
  prefixed.AddChanged(std::string(60, 'n') + ".jpg", "x", '0',
                      [](char* header) { std::memset(header + 345, 'd', 60); });
  const Case cases[] = {
      {TarBuilder().Add("a.jpg", "x").Add("._a.jpg", "x"), "wds-hidden-name@1024", ""},
      {TarBuilder().Add("__i__/a.jpg", "x").Add("a.jpg", "x"), "wds-hidden-name@0", ""},
      {TarBuilder().Add(".a.jpg", "x").Add(".a.cls", "1").Add("b.jpg", "x"),
       "wds-hidden-name@0 wds-hidden-name@1024", "wds-hidden-name@0"},
      {TarBuilder().Add(".DS_Store", "x").Add("a.jpg", "x"), "wds-hidden-name@0", ""},
      {TarBuilder().Add("readme", "x").Add("a.jpg", "x"), "wds-no-extension@0",
       "wds-no-extension@0"},
      {TarBuilder().Add("readme", "x").Add("license", "x"),
       "wds-no-extension@0 wds-no-extension@1024", "wds-no-extension@0"},
      {TarBuilder().Add("a b.jpg", "x"), "wds-name-style@0", ""},
      {TarBuilder().Add("\xc3\xa9.jpg", "x"), "wds-name-style@0", ""},
      {TarBuilder().Add("a.jpg", "x").Add("b.jpg", "x").Add("b.cls", "1"), "wds-field-drift@1024",
       ""},
      {TarBuilder().Add("a.jpg", "x").Add("b.png", "x"), "wds-field-drift@1024", ""},
      {TarBuilder().Add("a.jpg", "x").Add("a.cls", "0x1"), "wds-label-not-integer@1024", ""},
      {TarBuilder().Add("a.jpg", ""), "wds-empty-member@0", ""},
      {TarBuilder().Add("a.txt", "x"), "wds-no-image@0", ""},
      {TarBuilder().Add("a.jpg", "x").Add("b.jpg", "x").Add("a.jpg", "x"), "wds-key-split@2048",
       ""},
      {prefixed, "wds-long-name@0", ""},
      {TarBuilder().Add("f", "", '5').Add("a.jpg", "x"), "tar-type@0", ""},
      {TarBuilder().AddPax("mtime", "1.5").Add("a.jpg", "x"), "tar-extension-record@0", ""},
      {TarBuilder().Add("././@LongLink", std::string("b.jpg\0", 6), 'L').Add("a.jpg", "x"),
       "tar-extension-record@0", ""},
      {TarBuilder().Add("a.jpg", "x").Add("a.JPG", "y"), "tar-duplicate-member@1024",
       "tar-duplicate-member@1024"},
      {TarBuilder().Add("../a.jpg", "x"), "tar-name@0", "tar-name@0"},
      {TarBuilder().Add("/a.jpg", "x"), "tar-name@0", "tar-name@0"},
      {TarBuilder().Add("", "x"), "tar-name@0 wds-no-extension@0", "tar-name@0 wds-no-extension@0"},
      {TarBuilder().Add("a.jpg", "x").Add("b.jpg", "", '1'), "tar-type@1024", "tar-type@1024"},
      {TarBuilder().Add("a.jpg", "x").Add("b.jpg", "", '2'), "tar-type@1024", "tar-type@1024"},
      {TarBuilder().Add("a.jpg", "x").Add("b.jpg", "", '3'), "tar-type@1024", "tar-type@1024"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(Names(Scan(c.tar.Finish())), c.strict);
    EXPECT_EQ(Names(Scan(c.tar.Finish(), false)), c.lenient) << c.strict;
  }
}

TEST(WebdatasetScanner, FindingsNameTheirPlace) {
  TarBuilder tar;
  tar.Add("a.cls", "1").Add("a.jpg", "x").Add("b.cls", "dog").Add("b.jpg", "x");
  const ScanResult scan = Scan(tar.Finish());
  ASSERT_EQ(scan.findings.findings().size(), 1u);
  const Finding& finding = scan.findings.findings()[0];
  EXPECT_EQ(finding.shard, "shard");
  EXPECT_EQ(finding.record, 1u);
  EXPECT_EQ(finding.key, "b");
  EXPECT_EQ(finding.field, "cls");
  EXPECT_EQ(Records(scan), "a:1[image] b:-1[image cls]");
}

TEST(WebdatasetScanner, CountsWhatEveryMemberHas) {
  TarBuilder tar;
  for (const char* name : {"a.jpg", "b.jpg", "c.jpg"}) tar.AddPax("mtime", "1").Add(name, "x");
  const ScanResult scan = Scan(tar.Finish());
  EXPECT_EQ(Names(scan), "tar-extension-record@0");
  EXPECT_EQ(scan.findings.findings()[0].detail, "3 members, the first one here");
  EXPECT_EQ(scan.records[1].offset, 2048u);
  EXPECT_EQ(scan.records[1].length, 2048u);
}

TEST(WebdatasetScanner, DirectoriesAreWarningsAndDevicesErrors) {
  EXPECT_EQ(Scan(TarBuilder().Add("f/", "", '5').Add("f/a.jpg", "x").Finish()).findings.errors(),
            0u);
  EXPECT_EQ(Scan(TarBuilder().Add("f", "", '6').Add("a.jpg", "x").Finish()).findings.errors(), 1u);
}

// A sample next to damage is reported only if it has the same fields as the others.
TEST(WebdatasetScanner, SamplesBesideDamageAreWholeOrLeftOut) {
  TarBuilder tar;
  for (const char* key : {"a", "b", "c", "d"}) {
    tar.Add(std::string(key) + ".cls", "1").Add(std::string(key) + ".jpg", "x");
  }
  const auto damaged = [&](size_t offset) {
    std::string bytes = tar.Finish();
    bytes[offset] ^= 1;
    return Scan(bytes);
  };
  EXPECT_EQ(Records(damaged(4 * 1024)), "a:1[image] b:1[image] d:1[image]");  // c.cls
  EXPECT_EQ(Names(damaged(4 * 1024)), "tar-checksum@4096");
  EXPECT_EQ(Records(damaged(5 * 1024)), "a:1[image] b:1[image] d:1[image]");  // c.jpg
  EXPECT_EQ(Records(damaged(2 * 1024)), "c:1[image] d:1[image]");  // a cannot be compared
  EXPECT_EQ(Records(damaged(7 * 1024)), "a:1[image] b:1[image] c:1[image]");  // d.jpg
  EXPECT_EQ(Records(damaged(0)), "b:1[image] c:1[image] d:1[image]");         // a.cls
}

TEST(WebdatasetScanner, OddKeysComeBack) {
  std::set<std::string> keys = {"0",      "-",        "=",        "x__y", "a/.d/b",   "__a",
                                "sp ace", "\xff\xfe", "\xc3\xa9", "n\nl", "\x1b[31m", "./a"};
  testing::Random random(3);
  for (size_t bytes = 1; bytes <= kMaxWebdatasetKeyBytes; ++bytes) {
    keys.insert(testing::MakeLongKey(bytes, random));
  }
  std::vector<OwnedSample> samples = GenerateSamples({.count = keys.size()});
  auto key = keys.begin();
  for (OwnedSample& sample : samples) sample.key = *key++;
  ScratchFolder scratch;
  absl::StatusOr<std::string> bytes = WriteShard(
      kWebDatasetFormat, {.layout = "pax", .image_field = "jpg"}, samples, scratch.File("s.tar"));
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const ScanResult scan = Scan(*bytes);
  EXPECT_EQ(scan.findings.errors(), 0u) << scan.Complaints();
  ASSERT_EQ(scan.records.size(), samples.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(scan.records[i].key, samples[i].key);
    EXPECT_EQ(scan.records[i].fields[0].hash, Xxh3_64(AsBytes(samples[i].fields[0].second)));
  }
  // Ustar can store every name of up to 95 bytes, without findings if it is plain.
  std::erase_if(samples, [](const OwnedSample& sample) {
    return sample.key.size() > 95 || std::any_of(sample.key.begin(), sample.key.end(),
                                                 [](char c) { return c <= ' ' || c > '~'; });
  });
  const ScanResult plain =
      Scan(*WriteShard(kWebDatasetFormat, {.image_field = "jpg"}, samples, scratch.File("p.tar")));
  EXPECT_EQ(plain.Complaints(), "");
  EXPECT_EQ(plain.records.size(), samples.size());
}

// Every byte of a shard belongs to a field (whose hash changes) or to a label, or is verified.
TEST(WebdatasetScanner, EveryFlippedBitIsSeen) {
  const std::string good = SmallShard(2);
  const ScanResult clean = Scan(good);
  ASSERT_EQ(clean.Complaints(), "");
  ASSERT_EQ(clean.records.size(), 2u);
  std::vector<bool> is_data(good.size());
  for (const FoundRecord& record : clean.records) {
    for (const auto& field : record.fields) {
      std::fill_n(is_data.begin() + field.offset, field.length, true);
    }
    is_data[record.offset + 512] = true;  // the label: cls comes first
  }
  const size_t ended = clean.records.back().offset + clean.records.back().length + kTarEndBytes;
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    // For the zeros at the end, one bit per byte is enough.
    if (bit / 8 > ended && bit % 8 != bit / 8 % 8) continue;
    const ScanResult scan = Scan(Corruptor::FlipBitAt(good, bit).bytes);
    ASSERT_TRUE(scan.status.ok());
    if (is_data[bit / 8]) {
      ASSERT_TRUE(scan.records != clean.records) << "bit " << bit;
    } else {
      ASSERT_FALSE(scan.findings.findings().empty()) << "bit " << bit;
    }
    ASSERT_NE(scan.digest, clean.digest);
  }
}

TEST(WebdatasetScanner, EveryCutIsSeen) {
  for (const char* layout : {"ustar", "pax"}) {
    const std::string good = SmallShard(3, layout);
    const ScanResult clean = Scan(good);
    const uint64_t ended = clean.records.back().offset + clean.records.back().length;
    for (size_t size = 0; size < good.size(); ++size) {
      const ScanResult scan = Scan(std::string_view(good).substr(0, size));
      ASSERT_TRUE(scan.status.ok());
      // With exactly two zero blocks it is a complete tar file, as bsdtar writes it.
      if (size == ended + kTarEndBytes) continue;
      ASSERT_NE(scan.Complaints(), clean.Complaints()) << layout << " cut to " << size;
      for (size_t i = 0; i < scan.records.size(); ++i) {
        // Cut right after its image, the first sample looks complete except for the missing end
        // blocks.
        if (scan.records.size() == 1 && scan.records[i].fields.size() == 1) continue;
        ASSERT_EQ(scan.records[i].fields, clean.records[i].fields) << size;
        ASSERT_EQ(scan.records[i].label, clean.records[i].label) << size;
      }
    }
  }
}

TEST(WebdatasetScanner, ManyFieldsInOneSample) {
  TarBuilder tar;
  for (int i = 0; i < 3000; ++i) tar.Add("k.f" + std::to_string(i), "x");
  tar.Add("k.f7", "y").Add("k.f2999", "y");
  const ScanResult scan = Scan(tar.Finish(), false);
  ASSERT_EQ(scan.records.size(), 1u);
  EXPECT_EQ(scan.records[0].fields.size(), 3000u);
  EXPECT_EQ(Names(scan), "tar-duplicate-member@3072000 tar-duplicate-member@3073024");
}

TEST(WebdatasetScanner, CompressedShardsHaveNoExtents) {
  for (const std::string_view magic :
       {std::string_view("\x1f\x8b\x08"), std::string_view("BZh9"),
        std::string_view("\xfd\x37zXZ\0", 6), std::string_view("\x28\xb5\x2f\xfd")}) {
    for (const size_t size : {10, 5000}) {
      std::string bytes(magic);
      bytes.resize(size, 'z');
      EXPECT_TRUE(absl::IsUnimplemented(Scan(bytes).status)) << magic;
    }
  }
}

// A file may have been cut between the members of its last sample.
TEST(WebdatasetScanner, TheLastSampleOfAShardWithoutAnEnd) {
  TarBuilder first;
  first.Add("a.png", "x").Add("a.cls", "1");
  const auto with = [&](std::vector<std::string> names) {
    TarBuilder tar = first;
    for (const std::string& name : names) tar.Add(name, "1");
    return Records(Scan(tar.bytes(), /*strict=*/false));
  };
  const std::string alone = "a:1[image]", both = "a:1[image] b:1[image]";
  EXPECT_EQ(with({"b.png"}), alone);
  EXPECT_EQ(with({"b.jpg"}), alone);
  EXPECT_EQ(with({"b.cls"}), alone);
  EXPECT_EQ(with({"b.png", "b.cls"}), both);
  EXPECT_EQ(with({"b.jpg", "b.cls"}), both);
  EXPECT_EQ(with({"b.png", "b.json", "b.cls"}), "a:1[image] b:1[image json]");
  // Members that the first sample does not have say nothing about the others.
  EXPECT_EQ(with({"b.json"}), alone);
  EXPECT_EQ(with({"b.json", "b.png"}), alone);
}

// The time for a hostile file grows with its size, and what is said about it does not.
TEST(WebdatasetScanner, SamplesOfManyMembers) {
  constexpr int kMembers = 20000;
  const auto name = [](int i) { return std::to_string(1000000 + i); };
  TarBuilder cut, drifting;
  for (int i = 0; i < kMembers; ++i) cut.Add("a." + name(i), "");
  for (int i = kMembers - 1; i > 0; --i) cut.Add("b." + name(i), "");
  for (int i = 0; i < kMembers; ++i) drifting.Add("a." + name(i), "");
  for (int i = 0; i < kMembers; ++i) drifting.Add("b" + name(i) + ".x", "");
  const testing::CpuBudget budget(2.5);
  const ScanResult left_out = Scan(cut.bytes(), /*strict=*/false);
  const ScanResult drift = Scan(drifting.Finish());
  EXPECT_LT(budget.used(), budget.seconds());
  EXPECT_EQ(left_out.records.size(), 1u);
  ASSERT_EQ(left_out.findings.findings().size(), 2u);
  EXPECT_EQ(left_out.findings.findings()[1].detail,
            "the last sample may lack members and is left out");
  EXPECT_LT(ToText(left_out.findings.findings()[1]).size(), 1000u);
  for (const Finding& finding : drift.findings.findings()) {
    if (finding.id == FindingId::kWdsFieldDrift) {
      EXPECT_EQ(finding.actual, "x");
      EXPECT_TRUE(finding.expected.ends_with("1000019 and 19980 more")) << finding.expected;
      EXPECT_LT(finding.expected.size(), 1000u);
      break;
    }
  }
}

TEST(WebdatasetScanner, NamesInFindingsAreCutOff) {
  TarBuilder tar;
  const std::string many(3000, 'x');
  tar.AddPax("path", "a." + many).Add("a", "").Add("b.jpg", "");
  const ScanResult scan = Scan(tar.Finish());
  ASSERT_FALSE(scan.findings.findings().empty());
  const Finding& drift = scan.findings.findings()[3];
  EXPECT_EQ(drift.id, FindingId::kWdsFieldDrift);
  EXPECT_EQ(drift.expected, std::string(100, 'x') + "...");
}

// `cat a.tar b.tar`: a sample does not extend over the end between them.
TEST(WebdatasetScanner, SamplesOfJoinedArchives) {
  const std::string zeros(kTarEndBytes, '\0');
  TarBuilder first, second;
  first.Add("a.jpg", "x").Add("a.txt", "x");
  second.Add("a.txt", "").Add("a.jpg", "x");
  const ScanResult scan = Scan(first.bytes() + zeros + second.Finish());
  EXPECT_EQ(Records(scan), "a:-1[image txt] a:-1[image txt]");
  // The empty member is one of the second sample.
  const auto empty =
      std::find_if(scan.findings.findings().begin(), scan.findings.findings().end(),
                   [](const Finding& finding) { return finding.id == FindingId::kWdsEmptyMember; });
  ASSERT_NE(empty, scan.findings.findings().end());
  EXPECT_EQ(empty->record, 1u);

  // Also where what lies beside the end is no member of a sample.
  TarBuilder hidden;
  hidden.Add("__meta__", "").AddRaw(second.bytes());
  EXPECT_EQ(Records(Scan(first.bytes() + zeros + hidden.Finish(), false)),
            "a:-1[image txt] a:-1[image txt]");
  TarBuilder sparse;
  sparse.Add("0.jpg", "x").Add("0.txt", "x").AddRaw(first.bytes()).Add("a.json", "", 'S');
  EXPECT_EQ(Records(Scan(sparse.bytes() + zeros + first.Finish(), false)),
            "0:-1[image txt] a:-1[image txt] a:-1[image txt]");
}
}  // namespace
}  // namespace shardpack
