#include "jobs/repair_sources.h"

#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "converters/planning/manifest_option.h"
#include "formats/io/escape.h"
#include "formats/io/exists.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"
#include "jobs/prepare_plan.h"
#include "jobs/recorded_request.h"

namespace shardpack {
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

// Where the images of a list may lie: in a folder that was named; else in its own, or where --root
// said when it was packed. What comes from them has the hashes that were packed, or is not taken.
std::vector<std::string> RootsOfList(const std::string& list, const Manifest& manifest,
                                     const std::vector<std::string>& named) {
  if (!named.empty()) return named;
  const size_t slash = list.rfind('/');
  std::vector<std::string> roots = {slash == std::string::npos ? "."
                                    : slash == 0               ? "/"
                                                               : list.substr(0, slash)};
  std::error_code error;
  const std::string& packed = manifest.source_root;
  if (IsFolder(packed) && !std::filesystem::equivalent(packed, roots[0], error))
    roots.push_back(packed);
  return roots;
}

absl::StatusOr<Replanned> PlanAgain(const Manifest& manifest, const std::string& path,
                                    const std::string& root, IoPool& pool, PlanObserver& observer) {
  ASSIGN_OR_RETURN(const PackRequest request, RecordedRequest(manifest, path, root));
  absl::StatusOr<Prepared> prepared = PreparePlan(request, pool, observer);
  const std::string unrecorded = UnrecordedFlags(manifest);
  if (absl::IsInvalidArgument(prepared.status()) && !unrecorded.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(prepared.status().message()), ". ", unrecorded));
  }
  if (!prepared.ok()) return prepared.status();
  return Replanned{std::move(prepared->source), std::move(prepared->plan), unrecorded};
}

}  // namespace

absl::StatusOr<std::vector<RepairSource>> OpenRepairSources(std::span<const std::string> from,
                                                            const Manifest& manifest,
                                                            bool manifest_taken, IoPool& pool,
                                                            PlanObserver& observer) {
  std::vector<std::string> paths(from.begin(), from.end());
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
  const std::string kind = OptionOf(manifest, "input-format");
  const bool listed = !PackedFromFolder(manifest) && kind != "dataset" && kind != "archive";
  std::vector<std::string> folders;  // of --from
  for (const std::string& path : paths) {
    if (IsFolder(path) && !IsDataset(path)) folders.push_back(path);
  }
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(const bool there, Exists(path));
    if (!there) {
      return absl::InvalidArgumentError(
          absl::StrCat("--from ", EscapeForTerminal(path), " does not exist"));
    }
    RepairSource source{.name = path};
    const auto replan = [&manifest, &pool, &observer, path](const std::string& root) {
      return PlanAgain(manifest, path, root, pool, observer);
    };
    if (IsDataset(path)) {
      ASSIGN_OR_RETURN(DatasetCopy copy, DatasetCopy::Open(path));
      source.copy.emplace(std::move(copy));
      if (kind == "dataset") source.replan = [replan] { return replan(""); };
    } else if (listed && !IsFolder(path)) {
      for (const std::string& root : RootsOfList(path, manifest, folders)) {
        source.folder = root;
        source.replan = [replan, root] { return replan(root); };
        sources.push_back(RepairSource{path, std::nullopt, source.folder, source.replan});
      }
      continue;
    } else if (IsFolder(path)) {
      source.folder = path;
      if (PackedFromFolder(manifest)) source.replan = [replan] { return replan(""); };
    } else {
      if (IsFolder(manifest.source_root)) source.folder = manifest.source_root;
      if (kind == "archive") source.replan = [replan] { return replan(""); };
    }
    sources.push_back(std::move(source));
  }
  return sources;
}

}  // namespace shardpack
