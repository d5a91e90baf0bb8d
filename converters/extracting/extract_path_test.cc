#include "converters/extracting/extract_path.h"

#include <gtest/gtest.h>

namespace shardpack {
namespace {

TEST(HarmlessPath, KeepsWhatIsHarmless) {
  for (const char* path : {"a.jpg", "cat/1.jpg", "50%.jpg", "a b/c'd", "caf\xC3\xA9/x", "-rf",
                           "..a/b..", "a/.hidden", "100%25"}) {
    EXPECT_EQ(HarmlessPath(path), path);
  }
}

TEST(HarmlessPath, StaysBelowTheFolder) {
  EXPECT_EQ(HarmlessPath("/etc/passwd"), "etc/passwd");
  EXPECT_EQ(HarmlessPath("//x"), "x");
  EXPECT_EQ(HarmlessPath("../../x"), "%2E%2E/%2E%2E/x");
  EXPECT_EQ(HarmlessPath("a/../../x"), "a/%2E%2E/%2E%2E/x");
  EXPECT_EQ(HarmlessPath("./a/./b/"), "a/b");
  EXPECT_EQ(HarmlessPath(".."), "%2E%2E");
}

TEST(HarmlessPath, IsNeverEmptyAndHoldsNoControls) {
  for (const char* path : {"", "/", ".", "./", "//./"}) EXPECT_EQ(HarmlessPath(path), "%");
  EXPECT_EQ(HarmlessPath("x\n.jpg"), "x%0A.jpg");
  EXPECT_EQ(HarmlessPath("x\033[31m"), "x%1B[31m");
  EXPECT_EQ(HarmlessPath(std::string_view("a\0b", 3)), "a%00b");
  EXPECT_EQ(HarmlessPath("\xE9"), "%E9");
}

TEST(NamedAs, FollowsTheContent) {
  EXPECT_EQ(NamedAs("cat/1.gif", ImageFormat::kPng), "cat/1.png");
  EXPECT_EQ(NamedAs("cat/1.JPEG", ImageFormat::kJpeg), "cat/1.JPEG");
  EXPECT_EQ(NamedAs("cat/1.jpeg", ImageFormat::kRaw), "cat/1.raw");
  EXPECT_EQ(NamedAs("c.at/1", ImageFormat::kWebp), "c.at/1.webp");
  EXPECT_EQ(NamedAs("cat/.hidden", ImageFormat::kJpeg), "cat/.hidden.jpg");
}

TEST(PathStem, IsWhatSidecarsShare) {
  EXPECT_EQ(PathStem("c.at/1.b.jpg"), "c.at/1.b");
  EXPECT_EQ(PathStem("c.at/1"), "c.at/1");
  EXPECT_EQ(PathStem("1.jpg"), "1");
  EXPECT_EQ(PathStem(""), "");
}

}  // namespace
}  // namespace shardpack
