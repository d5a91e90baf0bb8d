#include "validators/checks/key_hashes.h"

#include <random>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(KeyHashes, FindsWhatComesTwiceAndIgnoresNoKey) {
  const std::vector<uint64_t> a = {0, 5, 7, 0, ~uint64_t{0}}, b = {7, 9, 0, 5, 5};
  const std::span<const uint64_t> both[] = {a, b};
  EXPECT_THAT(RepeatedHashes(both, 10), ElementsAre(5, 7));
  EXPECT_THAT(RepeatedHashes(both, 1), ElementsAre(5));
  EXPECT_THAT(RepeatedHashes({}, 10), IsEmpty());
  EXPECT_EQ(HashKey(""), 0u);
  EXPECT_NE(HashKey("a"), 0u);
}

TEST(KeyHashes, AgreesWithASetOnManyHashes) {
  std::mt19937_64 random(3);
  std::vector<uint64_t> hashes;
  std::set<uint64_t> seen, twice;
  for (int i = 0; i < 200000; ++i) {
    const uint64_t hash = i % 1000 == 999 ? hashes[random() % hashes.size()] : random() | 1;
    hashes.push_back(hash);
    if (!seen.insert(hash).second) twice.insert(hash);
  }
  const std::span<const uint64_t> all[] = {hashes};
  EXPECT_EQ(RepeatedHashes(all, 100000), std::vector<uint64_t>(twice.begin(), twice.end()));
}

}  // namespace
}  // namespace shardpack
