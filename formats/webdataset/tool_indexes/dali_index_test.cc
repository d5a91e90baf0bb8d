#include "formats/webdataset/tool_indexes/dali_index.h"

#include <string>
#include <string_view>

#include "formats/io/file.h"
#include "formats/testing/scratch_folder.h"
#include "formats/testing/tar_builder.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

absl::StatusOr<std::string> Index(const std::string& bytes) {
  testing::ScratchFolder scratch;
  absl::StatusOr<File> file = File::CreateExclusive(scratch.File("s.tar"));
  const Bytes part = AsBytes(bytes);
  EXPECT_TRUE(file.ok() && file->Write(std::span(&part, 1)).ok());
  return DaliIndexText(*file, bytes.size(), "s.tar");
}

TEST(DaliIndex, OneLineForEachSample) {
  TarBuilder tar;
  tar.Add("d/a.cls", "1").Add("d/a.JPG", std::string(600, 'x')).Add("d/a.seg.png", "s");
  tar.Add("b.jpg", "");
  EXPECT_EQ(*Index(tar.Finish()),
            "v1.2 2\n"
            "cls 512 1 d/a.cls JPG 1536 600 d/a.JPG seg.png 3072 1 d/a.seg.png\n"
            "jpg 4096 0 b.jpg\n");
}

TEST(DaliIndex, OffsetsAreBehindExtensionRecords) {
  TarBuilder tar;
  tar.AddPax("mtime", "1.5").Add("a.jpg", "x");
  tar.Add("L", std::string("long/b.jpg\0", 11), 'L').Add("b.jpg", "yy");
  EXPECT_EQ(*Index(tar.Finish()),
            "v1.2 2\n"
            "jpg 1536 1 a.jpg\n"
            "jpg 3584 2 long/b.jpg\n");
}

TEST(DaliIndex, NamesWithSpacesNeedTheOlderVersion) {
  TarBuilder tar;
  tar.Add("a b.cls", "1").Add("a b.jpg", "x");
  EXPECT_EQ(*Index(tar.Finish()), "v1.1 1\ncls 512 1 jpg 1536 1\n");
}

TEST(DaliIndex, LeavesOutWhatReadersSkip) {
  TarBuilder tar;
  tar.Add("d/", "", '5').Add("__x__/a.jpg", "x").Add("readme", "x").Add("a.jpg", "y");
  tar.Add("b.jpg", "", '1');
  EXPECT_EQ(*Index(tar.Finish()), "v1.2 1\njpg 3072 1 a.jpg\n");
}

TEST(DaliIndex, SaysWhatCannotBeIndexed) {
  EXPECT_TRUE(absl::IsInvalidArgument(Index(std::string(10240, '\0')).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Index(TarBuilder().Add("a.j pg", "x").Finish()).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Index(TarBuilder().Add("a.", "x").Finish()).status()));
  std::string damaged = TarBuilder().Add("a.jpg", "x").Add("b.jpg", "x").Finish();
  damaged[1024] ^= 1;
  EXPECT_TRUE(absl::IsDataLoss(Index(damaged).status()));
}

TEST(DaliIndex, NamesFilesAfterTheShards) {
  testing::ScratchFolder scratch;
  Manifest manifest;
  for (const char* name : {"train-000000.tar", "train-000001.tar"}) {
    const std::string bytes = TarBuilder().Add("a.jpg", "x").Finish();
    absl::StatusOr<File> file = File::CreateExclusive(scratch.File(name));
    const Bytes part = AsBytes(bytes);
    ASSERT_TRUE(file.ok() && file->Write(std::span(&part, 1)).ok());
    manifest.shards.push_back({.name = name,
                               .split = "train",
                               .bytes = bytes.size(),
                               .records = 1,
                               .xxh3_128 = {},
                               .index = {},
                               .sha256 = ""});
  }
  const std::string root = scratch.File("");
  auto files = MakeWebdatasetDaliIndexes({.root = root, .manifest = manifest, .indexes = {}});
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->size(), 2u);
  EXPECT_EQ((*files)[0].name, "train-000000.idx");
  EXPECT_EQ((*files)[1].bytes, "v1.2 1\njpg 512 1 a.jpg\n");
}

}  // namespace
}  // namespace shardpack
