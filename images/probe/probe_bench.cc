// How fast images are probed. Without arguments: the images of testdata and synthetic scan data.
// For folders given after the options, all files are probed once per iteration:
//
//   ./bazelw run //images/probe:probe_bench -- --benchmark_filter=Folder /data/train
#include <benchmark/benchmark.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "images/probe/marker_scan.h"
#include "images/probe/probe.h"

namespace shardpack {
namespace {

using File = std::vector<std::byte>;

std::vector<File> LoadFolder(const std::string& folder) {
  std::vector<File> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(in), {});
    const auto view = std::as_bytes(std::span(bytes));
    files.emplace_back(view.begin(), view.end());
  }
  return files;
}

// Random bytes, stuffed like a JPEG encoder does: about one FF 00 per 256 bytes.
File EntropyCodedData(size_t size) {
  std::mt19937_64 random(1);
  File data;
  while (data.size() < size) {
    data.push_back(static_cast<std::byte>(random()));
    if (data.back() == std::byte{0xFF}) data.push_back(std::byte{0});
  }
  return data;
}

template <uint64_t (*kFind)(std::span<const std::byte>, uint64_t)>
void BM_FindMarker(benchmark::State& state) {
  const File data = EntropyCodedData(static_cast<size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(kFind(data, 0));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * data.size()));
}
BENCHMARK(BM_FindMarker<FindJpegMarker>)->Arg(1 << 10)->Arg(100 << 10)->Arg(64 << 20);
BENCHMARK(BM_FindMarker<FindJpegMarkerPortable>)->Arg(1 << 10)->Arg(100 << 10)->Arg(64 << 20);

// The same after probing a PNG: CRC code that leaves wide vector registers in use slows down all
// SSE code after it.
void BM_FindMarkerAfterPng(benchmark::State& state) {
  const File data = EntropyCodedData(100 << 10);
  for (const File& file : LoadFolder("testdata/images")) ProbeImage(file, ProbeOptions());
  for (auto _ : state) benchmark::DoNotOptimize(FindJpegMarker(data, 0));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * data.size()));
}
BENCHMARK(BM_FindMarkerAfterPng);

void BM_Folder(benchmark::State& state, const std::string& folder, ProbeOptions options) {
  const std::vector<File> files = LoadFolder(folder);
  if (files.empty()) return state.SkipWithError("no files");
  size_t bytes = 0, ok = 0;
  for (const File& file : files) bytes += file.size();
  for (auto _ : state) {
    ok = 0;
    for (const File& file : files) ok += ProbeImage(file, options).verdict == ProbeVerdict::kOk;
  }
  const double probed = static_cast<double>(state.iterations() * files.size());
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes));
  state.counters["files"] = static_cast<double>(files.size());
  state.counters["ok"] = static_cast<double>(ok);
  state.counters["time_per_file"] =
      benchmark::Counter(probed, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void RegisterFolder(const std::string& folder) {
  const ProbeOptions header{.level = ProbeLevel::kHeader};
  benchmark::RegisterBenchmark(("BM_Folder/header/" + folder).c_str(), BM_Folder, folder, header);
  benchmark::RegisterBenchmark(("BM_Folder/structure/" + folder).c_str(), BM_Folder, folder,
                               ProbeOptions());
}

}  // namespace
}  // namespace shardpack

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  shardpack::RegisterFolder("testdata/images");
  for (int i = 1; i < argc; ++i) shardpack::RegisterFolder(argv[i]);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
