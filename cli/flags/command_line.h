// CommandLine: the parsed command line, filled in by the table of flags: what all verbs share, and
// the flags of the verb.
//
//   absl::StatusOr<CommandLine> line = ParseCommandLine(argc, argv);    // parse.h
//   if (line->verb == Verb::kBuild) return RunBuild(*line);
//
// Units: bytes, seconds.
#ifndef SHARDPACK_CLI_FLAGS_COMMAND_LINE_H_
#define SHARDPACK_CLI_FLAGS_COMMAND_LINE_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/flags/verbs.h"
#include "cli/terminal/terminal.h"
#include "converters/planning/output_options.h"
#include "formats/io/hash.h"
#include "jobs/pack_request.h"
#include "readers/order/order.h"
#include "validators/looking/looking_options.h"

namespace shardpack::cli {

// The destination of bench's batches: none (only read and decode), a GPU, or host memory by the
// same code path as a GPU, for comparison.
enum class DeviceChoice : uint8_t { kCpu, kCuda, kHost };

// Flags of a worker, as given.
struct WorkerFlags {
  std::string part;    // "2/8" or "auto"
  std::string shards;  // "3,7-9"; a number alone may also be that of --shards without --plan
  std::optional<std::pair<size_t, size_t>> range;
  bool join = false, wait = true, take_over = false, stop_with_stdin = false;
  double stale_seconds = 60;
};

// Flags of list, build, plan, convert and commit.
struct PackFlags {
  PackRequest request;  // paths and given: see RequestOf
  std::string out, classes_file, exclude_keys_file, plan_file, write_plan;
  std::string lists;  // of plan --from
  bool dry_run = false;
  OutputOptions output;  // fsync: see RunFlags; worker: see WorkerOf
  double max_skip = 0.01;
  std::optional<std::string> report;  // of --report; empty: the name is up to us
  WorkerFlags worker;
  std::string slurm_folder, k8s_folder;  // only for plan, as `tasks`
  uint64_t tasks = 0;                    // 0: as many as there are shards, up to a limit

  // Whether the run is one of several that build one plan.
  bool IsWorker() const {
    return !worker.part.empty() || worker.join || worker.range.has_value() ||
           (!plan_file.empty() && !worker.shards.empty());
  }
};

struct StatusFlags {
  std::string plan_file;
  bool wait = false;
};

struct IndexFlags {
  std::string out, classes_file, split;
  bool overwrite = false;
};

struct ValidateFlags {
  std::string level = "full", against;
  uint64_t subset = 1, subsets = 1;  // --subset n/t, n from 1
  double sample = 1;
  double max_seconds = 0;  // 0 = no limit
};

struct RepairFlags {
  std::string level = "full";
  std::vector<std::string> from;
  bool dry_run = false;
};

// Flags of info, ls, cat and extract.
struct SampleFlags {
  std::string out, list;  // only for extract
  std::string split, field;
  std::optional<std::string> label;
  uint64_t limit = 0;  // 0 = all
  std::optional<uint64_t> record;
  bool long_rows = false, force = false, gpu = false;
};

// Flags of stats, diff, dups and report.
struct LookFlags {
  bool check = false;
  DiffBy by = DiffBy::kKey;
  bool near = false, decode = false;
  int distance = kNearDistance;
  std::string write_list;
  std::string out, validation;  // of report
  uint64_t thumbs = 8, max_bytes = 3'000'000;
};

struct BenchFlags {
  std::string split;
  uint64_t seed = 0;
  uint32_t batch = 256, decode_size = 0;  // 0: do not decode
  uint64_t epochs = 3;
  OrderMode order = OrderMode::kShuffle;
  bool check_hashes = true;
  DeviceChoice device = DeviceChoice::kCpu;
  uint64_t rate =
      1786;  // images per second that a consumer takes, whose waits are counted; 0: no consumer
};

// Flags of completions and man.
struct PrintFlags {
  bool markdown = false;
};

// Flags of every verb that runs for a while.
struct RunFlags {
  int jobs = 0;  // 0 = all cores available to this process
  int io_depth = 32;
  uint64_t memory_bytes = 0;  // 0: use memory_share
  double memory_share = 0.25;
  bool fsync = true;
  std::optional<Digest> expect;

  int Jobs() const;
  uint64_t MemoryBytes() const;
};

using VerbFlags = std::variant<PackFlags, StatusFlags, IndexFlags, ValidateFlags, RepairFlags,
                               SampleFlags, LookFlags, BenchFlags, PrintFlags>;

struct CommandLine {
  Verb verb = Verb::kBuild;
  std::vector<std::string> arguments;  // words that are not flags
  std::string program = "pack";        // as it was called
  std::vector<std::string> words;      // the command line after the program
  std::set<std::string> given;         // long names of the flags that were given

  std::string help_flag;  // for `pack help FLAG`
  bool help = false, version = false, json = false, quiet = false;
  ProgressMode progress = ProgressMode::kAuto;
  std::string config;

  RunFlags run;
  VerbFlags flags;  // the flags of `verb`

  // Sets the verb, and its flags to their defaults.
  void SetVerb(Verb to);

  bool Given(const std::string& flag) const { return given.contains(flag); }
  PackFlags& pack() { return std::get<PackFlags>(flags); }
  const PackFlags& pack() const { return std::get<PackFlags>(flags); }
  StatusFlags& status() { return std::get<StatusFlags>(flags); }
  const StatusFlags& status() const { return std::get<StatusFlags>(flags); }
  IndexFlags& index() { return std::get<IndexFlags>(flags); }
  const IndexFlags& index() const { return std::get<IndexFlags>(flags); }
  ValidateFlags& validate() { return std::get<ValidateFlags>(flags); }
  const ValidateFlags& validate() const { return std::get<ValidateFlags>(flags); }
  RepairFlags& repair() { return std::get<RepairFlags>(flags); }
  const RepairFlags& repair() const { return std::get<RepairFlags>(flags); }
  SampleFlags& samples() { return std::get<SampleFlags>(flags); }
  const SampleFlags& samples() const { return std::get<SampleFlags>(flags); }
  LookFlags& look() { return std::get<LookFlags>(flags); }
  const LookFlags& look() const { return std::get<LookFlags>(flags); }
  BenchFlags& bench() { return std::get<BenchFlags>(flags); }
  const BenchFlags& bench() const { return std::get<BenchFlags>(flags); }
  PrintFlags& print() { return std::get<PrintFlags>(flags); }
  const PrintFlags& print() const { return std::get<PrintFlags>(flags); }
};

// The whole command, in a form that can be typed again.
std::string TypedCommand(const CommandLine& line);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_FLAGS_COMMAND_LINE_H_
