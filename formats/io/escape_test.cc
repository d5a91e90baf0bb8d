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
  const std::vector<std::string> texts = {"50%", "", "\n"};
  EXPECT_EQ(PercentEscapeAll(texts), (std::vector<std::string>{"50%25", "", "%0A"}));
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

TEST(EscapeHarmful, KeepsLinesAndStyles) {
  EXPECT_EQ(EscapeHarmful("a\tb\n\x1b[1mbold\x1b[0m \xC3\xA9\xE2\x82\xAC\xF0\x9F\x90\xB1\\"),
            "a\tb\n\x1b[1mbold\x1b[0m \xC3\xA9\xE2\x82\xAC\xF0\x9F\x90\xB1\\");
  EXPECT_EQ(EscapeHarmful("\xC2\x9B"
                          "2J\xC2\xA0"),
            "\\u009b2J\xC2\xA0");
  EXPECT_EQ(EscapeHarmful("gpj.\xE2\x80\xAE"
                          "exe"),
            "gpj.\\u202eexe");
  EXPECT_EQ(EscapeHarmful("\xE2\x80\xA6\xE2\x81\xA6\xE2\x80\x8F\xD8\x9C"),
            "\xE2\x80\xA6\\u2066\\u200f\\u061c");
  EXPECT_EQ(EscapeHarmful(std::string_view("\0\x07\x7F\xFF\xC3", 5)), "\\x00\\x07\\x7f\\xff\\xc3");
}

TEST(EscapeHarmful, LeavesNothingHarmfulOfAnyBytes) {
  testing::Random random(5);
  for (int i = 0; i < 3000; ++i) {
    const std::string text = EscapeHarmful(random.Bytes(random.Below(60)));
    for (std::string_view rest = text; !rest.empty();) {
      const bool kept = std::string_view("\n\t\r\x1b").find(rest[0]) != std::string_view::npos;
      ASSERT_TRUE(kept || HarmfulLength(rest) == 0);
      rest.remove_prefix(kept ? 1 : Utf8SequenceLength(rest));
    }
  }
}

TEST(Utf8SequenceLength, FollowsRfc3629) {
  EXPECT_EQ(Utf8SequenceLength(""), 0u);
  EXPECT_EQ(Utf8SequenceLength("a"), 1u);
  EXPECT_EQ(Utf8SequenceLength("\xC3\xA4x"), 2u);
  EXPECT_EQ(Utf8SequenceLength("\xE2\x82\xAC"), 3u);
  EXPECT_EQ(Utf8SequenceLength("\xF0\x9F\x90\xB1"), 4u);
  // Overlong, surrogate, above U+10FFFF, stray, truncated.
  for (const char* bad :
       {"\xC0\xAF", "\xE0\x80\x80", "\xF0\x80\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
        "\xF8\x88\x80\x80\x80", "\x80", "\xC3", "\xE2\x82", "\xC3(", "\xFF"}) {
    EXPECT_EQ(Utf8SequenceLength(bad), 0u) << bad;
  }
}

}  // namespace
}  // namespace shardpack
