#include "converters/listing/class_names.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ClassNamesTest, CaseAndBlanks) {
  using Names = std::vector<std::string>;
  EXPECT_THAT(DoubtfulClassNames(Names{}), IsEmpty());
  EXPECT_THAT(DoubtfulClassNames(Names{"cat", "dog", "dogs", "cat dog", "catdog"}), IsEmpty());
  EXPECT_THAT(
      DoubtfulClassNames(Names{"Cat", "cat", "dog", "dog ", " DOG"}),
      ElementsAre(HasSubstr("alone: \"Cat\" and \"cat\", \"dog\" and \"dog \" and \" DOG\";")));
  EXPECT_THAT(DoubtfulClassNames(Names{" cat", "dog", "emu\t"}),
              ElementsAre(HasSubstr("with a blank: \" cat\", \"emu")));
  EXPECT_THAT(DoubtfulClassNames(Names{"a", "A", "b", "B", "c", "C", "d", "D", "e", "E"}),
              ElementsAre(HasSubstr("\"c\" and \"C\" and 2 more;")));
}

TEST(ClassNamesTest, UnicodeForms) {
  using Names = std::vector<std::string>;
  const std::string composed = "caf\xc3\xa9", decomposed = "cafe\xcc\x81";
  EXPECT_THAT(DoubtfulClassNames(Names{composed, "cafe", "bar"}), IsEmpty());
  EXPECT_THAT(DoubtfulClassNames(Names{composed, decomposed, "bar"}),
              ElementsAre(AllOf(HasSubstr("Unicode form"), HasSubstr("\"" + composed + "\";"))));
  EXPECT_THAT(DoubtfulClassNames(Names{composed, "C" + decomposed.substr(1)}),
              ElementsAre(HasSubstr("differ in case or blanks alone")));
  EXPECT_THAT(DoubtfulClassNames(Names{composed, decomposed, "C" + composed.substr(1)}),
              ElementsAre(AllOf(HasSubstr("Unicode form"), HasSubstr("\"" + composed + "\";")),
                          HasSubstr("alone: \"" + composed + "\" and \"C" + composed.substr(1))));
  EXPECT_THAT(AlikeClass(Names{composed}, decomposed), HasSubstr("another Unicode form"));
  EXPECT_THAT(AlikeClass(Names{composed}, "C" + composed.substr(1)), HasSubstr("there is \""));
}

TEST(ClassNamesTest, NoValue) {
  for (const char* text : {"", " ", "nan", "NaN", "NULL", "None", "N/A", "<NA>"})
    EXPECT_TRUE(StandsForNoValue(text)) << text;
  for (const char* text : {"0", "nana", "non", "-", "background"})
    EXPECT_FALSE(StandsForNoValue(text)) << text;
}

}  // namespace
}  // namespace shardpack
