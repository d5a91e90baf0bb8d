#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/bench_ceilings.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/packed_input.h"
#include "cli/units.h"
#include "formats/io/file.h"
#include "formats/io/resources.h"
#include "readers/loader.h"

namespace shardpack::cli {
namespace {

using absl::StrCat;
using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Epoch {
  uint64_t samples = 0, bytes = 0;
  double seconds = 0;
};

struct Ceilings {
  double copy = 0, read = 0, decode = 0;  // bytes, bytes and images a second; decode 0: not asked
};

LoaderOptions Options(const CommandLine& line) {
  LoaderOptions options;
  options.verify = line.check_hashes;
  options.threads = line.jobs > 0 ? line.jobs : AvailableCores();
  options.io_threads = line.io_depth;
  options.bad_samples = BadSamples::kSubstitute;
  if (line.decode_size > 0) {
    options.decode.emplace();
    options.decode->crop.width = options.decode->crop.height = line.decode_size;
    options.decode->crop.flip_probability = 0.5;
  }
  return options;
}

absl::StatusOr<Order> MakeOrder(const Dataset& dataset, const CommandLine& line) {
  OrderSpec spec;
  spec.samples = dataset.size();
  spec.mode = line.order;
  spec.seed = line.plan.seed;
  spec.global_batch = line.batch;
  spec.tail = Tail::kPad;
  return Order::Make(spec);
}

// The loader reads on behind the last epoch, as it does behind each: all are measured alike.
absl::StatusOr<std::vector<Epoch>> RunEpochs(Loader& loader, uint64_t epochs,
                                             Clock::time_point begin, double* first) {
  std::vector<Epoch> done;
  while (done.size() < epochs) {
    Epoch epoch;
    const Clock::time_point start = Clock::now();
    for (;;) {
      absl::StatusOr<std::optional<HostBatch>> batch = loader.Next();
      if (!batch.ok()) return batch.status();
      if (!batch->has_value()) break;
      if (*first == 0) *first = SecondsSince(begin);
      for (size_t slot = 0; slot < (*batch)->size(); ++slot) {
        if ((*batch)->status()[slot].state == SampleState::kPadding) continue;
        ++epoch.samples;
        epoch.bytes += (*batch)->pixels() != nullptr ? (*batch)->pixels()->sample_bytes
                                                     : (*batch)->bytes(0, slot).size();
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

// All epochs but the first, which has to fill caches and queues.
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

// What the loader reached of each ceiling.
std::string CeilingLines(const Ceilings& ceilings, const Epoch& steady, uint64_t shard_bytes) {
  const double samples = static_cast<double>(steady.samples) / steady.seconds;
  const double bytes = static_cast<double>(steady.bytes) / steady.seconds;
  const auto line = [](std::string_view name, std::string_view what, double reached) {
    return absl::StrFormat("%-9s %s: the loader reaches %.0f %%\n", std::string(name),
                           std::string(what), 100 * reached);
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

std::string Text(const Dataset& dataset, const CommandLine& line, const std::vector<Epoch>& epochs,
                 double first, const LoaderStats& stats, const Ceilings& ceilings) {
  uint64_t shard_bytes = 0;
  for (const DatasetShard& shard : dataset.shards()) shard_bytes += shard.bytes;
  std::string out = StrCat(
      "dataset   ", dataset.format(), ", ", Counted(dataset.size(), "sample", "samples"), ", ",
      FormatBytes(shard_bytes), " in ", Counted(dataset.shards().size(), "shard", "shards"), "\n");
  absl::StrAppend(&out, "loader    batches of ", line.batch,
                  line.order == OrderMode::kSequential ? ", in order" : ", shuffled as a whole",
                  line.check_hashes ? ", verified" : ", not verified", ", ",
                  Counted(static_cast<uint64_t>(stats.cpu_threads), "thread", "threads"));
  if (line.decode_size > 0) {
    absl::StrAppend(&out, ", decoded to ", line.decode_size, " x ", line.decode_size);
  }
  absl::StrAppend(&out, "; the first after ", FormatDuration(first), "\n");
  for (size_t e = 0; e < epochs.size(); ++e) {
    absl::StrAppend(&out, "epoch ", e, "   ",
                    Rate(static_cast<double>(epochs[e].samples),
                         static_cast<double>(epochs[e].bytes), epochs[e].seconds),
                    "\n");
  }
  absl::StrAppend(&out,
                  absl::StrFormat("batches   p50 %.3f ms, p99 %.3f ms\n",
                                  static_cast<double>(stats.next.Quantile(0.5)) / 1e6,
                                  static_cast<double>(stats.next.Quantile(0.99)) / 1e6),
                  CeilingLines(ceilings, Steady(epochs), shard_bytes), "binds     ",
                  stats.Explain());
  return out;
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
                         {"batch", line.batch},
                         {"decode_size", line.decode_size},
                         {"verified", line.check_hashes},
                         {"epochs", rows},
                         {"first_batch_seconds", first},
                         {"copy_ceiling_bytes_per_second", ceilings.copy},
                         {"read_ceiling_bytes_per_second", ceilings.read},
                         {"loader", nlohmann::json::parse(stats.ToJson())}};
  if (ceilings.decode > 0) json["decode_ceiling_images_per_second"] = ceilings.decode;
  return json.dump() + "\n";
}

}  // namespace

ExitCode RunBench(const CommandLine& line, Terminal& terminal) {
  if (line.on_gpu) {
    return Fail(absl::InvalidArgumentError(
                    "pack does not link CUDA: build and run "
                    "`bazel run -c opt //benchmarks/cuda:device_bench -- DATASET --device cuda`; "
                    "`pack info --gpu` says which GPUs are seen"),
                terminal);
  }
  absl::StatusOr<Dataset> dataset = OpenInput(line.arguments);
  if (!dataset.ok()) return Fail(dataset.status(), terminal);
  if (!line.split.empty()) {
    absl::StatusOr<Dataset> split = dataset->Split(line.split);
    if (!split.ok()) return Fail(absl::InvalidArgumentError(split.status().message()), terminal);
    dataset = std::move(split);
  }
  const absl::StatusOr<Order> order = MakeOrder(*dataset, line);
  if (!order.ok()) return Fail(order.status(), terminal);
  const LoaderOptions options = Options(line);
  PageableMemory memory;
  double first = 0;
  const Clock::time_point begin = Clock::now();
  absl::StatusOr<Loader> loader = Loader::Open(*dataset, *order, {}, options, memory);
  if (!loader.ok()) return Fail(loader.status(), terminal);
  const absl::StatusOr<std::vector<Epoch>> epochs = RunEpochs(*loader, line.epochs, begin, &first);
  if (!epochs.ok()) return Fail(epochs.status(), terminal);
  const LoaderStats stats = loader->stats();
  for (const BadSample& bad : loader->TakeBadSamples()) terminal.Warn(bad.why);
  loader->Stop();
  Ceilings ceilings;
  ceilings.copy = CopyCeiling(options.threads);
  const absl::StatusOr<double> read = ReadCeiling(*dataset, options.threads);
  if (!read.ok()) return Fail(read.status(), terminal);
  ceilings.read = *read;
  if (options.decode) {
    const absl::StatusOr<double> decode = DecodeCeiling(*dataset, *options.decode, options.threads);
    if (!decode.ok()) return Fail(decode.status(), terminal);
    ceilings.decode = *decode;
  }
  return PrintResult(line.json ? Json(*dataset, line, *epochs, first, stats, ceilings)
                               : Text(*dataset, line, *epochs, first, stats, ceilings),
                     terminal);
}

}  // namespace shardpack::cli
