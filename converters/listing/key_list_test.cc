#include "converters/listing/key_list.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace shardpack {
namespace {

TEST(KeyList, IsReadAsItWasWritten) {
  const std::vector<std::string> keys = {"cat/1",   "#first", "50%", "line\nend",
                                         "caf\xE9", "%23",    "a b"};
  const absl::StatusOr<KeyList> list = ParseKeyList(KeyListText("xxh3:12", keys), "keys.txt");
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->keys, keys);
  EXPECT_EQ(list->dataset, "xxh3:12");
  EXPECT_EQ(list->file, "keys.txt");
  EXPECT_EQ(list->written, keys.size());
}

TEST(KeyList, OfAnEditor) {
  const absl::StatusOr<KeyList> list = ParseKeyList("a\r\n\n# mine\r\nb", "keys.txt");
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->keys, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(list->dataset, "");
}

TEST(KeyList, OfAnEditorThatWritesAByteOrderMark) {
  const std::string mark = "\xEF\xBB\xBF";
  EXPECT_EQ(ParseKeyList(mark + "a\nb\n", "keys.txt")->keys, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(ParseKeyList(mark + KeyListText("xxh3:12", {"a"}), "keys.txt")->dataset, "xxh3:12");
  EXPECT_FALSE(ParseKeyList(mark, "keys.txt").ok());
}

TEST(KeyList, OfAnEditorThatWritesUtf16) {
  const absl::Status failed = ParseKeyList(
                                  "\xFF\xFE"
                                  "a",
                                  "keys.txt")
                                  .status();
  EXPECT_EQ(failed.message(), "keys.txt is UTF-16; keys are taken as UTF-8");
}

TEST(KeyList, OfADatasetWithoutCopies) {
  const absl::StatusOr<KeyList> list = ParseKeyList(KeyListText("xxh3:12", {}), "keys.txt");
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->keys, std::vector<std::string>());
  EXPECT_EQ(list->dataset, "xxh3:12");
}

TEST(KeyList, WithoutAKeyOrWithWhatIsNone) {
  const std::string cut = std::string(kKeyListMark) + "# of the dataset xxh3:12\n";
  for (const std::string& text :
       {std::string(), std::string("\n\n"), std::string("# mine\n"), cut, cut + "# keys: 3\n"}) {
    const absl::Status failed = ParseKeyList(text, "keys.txt").status();
    EXPECT_EQ(failed.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(failed.message(), "keys.txt has no key: there is nothing to leave out");
  }
  const absl::Status failed = ParseKeyList("a\n50%\n", "keys.txt").status();
  EXPECT_EQ(failed.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(failed.message()).find("keys.txt line 2: 50%"), std::string::npos);
}

}  // namespace
}  // namespace shardpack
