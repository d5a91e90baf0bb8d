#include "converters/listing/sidecars.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "converters/testing/made_up.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

// As FolderSource lists them: each file's size is its position in the list.
Listing Walked(std::vector<std::string> paths) {
  Listing listing = testing::MakeListing(std::move(paths));
  for (uint64_t row = 0; row < listing.rows(); ++row) {
    listing.bytes[row] = 100 + row;
    listing.mtime_ns[row] = static_cast<int64_t>(row);
    listing.places.push_back(1000 + row);
  }
  return listing;
}

std::vector<std::string> Paths(const Listing& listing) {
  std::vector<std::string> paths;
  for (uint64_t row = 0; row < listing.rows(); ++row) paths.push_back(listing.Path(row));
  return paths;
}

TEST(SidecarsTest, ParsesWhatUsersType) {
  const auto sidecars = ParseSidecars("json,.TXT,png:mask,seg.png");
  ASSERT_TRUE(sidecars.ok()) << sidecars.status();
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const Sidecar& sidecar : *sidecars) pairs.emplace_back(sidecar.suffix, sidecar.field);
  EXPECT_THAT(pairs, ElementsAre(Pair("json", "json"), Pair("TXT", "txt"), Pair("png", "mask"),
                                 Pair("seg.png", "seg.png")));
  for (const char* bad : {"", "json,", ",json", "json:", ":mask", "a/b", "json:a/b", "json:Mask",
                          "json:image", "json,json", "json:a,txt:a", "json:a b"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseSidecars(bad).status())) << bad;
  }
}

