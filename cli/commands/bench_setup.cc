#include "cli/commands/bench_setup.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/flags/failure.h"
#include "cli/terminal/units.h"
#include "formats/io/status_macros.h"
#include "jobs/open_input.h"

namespace shardpack::cli {

absl::StatusOr<BenchInput> OpenBenchInput(const CommandLine& line) {
  const BenchFlags& flags = line.bench();
  absl::StatusOr<Dataset> dataset = OpenInput(line.arguments);
  if (!dataset.ok()) return dataset.status();
  if (!flags.split.empty()) {
    absl::StatusOr<Dataset> split = dataset->Split(flags.split);
    if (!split.ok()) return absl::InvalidArgumentError(split.status().message());
    dataset = std::move(split);
  }
  ASSIGN_OR_RETURN(Order order, Order::Make({.samples = dataset->size(),
                                             .mode = flags.order,
                                             .seed = flags.seed,
                                             .global_batch = flags.batch,
                                             .tail = Tail::kPad}));
  return BenchInput{*std::move(dataset), std::move(order)};
}

LoaderOptions BenchLoader(const CommandLine& line) {
  const BenchFlags& flags = line.bench();
  LoaderOptions options;
  options.verify = flags.check_hashes;
  options.threads = line.run.Jobs();
  options.io_threads = line.run.io_depth;
  options.bad_samples = BadSamples::kSubstitute;
  if (flags.decode_size > 0) {
    options.decode.emplace();
    options.decode->crop.width = options.decode->crop.height = flags.decode_size;
    options.decode->crop.flip_probability = 0.5;
  }
  return options;
}

std::string DescribeLoader(const CommandLine& line, int threads) {
  const BenchFlags& flags = line.bench();
  std::string text =
      absl::StrCat("batches of ", flags.batch,
                   flags.order == OrderMode::kSequential ? ", in order" : ", shuffled as a whole",
                   flags.check_hashes ? ", verified" : ", not verified", ", ",
                   Counted(static_cast<uint64_t>(threads), "thread", "threads"));
  if (flags.decode_size > 0) {
    absl::StrAppend(&text, ", decoded to ", flags.decode_size, " x ", flags.decode_size);
  }
  return text;
}

ExitCode PrintBench(std::string_view result, std::span<const BadSample> damaged,
                    Terminal& terminal) {
  for (const BadSample& bad : damaged) terminal.Warn(bad.why);
  const ExitCode printed = PrintResult(result, terminal);
  return damaged.empty() ? printed : Worse(printed, ExitCode::kDamage);
}

}  // namespace shardpack::cli
