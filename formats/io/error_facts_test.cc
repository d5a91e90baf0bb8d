#include "formats/io/error_facts.h"

#include <errno.h>

#include <string>
#include <utility>

#include "formats/io/file.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

TEST(ErrorFacts, SurviveRewording) {
  const ErrorFacts facts = {.system_errno = EIO,
                            .path = "a\xff/b",
                            .shard = "s",
                            .key = std::string("k\0y", 3),
                            .field = "image",
                            .record = 7,
                            .offset = 512,
                            .id = 0};
  const absl::Status status = WithFacts(absl::DataLossError("cut short"), facts);
  EXPECT_EQ(FactsOf(status), facts);
  const absl::Status reworded = Reworded(status, "reading: cut short", absl::StatusCode::kInternal);
  EXPECT_EQ(FactsOf(reworded), facts);
  EXPECT_EQ(reworded.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(std::string(reworded.message()), "reading: cut short");
}

TEST(ErrorFacts, KeepWhatIsCloserToTheCause) {
  absl::Status status = WithFacts(absl::DataLossError(""), {.path = "inner", .record = 1});
  status = WithFacts(std::move(status), {.path = "outer", .record = 2, .id = 3});
  EXPECT_EQ(FactsOf(status), (ErrorFacts{.path = "inner", .record = 1, .id = 3}));
}

TEST(ErrorFacts, OfNothing) {
  EXPECT_EQ(FactsOf(absl::OkStatus()), ErrorFacts());
  EXPECT_EQ(FactsOf(absl::DataLossError("x")), ErrorFacts());
  EXPECT_TRUE(WithFacts(absl::OkStatus(), {.path = "x"}).ok());
}

TEST(ErrorFacts, OfAnErrorOfTheSystem) {
  const ErrorFacts facts = FactsOf(File::OpenRead("/nowhere/at all").status());
  EXPECT_EQ(facts.system_errno, ENOENT);
  EXPECT_EQ(facts.path, "/nowhere/at all");
}

}  // namespace
}  // namespace shardpack
