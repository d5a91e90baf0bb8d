#include "converters/publishing/index_mark.h"

#include "absl/strings/str_cat.h"
#include "converters/publishing/replacement.h"
#include "formats/core/manifest.h"
#include "formats/io/escape.h"
#include "formats/io/exists.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr std::string_view kFirstLine = "shardpack index run, version 1\n";

}  // namespace

std::string IndexMarkText(const std::set<std::string>& names) {
  std::string text(kFirstLine);
  for (const std::string& name : names) absl::StrAppend(&text, name, "\n");
  return text;
}

std::optional<std::set<std::string>> ParseIndexMark(const std::string& text) {
  if (!text.starts_with(kFirstLine)) return std::nullopt;
  std::set<std::string> names = ParseNames(text.substr(kFirstLine.size()));
  std::erase_if(names, [](const std::string& name) {
    return !name.ends_with(kIndexSuffix) || name.find('/') != name.npos;
  });
  return names;
}

absl::StatusOr<bool> IsIndexMark(const OwnedFolder& folder, std::string_view name) {
  ASSIGN_OR_RETURN(const OwnedFolder::Look look, folder.LookAt(name));
  if (look.kind != OwnedFolder::Kind::kFile) return false;
  const absl::StatusOr<std::string> beginning = folder.Read(name, kFirstLine.size());
  if (absl::IsNotFound(beginning.status())) return false;
  if (!beginning.ok()) return beginning.status();
  return *beginning == kFirstLine;
}

absl::Status CheckNotIndexed(const std::string& dataset) {
  const std::string path = absl::StrCat(dataset, "/", std::string(kIndexMark));
  ASSIGN_OR_RETURN(const bool there, Exists(path));
  if (!there) return absl::OkStatus();
  ASSIGN_OR_RETURN(const OwnedFolder folder, OwnedFolder::Open(dataset));
  ASSIGN_OR_RETURN(const bool ours, IsIndexMark(folder, kIndexMark));
  const absl::StatusOr<Manifest> manifest = Manifest::Read(dataset);
  const bool packed = manifest.ok() && !manifest->indexed_in_place();
  if (ours && !packed) {
    return absl::FailedPreconditionError(absl::StrCat(
        EscapeForTerminal(dataset),
        " holds shards that pack index works on, or has not finished with; run pack index there "
        "again, or use another folder"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat(EscapeForTerminal(path),
                   ours ? " is of a run of pack index, but the dataset there is not"
                        : " is not what pack index notes there",
                   "; move it away and run again"));
}

}  // namespace shardpack
