// Measures how fast headers are made, samples written and shards scanned, with the sample sizes of
// CIFAR (0.9 KB) and ImageNet (110 KB).
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "formats/core/format.h"
#include "formats/io/file.h"
#include "formats/io/sequential_reader.h"
#include "formats/io/staged_file.h"
#include "formats/tar/tar_header.h"
#include "formats/webdataset/webdataset_format.h"

namespace shardpack {
namespace {

// In memory if there is a file system for it, because the disk is not measured here.
std::string ScratchPath() {
  const char* folder = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  return std::string(folder) + "/webdataset_bench-" + std::to_string(::getpid());
}

uint64_t WriteSamples(StagedFile& file, const std::vector<std::string>& keys, Bytes payload) {
  const ShardSpec spec;
  auto writer = kWebDatasetFormat.create(file, spec);
  const FieldView image{kImageField, payload};
  for (const std::string& key : keys) {
    const SampleView sample{.key = key,
                            .source_path = {},
                            .label = 7,
                            .class_name = {},
                            .image = {.format = ImageFormat::kJpeg},
                            .fields = {&image, 1}};
    if (!(*writer)->Append(sample).ok()) std::abort();
  }
  if (!(*writer)->Finish().ok() || !file.Flush().ok()) std::abort();
  return file.size();
}

std::vector<std::string> Keys(uint64_t payload_bytes) {
  std::vector<std::string> keys;
  for (uint64_t i = 0; i < (uint64_t{96} << 20) / (payload_bytes + 2048); ++i) {
    keys.push_back("class_name/" + std::to_string(10000000 + i));
  }
  return keys;
}

void BM_EncodeHeader(benchmark::State& state) {
  const std::string path = "class_name/10000000.jpg";
  std::array<std::byte, kTarBlockBytes> block;
  uint64_t size = 100000;
  for (auto _ : state) {
    EncodeTarHeader(*SplitTarName(path), ++size, kTarRegular, block.data());
    benchmark::DoNotOptimize(block);
  }
}
BENCHMARK(BM_EncodeHeader);

void BM_DecodeHeader(benchmark::State& state) {
  std::array<std::byte, kTarBlockBytes> block;
  EncodeTarHeader({{}, "class_name/10000000.jpg"}, 100000, kTarRegular, block.data());
  TarHeader header;
  for (auto _ : state) {
    benchmark::DoNotOptimize(block);
    benchmark::DoNotOptimize(DecodeTarHeader(block.data(), header));
  }
}
BENCHMARK(BM_DecodeHeader);

void BM_Write(benchmark::State& state) {
  const std::string payload(state.range(0), 'x');
  const std::vector<std::string> keys = Keys(payload.size());
  uint64_t bytes = 0;
  for (auto _ : state) {
    auto file = StagedFile::Create(ScratchPath());
    bytes += WriteSamples(**file, keys, AsBytes(payload));
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * keys.size()));
}
BENCHMARK(BM_Write)->Arg(900)->Arg(110000)->Unit(benchmark::kMillisecond);

class CountRecords : public RecordSink {
 public:
  void OnRecord(const ScannedRecord& record) override { count += record.fields.size(); }
  uint64_t count = 0;
};

// Walk, field hashes and file digest, from the page cache.
void BM_Scan(benchmark::State& state) {
  const std::string payload(state.range(0), 'x');
  const std::vector<std::string> keys = Keys(payload.size());
  auto file = StagedFile::Create(ScratchPath());
  const uint64_t size = WriteSamples(**file, keys, AsBytes(payload));
  for (auto _ : state) {
    SequentialReader in((*file)->file(), size);
    CountRecords records;
    FindingList findings;
    const absl::Status scanned = kWebDatasetFormat.scanner->Scan(
        in, {.shard_name = "bench", .strict = state.range(1) != 0}, records, findings);
    if (!scanned.ok() || records.count != keys.size() || !in.Finish().ok()) std::abort();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * size));
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * keys.size()));
}
BENCHMARK(BM_Scan)->ArgsProduct({{900, 110000}, {0, 1}})->Unit(benchmark::kMillisecond);

// The upper bound for any scan: reads every byte into the file's digest.
void BM_ReadAndDigest(benchmark::State& state) {
  const std::string payload(110000, 'x');
  auto file = StagedFile::Create(ScratchPath());
  const uint64_t size = WriteSamples(**file, Keys(payload.size()), AsBytes(payload));
  for (auto _ : state) {
    SequentialReader in((*file)->file(), size);
    if (!in.Finish().ok()) std::abort();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * size));
}
BENCHMARK(BM_ReadAndDigest)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardpack

BENCHMARK_MAIN();
