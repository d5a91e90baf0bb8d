// loader_bench: the readers' side of benchmarks/peers: delivers a packed dataset and prints a line
// of JSON an epoch.
//
//   loader_bench views   DATASET --order random --epochs 3
//   loader_bench batches DATASET --order random --batch 256 --epochs 3 --threads 2 --verify on
//   loader_bench decode  DATASET --order random --batch 64 --epochs 3 --threads 2 --size 224
//
// {"epoch":0,"samples":N,"bytes":M,"seconds":S,"first_batch_seconds":F,"digest":"hex"}; the digest
// is the XOR over the samples of the XXH3-64 of each image, taken in a further epoch that is not
// timed (epoch -1), or none with --no-digest.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "formats/io/hash.h"
#include "readers/dataset/dataset.h"
#include "readers/dataset/dataset_view.h"
#include "readers/loading/loader.h"

namespace shardpack {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string dataset, order = "random", verify = "on";
  uint32_t batch = 256;
  uint64_t epochs = 3;
  int threads = 0, io_threads = 32;
  uint32_t prefetch = 0;
  uint32_t size = 0;  // of decode: RandomResizedCrop and flip to this square
  bool explain = false;
  bool digest = true;
};

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "loader_bench: %s\n", status.ToString().c_str());
  return 1;
}

// Of all threads, since the last call.
double CpuSeconds() {
  static double last = 0;
  timespec now = {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  const double all = static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  return all - std::exchange(last, all);
}

void Print(int64_t epoch, uint64_t samples, uint64_t bytes, double seconds, double first,
           uint64_t digest) {
  std::printf("{\"epoch\":%" PRId64 ",\"samples\":%" PRIu64 ",\"bytes\":%" PRIu64
              ",\"seconds\":%.6f,\"cpu_seconds\":%.6f,\"first_batch_seconds\":%.6f"
              ",\"digest\":\"%016" PRIx64 "\"}\n",
              epoch, samples, bytes, seconds, CpuSeconds(), first, digest);
  std::fflush(stdout);
}

absl::StatusOr<Order> OrderOf(const Options& options, const Dataset& dataset, uint32_t batch) {
  OrderSpec spec;
  spec.samples = dataset.size();
  spec.mode = options.order == "random" ? OrderMode::kShuffle : OrderMode::kSequential;
  spec.seed = 1;
  spec.global_batch = batch;
  spec.tail = Tail::kPad;
  return Order::Make(spec);
}

int Views(const Options& options, const Dataset& dataset) {
  const Clock::time_point opened = Clock::now();
  const absl::StatusOr<DatasetView> view = DatasetView::Open(dataset, "image");
  if (!view.ok()) return Fail(view.status());
  const absl::StatusOr<Order> order = OrderOf(options, dataset, 1024);
  if (!order.ok()) return Fail(order.status());
  std::vector<uint64_t> ids(1024);
  double first = 0;
  for (int64_t epoch = -1; epoch < static_cast<int64_t>(options.epochs); ++epoch) {
    uint64_t samples = 0, bytes = 0, digest = 0, touched = 0;
    const Clock::time_point start = Clock::now();
    for (uint64_t step = 0; step < order->steps(); ++step) {
      order->Ids(static_cast<uint64_t>(epoch + 1), step, 0, ids);
      for (const uint64_t id : ids) {
        if (id == kPaddingId) continue;
        const Bytes image = view->bytes(id);
        ++samples;
        bytes += image.size();
        touched += static_cast<uint64_t>(image[0]);
        if (epoch < 0) digest ^= Xxh3_64(image);
      }
      if (epoch < 0 && step == 0) first = SecondsSince(opened);
    }
    if (touched == 0) std::fputs("", stderr);  // the bytes are used
    Print(epoch, samples, bytes, SecondsSince(start), first, digest);
  }
  return 0;
}

int Batches(const Options& options, const Dataset& dataset) {
  const Clock::time_point opened = Clock::now();
  const absl::StatusOr<Order> order = OrderOf(options, dataset, options.batch);
  if (!order.ok()) return Fail(order.status());
  PageableMemory memory;
  LoaderOptions loading;
  loading.verify = options.verify == "on";
  loading.threads = options.threads;
  loading.io_threads = options.io_threads;
  loading.prefetch_batches = options.prefetch;
  if (options.size > 0) {
    loading.decode.emplace();
    loading.decode->crop.width = loading.decode->crop.height = options.size;
    loading.decode->crop.flip_probability = 0.5;
  }
  absl::StatusOr<Loader> loader = Loader::Open(dataset, *order, {}, loading, memory);
  if (!loader.ok()) return Fail(loader.status());
  double first = 0;
  for (int64_t epoch = -1; epoch < static_cast<int64_t>(options.epochs); ++epoch) {
    uint64_t samples = 0, bytes = 0, digest = 0;
    const Clock::time_point start = Clock::now();
    for (;;) {
      const absl::StatusOr<std::optional<HostBatch>> batch = loader->Next();
      if (!batch.ok()) return Fail(batch.status());
      if (!batch->has_value()) break;
      if (first == 0) first = SecondsSince(opened);
      for (size_t i = 0; i < (*batch)->size(); ++i) {
        if ((*batch)->status()[i].state == SampleState::kPadding) continue;
        if (options.size > 0) {
          ++samples;
          bytes += (*batch)->pixels()->sample_bytes;
          continue;
        }
        const Bytes image = (*batch)->bytes(0, i);
        ++samples;
        bytes += image.size();
        if (epoch < 0 && options.digest) digest ^= Xxh3_64(image);
      }
    }
    Print(epoch, samples, bytes, SecondsSince(start), first, digest);
  }
  if (options.explain) std::fputs(loader->stats().Explain().c_str(), stderr);
  return 0;
}

int Main(int argc, char** argv) {
  CLI::App app("delivers a packed dataset and prints a line of JSON an epoch");
  Options options;
  uint32_t decode_size = 224;
  app.require_subcommand(1);
  for (const char* name : {"views", "batches", "decode"}) {
    CLI::App* mode = app.add_subcommand(name);
    mode->add_option("dataset", options.dataset)->required();
    mode->add_option("--order", options.order)->check(CLI::IsMember({"random", "sequential"}));
    mode->add_option("--batch", options.batch);
    mode->add_option("--epochs", options.epochs);
    mode->add_option("--threads", options.threads);
    mode->add_option("--io-threads", options.io_threads);
    mode->add_option("--prefetch", options.prefetch);
    if (std::string_view(name) == "decode") mode->add_option("--size", decode_size);
    mode->add_option("--verify", options.verify)->check(CLI::IsMember({"on", "off"}));
    mode->add_flag("--explain", options.explain);
    mode->add_flag("!--no-digest", options.digest);
  }
  CLI11_PARSE(app, argc, argv);
  if (app.got_subcommand("decode")) options.size = decode_size;
  const absl::StatusOr<Dataset> dataset = Dataset::Open(options.dataset);
  if (!dataset.ok()) return Fail(dataset.status());
  return app.got_subcommand("views") ? Views(options, *dataset) : Batches(options, *dataset);
}

}  // namespace
}  // namespace shardpack

int main(int argc, char** argv) { return shardpack::Main(argc, argv); }
