// RecordedCommand: the command that would pack a dataset once more, from the options that its
// manifest records.
//
//   absl::StatusOr<CommandLine> line = RecordedCommand(manifest, "/data/train", /*root=*/"", 32);
//   absl::StatusOr<Prepared> prepared = PreparePlan(*line, pool, terminal);
//
// Errors: InvalidArgument for an option that this version does not know, or whose recorded value it
// does not understand.
#ifndef SHARDPACK_CLI_COMMANDS_RECORDED_COMMAND_H_
#define SHARDPACK_CLI_COMMANDS_RECORDED_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/flags/command_line.h"
#include "formats/core/manifest.h"

namespace shardpack::cli {

// How the manifest holds a further COCO json: relative to the folder of the first.
std::string RecordedAnnotations(const std::string& json, const std::vector<std::string>& files);

// `source` is where the source is now; `root` where the files of a list are, empty for the list's
// own folder.
absl::StatusOr<CommandLine> RecordedCommand(const Manifest& manifest, const std::string& source,
                                            const std::string& root, int io_depth);

// A line that says which flags a manifest of this source may lack because an older version did not
// write them down; "" where there are none.
std::string UnrecordedFlags(const Manifest& manifest);

bool PackedFromFolder(const Manifest& manifest);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_COMMANDS_RECORDED_COMMAND_H_
