// CommandLine: everything that a user can ask for, as the rows of the table of flags store it.
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
#include <vector>

#include "cli/flags/verbs.h"
#include "cli/terminal/terminal.h"
#include "converters/planning/output_options.h"
#include "converters/planning/plan.h"
#include "converters/sources/folder_source.h"
#include "converters/sources/list_lines.h"
#include "formats/core/manifest.h"
#include "readers/order/order.h"

namespace shardpack::cli {

// Where bench brings batches to: only read and decoded; or further, to a GPU, or for comparison
// through the same code to host memory.
enum class DeviceChoice : uint8_t { kCpu, kCuda, kHost };

struct CommandLine {
  Verb verb = Verb::kBuild;
  std::vector<std::string> arguments;  // what is not a flag
  std::string program = "pack";        // as it was called
  std::vector<std::string> words;      // all of the command line after the program
  std::set<std::string> given;         // the flags that were given, by long name

  // Everywhere.
  std::string help_flag;  // of `pack help FLAG`
  bool help = false, version = false, json = false, quiet = false;
  ProgressMode progress = ProgressMode::kAuto;
  std::string config;

  // build, plan, commit, convert, index.
  std::string out, format, classes_file, plan_file, write_plan;
  bool dry_run = false;
  FolderSourceOptions source;
  std::string input_format = "auto", root;
  ListOptions columns;                   // of a list
  bool coco_boxes = false;               // --coco boxes
  std::vector<std::string> annotations;  // further COCO json
  std::string label_from;                // the word of --label-from; "" = not given
  bool drop_fields = false;
  bool one_split = false;  // --split-by none
  PlanOptions plan;
  OutputOptions output;
  int jobs = 0;  // 0 = the cores that this process may use
  int io_depth = 32;
  uint64_t memory_bytes = 0;  // 0: memory_share counts
  double memory_share = 0.25;
  double max_skip = 0.01;
  std::optional<Digest> expect;

  // validate.
  std::string level = "full";
  uint64_t subset = 1, subsets = 1;  // --subset n/t, n from 1
  double sample = 1;
  double max_seconds = 0;  // 0 = no bound
  std::string against;

  // repair; level and expect as above.
  std::vector<std::string> from;

  // info, ls, cat, extract; split: index.
  bool long_rows = false, force = false, gpu = false;
  std::string split, field, list;
  std::optional<std::string> label;
  uint64_t limit = 0;  // 0 = all
  std::optional<uint64_t> record;

  // bench.
  uint32_t batch = 256, decode_size = 0;  // 0: not decoded
  uint64_t epochs = 3;
  OrderMode order = OrderMode::kShuffle;
  bool check_hashes = true;
  DeviceChoice device = DeviceChoice::kCpu;
  uint64_t rate = 1786;  // images a second of a consumer whose waits are counted; 0: none

  // man.
  bool markdown = false;

  bool Given(const std::string& flag) const { return given.contains(flag); }
};

// The whole command as a user may type it again.
std::string TypedCommand(const CommandLine& line);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_FLAGS_COMMAND_LINE_H_
