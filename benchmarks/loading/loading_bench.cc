// loading_bench: what opening, resuming and cold random reads cost.
//
//   loading_bench generate DIR           # an index of 1,281,167 samples; the shards are holes
//   loading_bench open DIR               # seconds to the first id, and to restore a cursor
//   loading_bench reads DATASET          # plain random reads of the same extents, 32 at a time
//   loading_bench copy DATASET           # memcpy of the same samples, already in memory, into
//                                        # --slabs a thread: one stays in the cache, several do not
//
// Each prints one line of JSON. bench.py runs them beside loader_bench with the page cache dropped.
#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/core/index_name.h"
#include "formats/core/manifest.h"
#include "formats/core/shard_index.h"
#include "formats/io/hash.h"
#include "readers/loading/loader.h"

namespace shardpack {
namespace {

using Clock = std::chrono::steady_clock;
constexpr uint64_t kImageBytes = 110'000, kShardSamples = 1000, kClasses = 1000;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int Fail(const std::string& what) {
  std::fprintf(stderr, "loading_bench: %s\n", what.c_str());
  return 1;
}

absl::StatusOr<Order> OrderOf(const Dataset& dataset, uint32_t batch) {
  OrderSpec spec;
  spec.samples = dataset.size();
  spec.global_batch = batch;
  return Order::Make(spec);
}

FileEntry WriteFile(const std::string& folder, const std::string& name, const std::string& bytes) {
  std::ofstream(absl::StrCat(folder, "/", name), std::ios::binary) << bytes;
  return {name, bytes.size(), Xxh3_128(AsBytes(bytes))};
}

int Generate(const std::string& folder, uint64_t samples) {
  std::filesystem::create_directories(folder);
  Manifest manifest;
  manifest.format = "webdataset";
  manifest.layout = "ustar";
  for (uint64_t c = 0; c < kClasses; ++c) manifest.classes.push_back(absl::StrFormat("n%08d", c));
  for (uint64_t first = 0; first < samples; first += kShardSamples) {
    const uint64_t records = std::min(kShardSamples, samples - first);
    ManifestShard shard;
    shard.name = absl::StrFormat("train-%06d.tar", first / kShardSamples);
    shard.split = "train";
    shard.records = records;
    shard.bytes = records * (kImageBytes + 1024);
    std::ofstream(absl::StrCat(folder, "/", shard.name)).close();
    std::filesystem::resize_file(absl::StrCat(folder, "/", shard.name), shard.bytes);
    ShardIndexBuilder index;
    for (uint64_t r = 0; r < records; ++r) {
      const ScannedField image = {.name = kImageField,
                                  .offset = r * (kImageBytes + 1024) + 512,
                                  .length = kImageBytes,
                                  .hash = first + r};
      ScannedRecord record;
      record.offset = r * (kImageBytes + 1024);
      record.length = kImageBytes + 1024;
      record.fields = {&image, 1};
      const std::string key = absl::StrFormat("n%08d/n%08d_%d", (first + r) % kClasses,
                                              (first + r) % kClasses, first + r);
      index.Add(record, key, key + ".JPEG", static_cast<int64_t>((first + r) % kClasses),
                {.width = 500, .height = 375, .format = ImageFormat::kJpeg});
    }
    shard.index = WriteFile(folder, IndexName(shard.name), index.Finish(shard.bytes));
    manifest.files.push_back({shard.name, shard.bytes, shard.xxh3_128});
    manifest.files.push_back(shard.index);
    manifest.splits["train"] += records;
    manifest.shards.push_back(shard);
  }
  manifest.counts.seen = manifest.counts.packed = manifest.source_files = samples;
  WriteFile(folder, std::string(kManifestName), manifest.ToJson());
  return 0;
}

int Open(const std::string& folder) {
  const Clock::time_point start = Clock::now();
  const absl::StatusOr<Dataset> dataset = Dataset::Open(folder);
  if (!dataset.ok()) return Fail(dataset.status().ToString());
  const absl::StatusOr<Order> order = OrderOf(*dataset, 256);
  if (!order.ok()) return Fail(order.status().ToString());
  const uint64_t id = order->IdAt(0, 0, 0);
  const double to_first_id = SecondsSince(start);

  const std::string saved =
      CursorToText(MakeCursor(dataset->identity(), *order, 40, order->steps() / 2));
  PageableMemory memory;
  const Clock::time_point restored = Clock::now();
  const absl::StatusOr<Cursor> cursor = CursorFromText(saved);
  if (!cursor.ok()) return Fail(cursor.status().ToString());
  const absl::StatusOr<Loader> loader =
      Loader::Open(*dataset, *order, {}, {.verify = false}, memory, *cursor);
  const double to_restore = SecondsSince(restored);
  if (!loader.ok()) return Fail(loader.status().ToString());
  std::printf("{\"samples\":%" PRIu64 ",\"shards\":%zu,\"first_id\":%" PRIu64
              ",\"open_seconds\":%.6f,\"restore_seconds\":%.6f}\n",
              dataset->size(), dataset->shards().size(), id, to_first_id, to_restore);
  return 0;
}

// The extents in one random order, taken by `depth` threads, one blocking read each.
int Reads(const std::string& folder, int depth) {
  const absl::StatusOr<Dataset> dataset = Dataset::Open(folder);
  if (!dataset.ok()) return Fail(dataset.status().ToString());
  const absl::StatusOr<Order> order = OrderOf(*dataset, 1);
  if (!order.ok()) return Fail(order.status().ToString());
  std::vector<const ShardIndex*> indexes;
  for (uint32_t s = 0; s < dataset->shards().size(); ++s) {
    const absl::StatusOr<const ShardIndex*> index = dataset->BorrowIndex(s);
    if (!index.ok()) return Fail(index.status().ToString());
    indexes.push_back(*index);
  }
  std::atomic<uint64_t> next{0}, bytes{0};
  std::atomic<bool> failed{false};
  const Clock::time_point start = Clock::now();
  std::vector<std::thread> threads;
  for (int t = 0; t < depth; ++t) {
    threads.emplace_back([&] {
      std::vector<std::byte> into;
      for (uint64_t i = next++; i < dataset->size(); i = next++) {
        const SampleLocation at = dataset->Locate(order->IdAt(0, i, 0));
        const Extent extent = indexes[at.shard]->field(at.record, 0);
        into.resize(extent.length);
        const absl::StatusOr<std::shared_ptr<const File>> file = dataset->OpenFile(at.shard);
        if (!file.ok() || !(*file)->ReadExactlyAt(extent.offset, into).ok()) failed = true;
        bytes += extent.length;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (failed) return Fail("a read failed");
  std::printf("{\"samples\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"seconds\":%.6f}\n", dataset->size(),
              bytes.load(), SecondsSince(start));
  return 0;
}

// What a loader cannot beat: the samples lie in memory and are copied to slabs, in random order.
int Copy(const std::string& folder, int threads, size_t slabs) {
  const absl::StatusOr<Dataset> dataset = Dataset::Open(folder);
  if (!dataset.ok()) return Fail(dataset.status().ToString());
  const absl::StatusOr<Order> order = OrderOf(*dataset, 1);
  if (!order.ok()) return Fail(order.status().ToString());
  std::vector<uint64_t> begins = {0};
  std::vector<std::byte> all;
  for (uint64_t id = 0; id < dataset->size(); ++id) {
    const SampleLocation at = dataset->Locate(id);
    const absl::StatusOr<const ShardIndex*> index = dataset->BorrowIndex(at.shard);
    if (!index.ok()) return Fail(index.status().ToString());
    all.resize(begins.back() + (*index)->field(at.record, 0).length);
    const absl::Status read = dataset->ReadField(at, 0, std::span(all).subspan(begins.back()));
    if (!read.ok()) return Fail(read.ToString());
    begins.push_back(all.size());
  }
  constexpr size_t kSlabBytes = size_t{8} << 20;
  double best = 0;
  for (uint64_t epoch = 0; epoch < 6; ++epoch) {
    std::atomic<uint64_t> next{0};
    const Clock::time_point start = Clock::now();
    std::vector<std::thread> running;
    for (int t = 0; t < threads; ++t) {
      running.emplace_back([&] {
        std::vector<std::byte> all_slabs(slabs * kSlabBytes);
        std::byte* slab = all_slabs.data();
        size_t place = 0;
        for (uint64_t i = next++; i < dataset->size(); i = next++) {
          const uint64_t id = order->IdAt(epoch, i, 0);
          const uint64_t length = begins[id + 1] - begins[id];
          if (length > kSlabBytes) continue;
          if (place + length > kSlabBytes) {
            place = 0;
            slab += kSlabBytes;
            if (slab == all_slabs.data() + all_slabs.size()) slab = all_slabs.data();
          }
          std::memcpy(slab + place, all.data() + begins[id], length);
          place += (length + 63) & ~uint64_t{63};
        }
      });
    }
    for (std::thread& thread : running) thread.join();
    const double seconds = SecondsSince(start);
    if (best == 0 || seconds < best) best = seconds;
  }
  std::printf("{\"samples\":%" PRIu64 ",\"bytes\":%zu,\"seconds\":%.6f}\n", dataset->size(),
              all.size(), best);
  return 0;
}

int Main(int argc, char** argv) {
  CLI::App app("what opening, resuming and cold random reads cost");
  std::string folder;
  uint64_t samples = 1'281'167;
  int depth = 32;
  size_t slabs = 1;
  app.require_subcommand(1);
  for (const char* name : {"generate", "open", "reads", "copy"}) {
    CLI::App* mode = app.add_subcommand(name);
    mode->add_option("folder", folder)->required();
    mode->add_option("--samples", samples);
    mode->add_option("--depth", depth);
    mode->add_option("--slabs", slabs)->check(CLI::PositiveNumber);
  }
  CLI11_PARSE(app, argc, argv);
  if (app.got_subcommand("generate")) return Generate(folder, samples);
  if (app.got_subcommand("open")) return Open(folder);
  return app.got_subcommand("copy") ? Copy(folder, depth, slabs) : Reads(folder, depth);
}

}  // namespace
}  // namespace shardpack

int main(int argc, char** argv) { return shardpack::Main(argc, argv); }
