#include "formats/tar/pax_records.h"

#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"

namespace shardpack {
namespace {

TEST(PaxRecords, LastOneWinsAndAnEmptyOneTakesBack) {
  PaxOverrides next;
  EXPECT_TRUE(ParsePaxRecords(AsBytes("12 path=old\n11 size=17\n12 path=new\n11 mtime=1\n"), next));
  EXPECT_TRUE(next.has_path);
  EXPECT_EQ(next.path, "new");
  EXPECT_TRUE(next.has_size);
  EXPECT_EQ(next.size_bytes, 17u);
  EXPECT_TRUE(ParsePaxRecords(AsBytes("8 path=\n8 size=\n"), next));
  EXPECT_FALSE(next.has_path);
  EXPECT_FALSE(next.has_size);
}

TEST(PaxRecords, ValuesMayHoldAnything) {
  PaxOverrides next;
  EXPECT_TRUE(ParsePaxRecords(AsBytes("16 path=a\nb=c\xff\x01\n"), next));
  EXPECT_EQ(next.path, "a\nb=c\xff\x01");
}

TEST(PaxRecords, RefusesWhatIsMalformed) {
  for (const std::string_view text :
       {"x", "12", "12 ", "13 path=new\n", "11 path=new\n", "0 path=new\n", "4 =a\n",
        " 12 path=x\n", "-2 path=new\n", "5 ab\n", "99999999999999999999999 path=a\n",
        "12 path=newX", "11 size=-1\n", "11 size=1x\n", "29 size=99999999999999999999\n", "3 \n"}) {
    PaxOverrides next;
    EXPECT_FALSE(ParsePaxRecords(AsBytes(text), next)) << text;
    EXPECT_FALSE(next.has_size) << text;
  }
}

TEST(PaxRecords, SeesSparseFiles) {
  PaxOverrides next;
  EXPECT_TRUE(ParsePaxRecords(AsBytes("22 GNU.sparse.major=1\n"), next));
  EXPECT_TRUE(next.sparse);
  next.Clear();
  EXPECT_FALSE(next.sparse);
}

TEST(PaxRecords, WritesPathsOfEveryLength) {
  for (size_t bytes = 1; bytes <= 1100; ++bytes) {
    const std::string path(bytes, 'p');
    std::vector<std::byte> text(PaxPathBytes(bytes));
    EncodePaxPath(path, text.data());
    PaxOverrides next;
    ASSERT_TRUE(ParsePaxRecords(text, next)) << bytes;
    EXPECT_EQ(next.path, path);
  }
}

}  // namespace
}  // namespace shardpack
