// RepairSources: what `pack repair` may take lost bytes from: the paths of --from, or the source
// that the manifest names.
//
//   absl::StatusOr<std::vector<RepairSource>> sources = OpenRepairSources(line, manifest, false, pool, terminal);
//
// A folder with a manifest is a copy of the dataset; everything else is the source: the folder,
// list, archive or COCO json that was packed, from which the plan can be made again with the
// options of the manifest.
//
// Lifetime: the sources borrow the pool, the terminal and both arguments.
// Thread-safety: one caller.
// Errors: InvalidArgument for a path of --from that is not there; DataLoss for a copy whose
// manifest is damaged; I/O Status; all of them when no other source is left, and else a warning.
#ifndef SHARDPACK_CLI_COMMANDS_REPAIR_SOURCES_H_
#define SHARDPACK_CLI_COMMANDS_REPAIR_SOURCES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "cli/flags/command_line.h"
#include "cli/terminal/terminal.h"
#include "converters/repairing/repair.h"
#include "converters/threads/io_pool.h"

namespace shardpack::cli {

// Those of --from, or the recorded one. With `manifest_taken` from one of them it may hold nothing
// else, so that the recorded one is looked into as well, if it is there.
absl::StatusOr<std::vector<RepairSource>> OpenRepairSources(const CommandLine& line,
                                                            const Manifest& manifest,
                                                            bool manifest_taken, IoPool& pool,
                                                            Terminal& terminal);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_COMMANDS_REPAIR_SOURCES_H_
