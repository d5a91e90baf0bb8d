#include "cli/commands/against_source.h"

#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cli/commands/open_source.h"
#include "cli/commands/recorded_command.h"
#include "converters/listing/sidecars.h"
#include "converters/planning/manifest_option.h"
#include "formats/io/file.h"
#include "formats/io/shell_quoted.h"
#include "formats/io/status_macros.h"

namespace shardpack::cli {
namespace {

std::string ClassOf(const Listing& listing, uint64_t row) {
  if (listing.label.empty() || listing.label[row] < 0) return "";
  const auto place = static_cast<size_t>(listing.label[row]);
  return place < listing.classes.size() ? listing.classes[place] : absl::StrCat(place);
}

absl::StatusOr<Listing> ListAgain(const std::string& path, bool folder, const Manifest& manifest,
                                  IoPool& pool) {
  std::string root;
  struct stat facts;
  if (!folder && ::stat(manifest.source_root.c_str(), &facts) == 0) root = manifest.source_root;
  ASSIGN_OR_RETURN(CommandLine line, RecordedCommand(manifest, path, root, /*io_depth=*/0));
  // A sample without a part, or a folder that no list of classes has, is something to find, not a
  // reason to stop.
  if (line.source.missing == MissingPart::kError) line.source.missing = MissingPart::kSkip;
  if (folder) line.source.classes.clear();
  ASSIGN_OR_RETURN(OpenedSource opened, OpenSource(line, line.source, pool));
  return opened.source->List();
}

}  // namespace

absl::StatusOr<AgainstSource> OpenAgainst(const std::string& path, const Manifest& manifest,
                                          IoPool& pool) {
  struct stat facts;
  if (::stat(path.c_str(), &facts) != 0) {
    if (!IsAboutThePath(errno)) return IoStatus("look at", path, errno);
    return absl::InvalidArgumentError(absl::StrCat(
        "--against ", EscapeForTerminal(path), " does not exist; name the folder that was packed"));
  }
  const bool folder = S_ISDIR(facts.st_mode);
  if (folder && Manifest::Read(path).ok()) {
    const std::string& root = manifest.source_root;
    return absl::InvalidArgumentError(
        absl::StrCat("--against ", EscapeForTerminal(path),
                     " names a dataset, not its source; name the folder "
                     "that was packed",
                     root.empty() || ::stat(root.c_str(), &facts) != 0
                         ? ""
                         : absl::StrCat(": --against ", ShellQuoted(root))));
  }
  const std::string kind = OptionOf(manifest, "input-format");
  const bool listed =
      !PackedFromFolder(manifest) && kind != "dataset" && kind != "archive" && !manifest.adopted();
  if (!folder && !listed) {
    return absl::InvalidArgumentError(
        absl::StrCat("--against ", EscapeForTerminal(path),
                     " is not a folder; name the folder that holds the source's files"));
  }
  AgainstSource source{.root = path};
  if (const absl::StatusOr<std::vector<Sidecar>> sidecars =
          ParseSidecars(OptionOf(manifest, "sidecars"));
      sidecars.ok()) {
    for (const Sidecar& each : *sidecars) source.parts[each.field] = each.suffix;
  }
  if (folder != PackedFromFolder(manifest) || manifest.adopted()) {
    source.gap = absl::StrCat(
        "which files of the source are not in the dataset, which was not packed from a folder",
        listed ? "; --against with the list itself tells" : "");
    if (!folder) source.gap.clear();
  }
  if (!source.gap.empty()) return source;
  absl::StatusOr<Listing> listing = ListAgain(path, folder, manifest, pool);
  if (!listing.ok()) {
    // A source that is of no use at all is an error; one that has changed can still be compared
    // file by file.
    if (!folder) return listing.status();
    source.gap = absl::StrCat("which files of the source are not in the dataset: ",
                              std::string(listing.status().message()));
    return source;
  }
  source.root = listing->root;
  for (const ListedField& field : listing->fields) {
    if (field.suffix.empty())
      source.gap = "fields that come from columns or annotations, against the list";
  }
  source.visit = [shared =
                      std::make_shared<const Listing>(*std::move(listing))](const SourceSeen& see) {
    for (uint64_t row = 0; row < shared->rows(); ++row)
      see(shared->Path(row), ClassOf(*shared, row));
  };
  return source;
}

}  // namespace shardpack::cli
