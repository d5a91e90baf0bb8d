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

// If a path cannot be inspected, opening it reports the error.
bool IsDataset(const std::string& path) {
  const absl::StatusOr<bool> holds = HoldsManifest(path);
  return holds.ok() ? *holds : !absl::IsInvalidArgument(holds.status());  // a folder, not a file
}

// A source that cannot be used, with the reason, which is reported if the source would have been
// needed.
RepairSource SourceWithout(const std::string& path, const absl::Status& why) {
  RepairSource source{.name = path};
  source.replan = [why]() -> absl::StatusOr<Replanned> { return why; };
  return source;
}

// Where the images of a list may be: in a folder that was named; else in the list's own folder, or
// in --root at packing time. Their bytes are used only if they have the packed hashes.
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

class Opener {
 public:
  Opener(std::span<const std::string> from, const Manifest& manifest, IoPool& pool,
         PlanObserver& observer)
      : from_(from),
        manifest_(manifest),
        pool_(pool),
        observer_(observer),
        kind_(OptionOf(manifest, "input-format")) {}

  // A path that cannot be opened does not prevent the use of the others.
  absl::Status AddGiven() {
    for (const std::string& path : from_) {
      if (IsFolder(path) && !IsDataset(path)) folders_.push_back(path);
    }
    absl::Status failed;
    for (const std::string& path : from_) {
      const absl::Status added = Add(path);
      if (added.ok()) continue;
      failed.Update(added);
      if (from_.size() == 1) continue;
      observer_.Warn(absl::StrCat(std::string(added.message()),
                                  "; this source is left out, the others are used"));
    }
    return sources_.empty() ? failed : absl::OkStatus();
  }

  // Adds the source recorded in the manifest. `alone`: no other was named, so a missing one is
  // reported.
  absl::Status AddRecorded(bool alone) {
    const std::string& root = manifest_.source_root;
    if (root.empty()) return absl::OkStatus();
    const absl::StatusOr<bool> there = Exists(root);
    if (there.ok() && !*there) {
      if (alone) {
        sources_.push_back(SourceWithout(
            root, absl::NotFoundError(absl::StrCat(
                      "the source that it was packed from, ", EscapeForTerminal(root),
                      ", is not there; name where it is now, or a copy of the dataset, with "
                      "--from"))));
      }
      return absl::OkStatus();
    }
    absl::Status added = there.ok() ? Add(root) : there.status();
    if (added.ok() || !IsAboutThePath(added)) return added;
    sources_.push_back(SourceWithout(
        root, absl::Status(added.code(),
                           absl::StrCat("the source that it was packed from cannot be read: ",
                                        std::string(added.message())))));
    return absl::OkStatus();
  }

  std::vector<RepairSource> Take() { return std::move(sources_); }

 private:
  absl::Status Add(const std::string& path) {
    ASSIGN_OR_RETURN(const bool there, Exists(path));
    if (!there) {
      return absl::InvalidArgumentError(
          absl::StrCat("--from ", EscapeForTerminal(path), " does not exist"));
    }
    RepairSource source{.name = path};
    // It may outlive this object.
    const auto replan = [&manifest = manifest_, &pool = pool_, &observer = observer_,
                         path](const std::string& root) {
      return PlanAgain(manifest, path, root, pool, observer);
    };
    const bool listed = !PackedFromFolder(manifest_) && kind_ != "dataset" && kind_ != "archive";
    if (IsDataset(path)) {
      ASSIGN_OR_RETURN(DatasetCopy copy, DatasetCopy::Open(path));
      source.copy.emplace(std::move(copy));
      if (kind_ == "dataset") source.replan = [replan] { return replan(""); };
    } else if (listed && !IsFolder(path)) {
      for (const std::string& root : RootsOfList(path, manifest_, folders_)) {
        source.folder = root;
        source.replan = [replan, root] { return replan(root); };
        sources_.push_back(RepairSource{path, std::nullopt, source.folder, source.replan});
      }
      return absl::OkStatus();
    } else if (IsFolder(path)) {
      source.folder = path;
      if (PackedFromFolder(manifest_)) source.replan = [replan] { return replan(""); };
    } else {
      if (IsFolder(manifest_.source_root)) source.folder = manifest_.source_root;
      if (kind_ == "archive") source.replan = [replan] { return replan(""); };
    }
    sources_.push_back(std::move(source));
    return absl::OkStatus();
  }

  const std::span<const std::string> from_;
  const Manifest& manifest_;
  IoPool& pool_;
  PlanObserver& observer_;
  const std::string kind_;
  std::vector<std::string> folders_;  // from --from
  std::vector<RepairSource> sources_;
};

}  // namespace

absl::StatusOr<std::vector<RepairSource>> OpenRepairSources(std::span<const std::string> from,
                                                            const Manifest& manifest,
                                                            bool manifest_taken, IoPool& pool,
                                                            PlanObserver& observer) {
  Opener opener(from, manifest, pool, observer);
  const bool alone = from.empty();
  if (!alone) RETURN_IF_ERROR(opener.AddGiven());
  if (alone || manifest_taken) RETURN_IF_ERROR(opener.AddRecorded(alone));
  return opener.Take();
}

}  // namespace shardpack
