#include "converters/listing/labels.h"

#include "converters/testing/made_up.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::shardpack::testing::MakeListing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::Status Assign(Listing& listing, const LabelOptions& options = {},
                    std::vector<std::string> empty_folders = {}) {
  return AssignLabels(options, empty_folders, listing);
}

TEST(LabelsTest, ClassesAreTheFoldersInByteOrder) {
  Listing listing = MakeListing({"b/1.jpg", "a/x/1.jpg", "a/2.jpg", "Z/1.jpg"});
  ASSERT_TRUE(Assign(listing).ok());
  EXPECT_THAT(listing.classes, ElementsAre("Z", "a", "b"));
  EXPECT_THAT(listing.label, ElementsAre(0, 1, 1, 2));
  EXPECT_THAT(listing.warnings, IsEmpty());
}

TEST(LabelsTest, NumbersAreWarnedAboutWhereTheOrdersDiffer) {
  Listing listing = MakeListing({"1/a.jpg", "2/a.jpg", "10/a.jpg"});
  ASSERT_TRUE(Assign(listing).ok());
  EXPECT_THAT(listing.classes, ElementsAre("1", "10", "2"));
  EXPECT_THAT(listing.warnings, ElementsAre(HasSubstr("--class-order natural")));
  EXPECT_THAT(listing.warnings, ElementsAre(HasSubstr("10 before 2")));

  listing.warnings.clear();
  ASSERT_TRUE(Assign(listing, {.order = ClassOrder::kNatural}).ok());
  EXPECT_THAT(listing.classes, ElementsAre("1", "2", "10"));
  EXPECT_THAT(listing.warnings, IsEmpty());

  Listing padded = MakeListing({"01/a.jpg", "02/a.jpg", "10/a.jpg"});
  ASSERT_TRUE(Assign(padded).ok());
  EXPECT_THAT(padded.warnings, IsEmpty());
}

TEST(LabelsTest, TheFolderThatNamesTheClassCanBeChosen) {
  Listing listing = MakeListing({"train/b/1.jpg", "train/a/1.jpg", "val/a/1.jpg"});
  ASSERT_TRUE(Assign(listing, {.component = 1, .component_given = true}).ok());
  EXPECT_THAT(listing.classes, ElementsAre("a", "b"));
  EXPECT_THAT(listing.label, ElementsAre(0, 1, 0));
  const absl::Status deep = Assign(listing, {.component = 2, .component_given = true});
  EXPECT_THAT(deep.ToString(), HasSubstr("dir:2"));
  EXPECT_TRUE(absl::IsInvalidArgument(deep));
}

TEST(LabelsTest, AFlatFolderHasNoLabels) {
  Listing listing = MakeListing({"1.jpg", "2.jpg"});
  ASSERT_TRUE(Assign(listing).ok());
  EXPECT_THAT(listing.label, ElementsAre(-1, -1));
  EXPECT_THAT(listing.classes, IsEmpty());
}

TEST(LabelsTest, AFileBesideClassFoldersIsAnErrorUnlessItIsSkipped) {
  Listing listing = MakeListing({"cat/1.jpg", "st\nray.jpg"});
  const absl::Status status = Assign(listing);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(status.ToString(), HasSubstr("st\\x0aray.jpg"));
  EXPECT_THAT(status.ToString(), HasSubstr("--label-from none"));
  listing.skips.push_back({0, SkipReason::kEmpty, ""});
  EXPECT_TRUE(Assign(listing).ok());
  EXPECT_THAT(listing.label, ElementsAre(-1, 0));
}

TEST(LabelsTest, AFolderWithoutAnImageIsNoClass) {
  Listing listing =
      MakeListing({"annotations/1.json", "cat/1.jpg", "cat/2.json", "dog/1.jpg", "outside/1.jpg"});
  listing.skips = {{0, SkipReason::kUnpaired, ""},
                   {2, SkipReason::kUnpaired, ""},
                   {3, SkipReason::kEmpty, ""},
                   {4, SkipReason::kOutsideRoot, ""}};
  LabelOptions options{.parts = {{.suffix = "json", .field = "json"}}, .outside_counts = false};
  ASSERT_TRUE(Assign(listing, options).ok());
  EXPECT_THAT(listing.classes, ElementsAre("cat", "dog"));
  EXPECT_THAT(listing.label, ElementsAre(-1, 0, 0, 1, -1));
  options.outside_counts = true;
  ASSERT_TRUE(Assign(listing, options).ok());
  EXPECT_THAT(listing.classes, ElementsAre("cat", "dog", "outside"));
  options.classes = {"dog", "cat", "outside"};
  ASSERT_TRUE(Assign(listing, options).ok());
  EXPECT_THAT(listing.label, ElementsAre(-1, 1, 1, 0, 2));
}

