// A manifest that is damaged or missing, from a copy.
#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "converters/publishing/file_damage.h"
#include "converters/repairing/repair.h"
#include "converters/repairing/repair_folder.h"
#include "formats/io/exists.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

// How a manifest begins, and members of it that no other program's manifest.json has.
constexpr std::string_view kBeginning = "{\n \"classes\": [";
constexpr std::string_view kMembers[] = {"\"listing_digest\": \"", "\"plan_digest\": \"",
                                         "\"xxh3_128\": \""};

absl::Status Refuse(const std::string& path, const std::string& why) {
  return absl::FailedPreconditionError(absl::StrCat(EscapeForTerminal(path), " ", why));
}

// Nothing may be replaced but what is left of a manifest of ours, or a file of the dataset that has
// come there.
absl::Status CheckPlace(const std::string& out, const Manifest& manifest) {
  ASSIGN_OR_RETURN(const bool ours, HoldsManifest(out));
  const std::string path = absl::StrCat(out, "/", std::string(kManifestName));
  if (ours) {
    const absl::StatusOr<Manifest> now = Manifest::Read(out);
    if (now.ok()) return Refuse(path, "is whole: another run has put it there; run again");
    return absl::IsDataLoss(now.status()) ? absl::OkStatus() : absl::Status(now.status());
  }
  const absl::StatusOr<bool> there = Exists(path);
  if (!there.ok() || !*there) return there.status();
  for (const FileEntry& file : manifest.files) {
    ASSIGN_OR_RETURN(const std::string damage, DamageOf(path, file, true, nullptr));
    if (damage.empty()) return absl::OkStatus();
  }
  return Refuse(path,
                "was not written by pack, so that it is not replaced; move it away and run again");
}

absl::Status CheckIsCopy(const std::string& out, const std::string& copy, const Manifest& manifest,
                         const std::optional<Digest>& expect) {
  for (const ManifestShard& shard : manifest.shards) {
    // Paths of shards elsewhere mean another place here.
    if (!shard.location.empty())
      return Refuse(
          copy, "has shards outside of its folder: it is an index, which pack index makes again");
    if (expect) continue;
    const std::string file = manifest.DataFileOf(shard);
    ASSIGN_OR_RETURN(
        const std::string damage,
        DamageOf(PathInDataset(out, file), {file, shard.bytes, shard.xxh3_128}, true, nullptr));
    if (!damage.empty()) {
      return Refuse(copy, absl::StrCat("may be another dataset: ", file, " is not the same here (",
                                       damage, "); if it is, --expect ",
                                       IdentityText(manifest.Identity()), " says so"));
    }
  }
  if (!expect || *expect == manifest.Identity()) return absl::OkStatus();
  return Refuse(copy, absl::StrCat("is dataset ", IdentityText(manifest.Identity()),
                                   ", --expect says ", IdentityText(*expect)));
}

absl::Status CheckAll(const std::string& out, const std::string& copy, const Manifest& manifest,
                      const std::optional<Digest>& expect) {
  absl::Status status = CheckNothingUnfinished(out);
  if (status.ok()) status = CheckPlace(out, manifest);
  return status.ok() ? CheckIsCopy(out, copy, manifest, expect) : status;
}

}  // namespace

absl::StatusOr<bool> HoldsManifest(const std::string& folder) {
  const absl::StatusOr<std::string> text =
      ReadWholeFile(absl::StrCat(folder, "/", std::string(kManifestName)), kMaxManifestBytes);
  if (absl::IsNotFound(text.status()) || absl::IsOutOfRange(text.status())) return false;
  if (!text.ok()) return text.status();
  // Cut off, or lost with the power.
  if (text->starts_with(kBeginning) || kBeginning.starts_with(*text)) return true;
  if (std::all_of(text->begin(), text->end(), [](char c) { return c == '\0'; })) return true;
  return std::any_of(std::begin(kMembers), std::end(kMembers), [&](std::string_view member) {
    return text->find(member) != std::string::npos;
  });
}

absl::StatusOr<Manifest> RestoreManifest(const std::string& out, const std::string& copy,
                                         const std::optional<Digest>& expect,
                                         const RepairOptions& options) {
  const std::string name(kManifestName);
  ASSIGN_OR_RETURN(const std::string text,
                   ReadWholeFile(absl::StrCat(copy, "/", name), kMaxManifestBytes));
  ASSIGN_OR_RETURN(Manifest manifest, Manifest::Parse(text));
  // Before a folder that is not a dataset's gains anything, and once more under the lock.
  absl::Status status = CheckAll(out, copy, manifest, expect);
  if (!status.ok()) return status;
  if (options.dry_run) return manifest;
  ASSIGN_OR_RETURN(RepairFolder folder, RepairFolder::Open(out, options.fsync));
  status = CheckAll(out, copy, manifest, expect);
  if (status.ok()) status = folder.Stage(name, text);
  if (!status.ok()) return status;
  ASSIGN_OR_RETURN(const std::string damage,
                   folder.Publish(name, {name, text.size(), Xxh3_128(AsBytes(text))}));
  if (!damage.empty()) {
    return absl::UnavailableError(
        absl::StrCat("write ", EscapeForTerminal(out), "/", name, ": ", damage));
  }
  status = folder.Close();
  if (!status.ok()) return status;
  return manifest;
}

}  // namespace shardpack
