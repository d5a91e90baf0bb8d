#include "readers/loading/slab_pool.h"

#include <atomic>
#include <cstring>
#include <thread>
#include <utility>

#include "gtest/gtest.h"

namespace shardpack {
namespace {

using Patience = SlabPool::Patience;
constexpr size_t kSlab = 4096;

Patience Wait() { return Patience::kWait; }
Patience Urgent() { return Patience::kUrgent; }
Patience GiveUp() { return Patience::kGiveUp; }

TEST(PageableMemory, GivesAlignedMemoryWithinItsBudget) {
  PageableMemory memory(8 << 20);
  const absl::StatusOr<std::span<std::byte>> small = memory.Allocate(100);
  ASSERT_TRUE(small.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(small->data()) % 64, 0u);
  const absl::StatusOr<std::span<std::byte>> large = memory.Allocate((2 << 20) + 1);
  ASSERT_TRUE(large.ok());
  EXPECT_EQ(large->size(), (2u << 20) + 1);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(large->data()) % (2 << 20), 0u);
  std::memset(large->data(), 7, large->size());
  EXPECT_EQ(memory.allocated_bytes(), 4096u + (4u << 20));
  EXPECT_TRUE(absl::IsResourceExhausted(memory.Allocate(5 << 20).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(memory.Allocate(size_t{1} << 60).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(memory.Allocate(0).status()));
  memory.Free(*small);
  memory.Free(*large);
  EXPECT_EQ(memory.allocated_bytes(), 0u);
}

TEST(SlabPool, LeasesAreDisjointAndComeBack) {
  PageableMemory memory;
  const auto pool = *SlabPool::Create(memory, kSlab, 4);
  const size_t runs[] = {1, 2};
  absl::StatusOr<SlabLease> first = pool->Acquire(runs, GiveUp);
  ASSERT_TRUE(first.ok());
  ASSERT_EQ(first->runs().size(), 2u);
  EXPECT_EQ(first->runs()[0].size(), kSlab);
  EXPECT_EQ(first->runs()[1].size(), 2 * kSlab);
  const size_t one[] = {1};
  absl::StatusOr<SlabLease> second = pool->Acquire(one, GiveUp);
  ASSERT_TRUE(second.ok());
  std::memset(first->runs()[0].data(), 1, kSlab);
  std::memset(first->runs()[1].data(), 2, 2 * kSlab);
  std::memset(second->runs()[0].data(), 3, kSlab);
  EXPECT_EQ(first->runs()[0].back(), std::byte{1});
  EXPECT_EQ(first->runs()[1].back(), std::byte{2});
  EXPECT_TRUE(absl::IsCancelled(pool->Acquire(one, GiveUp).status()));
  SlabLease moved = *std::move(first);
  moved.Return();
  moved.Return();  // only once
  EXPECT_TRUE(pool->Acquire(runs, GiveUp).ok());
  EXPECT_EQ(pool->peak_slabs(), 4u);
}

TEST(SlabPool, ARunIsContiguousOrNotGiven) {
  PageableMemory memory;
  const auto pool = *SlabPool::Create(memory, kSlab, 4);
  const size_t one[] = {1}, two[] = {2};
  SlabLease leases[4];
  for (SlabLease& lease : leases) lease = *pool->Acquire(one, GiveUp);
  leases[0].Return();
  leases[2].Return();
  EXPECT_TRUE(absl::IsCancelled(pool->Acquire(two, GiveUp).status()));  // free, but not adjacent
  leases[1].Return();
  EXPECT_TRUE(pool->Acquire(two, GiveUp).ok());
}

TEST(SlabPool, WhoIsUrgentOrTooLargeGetsMemoryOfHisOwn) {
  PageableMemory memory(10 * kSlab);
  const auto pool = *SlabPool::Create(memory, kSlab, 2);
  const size_t two[] = {2}, five[] = {5};
  const SlabLease all = *pool->Acquire(two, GiveUp);
  {
    const absl::StatusOr<SlabLease> urgent = pool->Acquire(two, Urgent);
    ASSERT_TRUE(urgent.ok());
    EXPECT_EQ(pool->overflow_bytes(), 2 * kSlab);
    EXPECT_TRUE(absl::IsCancelled(pool->Acquire(five, GiveUp).status()));
    const absl::StatusOr<SlabLease> large = pool->Acquire(five, Urgent);
    ASSERT_TRUE(large.ok());
    EXPECT_EQ(large->runs()[0].size(), 5 * kSlab);
    EXPECT_EQ(pool->overflow_bytes(), 7 * kSlab);
    EXPECT_TRUE(absl::IsResourceExhausted(pool->Acquire(five, Urgent).status()));
  }
  EXPECT_EQ(pool->overflow_bytes(), 0u);
  EXPECT_EQ(memory.allocated_bytes(), 2 * kSlab);
}

TEST(SlabPool, WhatIsLargerThanThePoolWaitsUntilItIsAlone) {
  PageableMemory memory;
  const auto pool = *SlabPool::Create(memory, kSlab, 2);
  const size_t one[] = {1}, five[] = {5};
  SlabLease small = *pool->Acquire(one, GiveUp);
  EXPECT_TRUE(absl::IsCancelled(pool->Acquire(five, GiveUp).status()));
  small.Return();
  const SlabLease large = *pool->Acquire(five, GiveUp);
  EXPECT_EQ(large.runs()[0].size(), 5 * kSlab);
  EXPECT_TRUE(absl::IsCancelled(pool->Acquire(five, GiveUp).status()));
}

TEST(SlabPool, ALeaseOutlivesThePoolsOwner) {
  PageableMemory memory;
  SlabLease lease;
  {
    const auto pool = *SlabPool::Create(memory, kSlab, 1);
    const size_t one[] = {1};
    lease = *pool->Acquire(one, Wait);
  }
  std::memset(lease.runs()[0].data(), 1, kSlab);
  lease.Return();
  EXPECT_EQ(memory.allocated_bytes(), 0u);
}

TEST(SlabPool, WaitingEndsWithAReturnOrWithAPoke) {
  PageableMemory memory;
  const auto pool = *SlabPool::Create(memory, kSlab, 1);
  const size_t one[] = {1};
  SlabLease held = *pool->Acquire(one, Wait);
  std::atomic<bool> waits{false}, stop{false};
  std::thread waiter([&] {
    const auto patience = [&] {
      waits = true;
      return stop ? Patience::kGiveUp : Patience::kWait;
    };
    EXPECT_TRUE(pool->Acquire(one, patience).ok());
    const SlabLease again = *pool->Acquire(one, patience);
    waits = false;
    EXPECT_TRUE(absl::IsCancelled(pool->Acquire(one, patience).status()));
  });
  while (!waits) std::this_thread::yield();
  held.Return();
  while (!waits || pool->peak_slabs() == 0) std::this_thread::yield();
  stop = true;
  for (int i = 0; i < 100; ++i) {  // until it is past its second lease
    pool->Poke();
    std::this_thread::yield();
  }
  waiter.join();
}

}  // namespace
}  // namespace shardpack
