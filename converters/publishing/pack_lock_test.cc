#include "converters/publishing/pack_lock.h"

#include <filesystem>
#include <string>
#include <utility>

#include "converters/publishing/pack_names.h"
#include "formats/testing/scratch_folder.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

class PackLockTest : public ::testing::Test {
 protected:
  PackLockTest() { std::filesystem::create_directories(scratch_.File("out/.pack")); }
  std::string out() const { return scratch_.File("out"); }
  bool IsThere() const { return std::filesystem::exists(out() + "/" + std::string(kLockName)); }

  ::shardpack::testing::ScratchFolder scratch_;
};

TEST_F(PackLockTest, ThoseWhoShareKeepOutWhoWorksAloneThoughNobodyHasLockedBefore) {
  auto first = SharePackFolder(out());
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(first->created);
  auto second = SharePackFolder(out());
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_FALSE(second->created);
  EXPECT_TRUE(absl::IsFailedPrecondition(LockPackFolder(out()).status()));
  first->file = File();
  EXPECT_TRUE(absl::IsFailedPrecondition(LockPackFolder(out()).status()));
  second->file = File();
  EXPECT_TRUE(LockPackFolder(out()).ok());
}

TEST_F(PackLockTest, WhoWorksAloneKeepsOutThoseWhoShare) {
  const auto alone = LockPackFolder(out());
  ASSERT_TRUE(alone.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(SharePackFolder(out()).status()));
}

TEST_F(PackLockTest, ARefusedRunLeavesNoLockUnlessOthersUseIt) {
  auto refused = SharePackFolder(out());
  ASSERT_TRUE(refused.ok());
  EXPECT_TRUE(IsThere());
  UndoSharing(out(), *std::move(refused));
  EXPECT_FALSE(IsThere());

  refused = SharePackFolder(out());
  const auto other = SharePackFolder(out());
  UndoSharing(out(), *std::move(refused));
  EXPECT_TRUE(IsThere());
  EXPECT_TRUE(absl::IsFailedPrecondition(LockPackFolder(out()).status()));
  refused = SharePackFolder(out());  // not of its making
  EXPECT_FALSE(refused->created);
}

TEST_F(PackLockTest, WithoutItsFolderNothingIsLocked) {
  std::filesystem::remove(out() + "/.pack");
  const auto shared = SharePackFolder(out());
  ASSERT_TRUE(shared.ok()) << shared.status();
  EXPECT_FALSE(shared->file.is_open());
}

}  // namespace
}  // namespace shardpack
