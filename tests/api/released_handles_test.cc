// What a debug build does about handles that are used or released after their last release.
#include "api/handles.h"
#include "gtest/gtest.h"

namespace {

static_assert(shardpack::api::kKeepReleasedHandles);

shardpack_order* ReleasedOrder() {
  shardpack_order* order = nullptr;
  EXPECT_EQ(shardpack_order_make(3, nullptr, &order, nullptr), SHARDPACK_OK);
  EXPECT_EQ(shardpack_order_retain(order), order);
  shardpack_order_release(order);
  EXPECT_EQ(shardpack_order_steps(order), 3u);  // one reference is left
  shardpack_order_release(order);
  return order;
}

TEST(ReleasedHandlesDeathTest, AreNotReleasedAgain) {
  shardpack_order* const order = ReleasedOrder();
  EXPECT_DEATH(shardpack_order_release(order), "after its last release");
}

TEST(ReleasedHandlesDeathTest, AreNotUsed) {
  shardpack_order* const order = ReleasedOrder();
  uint64_t id = 0;
  EXPECT_DEATH(shardpack_order_retain(order), "after its last release");
  EXPECT_DEATH(shardpack_order_ids(order, 0, 0, 0, &id, 1, nullptr), "after its last release");
}

}  // namespace
