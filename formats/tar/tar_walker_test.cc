#include "formats/tar/tar_walker.h"

#include <cstring>
#include <string>
#include <vector>

#include "formats/tar/header_reader.h"
#include "formats/testing/scratch_folder.h"
#include "formats/testing/tar_builder.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

struct Walked {
  std::string members;   // "name:size@data_offset ..."
  std::string findings;  // "tar-checksum@512 ..."
  friend bool operator==(const Walked&, const Walked&) = default;
};

template <typename Reader>
Walked WalkWith(Reader& in, bool thorough) {
  FindingList findings;
  BasicTarWalker<Reader> walker(in, "shard", findings, thorough);
  Walked walked;
  for (;;) {
    absl::StatusOr<bool> more = walker.Next();
    EXPECT_TRUE(more.ok()) << more.status();
    if (!more.ok() || !*more) break;
    const TarMember& member = walker.member();
    if (!walked.members.empty()) walked.members += ' ';
    walked.members += std::string(member.name) + ":" + std::to_string(member.size_bytes) + "@" +
                      std::to_string(member.data_offset);
    EXPECT_LE(member.data_offset + member.size_bytes, in.size());
  }
  for (const Finding& finding : findings.findings()) {
    if (!walked.findings.empty()) walked.findings += ' ';
    walked.findings += SpecOf(finding.id).name;
    walked.findings += "@" + std::to_string(*finding.offset);
  }
  return walked;
}

// Both readers must give the same result.
Walked Walk(const std::string& bytes, bool thorough = true) {
  testing::ScratchFolder scratch;
  const std::string path = scratch.File("shard.tar");
  absl::StatusOr<File> file = File::CreateExclusive(path);
  const Bytes part = AsBytes(bytes);
  EXPECT_TRUE(file.ok() && file->Write(std::span(&part, 1)).ok());
  SequentialReader sequential(*file, bytes.size());
  const Walked walked = WalkWith(sequential, thorough);
  HeaderReader positioned(*file, bytes.size());
  EXPECT_EQ(WalkWith(positioned, thorough), walked);
  return walked;
}

// Before each member, "0 1 ...".
std::string ArchivesOf(const std::string& bytes) {
  testing::ScratchFolder scratch;
  absl::StatusOr<File> file = File::CreateExclusive(scratch.File("shard.tar"));
  const Bytes part = AsBytes(bytes);
  EXPECT_TRUE(file.ok() && file->Write(std::span(&part, 1)).ok());
  SequentialReader in(*file, bytes.size());
  FindingList findings;
  TarWalker walker(in, "shard", findings);
  std::string counts;
  for (absl::StatusOr<bool> more = walker.Next(); more.ok() && *more; more = walker.Next())
    counts += (counts.empty() ? "" : " ") + std::to_string(walker.archives());
  return counts;
}

void SetSize(char* header, std::string_view field) {
  std::memcpy(header + 124, field.data(), field.size());
}

TEST(TarWalker, ExtensionRecordsApplyToTheNextMember) {
  TarBuilder tar;
  tar.AddPax("path", "pax/name.jpg").Add("short.jpg", "abc");
  tar.Add("././@LongLink", std::string("gnu/name.jpg\0", 13), 'L').Add("short.jpg", "de");
  tar.Add("././@LongLink", "target", 'K').Add("plain.jpg", "f");
  EXPECT_EQ(Walk(tar.Finish()),
            (Walked{"pax/name.jpg:3@1536 gnu/name.jpg:2@3584 plain.jpg:1@5632", ""}));
}

TEST(TarWalker, GlobalRecordsApplyUntilReplaced) {
  TarBuilder tar;
  tar.AddPax("path", "all.jpg", 'g').Add("a.jpg", "1");
  tar.AddPax("path", "one.jpg").Add("b.jpg", "2").Add("c.jpg", "3");
  tar.AddPax("path", "", 'g').Add("d.jpg", "4");
  EXPECT_EQ(Walk(tar.Finish()),
            (Walked{"all.jpg:1@1536 one.jpg:1@3584 all.jpg:1@4608 d.jpg:1@6656", ""}));
}

TEST(TarWalker, PaxSizeIsFollowedAndReported) {
  TarBuilder same;
  same.AddPax("size", "3").Add("a.jpg", "abc");
  EXPECT_EQ(Walk(same.Finish()), (Walked{"a.jpg:3@1536", ""}));
  // Smuggling, where readers disagree: one sees b.jpg, the other treats its header as data.
  TarBuilder hidden, other;
  hidden.Add("b.jpg", "x");
  other.AddPax("size", "1024").AddChanged("a.jpg", hidden.bytes(), '0', [](char* header) {
    SetSize(header, "00000000000");
  });
  EXPECT_EQ(Walk(other.Finish()), (Walked{"a.jpg:1024@1536", "tar-pax-size@1024"}));
  // Eleven octal digits cannot hold this size, which is what the record is for.
  TarBuilder large;
  large.AddPax("size", "8589934592").Add("a.jpg", "");
  EXPECT_EQ(Walk(large.Finish()), (Walked{"", "container-truncated@1024"}));
}

