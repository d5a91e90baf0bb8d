#include "formats/io/escape.h"

#include <string>

#include "formats/testing/sample_generator.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

TEST(PercentEscape, Examples) {
  EXPECT_EQ(PercentEscape("cat/1 2.jpg"), "cat/1 2.jpg");
  EXPECT_EQ(PercentEscape("50%"), "50%25");
  EXPECT_EQ(PercentEscape("caf\xE9\n\x7F"), "caf%E9%0A%7F");
  EXPECT_EQ(PercentEscape("caf\xC3\xA9 \xE2\x82\xAC"), "caf\xC3\xA9 \xE2\x82\xAC");
  EXPECT_EQ(PercentEscape(""), "");
}

TEST(PercentUnescape, RefusesOtherSpellings) {
  for (const char* text : {"%", "%2", "%zz", "%e9", "%41", "\xE9", "\n", "50%", "%C3%A9", "% 25"}) {
    EXPECT_EQ(PercentUnescape(text), std::nullopt) << text;
  }
  EXPECT_EQ(PercentUnescape("%E9%25"), "\xE9%");
}

TEST(PercentEscape, IsReversibleForAnyBytes) {
  testing::Random random(2);
  for (int i = 0; i < 3000; ++i) {
    const std::string bytes = random.Bytes(random.Below(40));
    const std::string text = PercentEscape(bytes);
    EXPECT_EQ(PercentUnescape(text), bytes);
    for (std::string_view rest = text; !rest.empty();) {
      const size_t length = Utf8SequenceLength(rest);
      ASSERT_GT(length, 0u);
      rest.remove_prefix(length);
    }
  }
}

TEST(Utf8SequenceLength, FollowsRfc3629) {
  EXPECT_EQ(Utf8SequenceLength(""), 0u);
  EXPECT_EQ(Utf8SequenceLength("a"), 1u);
  EXPECT_EQ(Utf8SequenceLength("\xC3\xA4x"), 2u);
  EXPECT_EQ(Utf8SequenceLength("\xE2\x82\xAC"), 3u);
  EXPECT_EQ(Utf8SequenceLength("\xF0\x9F\x90\xB1"), 4u);
  // Overlong, surrogate, beyond U+10FFFF, stray, cut.
  for (const char* bad :
       {"\xC0\xAF", "\xE0\x80\x80", "\xF0\x80\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
        "\xF8\x88\x80\x80\x80", "\x80", "\xC3", "\xE2\x82", "\xC3(", "\xFF"}) {
    EXPECT_EQ(Utf8SequenceLength(bad), 0u) << bad;
  }
}

}  // namespace
}  // namespace shardpack
