#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/commands/bench_ceilings.h"
#include "cli/commands/bench_setup.h"
#include "cli/commands/commands.h"
#include "cli/flags/failure.h"
#include "cli/terminal/seconds_since.h"
#include "cli/terminal/units.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"
#include "readers/loading/loader.h"

namespace shardpack::cli {
namespace {

using absl::StrCat;
using Clock = std::chrono::steady_clock;

struct Epoch {
  uint64_t samples = 0, bytes = 0;
  double seconds = 0;
};

struct Ceilings {
  double copy = 0, read = 0,
         decode = 0;  // bytes, bytes and images per second; decode 0: not measured
};

// The loader reads ahead past the last epoch as it does past each, so all epochs are measured
// alike.
absl::StatusOr<std::vector<Epoch>> RunEpochs(Loader& loader, uint64_t epochs,
                                             Clock::time_point begin, double* first) {
  std::vector<Epoch> done;
  while (done.size() < epochs) {
    Epoch epoch;
    const Clock::time_point start = Clock::now();
    for (;;) {
      ASSIGN_OR_RETURN(std::optional<HostBatch> batch, loader.Next());
      if (!batch.has_value()) break;
      if (*first == 0) *first = SecondsSince(begin);
      for (size_t slot = 0; slot < batch->size(); ++slot) {
        if (batch->status()[slot].state == SampleState::kPadding) continue;
        ++epoch.samples;
        epoch.bytes += batch->pixels() != nullptr ? batch->pixels()->sample_bytes
                                                  : batch->bytes(0, slot).size();
      }
    }
    epoch.seconds = SecondsSince(start);
    done.push_back(epoch);
  }
  return done;
}

std::string Rate(double samples, double bytes, double seconds) {
  if (seconds <= 0) return "";
  return StrCat(FormatCount(static_cast<uint64_t>(samples / seconds)), " samples/s, ",
                FormatBytes(static_cast<uint64_t>(bytes / seconds)), "/s");
}

// All epochs except the first, which has to fill caches and queues.
Epoch Steady(const std::vector<Epoch>& epochs) {
  if (epochs.size() == 1) return epochs[0];
  Epoch sum;
  for (size_t e = 1; e < epochs.size(); ++e) {
    sum.samples += epochs[e].samples;
    sum.bytes += epochs[e].bytes;
    sum.seconds += epochs[e].seconds;
  }
  return sum;
}

// How close the loader comes to each ceiling.
std::string CeilingLines(const Ceilings& ceilings, const Epoch& steady, uint64_t shard_bytes) {
  const double samples = static_cast<double>(steady.samples) / steady.seconds;
  const double bytes = static_cast<double>(steady.bytes) / steady.seconds;
  const auto line = [](std::string_view name, std::string_view what, double reached) {
    // The two are measured one after the other, which alone can put the loader ahead.
    return absl::StrFormat(
        "%-9s %s; the loader %s\n", std::string(name), std::string(what),
        reached >= 1 ? "is as fast" : absl::StrFormat("is at %.0f %% of that", 100 * reached));
  };
  if (ceilings.decode > 0) {
    return line("decode",
                StrCat(FormatCount(static_cast<uint64_t>(ceilings.decode)),
                       " images/s from memory, on the same threads"),
                samples / ceilings.decode);
  }
  const double of_shards = bytes * static_cast<double>(shard_bytes) /
                           static_cast<double>(std::max<uint64_t>(steady.bytes, 1));
  return StrCat(
      line("copy", StrCat(FormatBytes(static_cast<uint64_t>(ceilings.copy)), "/s by memcpy"),
           bytes / ceilings.copy),
      line("read",
           StrCat(FormatBytes(static_cast<uint64_t>(ceilings.read)), "/s of shards read in order"),
           of_shards / ceilings.read));
}

// Whether the first images are larger than a crop of that side needs.
bool LargerThan(const Dataset& dataset, uint32_t side) {
  const absl::StatusOr<ShardIndex> index = dataset.index(0);
  if (!index.ok() || index->records() == 0) return false;
  const ImageInfo image = index->image(0);
  return std::min(image.width, image.height) > side;
}

// "494 images/s; decoding is the bottleneck (2 threads)", and advice.
std::string Verdict(const Dataset& dataset, const CommandLine& line, const Epoch& steady,
                    const LoaderStats& stats) {
  const std::string_view limit = stats.Binding();
  std::string text = StrCat(
      "loads ",
      FormatCount(static_cast<uint64_t>(static_cast<double>(steady.samples) / steady.seconds)),
      " images/s; ");
  if (limit == "consumer")
    return text + "nothing waits for the loader: the consumer of the batches is the bottleneck";
  const auto [stage, threads] =
      limit == "decode" ? std::pair("decoding", stats.cpu_threads)
      : limit == "read" ? std::pair("reading what is in the page cache", stats.cpu_threads)
      : limit == "disk" ? std::pair("reading from the disk", stats.io_threads)
                        : std::pair("planning batches", stats.cpu_threads);
  absl::StrAppend(&text, stage, " is the bottleneck (",
                  Counted(static_cast<uint64_t>(threads), "thread", "threads"), ")");
  // RandomResizedCrop rarely keeps less than 7/8 of a side.
  if (const uint32_t side = line.bench().decode_size * 8 / 7;
      limit == "decode" && side > 0 && LargerThan(dataset, side)) {
    absl::StrAppend(&text, "; images packed with --resize shortest --size ", side,
                    " decode faster");
  }
  return text;
}

std::string Text(const Dataset& dataset, const CommandLine& line, const std::vector<Epoch>& epochs,
                 double first, const LoaderStats& stats, const Ceilings& ceilings) {
  uint64_t shard_bytes = 0;
  for (const DatasetShard& shard : dataset.shards()) shard_bytes += shard.bytes;
  std::string out = StrCat(
      "dataset   ", dataset.format(), ", ", Counted(dataset.size(), "sample", "samples"), ", ",
      FormatBytes(shard_bytes), " in ", Counted(dataset.shards().size(), "shard", "shards"), "\n");
  absl::StrAppend(&out, "loader    ", DescribeLoader(line, stats.cpu_threads), "; the first after ",
                  FormatDuration(first), "\n");
  for (size_t e = 0; e < epochs.size(); ++e) {
    absl::StrAppend(&out, "epoch ", e, "   ",
                    Rate(static_cast<double>(epochs[e].samples),
                         static_cast<double>(epochs[e].bytes), epochs[e].seconds),
                    "\n");
  }
  absl::StrAppend(&out,
                  absl::StrFormat("waiting   per batch p50 %.3f ms, p99 %.3f ms\n",
                                  static_cast<double>(stats.next.Quantile(0.5)) / 1e6,
                                  static_cast<double>(stats.next.Quantile(0.99)) / 1e6),
                  CeilingLines(ceilings, Steady(epochs), shard_bytes));
  return StrCat(out, "result    ", Verdict(dataset, line, Steady(epochs), stats), "\n");
}

std::string Json(const Dataset& dataset, const CommandLine& line, const std::vector<Epoch>& epochs,
                 double first, const LoaderStats& stats, const Ceilings& ceilings) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Epoch& epoch : epochs) {
    rows.push_back(
        {{"samples", epoch.samples}, {"bytes", epoch.bytes}, {"seconds", epoch.seconds}});
  }
  nlohmann::json json = {{"schema", "shardpack.bench/1"},
                         {"dataset", IdentityText(dataset.identity())},
                         {"format", dataset.format()},
                         {"batch", line.bench().batch},
                         {"decode_size", line.bench().decode_size},
                         {"verified", line.bench().check_hashes},
                         {"epochs", rows},
                         {"first_batch_seconds", first},
                         {"copy_ceiling_bytes_per_second", ceilings.copy},
                         {"read_ceiling_bytes_per_second", ceilings.read},
                         {"loader", nlohmann::json::parse(stats.ToJson())}};
  if (ceilings.decode > 0) json["decode_ceiling_images_per_second"] = ceilings.decode;
  return json.dump() + "\n";
}

