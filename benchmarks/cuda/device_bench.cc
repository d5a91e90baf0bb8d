// Batches of a dataset to a device: bytes a second against the plain pinned copy in the same
// process, stalls of a consumer with a fixed rate, and the CPU that it takes.
//
//   device_bench DATASET [--device cuda|host|fake] [--decode 224] [--batch 256] [--epochs 3]
//                [--rate 1786] [--seconds 5] [--type f16|u8|f32]
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cuda/cuda_api.h"
#include "cuda/device_loader.h"
#include "cuda/fake_api.h"
#include "cuda/host_api.h"
#include "readers/loader.h"

namespace shardpack {
namespace {

using Clock = std::chrono::steady_clock;

struct Flags {
  std::string dataset, device = "cuda", type = "f16";
  uint32_t decode = 224, batch = 256;
  uint64_t epochs = 3;
  double rate = 1786, seconds = 5;  // ResNet-50 on one H100, by MLPerf Storage
  int threads = 0;
};

template <typename T>
T Get(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
  std::exit(1);
}
void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double CpuSeconds() {
  rusage usage;
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Copies of 16 MiB one behind the other, nothing else going on.
double PlainCopy(const DeviceApi& api) {
  constexpr size_t kBytes = size_t{16} << 20;
  constexpr int kCopies = 64;
  PinnedMemory memory(api);
  const std::span<std::byte> host = Get(memory.Allocate(kBytes));
  void* device = nullptr;
  Stream stream = nullptr;
  Check(Checked(api, api.allocate(api.self, &device, kBytes), "allocating"));
  Check(Checked(api, api.stream_create(api.self, &stream), "making a stream"));
  double best = 0;
  for (int round = 0; round < 4; ++round) {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < kCopies; ++i)
      api.copy_to_device(api.self, device, host.data(), kBytes, stream);
    Check(Checked(api, api.stream_synchronize(api.self, stream), "copying"));
    best = std::max(best, kCopies * static_cast<double>(kBytes) / SecondsSince(start));
  }
  api.stream_destroy(api.self, stream);
  api.free(api.self, device);
  memory.Free(host);
  return best;
}

struct Run {
  double seconds = 0, cpu_seconds = 0;
  uint64_t images = 0, bytes = 0, stalls = 0, batches = 0;
  DeviceLoaderStats stats;
};

// Without a rate as fast as it goes; with one a batch is due each batch / rate seconds, and one
// that is not there by then is a stall.
Run Consume(DeviceLoader& loader, const DeviceApi& api, const Flags& flags, double rate) {
  Stream stream = nullptr;
  Check(Checked(api, api.stream_create(api.self, &stream), "making a stream"));
  Run run;
  // The first epoch fills caches, or with a rate some batches do.
  bool warm = false;
  uint64_t ends = 0, seen = 0, bytes_before = 0;
  double cpu = 0;
  Clock::time_point start = Clock::now(), due = start;
  for (;;) {
    if (rate > 0 && warm) std::this_thread::sleep_until(due);
    const uint64_t waits = loader.stats().waits;
    std::optional<DeviceBatch> batch = Get(loader.Next());
    if (!batch) {
      ++ends;
      if (rate == 0 && ends == flags.epochs) break;
    } else {
      ++seen;
      Check(batch->WaitOn(stream));
      if (warm) {
        run.images += batch->size();
        ++run.batches;
        if (rate > 0 && loader.stats().waits > waits) ++run.stalls;
      }
      Check(batch->Release(stream));
    }
    if (!warm && (rate == 0 ? ends == 1 : seen == 20)) {
      warm = true;
      bytes_before = loader.stats().uploaded_bytes;
      cpu = CpuSeconds();
      start = due = Clock::now();
    }
    if (rate > 0 && warm && batch) {
      due += std::chrono::duration_cast<Clock::duration>(
          std::chrono::duration<double>(static_cast<double>(flags.batch) / rate));
      if (SecondsSince(start) > flags.seconds) break;
    }
  }
  Check(Checked(api, api.stream_synchronize(api.self, stream), "waiting"));
  run.seconds = SecondsSince(start);
  run.cpu_seconds = CpuSeconds() - cpu;
  run.stats = loader.stats();
  run.bytes = run.stats.uploaded_bytes - bytes_before;
  api.stream_destroy(api.self, stream);
  return run;
}

// What the Loader gives without any device.
double FillOnly(const Dataset& dataset, const Order& order, const LoaderOptions& options,
                PinnedMemory& memory, const Flags& flags) {
  Loader loader = Get(Loader::Open(dataset, order, {}, options, memory));
  Clock::time_point start;
  uint64_t ends = 0, images = 0;
  while (ends < flags.epochs) {
    const std::optional<HostBatch> batch = Get(loader.Next());
    if (batch) {
      images += ends > 0 ? batch->size() : 0;
    } else if (++ends == 1) {
      start = Clock::now();
    }
  }
  return static_cast<double>(images) / SecondsSince(start);
}

void Print(const Run& run, const char* name, double plain) {
  const double rate = static_cast<double>(run.bytes) / run.seconds;
  std::printf(
      "%-10s %.0f images/s, %.2f GB/s to the device (%.1f %% of the plain copy), %.2f cores, "
      "%.2f CPU s/GB; %" PRIu64 " of %" PRIu64 " batches waited for\n",
      name, static_cast<double>(run.images) / run.seconds, rate / 1e9, 100 * rate / plain,
      run.cpu_seconds / run.seconds,
      run.cpu_seconds / std::max(static_cast<double>(run.bytes) / 1e9, 1e-9), run.stalls,
      run.batches);
}

const DeviceApi& ApiOf(const Flags& flags, std::optional<FakeApi>& fake) {
  if (flags.device == "host") return HostApi();
  if (flags.device == "fake") return fake.emplace(FakeOptions{.max_delay_us = 0}).api();
  return *Get(CudaDeviceApi(0));
}

void Bench(const Flags& flags) {
  std::optional<FakeApi> fake;
  const DeviceApi& api = ApiOf(flags, fake);
  DeviceInfo info;
  Check(Checked(api, api.info(api.self, &info), "asking for the device"));
  const double plain = PlainCopy(api);
  std::printf("device     %s, compute capability %d.%d; plain pinned copy %.2f GB/s\n", info.name,
              info.major, info.minor, plain / 1e9);
  const Dataset dataset = Get(Dataset::Open(flags.dataset));
  const Order order = Get(Order::Make(
      {.samples = dataset.size(), .seed = 1, .global_batch = flags.batch, .tail = Tail::kPad}));
  LoaderOptions options{.threads = flags.threads, .memory_bytes = uint64_t{256} << 20};
  DeviceOptions device;
  if (flags.decode > 0) {
    options.decode.emplace();
    options.decode->crop.width = options.decode->crop.height = flags.decode;
    options.decode->crop.flip_probability = 0.5;
    static const std::map<std::string, PixelType> kTypes = {
        {"f16", PixelType::kF16}, {"f32", PixelType::kF32}, {"u8", PixelType::kU8}};
    device.preprocess =
        DevicePreprocess{.output = {.type = kTypes.at(flags.type), .layout = PixelLayout::kNchw}};
  }
  PinnedMemory memory(api);
  const double fill = FillOnly(dataset, order, options, memory, flags);
  std::printf("fill       %.0f images/s by the loader alone\n", fill);
  {
    DeviceLoader loader = Get(
        DeviceLoader::Open(Get(Loader::Open(dataset, order, {}, options, memory)), device, api));
    const Run run = Consume(loader, api, flags, 0);
    Print(run, "stream", plain);
    std::printf("           %.1f %% of the fill; %u buffers, %.1f MB on the device, pinned: %s\n",
                100 * static_cast<double>(run.images) / run.seconds / fill, run.stats.buffers,
                static_cast<double>(run.stats.device_bytes) / 1e6, run.stats.pinned ? "yes" : "no");
  }
  if (flags.rate <= 0) return;
  DeviceLoader loader =
      Get(DeviceLoader::Open(Get(Loader::Open(dataset, order, {}, options, memory)), device, api));
  Print(Consume(loader, api, flags, flags.rate), "at a rate", plain);
}

}  // namespace
}  // namespace shardpack

int main(int argc, char** argv) {
  shardpack::Flags flags;
  CLI::App app("Batches of a dataset to a device");
  app.add_option("dataset", flags.dataset)->required();
  app.add_option("--device", flags.device)->check(CLI::IsMember({"cuda", "host", "fake"}));
  app.add_option("--type", flags.type)->check(CLI::IsMember({"f16", "f32", "u8"}));
  app.add_option("--decode", flags.decode, "side of the squares; 0: encoded bytes");
  app.add_option("--batch", flags.batch)->check(CLI::Range(1, 1 << 16));
  app.add_option("--epochs", flags.epochs)->check(CLI::Range(2, 1000));
  app.add_option("--rate", flags.rate, "images a second of the second consumer; 0: none");
  app.add_option("--seconds", flags.seconds);
  app.add_option("--threads", flags.threads);
  CLI11_PARSE(app, argc, argv);
  shardpack::Bench(flags);
}
