#include "cli/commands/repair_sources.h"

#include <sys/stat.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/commands/prepare_plan.h"
#include "cli/commands/recorded_command.h"
#include "converters/planning/manifest_option.h"
#include "formats/io/escape.h"
#include "formats/io/exists.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack::cli {
namespace {

bool IsFolder(const std::string& path) {
  struct stat facts;
  return ::stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
}

// What cannot be looked at is found out when it is opened.
bool IsDataset(const std::string& path) {
  const absl::StatusOr<bool> holds = HoldsManifest(path);
  return holds.ok() ? *holds : !absl::IsInvalidArgument(holds.status());  // no file, but a folder
}

// Says so where it would have been of use.
RepairSource SourceThatIsGone(const std::string& path) {
  RepairSource source{.name = path};
  source.replan = [path]() -> absl::StatusOr<Replanned> {
    return absl::NotFoundError(absl::StrCat(
        "the source that it was packed from, ", EscapeForTerminal(path),
        ", is not there; name where it is now, or a copy of the dataset, with --from"));
  };
  return source;
}

}  // namespace

absl::StatusOr<std::vector<RepairSource>> OpenRepairSources(const CommandLine& line,
                                                            const Manifest& manifest,
                                                            bool manifest_taken, IoPool& pool,
                                                            Terminal& terminal) {
  std::vector<std::string> paths = line.from;
  std::vector<RepairSource> sources;
  if (paths.empty() && !manifest.source_root.empty()) {
    ASSIGN_OR_RETURN(const bool there, Exists(manifest.source_root));
    if (!there) {
      sources.push_back(SourceThatIsGone(manifest.source_root));
      return sources;
    }
    paths = {manifest.source_root};
  } else if (manifest_taken && !manifest.source_root.empty()) {
    ASSIGN_OR_RETURN(const bool there, Exists(manifest.source_root));
    if (there) paths.push_back(manifest.source_root);
  }
  // Where the files of a list lie.
  std::string root = manifest.source_root;
  for (const std::string& path : paths) {
    if (IsFolder(path) && !IsDataset(path)) root = path;
  }
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(const bool there, Exists(path));
    if (!there) {
      return absl::InvalidArgumentError(
          absl::StrCat("--from ", EscapeForTerminal(path), " does not exist"));
    }
    RepairSource source{.name = path};
    const bool dataset = IsDataset(path);
    if (dataset) {
      ASSIGN_OR_RETURN(DatasetCopy copy, DatasetCopy::Open(path));
      source.copy.emplace(std::move(copy));
    } else if (IsFolder(path)) {
      source.folder = path;
    } else if (IsFolder(root)) {
      source.folder = root;
    }
    const std::string kind = OptionOf(manifest, "input-format");
    const bool plans =
        kind == "dataset" ? dataset : !dataset && (IsFolder(path) == PackedFromFolder(manifest));
    if (plans) {
      const bool rooted =
          !PackedFromFolder(manifest) && kind != "dataset" && kind != "archive" && IsFolder(root);
      source.replan = [&manifest, &line, &pool, &terminal, path,
                       root = rooted ? root : std::string()]() -> absl::StatusOr<Replanned> {
        ASSIGN_OR_RETURN(CommandLine planned, RecordedCommand(manifest, path, root, line.io_depth));
        ASSIGN_OR_RETURN(Prepared prepared, PreparePlan(planned, pool, terminal));
        return Replanned{std::move(prepared.source), std::move(prepared.plan)};
      };
    }
    sources.push_back(std::move(source));
  }
  return sources;
}

}  // namespace shardpack::cli
