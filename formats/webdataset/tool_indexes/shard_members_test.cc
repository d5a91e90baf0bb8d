#include "formats/webdataset/tool_indexes/shard_members.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/testing/scratch_folder.h"
#include "formats/testing/tar_builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::ElementsAre;

struct Visited {
  std::vector<std::string> lines;
  absl::StatusOr<uint64_t> end;
};

Visited Visit(const std::string& bytes) {
  testing::ScratchFolder scratch;
  absl::StatusOr<File> file = File::CreateExclusive(scratch.File("s.tar"));
  const Bytes part = AsBytes(bytes);
  EXPECT_TRUE(file.ok() && file->Write(std::span(&part, 1)).ok());
  std::vector<std::string> lines;
  absl::StatusOr<uint64_t> end =
      VisitMembers(*file, bytes.size(), "s.tar", [&](const ShardMember& member) {
        lines.push_back(absl::StrCat(member.begins_sample ? "> " : "+ ", std::string(member.key),
                                     "|", std::string(member.extension), " ", member.offset, " ",
                                     member.data_offset, " ", member.size_bytes,
                                     member.has_extension_record ? " extended" : ""));
        return absl::OkStatus();
      });
  return {lines, end};
}

TEST(ShardMembers, KeysAndPlaces) {
  TarBuilder tar;
  tar.Add("d/a.cls", "1").Add("d/a.seg.PNG", std::string(600, 'x')).Add("b.jpg", "");
  const Visited visited = Visit(tar.Finish());
  EXPECT_THAT(visited.lines, ElementsAre("> d/a|cls 0 512 1", "+ d/a|seg.PNG 1024 1536 600",
                                         "> b|jpg 2560 3072 0"));
  EXPECT_EQ(*visited.end, 3072u);
}

TEST(ShardMembers, AMemberBeginsAtItsExtensionRecord) {
  TarBuilder tar;
  tar.AddPax("mtime", "1.5").Add("a.jpg", "x").AddPax("path", "a.png").Add("z", "yy");
  EXPECT_THAT(Visit(tar.Finish()).lines,
              ElementsAre("> a|jpg 0 1536 1 extended", "+ a|png 2048 3584 2 extended"));
}

TEST(ShardMembers, WhatReadersSkipIsNotVisitedButCountsForTheEnd) {
  TarBuilder tar;
  tar.Add("__x__/a.jpg", "x").Add("readme", "x").Add("a.jpg", "y").Add("d/", "", '5');
  tar.Add("a.png", "z").Add("c.jpg", "", '1').Add("last", "x");
  const Visited visited = Visit(tar.Finish());
  EXPECT_THAT(visited.lines, ElementsAre("> a|jpg 2048 2560 1", "+ a|png 3584 4096 1"));
  EXPECT_EQ(*visited.end, tar.size());
}

TEST(ShardMembers, EmptyAndDamaged) {
  EXPECT_EQ(*Visit(std::string(10240, '\0')).end, 0u);
  std::string damaged = TarBuilder().Add("a.jpg", "x").Add("b.jpg", "x").Finish();
  damaged[1024] ^= 1;
  EXPECT_TRUE(absl::IsDataLoss(Visit(damaged).end.status()));
}

TEST(ShardMembers, StopsWhenTheVisitorSaysSo) {
  testing::ScratchFolder scratch;
  const std::string bytes = TarBuilder().Add("a.jpg", "x").Add("b.jpg", "x").Finish();
  absl::StatusOr<File> file = File::CreateExclusive(scratch.File("s.tar"));
  const Bytes part = AsBytes(bytes);
  ASSERT_TRUE(file.ok() && file->Write(std::span(&part, 1)).ok());
  int visits = 0;
  const auto stop = [&](const ShardMember&) {
    ++visits;
    return absl::InvalidArgumentError("enough");
  };
  EXPECT_TRUE(absl::IsInvalidArgument(VisitMembers(*file, bytes.size(), "s.tar", stop).status()));
  EXPECT_EQ(visits, 1);
}

}  // namespace
}  // namespace shardpack