// `pack` does not link CUDA. A separate program does, and takes the same command line.
ExitCode RunOnDevice(const CommandLine& line, Terminal& terminal) {
  std::error_code ignored;
  const std::string program =
      (std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / "pack-bench-device")
          .string();
  std::vector<char*> words = {const_cast<char*>(program.c_str())};
  for (const std::string& word : line.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execv(program.c_str(), words.data());
  return Fail(absl::FailedPreconditionError(absl::StrCat(
                  "cannot start ", program, ": ", std::strerror(errno),
                  "; it is what links CUDA: `./bazelw build //cli:pack-bench-device` makes it")),
              terminal);
}

}  // namespace

ExitCode RunBench(const CommandLine& line, Terminal& terminal) {
  if (line.bench().device != DeviceChoice::kCpu) return RunOnDevice(line, terminal);
  if (line.Given("rate")) {
    return Fail(absl::InvalidArgumentError("--rate is of the consumer of --device"), terminal);
  }
  absl::StatusOr<BenchInput> input = OpenBenchInput(line);
  if (!input.ok()) return Fail(input.status(), terminal);
  const Dataset& dataset = input->dataset;
  const LoaderOptions options = BenchLoader(line);
  PageableMemory memory;
  double first = 0;
  const Clock::time_point begin = Clock::now();
  absl::StatusOr<Loader> loader = Loader::Open(dataset, input->order, {}, options, memory);
  if (!loader.ok()) return Fail(loader.status(), terminal);
  const absl::StatusOr<std::vector<Epoch>> epochs =
      RunEpochs(*loader, line.bench().epochs, begin, &first);
  if (!epochs.ok()) return Fail(epochs.status(), terminal);
  const LoaderStats stats = loader->stats();
  const std::vector<BadSample> damaged = loader->TakeBadSamples();
  loader->Stop();
  Ceilings ceilings;
  ceilings.copy = CopyCeiling(options.threads);
  const absl::StatusOr<double> read = ReadCeiling(dataset, options.threads);
  if (!read.ok()) return Fail(read.status(), terminal);
  ceilings.read = *read;
  if (options.decode) {
    const absl::StatusOr<double> decode = DecodeCeiling(dataset, *options.decode, options.threads);
    if (!decode.ok()) return Fail(decode.status(), terminal);
    ceilings.decode = *decode;
  }
  return PrintBench(line.json ? Json(dataset, line, *epochs, first, stats, ceilings)
                              : Text(dataset, line, *epochs, first, stats, ceilings),
                    damaged, terminal);
}

}  // namespace shardpack::cli
