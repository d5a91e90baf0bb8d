#include "cli/commands/bench_setup.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/commands/packed_input.h"
#include "cli/terminal/units.h"
#include "formats/io/resources.h"
#include "formats/io/status_macros.h"

namespace shardpack::cli {

absl::StatusOr<BenchInput> OpenBenchInput(const CommandLine& line) {
  absl::StatusOr<Dataset> dataset = OpenInput(line.arguments);
  if (!dataset.ok()) return dataset.status();
  if (!line.split.empty()) {
    absl::StatusOr<Dataset> split = dataset->Split(line.split);
    if (!split.ok()) return absl::InvalidArgumentError(split.status().message());
    dataset = std::move(split);
  }
  ASSIGN_OR_RETURN(Order order, Order::Make({.samples = dataset->size(),
                                             .mode = line.order,
                                             .seed = line.plan.seed,
                                             .global_batch = line.batch,
                                             .tail = Tail::kPad}));
  return BenchInput{*std::move(dataset), std::move(order)};
}

LoaderOptions BenchLoader(const CommandLine& line) {
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

std::string DescribeLoader(const CommandLine& line, int threads) {
  std::string text =
      absl::StrCat("batches of ", line.batch,
                   line.order == OrderMode::kSequential ? ", in order" : ", shuffled as a whole",
                   line.check_hashes ? ", verified" : ", not verified", ", ",
                   Counted(static_cast<uint64_t>(threads), "thread", "threads"));
  if (line.decode_size > 0) {
    absl::StrAppend(&text, ", decoded to ", line.decode_size, " x ", line.decode_size);
  }
  return text;
}

}  // namespace shardpack::cli
