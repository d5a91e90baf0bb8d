#include "readers/order/order.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "readers/order/rank.h"

namespace shardpack {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<uint64_t>;

constexpr OrderMode kModes[] = {OrderMode::kSequential, OrderMode::kShuffle,
                                OrderMode::kBlockShuffle};

// Small blocks, so that small orders have many windows.
OrderSpec Spec(uint64_t samples, OrderMode mode, uint32_t global_batch = 1,
               Tail tail = Tail::kDrop) {
  return {.samples = samples,
          .mode = mode,
          .seed = 7,
          .global_batch = global_batch,
          .tail = tail,
          .block_samples = 7,
          .window_blocks = 3};
}

Order Make(const OrderSpec& spec) {
  absl::StatusOr<Order> order = Order::Make(spec);
  EXPECT_TRUE(order.ok()) << order.status();
  return *std::move(order);
}

// All slots of an epoch, including padding.
Ids Epoch(const Order& order, uint64_t epoch) {
  Ids ids(order.steps() * order.spec().global_batch);
  order.Ids(epoch, 0, 0, ids);
  return ids;
}

Ids Joined(const Order& order, uint64_t epochs) {
  Ids ids;
  for (uint64_t epoch = 0; epoch < epochs; ++epoch) {
    const Ids more = Epoch(order, epoch);
    ids.insert(ids.end(), more.begin(), more.end());
  }
  return ids;
}

Ids Sorted(Ids ids) {
  std::sort(ids.begin(), ids.end());
  return ids;
}

// The numbers starting at `first`.
Ids Range(uint64_t first, uint64_t count) {
  Ids ids(count);
  for (uint64_t i = 0; i < count; ++i) ids[i] = first + i;
  return ids;
}

std::shared_ptr<const Ids> Shared(Ids ids) { return std::make_shared<const Ids>(std::move(ids)); }

OrderSpec Mixed(std::vector<MixturePart> parts, uint64_t epoch_samples,
                OrderMode mode = OrderMode::kShuffle) {
  OrderSpec spec = Spec(0, mode);
  for (const MixturePart& part : parts) {
    spec.samples = std::max(spec.samples, part.first_id + part.samples);
  }
  spec.mixture = std::move(parts);
  spec.epoch_samples = epoch_samples;
  return spec;
}

TEST(OrderTest, APassHoldsEachSampleOnceForEverySize) {
  for (const OrderMode mode : kModes) {
    for (uint64_t samples = 1; samples <= 2000; ++samples) {
      const Order whole = Make(Spec(samples, mode));
      ASSERT_EQ(whole.steps(), samples);
      ASSERT_EQ(whole.samples(), samples);
      ASSERT_EQ(Sorted(Epoch(whole, samples % 5)), Range(0, samples)) << whole.explain();
      const Order padded = Make(Spec(samples, mode, 12, Tail::kPad));
      ASSERT_EQ(padded.samples(), samples);
      ASSERT_EQ(padded.steps(), (samples + 11) / 12);
      Ids ids = Epoch(padded, samples % 5);
      for (size_t i = samples; i < ids.size(); ++i) ASSERT_EQ(ids[i], kPaddingId);
      ids.resize(samples);
      ASSERT_EQ(Sorted(std::move(ids)), Range(0, samples)) << padded.explain();
    }
  }
}

TEST(OrderTest, DropLeavesOutLessThanAStep) {
  for (const OrderMode mode : kModes) {
    for (uint64_t samples = 12; samples <= 300; ++samples) {
      const Order order = Make(Spec(samples, mode, 12));
      ASSERT_EQ(order.steps(), samples / 12);
      ASSERT_EQ(order.samples(), order.steps() * 12);
      const Ids ids = Epoch(order, 3);
      ASSERT_EQ(std::set<uint64_t>(ids.begin(), ids.end()).size(), ids.size());
      ASSERT_LT(*std::max_element(ids.begin(), ids.end()), samples);
      // The same ids as without batches, up to the cut.
      Ids whole = Epoch(Make(Spec(samples, mode)), 3);
      whole.resize(ids.size());
      ASSERT_EQ(ids, whole);
    }
  }
}

TEST(OrderTest, LargeSetsHoldNoSampleTwice) {
  std::mt19937_64 random(1);
  for (const OrderMode mode : kModes) {
    for (int bits = 21; bits <= 48; bits += 3) {
      const uint64_t samples = (uint64_t{1} << bits) - (bits == 48 ? 0 : random() % 100'000);
      OrderSpec spec = Spec(samples, mode, 64);
      spec.block_samples = 256;
      const Order order = Make(spec);
      Ids ids(100'000), last(1000);
      order.Ids(bits, random() % (order.steps() - 3000), 0, ids);
      order.Ids(bits, order.steps() - 1, 0, last);
      std::set<uint64_t> seen(ids.begin(), ids.end());
      EXPECT_EQ(seen.size(), ids.size()) << order.explain();
      EXPECT_LT(*seen.rbegin(), samples);
      for (size_t i = 0; i < last.size(); ++i) {
        EXPECT_EQ(last[i] < samples, i < 64);
        EXPECT_EQ(last[i] == kPaddingId, i >= 64);
      }
    }
  }
}

std::vector<OrderSpec> AllSorts() {
  std::vector<OrderSpec> specs;
  for (const OrderMode mode : kModes) {
    for (const Tail tail : {Tail::kDrop, Tail::kPad}) {
      specs.push_back(Spec(1003, mode, 24, tail));
      specs.push_back(specs.back());
      specs.back().epoch_samples = 2500;
      specs.push_back(specs.back());
      specs.back().subset = Shared(Range(100, 311));
      specs.push_back(Mixed({{0, 500, 1}, {500, 3, 0.25}, {503, 500, 2.5}}, 1500, mode));
      specs.back().global_batch = 24;
      specs.back().tail = tail;
    }
  }
  return specs;
}

TEST(OrderTest, IdsAreThoseOfIdAt) {
  std::mt19937_64 random(2);
  for (const OrderSpec& spec : AllSorts()) {
    const Order order = Make(spec);
    const Ids whole = Epoch(order, 5);
    for (size_t i = 0; i < whole.size(); ++i) {
      ASSERT_EQ(order.IdAt(5, i / 24, static_cast<uint32_t>(i % 24)), whole[i]) << order.explain();
    }
    for (int i = 0; i < 100; ++i) {
      const size_t first = random() % whole.size();
      Ids part(random() % (whole.size() - first + 1));
      order.Ids(5, first / 24, static_cast<uint32_t>(first % 24), part);
      const auto begin = whole.begin() + static_cast<ptrdiff_t>(first);
      ASSERT_TRUE(std::equal(part.begin(), part.end(), begin)) << order.explain();
    }
  }
}

TEST(OrderTest, BeyondTheEpochIsPadding) {
  for (const OrderSpec& spec : AllSorts()) {
    const Order order = Make(spec);
    const uint64_t most = ~uint64_t{0};
    for (const uint64_t step : {order.steps(), order.steps() + 1, most / 24, most / 24 + 1, most}) {
      EXPECT_EQ(order.IdAt(0, step, 0), kPaddingId) << order.explain();
    }
    EXPECT_EQ(order.IdAt(0, 0, ~uint32_t{0}), kPaddingId);
    EXPECT_NE(order.IdAt(0, 0, 0), kPaddingId);
    EXPECT_LT(order.IdAt(most, 0, 0), spec.samples) << "the last epoch there is";
  }
}

TEST(OrderTest, TheRanksShareTheEpoch) {
  for (const OrderSpec& spec : AllSorts()) {
    const Order order = Make(spec);
    const Ids whole = Epoch(order, 1);
    for (const uint32_t world_size : {1u, 2u, 3u, 4u, 6u, 8u, 12u}) {
      Ids joined;
      for (uint64_t step = 0; step < order.steps(); ++step) {
        // Each global batch is the same whatever the world size, and all ranks get equal shares.
        for (uint32_t r = 0; r < world_size; ++r) {
          const Rank rank = {r, world_size};
          ASSERT_TRUE(CheckRank(rank, 24).ok());
          Ids share(rank.slots(24));
          ASSERT_EQ(share.size(), 24 / world_size);
          order.Ids(1, step, rank.first_slot(24), share);
          joined.insert(joined.end(), share.begin(), share.end());
        }
      }
      ASSERT_EQ(joined, whole) << world_size << " ranks, " << order.explain();
    }
  }
}

TEST(OrderTest, EpochsAndSeedsDiffer) {
  for (const OrderMode mode : {OrderMode::kShuffle, OrderMode::kBlockShuffle}) {
    std::set<Ids> orders;
    for (uint64_t seed = 0; seed < 20; ++seed) {
      OrderSpec spec = Spec(1000, mode);
      spec.seed = seed;
      const Order order = Make(spec);
      for (uint64_t epoch = 0; epoch < 20; ++epoch) orders.insert(Epoch(order, epoch));
    }
    EXPECT_EQ(orders.size(), 400u);
  }
  const Order late = Make(Spec(1000, OrderMode::kShuffle));
  EXPECT_EQ(Sorted(Epoch(late, ~uint64_t{0})), Range(0, 1000)) << "nothing overflows";
  EXPECT_NE(Epoch(late, uint64_t{1} << 61), Epoch(late, 0));
  const Order sequential = Make(Spec(50, OrderMode::kSequential));
  EXPECT_EQ(Epoch(sequential, 0), Range(0, 50));
  EXPECT_EQ(Epoch(sequential, 9), Range(0, 50));
}

TEST(OrderTest, BlockWindowsHoldTheirBlocksAlone) {
  const Order order = Make(Spec(700, OrderMode::kBlockShuffle, 21));
  ASSERT_EQ(order.steps(), 33u);
  for (uint64_t step = 0; step < order.steps(); ++step) {
    std::set<uint64_t> blocks;
    for (uint32_t slot = 0; slot < 21; ++slot) blocks.insert(order.IdAt(2, step, slot) / 7);
    EXPECT_EQ(blocks.size(), 3u) << step;
  }
}

TEST(OrderTest, SubsetStandsForTheSamples) {
  const Ids list = {90, 3, 41, 3, 77, 0, 12};
  for (const OrderMode mode : kModes) {
    OrderSpec spec = Spec(91, mode);
    spec.subset = Shared(list);
    const Order order = Make(spec);
    EXPECT_EQ(order.steps(), list.size());
    EXPECT_EQ(Sorted(Epoch(order, 4)), Sorted(list));
    EXPECT_EQ(Epoch(order, 4) == list, mode == OrderMode::kSequential);
  }
}

TEST(OrderTest, EpochSamplesCutTheRowOfPasses) {
  for (const OrderMode mode : kModes) {
    for (const uint64_t length : {30, 100, 101, 250}) {
      OrderSpec spec = Spec(100, mode, 4);
      spec.epoch_samples = length;
      const Order order = Make(spec);
      ASSERT_EQ(order.samples(), length / 4 * 4);
      // The passes of the natural epochs, one after the other, with nothing omitted.
      Ids row = Joined(order, 25);
      const Ids passes = Joined(Make(Spec(100, mode)), row.size() / 100);
      row.resize(passes.size());
      EXPECT_EQ(row, passes) << order.explain();
    }
  }
  OrderSpec spec = Spec(100, OrderMode::kShuffle, 8, Tail::kPad);
  spec.epoch_samples = 100;
  const Order exact = Make(spec);
  spec.epoch_samples = 0;
  EXPECT_EQ(Joined(exact, 3), Joined(Make(spec), 3)) << "a pass long, padded: the natural epoch";
}

TEST(OrderTest, MixtureTakesExactCounts) {
  for (const OrderMode mode : kModes) {
    const OrderSpec spec = Mixed({{0, 100, 1}, {100, 1000, 2}, {1100, 7, 0.5}}, 1001, mode);
    const Order order = Make(spec);
    std::vector<Ids> rows(3);
    for (uint64_t epoch = 0; epoch < 30; ++epoch) {
      std::vector<uint64_t> counts(3);
      for (const uint64_t id : Epoch(order, epoch)) {
        const size_t part = id < 100 ? 0 : id < 1100 ? 1 : 2;
        ++counts[part];
        rows[part].push_back(id);
      }
      ASSERT_THAT(counts, ElementsAre(286, 572, 143)) << epoch;
    }
    // Each part goes through all of its samples before one is repeated, across epochs and within
    // them.
    for (size_t part = 0; part < 3; ++part) {
      const MixturePart& its = spec.mixture[part];
      std::set<Ids> passes;
      size_t count = 0;
      for (size_t at = 0; at + its.samples <= rows[part].size(); at += its.samples, ++count) {
        const auto begin = rows[part].begin() + static_cast<ptrdiff_t>(at);
        const Ids pass(begin, begin + static_cast<ptrdiff_t>(its.samples));
        ASSERT_EQ(Sorted(pass), Range(its.first_id, its.samples)) << part << " at " << at;
        passes.insert(pass);
      }
      ASSERT_GT(count, 15u);
      if (mode == OrderMode::kSequential) {
        EXPECT_EQ(passes.size(), 1u);
      } else {
        EXPECT_GT(passes.size(), count * 9 / 10);
      }
    }
  }
}

TEST(OrderTest, MixtureSpreadsPartsOverTheSteps) {
  OrderSpec spec = Mixed({{0, 4000, 3}, {4000, 1000, 1}}, 5000);
  spec.global_batch = 100;
  const Order order = Make(spec);
  for (uint64_t step = 0; step < order.steps(); ++step) {
    Ids ids(100);
    order.Ids(0, step, 0, ids);
    const auto first = std::count_if(ids.begin(), ids.end(), [](uint64_t id) { return id < 4000; });
    EXPECT_NEAR(static_cast<double>(first), 75, 1);
  }
}

// What the dropped tail would have taken from the parts is part of the next epoch.
TEST(OrderTest, MixtureCountsAreOfWholeSteps) {
  OrderSpec spec = Mixed({{0, 60, 1}, {60, 60, 1}}, 47);
  spec.global_batch = 10;
  const Order order = Make(spec);
  EXPECT_EQ(order.samples(), 40u);
  EXPECT_EQ(Sorted(Joined(order, 3)), Range(0, 120));
}

TEST(OrderTest, WeightsAreExactInLongEpochs) {
  const uint64_t trillion = 1'000'000'000'000;
  OrderSpec spec = Mixed({{0, 100, 0.1}, {100, 100, 0.3}}, 4 * trillion);
  EXPECT_THAT(Make(spec).explain(), HasSubstr("mixture=0+100:1000000000000,100+100:3000000000000"));
  spec.mixture = {{0, 10, 3e-200}, {10, 10, 1e-200}, {20, 10, 3e-200}};
  EXPECT_THAT(Make(spec).explain(), HasSubstr(":1714285714286,10+10:571428571428,20+10:"));
}

TEST(OrderTest, MixtureOfASubsetCountsItsPlaces) {
  OrderSpec spec = Mixed({{0, 2, 1}, {2, 4, 1}}, 8, OrderMode::kSequential);
  spec.samples = 100;
  spec.subset = Shared({50, 60, 11, 12, 13, 14});
  EXPECT_EQ(Sorted(Epoch(Make(spec), 0)), (Ids{11, 12, 13, 14, 50, 50, 60, 60}));
}

// These never change: a run of an older version must continue in the same order. Computed by an
// independent implementation that lays passes and parts out as lists.
TEST(OrderTest, GoldenOrders) {
  const auto pass = [](OrderSpec spec, uint64_t epoch) { return Epoch(Make(spec), epoch); };
  EXPECT_THAT(pass(Spec(20, OrderMode::kShuffle), 0),
              ElementsAre(1, 19, 6, 12, 7, 8, 2, 17, 3, 13, 11, 15, 10, 4, 9, 16, 14, 18, 0, 5));
  EXPECT_THAT(pass(Spec(20, OrderMode::kShuffle), 1),
              ElementsAre(7, 2, 8, 18, 16, 5, 1, 12, 19, 4, 0, 17, 6, 9, 10, 14, 3, 11, 13, 15));
  OrderSpec blocks = Spec(20, OrderMode::kBlockShuffle);
  blocks.block_samples = 3;
  blocks.window_blocks = 2;
  EXPECT_THAT(pass(blocks, 0),
              ElementsAre(18, 16, 15, 17, 19, 3, 5, 2, 4, 1, 0, 12, 7, 13, 8, 6, 14, 10, 9, 11));
  const OrderSpec mixed = Mixed({{0, 6, 2}, {6, 5, 1}}, 9);
  EXPECT_THAT(pass(mixed, 0), ElementsAre(5, 7, 0, 3, 8, 2, 4, 10, 1));
  EXPECT_EQ(pass(mixed, 1)[1], 9u);
  EXPECT_EQ(pass(mixed, 1)[4], 6u);
  OrderSpec large = Spec(1'281'167, OrderMode::kShuffle, 256);
  large.seed = 1;
  Ids ids(4);
  Make(large).Ids(3, 0, 0, ids);
  EXPECT_THAT(ids, ElementsAre(622921, 1181422, 304400, 991681));
}

TEST(OrderTest, GoldenDigests) {
  const Order plain = Make(Spec(1000, OrderMode::kShuffle, 32));
  EXPECT_EQ(plain.explain(),
            "shardpack-order-1 mode=shuffle seed=7 samples=1000 global_batch=32 tail=drop "
            "epoch_samples=0 steps=31");
  EXPECT_EQ(plain.digest(), 16924325033772013983u);
  OrderSpec spec = Mixed({{0, 2, 1}, {2, 4, 2}}, 8, OrderMode::kBlockShuffle);
  spec.samples = 100;
  spec.tail = Tail::kPad;
  spec.subset = Shared({50, 60, 11, 12, 13, 14});
  EXPECT_EQ(
      Make(spec).explain(),
      "shardpack-order-1 mode=block_shuffle seed=7 block_samples=7 window_blocks=3 samples=100 "
      "subset=6:f251ea8776b35a63 global_batch=1 tail=pad epoch_samples=8 steps=8 "
      "mixture=0+2:3,2+4:5");
  EXPECT_EQ(Make(spec).digest(), 3829025121074872942u);
  EXPECT_EQ(Make(Spec(5, OrderMode::kSequential, 2)).explain(),
            "shardpack-order-1 mode=sequential samples=5 global_batch=2 tail=drop epoch_samples=0 "
            "steps=2");
}

TEST(OrderTest, DigestTellsEveryMemberThatCounts) {
  OrderSpec base = Mixed({{0, 100, 1}, {100, 200, 2}}, 250, OrderMode::kBlockShuffle);
  base.samples = 400;
  base.global_batch = 10;
  base.subset = Shared(Range(0, 300));
  std::vector<OrderSpec> specs(15, base);
  specs[1].samples = 401;
  specs[2].mode = OrderMode::kShuffle;
  specs[3].mode = OrderMode::kSequential;
  specs[4].seed = 8;
  specs[5].global_batch = 5;
  specs[6].tail = Tail::kPad;
  specs[7].block_samples = 8;
  specs[8].window_blocks = 4;
  specs[9].subset = Shared(Range(1, 300));
  specs[10].subset = Shared(Range(0, 301));
  specs[11].mixture[1].first_id = 99;
  specs[12].mixture[1].samples = 199;
  specs[13].mixture[1].weight = 3;
  specs[14].epoch_samples = 260;
  specs.push_back(base);
  specs.back().mixture.clear();
  specs.push_back(specs.back());
  specs.back().subset = nullptr;
  std::map<uint64_t, size_t> seen;
  for (size_t i = 0; i < specs.size(); ++i) {
    const auto [other, fresh] = seen.emplace(Make(specs[i]).digest(), i);
    EXPECT_TRUE(fresh) << i << " has the digest of " << other->second;
  }
  base.subset = Shared(Range(0, 300));  // equal, but not the same object
  base.mixture[0].weight = 10;
  base.mixture[1].weight = 20;
  EXPECT_EQ(Make(base).digest(), Make(specs[0]).digest());
}

TEST(OrderTest, DigestIgnoresWhatDoesNotCount) {
  OrderSpec spec = Spec(100, OrderMode::kSequential);
  const uint64_t sequential = Make(spec).digest();
  spec.seed = 8;
  spec.block_samples = 0;
  EXPECT_EQ(Make(spec).digest(), sequential);
  spec.mode = OrderMode::kShuffle;
  const uint64_t shuffled = Make(spec).digest();
  spec.window_blocks = 0;
  EXPECT_EQ(Make(spec).digest(), shuffled);
}

std::string Refusal(const OrderSpec& spec) {
  const absl::StatusOr<Order> order = Order::Make(spec);
  EXPECT_EQ(order.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(order.status().message());
}

TEST(OrderTest, RefusesWhatCannotBe) {
  const OrderSpec good = Spec(100, OrderMode::kBlockShuffle, 10);
  const auto but = [&](auto change) {
    OrderSpec spec = good;
    change(spec);
    return Refusal(spec);
  };
  EXPECT_THAT(but([](OrderSpec& s) { s.samples = 0; }), HasSubstr("order of 0 samples"));
  EXPECT_THAT(but([](OrderSpec& s) { s.samples = kMaxOrderSamples + 1; }), HasSubstr("at most"));
  EXPECT_THAT(but([](OrderSpec& s) { s.epoch_samples = ~uint64_t{0}; }), HasSubstr("at most"));
  EXPECT_THAT(but([](OrderSpec& s) { s.global_batch = 0; }), HasSubstr("batch of 0"));
  EXPECT_THAT(but([](OrderSpec& s) { s.global_batch = 101; }),
              HasSubstr("an epoch of 100 samples is shorter than the global batch of 101"));
  EXPECT_THAT(but([](OrderSpec& s) { s.block_samples = 0; }), HasSubstr("0 samples a block"));
  EXPECT_THAT(but([](OrderSpec& s) { s.window_blocks = 0; }), HasSubstr("0 blocks a window"));
  EXPECT_THAT(but([](OrderSpec& s) { s.mode = static_cast<OrderMode>(3); }), HasSubstr("mode"));
  EXPECT_THAT(but([](OrderSpec& s) { s.tail = static_cast<Tail>(2); }), HasSubstr("tail"));
  EXPECT_THAT(but([](OrderSpec& s) { s.subset = Shared({}); }), HasSubstr("subset is empty"));
  EXPECT_THAT(but([](OrderSpec& s) {
                s.subset = Shared({5, 99, 100});
              }),
              HasSubstr("id 100, at place 2, is beyond the dataset of 100 samples"));
  OrderSpec padded = good;
  padded.global_batch = 101;
  padded.tail = Tail::kPad;
  EXPECT_EQ(Make(padded).steps(), 1u);
}

TEST(OrderTest, RefusesMixturesThatCannotBe) {
  const OrderSpec good = Mixed({{0, 50, 1}, {50, 50, 1}}, 100);
  const auto but = [&](auto change) {
    OrderSpec spec = good;
    change(spec);
    return Refusal(spec);
  };
  EXPECT_THAT(but([](OrderSpec& s) { s.epoch_samples = 0; }), HasSubstr("epoch_samples"));
  EXPECT_THAT(but([](OrderSpec& s) { s.mixture[1].samples = 0; }), HasSubstr("part 1"));
  EXPECT_THAT(but([](OrderSpec& s) { s.mixture[1].samples = 51; }),
              HasSubstr("part 1 of the mixture, 51 samples from 50 on, is beyond the 100"));
  EXPECT_THAT(but([](OrderSpec& s) { s.mixture[0].first_id = ~uint64_t{0}; }), HasSubstr("beyond"));
  EXPECT_THAT(but([](OrderSpec& s) { s.subset = Shared(Range(0, 99)); }),
              HasSubstr("beyond the 99 samples of the subset"));
  for (const double weight : {0.0, -1.0, std::numeric_limits<double>::infinity(),
                              std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT(but([&](OrderSpec& s) { s.mixture[0].weight = weight; }), HasSubstr("finite"));
  }
  for (const double weight : {0.001, 1e-300}) {
    EXPECT_THAT(but([&](OrderSpec& s) { s.mixture[0].weight = weight; }),
                HasSubstr("would get no sample"));
  }
  EXPECT_THAT(but([](OrderSpec& s) { s.mixture.resize(kMaxMixtureParts + 1, s.mixture[0]); }),
              HasSubstr("at most 65536"));
}

}  // namespace
}  // namespace shardpack
