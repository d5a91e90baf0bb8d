#include "converters/building/sample_spool.h"

#include <errno.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "formats/testing/fault_injection.h"
#include "formats/testing/scratch_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::shardpack::testing::FaultInjection;
using ::shardpack::testing::ScratchFolder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SampleSpoolTest : public ::testing::Test {
 protected:
  SampleSpoolTest() : spool_(*StagedFile::Create(scratch_.File("spool"))) {}

  absl::Status Add(uint64_t position, const std::string& image, const std::string& text) {
    const std::array<FieldView, 2> fields = {
        {{kImageField, AsBytes(image)}, {"txt", AsBytes(text)}}};
    const std::array<uint64_t, 2> hashes = {position * 10, position * 10 + 1};
    PreparedSample sample;
    sample.position = position;
    sample.fields = fields;
    sample.changes = kResized;
    return spool_.Add(sample, hashes);
  }

  ScratchFolder scratch_;
  SampleSpool spool_;
};

TEST_F(SampleSpoolTest, GivesBackWhatItWasGiven) {
  ASSERT_TRUE(Add(7, "image seven", "").ok());
  ASSERT_TRUE(Add(9, std::string(100'000, 'x'), "text nine").ok());
  const std::vector<FieldTotal> totals = spool_.Totals();
  ASSERT_EQ(totals.size(), 2u);
  EXPECT_EQ(totals[0].name, kImageField);
  EXPECT_EQ(totals[0].max_bytes, 11u + 100'000);
  EXPECT_EQ(totals[1].name, "txt");
  EXPECT_EQ(totals[1].max_bytes, 9u);
  std::vector<std::string> texts;
  const absl::Status all =
      spool_.ForEach([&](const PreparedSample& sample, std::span<const uint64_t> hashes) {
        EXPECT_EQ(hashes[0], sample.position * 10);
        EXPECT_EQ(hashes[1], sample.position * 10 + 1);
        EXPECT_EQ(sample.changes, kResized);
        EXPECT_EQ(sample.fields[0].bytes.size(), sample.position == 7 ? 11u : 100'000u);
        EXPECT_EQ(sample.fields[1].name, "txt");
        texts.emplace_back(AsText(sample.fields[1].bytes));
        return absl::OkStatus();
      });
  EXPECT_TRUE(all.ok()) << all;
  EXPECT_THAT(texts, ElementsAre("", "text nine"));
}

TEST_F(SampleSpoolTest, WithoutSamples) {
  EXPECT_THAT(spool_.Totals(), IsEmpty());
  EXPECT_TRUE(spool_
                  .ForEach([](const PreparedSample&, std::span<const uint64_t>) {
                    return absl::InternalError("called");
                  })
                  .ok());
}

TEST_F(SampleSpoolTest, TheFirstErrorEndsIt) {
  ASSERT_TRUE(Add(1, "a", "b").ok());
  ASSERT_TRUE(Add(2, "c", "d").ok());
  int calls = 0;
  const auto refuse = [&](const PreparedSample&, std::span<const uint64_t>) {
    ++calls;
    return absl::InternalError("full");
  };
  EXPECT_EQ(spool_.ForEach(refuse), absl::InternalError("full"));
  EXPECT_EQ(calls, 1);
  FaultInjection faults;
  faults.FailReadsAt(0, EIO);
  EXPECT_FALSE(spool_.ForEach(refuse).ok());
  EXPECT_EQ(calls, 1);
}

TEST_F(SampleSpoolTest, RemovesItsFile) {
  {
    SampleSpool other(*StagedFile::Create(scratch_.File("other")));
    EXPECT_THAT(scratch_.Names(), ElementsAre("other", "spool"));
  }
  EXPECT_THAT(scratch_.Names(), ElementsAre("spool"));
}

}  // namespace
}  // namespace shardpack