TEST(SidecarsTest, PartsBecomeFields) {
  const auto sidecars = *ParseSidecars("json,png:mask");
  Listing listing = Walked({"a/1.jpg", "a/1.json", "a/1.png", "b/1.jpg", "b/1.json", "b/1.png"});
  ASSERT_TRUE(PairSidecars(sidecars, MissingPart::kError, listing).ok());
  EXPECT_THAT(Paths(listing), ElementsAre("a/1.jpg", "b/1.jpg"));
  EXPECT_THAT(listing.fields, ElementsAre(ListedField{"json", "json"}, ListedField{"mask", "png"}));
  EXPECT_THAT(listing.bytes, ElementsAre(100, 103));
  EXPECT_THAT(listing.field_bytes, ElementsAre(101, 102, 104, 105));
  EXPECT_THAT(listing.field_mtime_ns, ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(listing.places, ElementsAre(1000, 1001, 1002, 1003, 1004, 1005));
  EXPECT_THAT(listing.skips, IsEmpty());
  EXPECT_EQ(listing.SampleBytes(1), 103u + 104 + 105);
}

TEST(SidecarsTest, TheLongestSuffixDecides) {
  const auto sidecars = *ParseSidecars("png:other,mask.png:mask");
  Listing listing = Walked({"1.jpg", "1.mask.png", "1.png"});
  ASSERT_TRUE(PairSidecars(sidecars, MissingPart::kError, listing).ok());
  EXPECT_THAT(listing.field_bytes, ElementsAre(102, 101));
}

TEST(SidecarsTest, MissingPartsAndUnpairedFilesAreSkippedAndListed) {
  const auto sidecars = *ParseSidecars("json");
  Listing listing = Walked({"1.jpg", "1.json", "2.jpg", "3.json"});
  ASSERT_TRUE(PairSidecars(sidecars, MissingPart::kSkip, listing).ok());
  EXPECT_THAT(Paths(listing), ElementsAre("1.jpg", "2.jpg", "3.json"));
  ASSERT_EQ(listing.skips.size(), 2u);
  EXPECT_EQ(listing.skips[0].row, 1u);
  EXPECT_EQ(listing.skips[0].reason, SkipReason::kUnpaired);
  EXPECT_THAT(listing.skips[0].detail, HasSubstr("json"));
  EXPECT_EQ(listing.skips[1].row, 2u);
  EXPECT_THAT(listing.field_bytes, ElementsAre(101, 0, 0));
}

TEST(SidecarsTest, OrTheyAreAnError) {
  const auto sidecars = *ParseSidecars("json");
  Listing lacking = Walked({"1.jpg", "1.json", "2.jpg"}),
          unpaired = Walked({"1.jpg", "1.json", "2.json"});
  const absl::Status lacks = PairSidecars(sidecars, MissingPart::kError, lacking);
  EXPECT_TRUE(absl::IsInvalidArgument(lacks));
  EXPECT_THAT(std::string(lacks.message()), HasSubstr("2.jpg lacks its part json"));
  EXPECT_TRUE(absl::IsInvalidArgument(PairSidecars(sidecars, MissingPart::kError, unpaired)));
  // Of a sample that is a jpg, the name alone would say the opposite.
  Listing second = Walked({"1.png", "1.seg.jpg", "2.png"});
  const absl::Status image =
      PairSidecars(*ParseSidecars("seg.jpg:jpg"), MissingPart::kError, second);
  EXPECT_THAT(std::string(image.message()), HasSubstr("lacks its part jpg, a second image; "));
}

TEST(SidecarsTest, OrTheFieldIsWrittenForNone) {
  const auto sidecars = *ParseSidecars("json,txt");
  Listing listing = Walked({"1.jpg", "1.json", "1.txt", "2.jpg", "2.txt", "3.json"});
  ASSERT_TRUE(PairSidecars(sidecars, MissingPart::kDrop, listing).ok());
  EXPECT_THAT(Paths(listing), ElementsAre("1.jpg", "2.jpg"));
  EXPECT_THAT(listing.fields, ElementsAre(ListedField{"txt", "txt"}));
  EXPECT_THAT(listing.field_bytes, ElementsAre(102, 104));
  EXPECT_THAT(listing.places, ElementsAre(1000, 1002, 1003, 1004));
  EXPECT_THAT(listing.skips, IsEmpty());
  EXPECT_THAT(listing.ignored, ElementsAre(Pair("json", 1)));
  EXPECT_EQ(listing.warnings.size(), 1u);
}

TEST(SidecarsTest, OrWhereItIs) {
  const auto sidecars = *ParseSidecars("json,txt");
  Listing listing =
      Walked({"1.jpg", "1.txt", "2.jpg", "2.json", "2.txt", "3.json", "4.jpg", "4.txt"});
  listing.skips = {{1, SkipReason::kEmpty, ""}, {7, SkipReason::kPermission, ""}};
  ASSERT_TRUE(PairSidecars(sidecars, MissingPart::kKeep, listing).ok());
  EXPECT_THAT(Paths(listing), ElementsAre("1.jpg", "2.jpg", "3.json", "4.jpg"));
  EXPECT_FALSE(listing.HasField(0, 0));
  EXPECT_TRUE(listing.HasField(0, 1));  // empty, but present
  EXPECT_TRUE(listing.HasField(1, 0));
  EXPECT_EQ(listing.SampleBytes(0), 100u + 101);
  ASSERT_EQ(listing.skips.size(), 2u);  // a part without an image, and one that cannot be read
  EXPECT_EQ(listing.skips[0].reason, SkipReason::kUnpaired);
  EXPECT_EQ(listing.skips[1].reason, SkipReason::kPermission);
  ASSERT_EQ(listing.warnings.size(), 1u);
  EXPECT_THAT(listing.warnings[0], HasSubstr("1 of 2 samples are packed without the part json"));
}

TEST(SidecarsTest, AFolderOfPartsAloneIsLeft) {
  Listing listing = Walked({"a/1.json", "b/1.jpg", "b/1.json", "c/1.json", "d/1.jpg", "d/1.json"});
  ASSERT_TRUE(PairSidecars(*ParseSidecars("json"), MissingPart::kDrop, listing).ok());
  EXPECT_THAT(listing.folders, ElementsAre("b", "d"));
  EXPECT_THAT(Paths(listing), ElementsAre("b/1.jpg", "d/1.jpg"));
}

TEST(SidecarsTest, ABadPartIsTheReasonOfItsImage) {
  const auto sidecars = *ParseSidecars("json");
  Listing listing = Walked({"1.jpg", "1.json", "2.jpg", "2.json"});
  listing.skips = {{1, SkipReason::kDangling, ""}, {2, SkipReason::kPermission, ""}};
  ASSERT_TRUE(PairSidecars(sidecars, MissingPart::kSkip, listing).ok());
  ASSERT_EQ(listing.skips.size(), 2u);
  EXPECT_EQ(listing.skips[0], (Skip{0, SkipReason::kDangling, "its part 1.json"}));
  EXPECT_EQ(listing.skips[1], (Skip{1, SkipReason::kPermission, ""}));
}

}  // namespace
}  // namespace shardpack
