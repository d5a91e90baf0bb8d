// Measures how fast a folder is listed and planned, and how much memory a listing takes.
//
//   ./bazelw run //converters/listing:listing_bench -- /data/train
//
// Without a folder: 20,000 files in a temporary folder, and a plan of a million rows generated in
// memory.
#include <benchmark/benchmark.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "converters/planning/plan.h"
#include "converters/sources/folder_source.h"
#include "converters/threads/io_pool.h"

namespace shardpack {
namespace {

constexpr LayoutSpec kLayouts[] = {{"default", ""}};
// About the overhead of a tar shard.
constexpr Format kTarLike = {
    .name = "tar-like",
    .doc = "",
    .layouts = kLayouts,
    .traits = {.shard_overhead_bytes = 10240},
    .shard_name =
        [](std::string_view split, uint32_t number, uint32_t) {
          return std::string(split) + "-" + std::to_string(number) + ".tar";
        },
    .record_bound =
        [](const ShardSpec&, const RecordShape& shape) {
          return 512 + ((shape.field_bytes[0] + 511) & ~uint64_t{511}) +
                 (shape.has_label ? 1024 : 0);
        },
    .sniff = nullptr,
    .create = nullptr,
    .scanner = nullptr,
    .sidecars = {},
};

int64_t PeakBytes() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

void BM_List(benchmark::State& state, const std::string& folder) {
  IoPool pool(static_cast<int>(state.range(0)));
  const int64_t before = PeakBytes();
  uint64_t rows = 0;
  for (auto _ : state) {
    FolderSource source(folder, {}, pool);
    absl::StatusOr<Listing> listing = source.List();
    if (!listing.ok()) return state.SkipWithError(listing.status().ToString().c_str());
    rows = listing->rows();
  }
  state.counters["files"] = static_cast<double>(rows);
  state.counters["files/s"] =
      benchmark::Counter(static_cast<double>(rows), benchmark::Counter::kIsIterationInvariantRate);
  // Valid for the first benchmark that runs, in a separate process.
  state.counters["peak_bytes_per_file"] =
      static_cast<double>(PeakBytes() - before) / static_cast<double>(rows);
}

void BM_Load(benchmark::State& state, const std::string& folder) {
  IoPool pool(static_cast<int>(state.range(0)));
  FolderSource source(folder, {}, pool);
  const absl::StatusOr<Listing> listing = source.List();
  if (!listing.ok()) return state.SkipWithError(listing.status().ToString().c_str());
  for (auto _ : state) {
    pool.ForEach((listing->rows() + 255) / 256, [&](size_t chunk) {
      thread_local Arena arena;
      for (uint64_t row = chunk * 256; row < std::min(chunk * 256 + 256, listing->rows()); ++row) {
        arena.Reset();
        benchmark::DoNotOptimize(source.Load(*listing, row, arena));
      }
    });
  }
  state.counters["files/s"] = benchmark::Counter(static_cast<double>(listing->rows()),
                                                 benchmark::Counter::kIsIterationInvariantRate);
}

Listing MadeUp(uint64_t rows) {
  Listing listing;
  for (int i = 0; i < 1000; ++i) {
    listing.classes.push_back(std::to_string(100000 + i));
    listing.folders.push_back(listing.classes.back());
  }
  for (uint64_t row = 0; row < rows; ++row) {
    const auto folder = static_cast<uint32_t>(row * 1000 / rows);
    listing.folder.push_back(folder);
    listing.label.push_back(static_cast<int32_t>(folder));
    listing.names += std::to_string(10'000'000 + row) + ".jpg";
    listing.name_ends.push_back(listing.names.size());
    listing.bytes.push_back(90'000 + row * 7919 % 40'000);
    listing.mtime_ns.push_back(1);
  }
  return listing;
}

void BM_Plan(benchmark::State& state) {
  const Listing listing = MadeUp(static_cast<uint64_t>(state.range(0)));
  for (auto _ : state) {
    state.PauseTiming();
    Listing copy = listing;
    state.ResumeTiming();
    benchmark::DoNotOptimize(Plan::Make(std::move(copy), {}, kTarLike)->digest());
  }
}
BENCHMARK(BM_Plan)
    ->Arg(60'000)
    ->Arg(1'000'000)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

void BM_PlanFile(benchmark::State& state) {
  const auto plan = Plan::Make(MadeUp(static_cast<uint64_t>(state.range(0))), {}, kTarLike);
  std::string bytes;
  for (auto _ : state) {
    bytes = plan->ToBytes();
    benchmark::DoNotOptimize(
        Plan::FromBytes(bytes, [](std::string_view) { return &kTarLike; })->digest());
  }
  state.counters["bytes_per_row"] =
      static_cast<double>(bytes.size()) / static_cast<double>(state.range(0));
}
BENCHMARK(BM_PlanFile)
    ->Arg(60'000)
    ->Arg(1'000'000)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

std::string MakeFolder() {
  const std::string root =
      std::filesystem::temp_directory_path() / ("listing_bench." + std::to_string(getpid()));
  for (int folder = 0; folder < 10; ++folder) {
    const std::string path = root + "/class" + std::to_string(folder);
    std::filesystem::create_directories(path);
    for (int file = 0; file < 2000; ++file)
      std::ofstream(path + "/" + std::to_string(file) + ".jpg") << "x";
  }
  return root;
}

void RegisterFolder(const std::string& folder) {
  for (const auto& [name, run] : {std::pair("BM_List", &BM_List), std::pair("BM_Load", &BM_Load)}) {
    benchmark::RegisterBenchmark((std::string(name) + "/" + folder).c_str(), *run, folder)
        ->Arg(2)
        ->Arg(8)
        ->Arg(32)
        ->Unit(benchmark::kMillisecond)
        ->MeasureProcessCPUTime()
        ->UseRealTime();
  }
}

}  // namespace
}  // namespace shardpack

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  std::string made;
  if (argc < 2) shardpack::RegisterFolder(made = shardpack::MakeFolder());
  for (int i = 1; i < argc; ++i) shardpack::RegisterFolder(argv[i]);
  benchmark::RunSpecifiedBenchmarks();
  if (!made.empty()) std::filesystem::remove_all(made);
  return 0;
}
