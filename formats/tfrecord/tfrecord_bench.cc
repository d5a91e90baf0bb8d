// Measures one core: the verifying scan of a shard, and the writer, at the record sizes of CIFAR
// and ImageNet.
//
//   bazel run //formats/tfrecord:tfrecord_bench
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/io/sequential_reader.h"
#include "formats/io/staged_file.h"
#include "formats/testing/sample_generator.h"
#include "formats/testing/scratch_folder.h"
#include "formats/testing/test_shard.h"
#include "formats/tfrecord/tfrecord_format.h"

namespace shardpack {
namespace {

using testing::OwnedSample;

constexpr uint64_t kShardBytes = 128 << 20;

std::vector<OwnedSample> SamplesOf(uint64_t image_bytes) {
  std::vector<OwnedSample> samples = testing::GenerateSamples({.count = 200});
  testing::Random random(1);
  for (OwnedSample& sample : samples) {
    sample.fields[0].second = testing::MakeRandomPayload(image_bytes, random);
  }
  return samples;
}

void Append(ShardWriter& writer, const std::vector<OwnedSample>& samples, uint64_t image_bytes) {
  for (uint64_t i = 0; i < kShardBytes / image_bytes; ++i) {
    const testing::BorrowedSample borrowed = samples[i % samples.size()].Borrow();
    if (!writer.Append(borrowed.view).ok()) std::abort();
  }
}

std::unique_ptr<StagedFile> WriteShard(const std::string& path, uint64_t image_bytes) {
  auto file = StagedFile::Create(path);
  if (!file.ok()) std::abort();
  auto writer = kTfrecordFormat.create(**file, {});
  Append(**writer, SamplesOf(image_bytes), image_bytes);
  if (!(*writer)->Finish().ok() || !(*file)->Flush().ok()) std::abort();
  return *std::move(file);
}

class Ignore : public RecordSink, public FindingSink {
 public:
  void OnRecord(const ScannedRecord& record) override { benchmark::DoNotOptimize(record.offset); }
  void Report(Finding) override { std::abort(); }
};

// The scan, including the file digest that SequentialReader computes.
void BM_Scan(benchmark::State& state) {
  const testing::ScratchFolder scratch;
  const auto file = WriteShard(scratch.File("shard"), static_cast<uint64_t>(state.range(0)));
  for (auto _ : state) {
    SequentialReader in(file->file(), file->size());
    Ignore ignore;
    if (!kTfrecordFormat.scanner->Scan(in, {.shard_name = "shard"}, ignore, ignore).ok()) {
      state.SkipWithError("scan");
    }
    benchmark::DoNotOptimize(in.Finish());
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * file->size()));
}
BENCHMARK(BM_Scan)->Arg(900)->Arg(110 << 10)->Unit(benchmark::kMillisecond);

// The baseline: reads the same file through the same window, and computes its digest.
void BM_ReadAndDigest(benchmark::State& state) {
  const testing::ScratchFolder scratch;
  const auto file = WriteShard(scratch.File("shard"), static_cast<uint64_t>(state.range(0)));
  for (auto _ : state) {
    SequentialReader in(file->file(), file->size());
    benchmark::DoNotOptimize(in.Finish());
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * file->size()));
}
BENCHMARK(BM_ReadAndDigest)->Arg(110 << 10)->Unit(benchmark::kMillisecond);

// Writes to a file that is never synced: the cost of the file system is included, the disk's is
// not.
void BM_Write(benchmark::State& state) {
  const testing::ScratchFolder scratch;
  const auto image_bytes = static_cast<uint64_t>(state.range(0));
  const std::vector<OwnedSample> samples = SamplesOf(image_bytes);
  uint64_t bytes = 0;
  for (auto _ : state) {
    auto file = StagedFile::Create(scratch.File("shard"));
    auto writer = kTfrecordFormat.create(**file, {});
    Append(**writer, samples, image_bytes);
    if (!(*writer)->Finish().ok() || !(*file)->Flush().ok()) state.SkipWithError("write");
    bytes += (*file)->size();
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
}
BENCHMARK(BM_Write)->Arg(900)->Arg(110 << 10)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardpack

BENCHMARK_MAIN();
