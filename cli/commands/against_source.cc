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
#include "formats/core/class_name.h"
#include "formats/io/file.h"
#include "formats/io/shell_quoted.h"
#include "formats/io/status_macros.h"

namespace shardpack::cli {
namespace {

enum class Kind : uint8_t { kFolder, kArchive, kList };

struct ListedAgain {
  std::shared_ptr<const SampleSource> source;
  const ArchiveSource* archive = nullptr;  // `source`, when it is one
  Listing listing;
};

absl::StatusOr<ListedAgain> ListAgain(const std::string& path, Kind kind, const Manifest& manifest,
                                      IoPool& pool) {
  std::string root;
  struct stat facts;
  if (kind == Kind::kList && ::stat(manifest.source_root.c_str(), &facts) == 0)
    root = manifest.source_root;
  ASSIGN_OR_RETURN(CommandLine line, RecordedCommand(manifest, path, root, /*io_depth=*/0));
  // A sample without a part, or a folder that no list of classes has, is something to find, not a
  // reason to stop.
  if (line.source.missing == MissingPart::kError) line.source.missing = MissingPart::kSkip;
  if (kind != Kind::kList) line.source.classes.clear();
  // Whatever it was when it was packed: an archive and its folder have the same paths.
  if (kind != Kind::kList) line.input_format = kind == Kind::kFolder ? "folder" : "archive";
  ASSIGN_OR_RETURN(OpenedSource opened, OpenSource(line, line.source, pool));
  if (opened.archive != nullptr) opened.archive->KeepPlaces();
  ASSIGN_OR_RETURN(Listing listing, opened.source->List());
  return ListedAgain{std::move(opened.source), opened.archive, std::move(listing)};
}

SourceOpener MembersOf(const ListedAgain& listed) {
  return [source = listed.source,
          archive = listed.archive](const std::string& path) -> absl::StatusOr<SourceFile> {
    ASSIGN_OR_RETURN(const ArchivePlace place, archive->Find(path));
    return SourceFile{std::shared_ptr<const File>(source, place.file), place.begin, place.bytes};
  };
}

}  // namespace

absl::StatusOr<AgainstSource> OpenAgainst(const std::string& path, const Manifest& manifest,
                                          IoPool& pool) {
  struct stat facts;
  if (::stat(path.c_str(), &facts) != 0) {
    if (!IsAboutThePath(errno)) return IoStatus("look at", path, errno);
    return absl::InvalidArgumentError(absl::StrCat(
        "--against ", EscapeForTerminal(path), " does not exist; name the source that was packed"));
  }
  const bool folder = S_ISDIR(facts.st_mode), adopted = manifest.adopted();
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
  const std::string packed = OptionOf(manifest, "input-format");
  const bool tree = (PackedFromFolder(manifest) || packed == "archive") && !adopted;
  const bool listed = !tree && packed != "dataset" && !adopted;
  if (!folder && !listed && !tree) {
    return absl::InvalidArgumentError(
        absl::StrCat("--against ", EscapeForTerminal(path),
                     " is not a folder; name the folder that holds the source's files"));
  }
  AgainstSource source{.open = FilesBelow(path)};
  if (const absl::StatusOr<std::vector<Sidecar>> sidecars =
          ParseSidecars(OptionOf(manifest, "sidecars"));
      sidecars.ok()) {
    for (const Sidecar& each : *sidecars) source.parts[each.field] = each.suffix;
  }
  if (folder && !tree) {
    source.gap = absl::StrCat(
        "which files of the source are not in the dataset, which was not packed from a folder",
        listed ? "; --against with the list itself tells" : "");
    return source;
  }
  const Kind kind = folder ? Kind::kFolder : tree ? Kind::kArchive : Kind::kList;
  absl::StatusOr<ListedAgain> listed_again = ListAgain(path, kind, manifest, pool);
  if (!listed_again.ok()) {
    // A source that is of no use at all is an error; one that has changed can still be compared
    // file by file.
    if (kind == Kind::kArchive && absl::IsInvalidArgument(listed_again.status())) {
      return absl::InvalidArgumentError(
          absl::StrCat("--against ", EscapeForTerminal(path),
                       " is not a folder, and cannot be compared as an archive: ",
                       std::string(listed_again.status().message())));
    }
    if (!folder) return listed_again.status();
    source.gap = absl::StrCat("which files of the source are not in the dataset: ",
                              std::string(listed_again.status().message()));
    return source;
  }
  Listing& listing = listed_again->listing;
  source.open =
      listed_again->archive != nullptr ? MembersOf(*listed_again) : FilesBelow(listing.root);
  for (const ListedField& field : listing.fields) {
    if (field.suffix.empty())
      source.gap = "fields that come from columns or annotations, against the list";
  }
  source.visit = [shared =
                      std::make_shared<const Listing>(std::move(listing))](const SourceSeen& see) {
    for (uint64_t row = 0; row < shared->rows(); ++row)
      see(shared->Path(row),
          shared->label.empty() ? "" : ClassName(shared->classes, shared->label[row]));
  };
  return source;
}

}  // namespace shardpack::cli
