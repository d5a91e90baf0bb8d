// How fast an order produces ids on one core; "ids" is the rate.
//
//   ./bazelw run //readers/order:order_bench
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "readers/order/order.h"
#include "readers/order/permutation.h"

namespace shardpack {
namespace {

void SetRate(benchmark::State& state, size_t ids) {
  state.counters["ids"] = benchmark::Counter(static_cast<double>(state.iterations() * ids),
                                             benchmark::Counter::kIsRate);
}

void BM_Permutation(benchmark::State& state) {
  const auto size = static_cast<uint64_t>(state.range(0));
  const Permutation permutation(size, 1);
  std::vector<uint64_t> indexes(std::min<uint64_t>(size, 1 << 14));
  for (auto _ : state) {
    std::iota(indexes.begin(), indexes.end(), 0);
    permutation.MapAll(indexes);
    benchmark::DoNotOptimize(indexes.data());
  }
  SetRate(state, indexes.size());
}
BENCHMARK(BM_Permutation)
    ->Arg(50'000)
    ->Arg(65'536)
    ->Arg(65'537)
    ->Arg(1'281'167)
    ->Arg(int64_t{1} << 40);

OrderSpec Spec(uint64_t samples, OrderMode mode) {
  return {.samples = samples, .mode = mode, .seed = 1, .global_batch = 256};
}

// Walks epochs in the shares of one of `range(0)` ranks.
void Walk(benchmark::State& state, const OrderSpec& spec) {
  const Order order = *Order::Make(spec);
  std::vector<uint64_t> ids(spec.global_batch / static_cast<size_t>(state.range(0)));
  uint64_t epoch = 0, step = 0;
  for (auto _ : state) {
    order.Ids(epoch, step, 0, ids);
    benchmark::DoNotOptimize(ids.data());
    if (++step == order.steps()) {
      step = 0;
      ++epoch;
    }
  }
  SetRate(state, ids.size());
}

void BM_Shuffle(benchmark::State& state, uint64_t samples) {
  Walk(state, Spec(samples, OrderMode::kShuffle));
}
BENCHMARK_CAPTURE(BM_Shuffle, 50000, 50'000)->Arg(1)->Arg(8);
BENCHMARK_CAPTURE(BM_Shuffle, 1281167, 1'281'167)->Arg(1)->Arg(8);

void BM_BlockShuffle(benchmark::State& state, uint64_t samples) {
  Walk(state, Spec(samples, OrderMode::kBlockShuffle));
}
BENCHMARK_CAPTURE(BM_BlockShuffle, 50000, 50'000)->Arg(1)->Arg(8);
BENCHMARK_CAPTURE(BM_BlockShuffle, 1281167, 1'281'167)->Arg(1)->Arg(8);

void BM_Mixture(benchmark::State& state, uint64_t parts) {
  OrderSpec spec = Spec(1'281'167, OrderMode::kShuffle);
  for (uint64_t i = 0; i < parts; ++i) {
    const uint64_t first = spec.samples * i / parts, end = spec.samples * (i + 1) / parts;
    spec.mixture.push_back({first, end - first, 1.0 + static_cast<double>(i)});
  }
  spec.epoch_samples = spec.samples;
  Walk(state, spec);
}
BENCHMARK_CAPTURE(BM_Mixture, 3, 3)->Arg(1)->Arg(8);
BENCHMARK_CAPTURE(BM_Mixture, 100, 100)->Arg(1)->Arg(8);

void BM_IdAt(benchmark::State& state) {
  const Order order = *Order::Make(Spec(1'281'167, OrderMode::kShuffle));
  uint32_t slot = 0;
  for (auto _ : state) benchmark::DoNotOptimize(order.IdAt(0, 100, slot++ % 256));
  SetRate(state, 1);
}
BENCHMARK(BM_IdAt);

}  // namespace
}  // namespace shardpack

BENCHMARK_MAIN();
