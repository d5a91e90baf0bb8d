#include "cli/repair_sources.h"

#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/flags.h"
#include "cli/prepare_plan.h"
#include "cli/units.h"
#include "converters/manifest_option.h"
#include "formats/io/escape.h"
#include "formats/io/exists.h"
#include "formats/io/file.h"

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
    return absl::NotFoundError(absl::StrCat("the source that it was packed from, ", EscapeForTerminal(path),
                                            ", is not there; name where it is now, or a copy of the dataset, with --from"));
  };
  return source;
}

// One option of a manifest, stored as if it had been typed. What says which libraries or which dataset it was, or that
// the default was taken, has no flag.
absl::Status StoreOption(const std::string& name, const std::string& value, CommandLine& line) {
  if (name == "classes" || name == "dataset" || name == "pixel-libraries") return absl::OkStatus();
  if (name == "drop-fields") return StoreFlag(*FindFlag(Verb::kBuild, name), "true", line);
  const Flag* flag = FindFlag(Verb::kBuild, name);
  if (flag == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("the dataset was packed with ", EscapeForTerminal(name), ", which this version of pack does not know"));
  }
  const bool by_default = value == "auto" || value == "off";
  switch (flag->kind) {
    case FlagKind::kSwitch:
    case FlagKind::kNegatable:
      return StoreFlag(*flag, value == "on" ? "true" : "false", line);
    case FlagKind::kRepeated:
      if (name == "include" || name == "exclude") {
        std::vector<std::string> parts;
        SplitAt(value, ',', &parts);
        for (const std::string& part : parts) {
          if (absl::Status stored = StoreFlag(*flag, part, line); !stored.ok()) return stored;
        }
        return absl::OkStatus();
      }
      return StoreFlag(*flag, value, line);
    case FlagKind::kValue:
      break;
  }
  const std::vector<std::string> allowed = AllowedValues(*flag);
  const bool has_word = std::find(allowed.begin(), allowed.end(), value) != allowed.end();
  if (by_default && !has_word && name != "shard-size") return absl::OkStatus();
  return StoreFlag(*flag, value, line);
}

bool IsFolderKind(const Manifest& manifest) {
  const std::string kind = OptionOf(manifest, "input-format");
  return kind.empty() || kind == "folder" || kind == "auto";
}

// The command that would pack this dataset.
absl::StatusOr<CommandLine> LineOf(const Manifest& manifest, const std::string& source, const std::string& root,
                                   const CommandLine& repair) {
  CommandLine line;
  line.arguments = {source};
  line.format = manifest.format;
  line.root = root;
  line.io_depth = repair.io_depth;
  // Whatever lies in it now.
  if (IsFolderKind(manifest)) line.input_format = "folder";
  for (const auto& [name, value] : manifest.options) {
    if (absl::Status stored = StoreOption(name, value, line); !stored.ok()) return stored;
  }
  // What decides about bytes comes from the manifest alone.
  if (manifest.options.contains("classes")) line.source.classes = manifest.classes;
  return line;
}

}  // namespace

absl::StatusOr<std::vector<RepairSource>> OpenRepairSources(const CommandLine& line, const Manifest& manifest,
                                                            IoPool& pool, Terminal& terminal) {
  std::vector<std::string> paths = line.from;
  std::vector<RepairSource> sources;
  if (paths.empty() && !manifest.source_root.empty()) {
    const absl::StatusOr<bool> there = Exists(manifest.source_root);
    if (!there.ok()) return there.status();
    if (!*there) {
      sources.push_back(SourceThatIsGone(manifest.source_root));
      return sources;
    }
    paths = {manifest.source_root};
  }
  // Where the files of a list lie.
  std::string root = manifest.source_root;
  for (const std::string& path : paths) {
    if (IsFolder(path) && !IsDataset(path)) root = path;
  }
  for (const std::string& path : paths) {
    const absl::StatusOr<bool> there = Exists(path);
    if (!there.ok()) return there.status();
    if (!*there) {
      return absl::InvalidArgumentError(absl::StrCat("--from ", EscapeForTerminal(path), " does not exist"));
    }
    RepairSource source{.name = path};
    const bool dataset = IsDataset(path);
    if (dataset) {
      absl::StatusOr<DatasetCopy> copy = DatasetCopy::Open(path);
      if (!copy.ok()) return copy.status();
      source.copy.emplace(*std::move(copy));
    } else if (IsFolder(path)) {
      source.folder = path;
    } else if (IsFolder(root)) {
      source.folder = root;
    }
    const std::string kind = OptionOf(manifest, "input-format");
    const bool plans = kind == "dataset" ? dataset : !dataset && (IsFolder(path) == IsFolderKind(manifest));
    if (plans) {
      const bool rooted = !IsFolderKind(manifest) && kind != "dataset" && kind != "archive" && IsFolder(root);
      source.replan = [&manifest, &line, &pool, &terminal, path,
                       root = rooted ? root : std::string()]() -> absl::StatusOr<Replanned> {
        absl::StatusOr<CommandLine> planned = LineOf(manifest, path, root, line);
        if (!planned.ok()) return planned.status();
        absl::StatusOr<Prepared> prepared = PreparePlan(*planned, pool, terminal);
        if (!prepared.ok()) return prepared.status();
        return Replanned{std::move(prepared->source), std::move(prepared->plan)};
      };
    }
    sources.push_back(std::move(source));
  }
  return sources;
}

}  // namespace shardpack::cli