TEST(TarWalker, HugeSizesAreFindings) {
  const std::string negative = std::string(12, '\xff');
  const std::string big = std::string("\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", 12);
  struct Case {
    std::string size, finding;
    char type;
  };
  for (const Case& c : std::vector<Case>{
           {"777777777777", "container-truncated@0", '0'},
           {negative, "tar-field@0", '0'},
           {big, "tar-field@0", '0'},
           {"99999999999", "tar-field@0", '0'},
           {"777777777777", "container-truncated@0", 'x'},
           {"777777777777", "container-truncated@0", 'L'},
           {"777777777777", "tar-sparse@0 container-truncated@0", 'S'},
           {"777777777777", "container-truncated@0", 'Z'},
       }) {
    TarBuilder tar;
    tar.AddChanged("a.jpg", "x", c.type, [&](char* header) { SetSize(header, c.size); });
    const Walked walked = Walk(tar.Finish());
    EXPECT_EQ(walked.findings, c.finding) << c.type;
    EXPECT_EQ(walked.members, "");
  }
}

TEST(TarWalker, OversizedExtensionRecordsAreSkipped) {
  TarBuilder tar;
  tar.Add("x", std::string(kMaxTarExtensionBytes + 1, 'x'), 'x').Add("a.jpg", "1");
  EXPECT_EQ(Walk(tar.Finish()), (Walked{"a.jpg:1@1050112", "tar-field@0"}));
  TarBuilder name;
  name.Add("L", std::string(kMaxTarExtensionBytes, 'n'), 'L').Add("a.jpg", "1");
  EXPECT_EQ(Walk(name.Finish()).findings, "");
}

TEST(TarWalker, MalformedExtensionRecordsAreFindings) {
  TarBuilder tar;
  tar.Add("x", "99 path=a\n", 'x').Add("a.jpg", "1");
  EXPECT_EQ(Walk(tar.Finish()), (Walked{"a.jpg:1@1536", "tar-field@0"}));
  TarBuilder last;
  last.Add("a.jpg", "1").AddPax("path", "b.jpg");
  EXPECT_EQ(Walk(last.Finish()).findings, "container-truncated@2048");
  EXPECT_EQ(Walk(last.bytes()).findings, "container-truncated@2048");
}

TEST(TarWalker, SparseAndMultiVolumeMembersAreRejected) {
  for (const char type : {'S', 'M'}) {
    TarBuilder tar;
    tar.Add("a.jpg", "x", type).Add("b.jpg", "y");
    EXPECT_EQ(Walk(tar.Finish()), (Walked{"b.jpg:1@1536", "tar-sparse@0"}));
  }
  TarBuilder pax;
  pax.AddPax("GNU.sparse.major", "1").Add("a.jpg", "x").Add("b.jpg", "y");
  EXPECT_EQ(Walk(pax.Finish()), (Walked{"b.jpg:1@2560", "tar-sparse@1024"}));
  // Two more blocks of the sparse map precede the data.
  std::string more(512, '\0'), last(512, '\0');
  more[504] = 1;
  TarBuilder map;
  map.AddChanged("a.jpg", "", 'S',
                 [](char* header) {
                   SetSize(header, "00000000001");
                   header[482] = 1;
                 })
      .AddRaw(more + last + "x" + std::string(511, '\0'))
      .Add("b.jpg", "y");
  EXPECT_EQ(Walk(map.Finish()), (Walked{"b.jpg:1@2560", "tar-sparse@0"}));
  EXPECT_EQ(Walk(map.bytes().substr(0, 1024)).findings, "tar-sparse@0 container-truncated@1024");
}

TEST(TarWalker, GoesOnAfterABadHeader) {
  TarBuilder tar;
  tar.Add("a.jpg", std::string(1500, 'a')).Add("b.jpg", std::string(1500, 'b')).Add("c.jpg", "c");
  std::string bytes = tar.Finish();
  bytes[2048] ^= 1;
  EXPECT_EQ(Walk(bytes), (Walked{"a.jpg:1500@512 c.jpg:1@4608", "tar-checksum@2048"}));
  bytes[4096] ^= 1;  // one finding per stretch of damage
  EXPECT_EQ(Walk(bytes), (Walked{"a.jpg:1500@512", "tar-checksum@2048"}));
  EXPECT_EQ(Walk(std::string(3000, 'z')), (Walked{"", "tar-checksum@0"}));
}

