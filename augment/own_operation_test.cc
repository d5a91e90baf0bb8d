#include "augment/own_operation.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "augment/plan.h"
#include "augment/program.h"
#include "augment/shardpack_op.h"

namespace shardpack {
namespace {

constexpr uint32_t kSide = 8;

absl::Status Nothing(const EditablePixels&, const SampleIdentity&, uint64_t) {
  return absl::OkStatus();
}

// Draws for a sample and applies.
absl::Status Apply(const AugmentPlan& plan, uint64_t id, std::vector<uint8_t>& pixels) {
  SampleProgram program;
  plan.Draw({1, 2, id}, kSide, kSide, program);
  return ProgramRunner().Apply(program, {pixels.data(), kSide, kSide, 3, kSide * 3});
}

std::vector<uint8_t> Gray() { return std::vector<uint8_t>(kSide * kSide * 3, 100); }

TEST(OwnOperationTest, StandsAmongTheOthers) {
  AugmentPlan plan = *AugmentPlan::Parse("invert own(mark) invert own(other, p=0)");
  EXPECT_EQ(plan.CheckReady().message(),
            "own(mark): no operation of this name was added to the plan");
  SampleIdentity seen;
  uint64_t first = 0;
  const auto mark = [&](const EditablePixels& image, const SampleIdentity& sample,
                        uint64_t random) {
    EXPECT_EQ(image.Row(0)[0], 155);  // inverted before
    image.Row(0)[0] = 7;
    seen = sample;
    first = random;
    return absl::OkStatus();
  };
  ASSERT_TRUE(plan.Add({.name = "mark", .run = mark}).ok());
  ASSERT_TRUE(plan.Add({.name = "other", .run = Nothing}).ok());
  EXPECT_TRUE(plan.CheckReady().ok());
  EXPECT_EQ(plan.ToText(), "augment/1 invert own(mark) invert own(other, p=0)");
  SampleProgram program;
  plan.Draw({1, 2, 3}, kSide, kSide, program);
  EXPECT_EQ(program.ToText(), "invert own(mark) invert");
  std::vector<uint8_t> pixels = Gray();
  ASSERT_TRUE(Apply(plan, 3, pixels).ok());
  EXPECT_EQ(pixels[0], 248);
  EXPECT_EQ(pixels[1], 100);
  EXPECT_EQ(seen.seed, 1u);
  EXPECT_EQ(seen.epoch, 2u);
  EXPECT_EQ(seen.id, 3u);
  const uint64_t of_three = first;
  pixels = Gray();
  ASSERT_TRUE(Apply(plan, 4, pixels).ok());
  EXPECT_NE(first, of_three);
}

TEST(OwnOperationTest, AreAppendedToPlansThatDoNotNameThem) {
  AugmentPlan plan = *AugmentPlan::Parse("own(first) invert");
  ASSERT_TRUE(plan.Add({.name = "first", .facts = "a", .run = Nothing}).ok());
  ASSERT_TRUE(plan.Add({.name = "second", .facts = "b=2", .run = Nothing}).ok());
  EXPECT_EQ(plan.ToText(), "augment/1 own(first) invert own(second)");
  EXPECT_EQ(plan.Facts(), plan.ToText() + " first{a} second{b=2}");
  EXPECT_TRUE(plan.CheckReady().ok());
  EXPECT_EQ(plan.Add({.name = "first", .run = Nothing}).message(),
            "the plan has an operation called first already");
  EXPECT_EQ(plan.Add({.name = "a b", .run = Nothing}).message(),
            "an operation is named by a word of letters, digits and _, and not a b");
  EXPECT_EQ(plan.Add({.name = "opencv", .run = Nothing}).message(),
            "opencv is the name of the library's own operations; choose another name");
  EXPECT_EQ(plan.Add({.name = "none", .run = nullptr}).message(), "none has no function");
  // A step without meaning stays one without.
  AugmentPlan open = *AugmentPlan::Parse("own(missing)");
  ASSERT_TRUE(open.Add({.name = "there", .run = Nothing}).ok());
  EXPECT_FALSE(open.CheckReady().ok());
  std::vector<uint8_t> pixels = Gray();
  EXPECT_EQ(Apply(open, 0, pixels).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(OwnOperationTest, ProgramsWithThemAreNotReplayed) {
  EXPECT_EQ(SampleProgram::Parse("invert own(0)").status().message(),
            "column 8: an operation of your own is applied by the plan that has it");
  EXPECT_EQ(AugmentPlan::Parse("own").status().message(),
            "column 1: own needs the name of an operation");
  EXPECT_EQ(AugmentPlan::Parse("batch(3)").status().message(),
            "column 7: batch has 0 parameters besides p, epochs and stream");
  EXPECT_EQ(AugmentPlan::Parse("batch(mine)")->ToText(), "augment/1 batch(mine)");
  EXPECT_TRUE(AugmentPlan::Parse("invert batch(mine) batch(other)").ok());
  for (const std::string next : {"invert", "own(it)", "rand_augment"}) {
    const absl::Status after = AugmentPlan::Parse("batch(a) batch(mine) " + next).status();
    EXPECT_EQ(after.message(), "column 22: " + next.substr(0, next.find('(')) +
                                   " stands after batch(mine), which changes whole batches when "
                                   "all other steps are done: put it last");
  }
  AugmentPlan last = *AugmentPlan::Parse("batch(mine)");
  EXPECT_EQ(last.Add({.name = "it", .run = Nothing}).code(), absl::StatusCode::kInvalidArgument);
}

TEST(OwnOperationTest, AFailureSaysWhose) {
  const auto why = [](OwnFunction run) {
    AugmentPlan plan;
    EXPECT_TRUE(plan.Add({.name = "mine", .run = std::move(run)}).ok());
    std::vector<uint8_t> pixels = Gray();
    const absl::Status done = Apply(plan, 0, pixels);
    EXPECT_EQ(done.code(), absl::StatusCode::kDataLoss);
    return std::string(done.message());
  };
  EXPECT_EQ(why([](auto&&...) { return absl::InternalError("no luck"); }), "own(mine): no luck");
  EXPECT_EQ(why([](auto&&...) -> absl::Status { throw std::runtime_error("boom"); }),
            "own(mine): an exception: boom");
  EXPECT_EQ(why([](auto&&...) -> absl::Status { throw 3; }),
            "own(mine): an exception that is not a std::exception");
}

int32_t Darken(void* self, uint8_t* pixels, uint32_t, uint32_t, uint32_t, uint64_t,
               const uint64_t* sample, uint64_t, char* error) {
  if (sample[2] == 5) {
    for (int i = 0; i < SHARDPACK_OP_ERROR_BYTES; ++i) error[i] = 'x';  // without its zero byte
    return 1;
  }
  if (sample[2] == 6) return -4;
  pixels[0] = static_cast<uint8_t>(pixels[0] - *static_cast<int*>(self));
  return 0;
}

TEST(OwnOperationTest, CanBeACFunction) {
  int amount = 30;
  AugmentPlan plan;
  ASSERT_TRUE(
      plan.Add(OwnOfC("darken", "amount=30", reinterpret_cast<const void*>(&Darken), &amount))
          .ok());
  EXPECT_EQ(plan.Facts(), "augment/1 own(darken) darken{amount=30}");
  std::vector<uint8_t> pixels = Gray();
  ASSERT_TRUE(Apply(plan, 0, pixels).ok());
  EXPECT_EQ(pixels[0], 70);
  EXPECT_EQ(Apply(plan, 5, pixels).message(),
            "own(darken): " + std::string(SHARDPACK_OP_ERROR_BYTES, 'x'));
  EXPECT_EQ(Apply(plan, 6, pixels).message(), "own(darken): it returned -4");
  EXPECT_EQ(AugmentPlan().Add(OwnOfC("none", "", nullptr, nullptr)).message(),
            "none has no function");
}

TEST(PluginTest, IsAnOperation) {
  const auto opened = OpenPlugin("augment/test_plugin_good.so", "amount=3");
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->name, "good");
  EXPECT_TRUE(opened->facts.starts_with("amount=3 xxh3:")) << opened->facts;
  AugmentPlan plan;
  ASSERT_TRUE(plan.Add(*opened).ok());
  std::vector<uint8_t> a = Gray(), b = Gray(), c = Gray();
  ASSERT_TRUE(Apply(plan, 1, a).ok() && Apply(plan, 1, b).ok() && Apply(plan, 2, c).ok());
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
}

TEST(PluginTest, WhatIsNoneIsNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"augment/no_such.so", "augment/no_such.so"},
      {"augment/shardpack_op.h", "augment/shardpack_op.h is not a plug-in: "},
      {"augment/test_plugin_bare.so",
       "augment/test_plugin_bare.so is not a plug-in: it exports no shardpack_op_v1"},
      {"augment/test_plugin_name.so",
       "augment/test_plugin_name.so is not a plug-in: its name is not a word"},
      {"augment/test_plugin_run.so",
       "augment/test_plugin_run.so is not a plug-in: its run is NULL"},
      {"augment/test_plugin_make.so",
       "augment/test_plugin_make.so: its make has thrown an exception: never"},
  };
  for (const auto& [path, why] : cases) {
    const absl::Status status = OpenPlugin(path, "").status();
    EXPECT_EQ(status.code(), path == cases[0].first ? absl::StatusCode::kNotFound
                                                    : absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(status.message().find(why), absl::string_view::npos) << status;
  }
  EXPECT_EQ(OpenPlugin("augment/test_plugin_abi.so", "").status(),
            absl::UnimplementedError("augment/test_plugin_abi.so is a plug-in of another version: "
                                     "its shardpack_op_v1 has ABI 7, and this library 1; a new "
                                     "build needs a new process, or another name"));
  EXPECT_EQ(OpenPlugin("augment/test_plugin_good.so", "loud").status().message(),
            "augment/test_plugin_good.so refuses the parameters loud: not so loud");
}

// What is loaded stays, so the hash of the new file would be a lie.
TEST(PluginTest, AFileThatHasChangedIsRefused) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "changed";
  fs::create_directories(folder);
  const std::string path = folder / "a.so", linked = folder / "b.so", copied = folder / "c.so";
  const std::string given = "augment/test_plugin_good.so";
  const auto replace = [&](std::string_view more) {  // by another file, as a linker does
    const fs::path part = folder / "part";
    fs::copy_file(given, part);
    fs::permissions(part, fs::perms::owner_write, fs::perm_options::add);
    std::ofstream(part, std::ios::app) << more;
    fs::rename(part, path);
  };
  replace("");
  const auto first = OpenPlugin(path, "");
  ASSERT_TRUE(first.ok()) << first.status();
  fs::create_hard_link(path, linked);
  fs::copy_file(path, copied);
  const auto says = [](const std::string& of) {
    return absl::FailedPreconditionError(
        of +
        " has changed since this process loaded it, and what is loaded stays: use the new plug-in "
        "in a new process, or under another name");
  };
  replace("new");
  EXPECT_EQ(OpenPlugin(path, "").status(), says(path));
  EXPECT_TRUE(OpenPlugin(linked, "").ok());  // the file that is loaded
  std::ofstream(linked, std::ios::app) << "in place";
  EXPECT_EQ(OpenPlugin(linked, "").status(), says(linked));
  replace("");
  const auto again = OpenPlugin(path, ""), other = OpenPlugin(copied, "");
  ASSERT_TRUE(again.ok()) << again.status();
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(again->facts, first->facts);
  EXPECT_EQ(other->facts, first->facts);
}

}  // namespace
}  // namespace shardpack
