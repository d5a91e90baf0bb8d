// DecodeBalance against a model of engines and lanes with a clock of its own: both end together,
// and as soon as they could, whatever the rates.
#include "cuda/jpeg/decode_balance.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace shardpack {
namespace {

struct Machine {
  double engine_us = 0, lane_us = 0, chunk_us = 0;  // an image; a chunk besides
  size_t lanes = 0;
};
struct Ends {
  double engines_us = 0, lanes_us = 0, last_chunk_us = 0;
  size_t by_engines = 0;
};

// One batch. Two chunks may be under way: one runs, one waits.
Ends RunBatch(const Machine& machine, size_t images, DecodeRates* rates) {
  DecodeBalance balance(images, machine.lanes, *rates);
  std::vector<double> lane_free(machine.lanes, 0);
  std::vector<bool> lane_ended(machine.lanes, false);
  std::vector<double> chunk_ends;
  std::vector<size_t> chunk_sizes;
  std::set<size_t> taken;
  std::vector<bool> lane_works(machine.lanes, false);
  double feeder_free = 0, engines_free = 0;
  size_t done_before_feeder = 0;  // images
  bool feeds = true;
  Ends ends;
  const auto take = [&](size_t i) { EXPECT_TRUE(taken.insert(i).second) << i; };
  for (;;) {
    size_t next = machine.lanes;  // who is free first; the feeder
    double now = feeds ? feeder_free : INFINITY;
    for (size_t lane = 0; lane < machine.lanes; ++lane) {
      if (!lane_ended[lane] && lane_free[lane] < now) next = lane, now = lane_free[lane];
    }
    if (now == INFINITY) break;
    if (next < machine.lanes) {
      if (lane_works[next]) balance.NoteLane(machine.lane_us);
      const std::optional<size_t> one = balance.TakeOne();
      lane_works[next] = one.has_value();
      lane_ended[next] = !one;
      if (!one) continue;
      take(*one);
      lane_free[next] = ends.lanes_us = now + machine.lane_us;
      continue;
    }
    balance.NoteEngines(done_before_feeder, now);
    const DecodeBalance::Chunk chunk = balance.TakeChunk();
    feeds = !chunk.empty();
    if (!feeds) continue;
    for (size_t i = chunk.begin; i < chunk.end; ++i) take(i);
    ends.by_engines += chunk.size();
    ends.last_chunk_us = static_cast<double>(chunk.size()) * machine.engine_us + machine.chunk_us;
    engines_free = std::max(engines_free, now) + ends.last_chunk_us;
    chunk_ends.push_back(engines_free);
    chunk_sizes.push_back(chunk.size());
    if (chunk_ends.size() >= 2) {  // the next chunk needs the place of the last but one
      const size_t done = chunk_ends.size() - 2;
      feeder_free = std::max(now, chunk_ends[done]);
      done_before_feeder = 0;
      for (size_t k = 0; k <= done; ++k) done_before_feeder += chunk_sizes[k];
    }
  }
  ends.engines_us = engines_free;
  if (balance.rates().engine_us == 0) balance.NoteEngines(ends.by_engines, engines_free);
  EXPECT_EQ(taken.size(), images);
  *rates = balance.rates();
  return ends;
}

TEST(DecodeBalanceTest, EnginesAndLanesEndWithinOneChunk) {
  for (const double engine_us : {20.0, 60.0, 200.0, 400.0}) {
    for (const double lane_us : {500.0, 1600.0, 5000.0}) {
      for (const size_t lanes : {1, 3, 8, 16}) {
        for (const size_t images : {32, 64, 256, 1000}) {
          const Machine machine{engine_us, lane_us, 30, lanes};
          SCOPED_TRACE(testing::Message()
                       << engine_us << " " << lane_us << " " << lanes << " " << images);
          DecodeRates rates;
          Ends ends;
          for (int batch = 0; batch < 4; ++batch) ends = RunBatch(machine, images, &rates);
          const double both = 1 / engine_us + static_cast<double>(lanes) / lane_us;
          const double best = static_cast<double>(images) / both;
          const double last = std::max(ends.engines_us, ends.lanes_us);
          // A chunk, or the image of a lane if that takes longer; chunks' own time is not foreseen.
          const double step = std::max(ends.last_chunk_us, lane_us) + 2 * machine.chunk_us;
          if (ends.lanes_us > 0 && ends.engines_us > 0) {
            EXPECT_LE(std::abs(ends.engines_us - ends.lanes_us), step) << "best " << best;
          }
          EXPECT_LE(last, 1.15 * best + step);
          EXPECT_NEAR(rates.lane_us, lane_us, 0.01 * lane_us);
        }
      }
    }
  }
}

// Lanes that would only be late leave all to the engines.
TEST(DecodeBalanceTest, SlowLanesTakeNothing) {
  DecodeRates rates{.engine_us = 10, .lane_us = 5000};
  const Ends ends = RunBatch({10, 5000, 0, 4}, 64, &rates);
  EXPECT_EQ(ends.by_engines, 64u);
}

TEST(DecodeBalanceTest, EnginesOfWhichNothingIsKnownAreNotTakenForFast) {
  DecodeBalance balance(20, 2, {.engine_us = 0, .lane_us = 5000});
  EXPECT_TRUE(balance.TakeOne());
}

// Lanes that once took long come back: of a batch that probes one image is theirs.
TEST(DecodeBalanceTest, AProbeFindsThatLanesAreFasterNow) {
  DecodeRates rates{.engine_us = 100, .lane_us = 1e6};
  DecodeBalance first(64, 4, rates, /*probe=*/true);
  EXPECT_TRUE(first.TakeOne());
  EXPECT_FALSE(first.TakeOne());
  first.NoteLane(500);
  EXPECT_FALSE(first.TakeOne());
  rates = first.rates();
  EXPECT_LT(rates.lane_us, 0.6e6);
  int batches = 1;
  for (; !DecodeBalance(64, 4, rates).TakeOne(); ++batches) {
    ASSERT_LT(batches, 20);
    DecodeBalance balance(64, 4, rates, true);
    ASSERT_TRUE(balance.TakeOne());
    balance.NoteLane(500);
    rates = balance.rates();
  }
}

TEST(DecodeBalanceTest, WhatTheEnginesDoNotTakeIsForTheLanes) {
  DecodeBalance balance(20, 2, {.engine_us = 1, .lane_us = 1e6});
  EXPECT_FALSE(balance.TakeOne());
  const size_t first = balance.TakeChunk().size();
  balance.EndEngines();
  EXPECT_TRUE(balance.TakeChunk().empty());
  size_t others = 0;
  while (balance.TakeOne()) ++others;
  EXPECT_EQ(first + others, 20u);
}

}  // namespace
}  // namespace shardpack
