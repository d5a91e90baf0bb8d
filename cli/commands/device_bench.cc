#include "cli/commands/device_bench.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/commands/bench_setup.h"
#include "cli/commands/device_ceilings.h"
#include "cli/flags/failure.h"
#include "cli/terminal/seconds_since.h"
#include "cli/terminal/units.h"
#include "cuda/device/cuda_device.h"
#include "cuda/device/host_device.h"
#include "cuda/loading/device_loader.h"
#include "cuda/loading/open_pinned_loader.h"

namespace shardpack::cli {
namespace {

using absl::StrAppend;
using absl::StrFormat;
using Clock = std::chrono::steady_clock;

constexpr double kRateSeconds = 5;     // duration with a rate-limited consumer
constexpr uint64_t kWarmBatches = 20;  // before measuring

double CpuSeconds() {
  rusage usage;
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Run {
  std::string name;
  double seconds = 0, cpu_seconds = 0;
  uint64_t images = 0, bytes = 0, batches = 0, waits = 0;
  DeviceLoaderStats stats;

  double images_a_second() const { return static_cast<double>(images) / seconds; }
  double bytes_a_second() const { return static_cast<double>(bytes) / seconds; }
  double cores() const { return cpu_seconds / seconds; }
};

// The setup of a measurement.
struct Setup {
  const CommandLine& line;
  const BenchInput& input;
  Device& device;
  PinnedMemory& memory;
  bool for_device = false;  // the device decodes the images, not the Loader
  bool regions = true;      // DeviceDecode::regions
};

LoaderOptions LoaderFor(const Setup& setup) {
  LoaderOptions options = BenchLoader(setup.line);
  if (!setup.for_device) return options;
  options.decode.reset();
  options.image_infos = true;
  return options;
}

DeviceDecode DecodeFor(const CommandLine& line) {
  const LoaderOptions host = BenchLoader(line);
  return {.crop = host.decode->crop, .threads = host.threads};
}

absl::StatusOr<Loader> OpenLoader(const Setup& setup) {
  return OpenPinnedLoader(setup.input.dataset, setup.input.order, {}, LoaderFor(setup),
                          setup.memory);
}

// Normalised halves, the input of most training.
absl::StatusOr<DeviceLoader> OpenDevice(const Setup& setup) {
  absl::StatusOr<Loader> loader = OpenLoader(setup);
  if (!loader.ok()) return loader.status();
  DeviceOptions options;
  if (setup.line.bench().decode_size > 0) {
    options.preprocess =
        DevicePreprocess{.output = {.type = PixelType::kF16, .layout = PixelLayout::kNchw}};
    options.bad_images.policy = BadSamples::kSubstitute;
    if (setup.for_device) {
      options.decode = DecodeFor(setup.line);
      options.decode->regions = setup.regions;
    }
  }
  return DeviceLoader::Open(*std::move(loader), options, setup.device);
}

// With a rate, a batch is due every batch / rate seconds, for kRateSeconds; a batch that is late
// counts as a wait. Without a rate, runs --epochs epochs at full speed; the first one fills caches
// and is not counted if there are more.
absl::Status Consume(const Setup& setup, double rate, Stream stream, Run& run) {
  absl::StatusOr<DeviceLoader> loader = OpenDevice(setup);
  if (!loader.ok()) return loader.status();
  const uint64_t warm_epochs = setup.line.bench().epochs > 1 ? 1 : 0;
  const auto batch_seconds = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(rate > 0 ? setup.line.bench().batch / rate : 0));
  uint64_t ends = 0, seen = 0, bytes_before = 0;
  double cpu = CpuSeconds();
  bool counted = rate == 0 && warm_epochs == 0;
  Clock::time_point start = Clock::now(), due = start;
  for (;;) {
    if (rate > 0) std::this_thread::sleep_until(due += batch_seconds);
    const uint64_t waits = loader->stats().waits;
    absl::StatusOr<std::optional<DeviceBatch>> batch = loader->Next();
    if (!batch.ok()) return batch.status();
    if (batch->has_value()) {
      ++seen;
      if (counted) {
        ++run.batches;
        run.waits += loader->stats().waits > waits;
        for (const SampleStatus& status : (*batch)->info().status) {
          run.images += status.state != SampleState::kPadding;
        }
      }
      absl::Status used = (*batch)->WaitOn(stream);
      if (used.ok()) used = (*batch)->Release(stream);
      if (!used.ok()) return used;
    } else {
      ++ends;
      due -= batch_seconds;  // the end of an epoch is not a batch
    }
    if (!counted && (rate > 0 ? seen >= kWarmBatches : ends == warm_epochs)) {
      counted = true;
      bytes_before = loader->stats().uploaded_bytes;
      cpu = CpuSeconds();
      start = due = Clock::now();
    }
    if (counted &&
        (rate > 0 ? SecondsSince(start) >= kRateSeconds : ends == setup.line.bench().epochs)) {
      break;
    }
  }
  if (absl::Status done = setup.device.Synchronize(stream); !done.ok()) return done;
  run.seconds = SecondsSince(start);
  run.cpu_seconds = CpuSeconds() - cpu;
  run.stats = loader->stats();
  run.bytes = run.stats.uploaded_bytes - bytes_before;
  return absl::OkStatus();
}

absl::StatusOr<Run> Measure(const Setup& setup, std::string name, double rate) {
  Run run;
  run.name = std::move(name);
  const absl::StatusOr<Stream> stream = setup.device.CreateStream();
  if (!stream.ok()) return stream.status();
  absl::Status status = Consume(setup, rate, *stream, run);
  (void)setup.device.DestroyStream(*stream);
  if (!status.ok()) return status;
  return run;
}

// Images per second of the Loader without a device, and the samples that it found damaged.
absl::StatusOr<double> FillRate(const Setup& setup, std::vector<BadSample>& damaged) {
  absl::StatusOr<Loader> loader = OpenLoader(setup);
  if (!loader.ok()) return loader.status();
  Clock::time_point start = Clock::now();
  uint64_t images = 0;
  for (uint64_t ends = 0; ends < std::max<uint64_t>(setup.line.bench().epochs, 2);) {
    const absl::StatusOr<std::optional<HostBatch>> batch = loader->Next();
    if (!batch.ok()) return batch.status();
    if (batch->has_value()) {
      for (const SampleStatus& status : (*batch)->status()) {
        images += ends > 0 && status.state != SampleState::kPadding;
      }
    } else if (++ends == 1) {
      start = Clock::now();
    }
  }
  damaged = loader->TakeBadSamples();
  return static_cast<double>(images) / SecondsSince(start);
}

struct Report {
  DeviceInfo device;
  std::vector<BadSample> damaged;
  double copy = 0, fill = 0;
  std::optional<KernelCeiling> kernel, kernel_nhwc;
  absl::StatusOr<double> resident_step = absl::UnknownError("not measured");
  std::optional<DecodeCeilings> decode;
  std::vector<Run> runs;
};

absl::StatusOr<Report> MeasureAll(const CommandLine& line, Device& device) {
  absl::StatusOr<BenchInput> input = OpenBenchInput(line);
  if (!input.ok()) return input.status();
  PinnedMemory memory(device);
  Setup setup{line, *input, device, memory};
  Report report;
  const absl::StatusOr<DeviceInfo> info = device.Info();
  if (!info.ok()) return info.status();
  report.device = *info;
  const absl::StatusOr<double> copy = PinnedCopyCeiling(device);
  if (!copy.ok()) return copy.status();
  report.copy = *copy;
  const absl::StatusOr<double> fill = FillRate(setup, report.damaged);
  if (!fill.ok()) return fill.status();
  report.fill = *fill;
  if (line.bench().decode_size > 0) {
    for (const PixelLayout layout : {PixelLayout::kNchw, PixelLayout::kNhwc}) {
      const absl::StatusOr<KernelCeiling> kernel =
          PreprocessCeiling(device, line.bench().decode_size, layout);
      if (!kernel.ok()) return kernel.status();
      (layout == PixelLayout::kNchw ? report.kernel : report.kernel_nhwc) = *kernel;
    }
    // Not of a dataset with images that cannot be decoded, which the other runs replace.
    report.resident_step = ResidentStepCost(device, input->dataset);
    Setup encoded = setup;
    encoded.for_device = true;
    absl::StatusOr<Loader> loader = OpenLoader(encoded);
    if (!loader.ok()) return loader.status();
    absl::StatusOr<DecodeCeilings> decode = DeviceDecodeCeiling(device, *loader, DecodeFor(line));
    if (!decode.ok()) return decode.status();
    report.decode = *std::move(decode);
  }
  const struct {
    const char* name;
    bool for_device, regions;
  } ways[] = {{line.bench().decode_size == 0 ? "encoded" : "decoded by the loader", false, true},
              {"decoded for the device", true, true},
              {"decoded for the device, whole images", true, false}};
  for (const auto& way : ways) {
    if (way.for_device && line.bench().decode_size == 0) break;
    setup.for_device = way.for_device;
    setup.regions = way.regions;
    std::vector<double> rates = {0};
    if (line.bench().rate > 0 && way.regions)
      rates.push_back(static_cast<double>(line.bench().rate));
    for (const double rate : rates) {
      absl::StatusOr<Run> run = Measure(
          setup, absl::StrCat(way.name, rate == 0 ? "" : StrFormat(", at %.0f images/s", rate)),
          rate);
      if (!run.ok()) return run.status();
      report.runs.push_back(*std::move(run));
    }
  }
  return report;
}

std::string Text(const CommandLine& line, const Report& report) {
  std::string out = StrFormat("device     %s", report.device.name);
  if (report.device.major > 0) {
    StrAppend(&out,
              StrFormat(", compute capability %d.%d", report.device.major, report.device.minor));
  }
  StrAppend(&out, StrFormat("; copy from page-locked memory %.2f GB/s\n", report.copy / 1e9));
  StrAppend(&out, "loader     ", DescribeLoader(line, BenchLoader(line).threads),
            StrFormat("; %.0f images/s without a device\n", report.fill));
  if (report.kernel) {
    StrAppend(
        &out,
        StrFormat("preprocess %.0f images/s of 500 x 375, %.0f %% of the bytes of a copy "
                  "within the device; in NHWC %.0f\n",
                  report.kernel->images, 100 * report.kernel->of_copy, report.kernel_nhwc->images));
  }
  if (report.resident_step.ok()) {
    StrAppend(&out, StrFormat("resident   a step of 32 x 32 pixels takes its thread %.1f us\n",
                              *report.resident_step));
  }
  if (report.decode) {
    const JpegDecoderStats& stats = report.decode->stats;
    StrAppend(&out,
              StrFormat("decode     %.0f images/s: %u by engines, %u hybrid, %u by the CPU (%s)\n",
                        report.decode->images, stats.hardware, stats.hybrid, stats.cpu,
                        report.decode->backends));
  }
  for (const Run& run : report.runs) {
    StrAppend(&out, run.name, StrFormat("\n           %.0f images/s, ", run.images_a_second()));
    if (run.stats.decode_backends.empty()) {  // otherwise nvJPEG does the copy
      StrAppend(&out,
                StrFormat("%.2f GB/s to the device (%.0f %% of the copy), ",
                          run.bytes_a_second() / 1e9, 100 * run.bytes_a_second() / report.copy));
    }
    StrAppend(&out, StrFormat("%.2f cores, %u of %u batches waited for\n", run.cores(), run.waits,
                              run.batches));
    if (run.stats.decode.regions > 0) {
      StrAppend(&out, StrFormat("           %u of %u images by region, %.0f MB on the device\n",
                                run.stats.decode.regions,
                                run.stats.decode.hardware + run.stats.decode.hybrid,
                                static_cast<double>(run.stats.device_bytes) / 1e6));
    }
    if (!run.stats.why_fallback.empty()) {
      StrAppend(&out, "           ", run.stats.why_fallback, "\n");
    }
  }
  return out;
}

std::string Json(const CommandLine& line, const Report& report) {
  nlohmann::json runs = nlohmann::json::array();
  for (const Run& run : report.runs) {
    runs.push_back({{"name", run.name},
                    {"images_per_second", run.images_a_second()},
                    {"bytes_per_second", run.bytes_a_second()},
                    {"cores", run.cores()},
                    {"batches", run.batches},
                    {"batches_waited_for", run.waits},
                    {"pinned", run.stats.pinned},
                    {"device_bytes", run.stats.device_bytes},
                    {"decoded_by_region", run.stats.decode.regions},
                    {"fallback", run.stats.why_fallback}});
  }
  nlohmann::json json = {{"schema", "shardpack.device-bench/1"},
                         {"device", report.device.name},
                         {"batch", line.bench().batch},
                         {"decode_size", line.bench().decode_size},
                         {"verified", line.bench().check_hashes},
                         {"copy_bytes_per_second", report.copy},
                         {"loader_images_per_second", report.fill},
                         {"runs", std::move(runs)}};
  if (report.kernel) {
    json["preprocess_images_per_second"] = report.kernel->images;
    json["preprocess_share_of_copy"] = report.kernel->of_copy;
    json["preprocess_nhwc_images_per_second"] = report.kernel_nhwc->images;
  }
  if (report.decode) {
    json["decode_images_per_second"] = report.decode->images;
    json["decode_backends"] = report.decode->backends;
  }
  if (report.resident_step.ok()) {
    json["resident_step_microseconds"] = *report.resident_step;
  } else {
    json["resident_step_error"] = std::string(report.resident_step.status().message());
  }
  return json.dump() + "\n";
}

}  // namespace

ExitCode RunDeviceBench(const CommandLine& line, Terminal& terminal) {
  Device* device = &HostDevice::Get();
  if (line.bench().device == DeviceChoice::kCuda) {
    const absl::StatusOr<Device*> cuda = OpenCudaDevice(0);
    if (!cuda.ok()) {
      return Fail(absl::FailedPreconditionError(
                      absl::StrCat(std::string(cuda.status().message()),
                                   "; pack info --gpu says more, --device host runs without one")),
                  terminal);
    }
    device = *cuda;
  }
  const absl::StatusOr<Report> report = MeasureAll(line, *device);
  if (!report.ok()) return Fail(report.status(), terminal);
  return PrintBench(line.json ? Json(line, *report) : Text(line, *report), report->damaged,
                    terminal);
}

}  // namespace shardpack::cli
