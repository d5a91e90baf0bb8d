#include "converters/building/shard_queue.h"

#include <memory>
#include <utility>

#include "gtest/gtest.h"

namespace shardpack {
namespace {

std::unique_ptr<InFlightChunk> Chunk(uint64_t sequence) {
  auto chunk = std::make_unique<InFlightChunk>();
  chunk->sequence = sequence;
  return chunk;
}

TEST(ShardQueueTest, GivesChunksInTheirOrder) {
  ShardQueue queue;
  queue.Add(Chunk(1));
  ASSERT_TRUE(queue.TryBeginAppending());
  EXPECT_EQ(queue.TakeNext(), nullptr);
  queue.Add(Chunk(2));
  queue.Add(Chunk(0));
  ASSERT_TRUE(queue.TryBeginAppending());
  for (const uint64_t sequence : {0, 1, 2}) {
    EXPECT_TRUE(queue.IsNext(sequence));
    const std::unique_ptr<InFlightChunk> next = queue.TakeNext();
    ASSERT_NE(next, nullptr);
    EXPECT_EQ(next->sequence, sequence);
  }
  EXPECT_EQ(queue.TakeNext(), nullptr);
  EXPECT_TRUE(queue.IsNext(3));
}

TEST(ShardQueueTest, OneThreadAppends) {
  ShardQueue queue;
  queue.Add(Chunk(0));
  ASSERT_TRUE(queue.TryBeginAppending());
  EXPECT_FALSE(queue.TryBeginAppending());
  EXPECT_NE(queue.TakeNext(), nullptr);
  EXPECT_FALSE(queue.TryBeginAppending()) << "it is still appending that chunk";
  queue.Add(Chunk(1));
  EXPECT_NE(queue.TakeNext(), nullptr);
  EXPECT_EQ(queue.TakeNext(), nullptr);
  EXPECT_TRUE(queue.TryBeginAppending());
  queue.EndAppending();
  EXPECT_TRUE(queue.TryBeginAppending());
}

TEST(ShardQueueTest, AFailedShardGivesAllItHas) {
  ShardQueue queue;
  queue.Add(Chunk(5));
  queue.Add(Chunk(3));
  ASSERT_TRUE(queue.TryBeginAppending());
  queue.IgnoreOrder();
  EXPECT_NE(queue.TakeNext(), nullptr);
  EXPECT_NE(queue.TakeNext(), nullptr);
  EXPECT_EQ(queue.TakeNext(), nullptr);
}

}  // namespace
}  // namespace shardpack
