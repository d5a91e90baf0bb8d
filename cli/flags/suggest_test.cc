#include "cli/flags/suggest.h"

#include <gtest/gtest.h>

#include "formats/io/edit_distance.h"

namespace shardpack::cli {
namespace {

TEST(Suggest, CountsEdits) {
  EXPECT_EQ(EditDistance("validate", "validate"), 0u);
  EXPECT_EQ(EditDistance("valdate", "validate"), 1u);
  EXPECT_EQ(EditDistance("vaildate", "validate"), 1u);  // a swap counts as one
  EXPECT_EQ(EditDistance("VALIDATE", "validate"), 0u);
  EXPECT_EQ(EditDistance("", "plan"), 4u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
}

TEST(Suggest, OnlyWhatIsNear) {
  const std::string words[] = {"build", "plan", "validate", "--shard-size", "webdataset"};
  EXPECT_EQ(Nearest("valdate", words), "validate");
  EXPECT_EQ(Nearest("--shard-sise", words), "--shard-size");
  EXPECT_EQ(Nearest("webdatset", words), "webdataset");
  EXPECT_EQ(Nearest("val", words), "validate");  // a prefix
  EXPECT_EQ(Nearest("photos", words), "");
  EXPECT_EQ(Nearest("x", words), "");
  EXPECT_EQ(Nearest(std::string(100000, 'x'), words), "");
  EXPECT_EQ(DidYouMean("pln", words), "; did you mean plan?");
  EXPECT_EQ(DidYouMean("photos", words), "");
}

TEST(Suggest, ControlCharactersDoNotReachTheTerminal) {
  const std::string words[] = {"new\nline", "esc\x1b[31mred"};
  for (const std::string typed : {"newline", "esc[31mred"}) {
    const std::string meant = DidYouMean(typed, words);
    EXPECT_NE(meant, "");
    EXPECT_EQ(meant.find_first_of("\n\x1b"), std::string::npos) << meant;
  }
}

}  // namespace
}  // namespace shardpack::cli
