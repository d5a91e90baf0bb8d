#include "converters/listing/arena.h"

#include <cstring>

#include "gtest/gtest.h"

namespace shardpack {
namespace {

TEST(ArenaTest, SpansAreAlignedDistinctAndStable) {
  Arena arena;
  std::vector<std::span<std::byte>> spans;
  for (size_t i = 0; i < 3000; ++i) {
    spans.push_back(arena.Allocate(i % 700));
    ASSERT_EQ(reinterpret_cast<uintptr_t>(spans.back().data()) % 64, 0u);
    std::memset(spans.back().data(), static_cast<int>(i), spans.back().size());
  }
  for (size_t i = 0; i < spans.size(); ++i) {
    for (const std::byte byte : spans[i]) ASSERT_EQ(byte, static_cast<std::byte>(i));
  }
}

TEST(ArenaTest, ResetKeepsMemoryAndTrimGivesBackTheRest) {
  Arena arena;
  const auto first = arena.Allocate(100'000);
  arena.TrimLast(first, 10);
  const auto second = arena.Allocate(10);
  EXPECT_EQ(second.data(), first.data() + 64);
  arena.Reset();
  EXPECT_EQ(arena.Allocate(1).data(), first.data());
}

TEST(ArenaTest, LargeBlocksAreGivenBack) {
  Arena arena;
  arena.Allocate(size_t{64} << 20);
  arena.Reset(1 << 20);
  const auto small = arena.Allocate(100);
  std::memset(small.data(), 1, small.size());
  EXPECT_THROW(arena.Allocate(SIZE_MAX - 5), std::bad_alloc);
}

}  // namespace
}  // namespace shardpack