TEST(TarWalker, Ends) {
  TarBuilder tar;
  tar.Add("a.jpg", "x");
  const std::string& open = tar.bytes();
  const std::string zeros(10240, '\0');
  const auto findings = [&](const std::string& bytes) {
    const Walked walked = Walk(bytes);
    EXPECT_EQ(walked.members, "a.jpg:1@512");
    return walked.findings;
  };
  EXPECT_EQ(findings(open), "tar-no-end@1024");
  EXPECT_EQ(findings(open + zeros.substr(0, 512)), "tar-no-end@1024");
  EXPECT_EQ(findings(open + zeros.substr(0, 1024)), "");
  EXPECT_EQ(findings(open + zeros.substr(0, 10240 - 1024)), "");
  EXPECT_EQ(findings(open + zeros.substr(0, 2048)), "tar-end-padding@3072");
  EXPECT_EQ(Walk(open + zeros.substr(0, 2048), /*thorough=*/false).findings, "");
  EXPECT_EQ(findings(open + zeros.substr(0, 1024) + "z"), "trailing-data@2048");
  EXPECT_EQ(findings(open + zeros.substr(0, 700) + "z" + zeros.substr(0, 323)),
            "tar-no-end@1024 trailing-data@1724");
  EXPECT_EQ(findings(open + zeros + std::string(512, 'z')), "trailing-data@11264");
  EXPECT_EQ(findings(open + zeros + "z" + open), "trailing-data@11264");  // between blocks
  EXPECT_EQ(findings(open + "half a header"), "container-truncated@1024");
  EXPECT_EQ(Walk("").findings, "container-truncated@0");
  EXPECT_EQ(Walk("z").findings, "container-truncated@0");
  EXPECT_EQ(Walk(zeros), (Walked{"", ""}));
}

// `cat a.tar b.tar`, and writers that append a run to the last one's file.
TEST(TarWalker, ReadsOnBehindAnEnd) {
  TarBuilder first, second, third;
  first.AddPax("path", "all.jpg", 'g').Add("a.jpg", "1");
  second.Add("b.jpg", "2");
  third.AddPax("path", "named.jpg").Add("c.jpg", "3");
  const std::string zeros(10240, '\0');
  EXPECT_EQ(
      Walk(first.bytes() + zeros + second.bytes() + zeros.substr(0, 1024) + third.bytes() + zeros,
           /*thorough=*/false),
      (Walked{"all.jpg:1@1536 b.jpg:1@12800 named.jpg:1@15872",
              "trailing-data@12288 trailing-data@14336"}));
  EXPECT_EQ(Walk(first.bytes() + zeros + second.bytes()),
            (Walked{"all.jpg:1@1536 b.jpg:1@12800", "trailing-data@12288 tar-no-end@13312"}));
}

TEST(TarWalker, CountsTheArchivesThatEnded) {
  TarBuilder tar;
  tar.Add("a.jpg", "1").Add("b.jpg", "2");
  EXPECT_EQ(ArchivesOf(tar.Finish() + tar.Finish() + tar.bytes()), "0 0 1 1 2 2");
  // What follows an end and is no archive begins none.
  EXPECT_EQ(ArchivesOf(tar.Finish() + "garbage"), "0 0");
}

TEST(TarWalker, PaddingIsZeroAndThere) {
  TarBuilder tar;
  tar.Add("a.jpg", "x").Add("b.jpg", "y");
  std::string bytes = tar.Finish();
  bytes[600] = 1;
  EXPECT_EQ(Walk(bytes), (Walked{"a.jpg:1@512 b.jpg:1@1536", "tar-padding@600"}));
  EXPECT_EQ(Walk(tar.bytes().substr(0, 1600)),
            (Walked{"a.jpg:1@512 b.jpg:1@1536", "container-truncated@1537"}));
  // Extension records are padded too.
  TarBuilder pax;
  pax.AddPax("path", "b.jpg").Add("a.jpg", "x");
  bytes = pax.Finish();
  bytes[1023] = 1;
  EXPECT_EQ(Walk(bytes).findings, "tar-padding@1023");
}

TEST(TarWalker, ReadsOldSpellings) {
  TarBuilder tar;
  tar.Add("c.jpg", "c", '7');
  const auto v7 = [](char* header) { std::memset(header + 257, 0, 255); };
  tar.AddChanged("v.jpg", "v", '\0', v7);
  tar.AddChanged("folder/", "", '\0', v7);
  EXPECT_EQ(Walk(tar.Finish()), (Walked{"c.jpg:1@512 v.jpg:1@1536 folder/:0@2560", ""}));
  // A checksum with a space instead of its first zero.
  std::string bytes = tar.Finish();
  bytes[148] = ' ';
  EXPECT_EQ(Walk(bytes).findings, "tar-field-style@0");
  EXPECT_EQ(Walk(bytes, /*thorough=*/false).findings, "");
}

TEST(TarWalker, LinksHaveNoDataWhateverTheirSize) {
  TarBuilder tar;
  tar.AddChanged("l.jpg", "", '1', [](char* header) { SetSize(header, "00000077777"); });
  tar.Add("b.jpg", "y");
  EXPECT_EQ(Walk(tar.Finish()), (Walked{"l.jpg:0@512 b.jpg:1@1024", ""}));
}

}  // namespace
}  // namespace shardpack