TEST(LabelsTest, ClassesOfAFileKeepTheirOrderAndMustNameEveryFolder) {
  Listing listing = MakeListing({"cat/1.jpg", "dog/1.jpg"});
  ASSERT_TRUE(Assign(listing, {.classes = {"dog", "emu", "cat"}}).ok());
  EXPECT_THAT(listing.classes, ElementsAre("dog", "emu", "cat"));
  EXPECT_THAT(listing.label, ElementsAre(2, 0));
  const absl::Status missing = Assign(listing, {.classes = {"dog"}});
  EXPECT_TRUE(absl::IsInvalidArgument(missing));
  EXPECT_THAT(missing.ToString(), HasSubstr("cat"));
}

TEST(LabelsTest, AnEmptyClassFolderIsWarnedAbout) {
  Listing listing = MakeListing({"cat/1.jpg", "dog/1.jpg"});
  ASSERT_TRUE(Assign(listing, {}, {"", "cat/old", "emu"}).ok());
  EXPECT_THAT(listing.classes, ElementsAre("cat", "dog"));
  EXPECT_THAT(listing.warnings, ElementsAre(HasSubstr("emu")));
}

TEST(UnreadClassesTest, AreThoseOfTheLevelThatNamesClasses) {
  using Have = UnreadClasses::Have;
  Listing listing = MakeListing({"train/cat/1.jpg", "train/dog/2.jpg", "val/cat/3.jpg"});
  ASSERT_TRUE(Assign(listing, {.component = 1, .classes = {"cat", "dog", "emu"}}).ok());
  const UnreadClasses classes(listing);
  EXPECT_EQ(classes.Of({"val/cat/closed"}), Have::kSamples);
  EXPECT_EQ(classes.Of({"val/dog"}), Have::kSamples);
  EXPECT_EQ(classes.Of({"val/emu"}), Have::kNumber);
  EXPECT_EQ(classes.Of({"val/ant/cat"}), Have::kNothing);
  EXPECT_EQ(classes.Of({"cat"}), Have::kNothing);
  listing.skips.push_back({1, SkipReason::kEmpty, ""});
  EXPECT_EQ(UnreadClasses(listing).Of({"val/dog"}), Have::kNumber);
}

TEST(ParseClassesTest, TakesLinesOfAnyMaking) {
  EXPECT_THAT(*ParseClasses("cat\ndog\n", "f"), ElementsAre("cat", "dog"));
  EXPECT_THAT(*ParseClasses("\xEF\xBB\xBF"
                            "cat\r\nblack dog\r\n\r\n",
                            "f"),
              ElementsAre("cat", "black dog"));
  EXPECT_THAT(*ParseClasses("cat", "f"), ElementsAre("cat"));
}

TEST(ParseClassesTest, NamesTheBadLine) {
  using namespace std::string_view_literals;
  for (const auto& [text, line, why] :
       {std::tuple("cat\nd\0g\n"sv, "f:2", "NUL"), std::tuple("cat\n\ndog"sv, "f:2", "empty"),
        std::tuple("cat\ndog\ncat\n"sv, "f:3", "line 1"), std::tuple("\r\n"sv, "f:1", "no class"),
        std::tuple("cat\rdog\r"sv, "f:1", "carriage return"),
        std::tuple("# names\ncat\n"sv, "f:1", "comment"),
        std::tuple("\xFF\xFE"
                   "c\0"sv,
                   "f:1", "UTF-16")}) {
    const auto classes = ParseClasses(text, "f");
    ASSERT_FALSE(classes.ok()) << text;
    EXPECT_TRUE(absl::IsInvalidArgument(classes.status()));
    EXPECT_THAT(classes.status().ToString(), ::testing::AllOf(HasSubstr(line), HasSubstr(why)));
  }
}

TEST(NaturalLessTest, IsATotalOrder) {
  const std::vector<std::string> sorted = {"",   "1",   "01",  "2",   "10",  "a",
                                           "a1", "a1b", "a02", "a2b", "a10", "b"};
  for (size_t i = 0; i < sorted.size(); ++i) {
    for (size_t j = 0; j < sorted.size(); ++j) {
      if (sorted[i] == "1" || sorted[i] == "01") continue;  // equal by value: ordered by bytes
      if (sorted[j] == "1" || sorted[j] == "01") continue;
      EXPECT_EQ(NaturalLess(sorted[i], sorted[j]), i < j) << sorted[i] << " " << sorted[j];
    }
  }
  EXPECT_NE(NaturalLess("1", "01"), NaturalLess("01", "1"));
  EXPECT_TRUE(NaturalLess("99999999999999999999", "100000000000000000000"));
}

}  // namespace
}  // namespace shardpack
