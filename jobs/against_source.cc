#include "jobs/against_source.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "converters/listing/find_skip.h"
#include "converters/listing/sidecars.h"
#include "converters/planning/manifest_option.h"
#include "formats/core/class_name.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/io/shell_quoted.h"
#include "formats/io/status_macros.h"
#include "jobs/open_source.h"
#include "jobs/recorded_request.h"

namespace shardpack {
namespace {

enum class Kind : uint8_t { kFolder, kArchive, kList };

struct ListedAgain {
  std::shared_ptr<const SampleSource> source;
  const ArchiveSource* archive = nullptr;  // `source`, if it is an archive
  Listing listing;
};

absl::StatusOr<ListedAgain> ListAgain(const std::string& path, Kind kind, const Manifest& manifest,
                                      const std::string& root, IoPool& pool) {
  ASSIGN_OR_RETURN(PackRequest request, RecordedRequest(manifest, path, root));
  // A sample without a part, or a folder that is not in the list of classes, is a difference to
  // report, not a reason to stop.
  if (request.source.missing == MissingPart::kError) request.source.missing = MissingPart::kSkip;
  if (kind != Kind::kList) request.source.classes.clear();
  request.annotations.clear();  // they make fields, which are not compared
  // The kind may differ from the packed one: an archive and its folder have the same paths.
  if (kind != Kind::kList) request.input_format = kind == Kind::kFolder ? "folder" : "archive";
  ASSIGN_OR_RETURN(OpenedSource opened, OpenSource(request, pool));
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

// Explains why this path may be the wrong kind of source; "" if its name is that of such a list.
std::string OtherKind(const std::string& path, const std::string& packed) {
  const absl::StatusOr<std::string> kind = KindOfSource(path);
  if (!kind.ok() || *kind == packed) return "";
  return absl::StrCat(" is ", *kind, " by its name, and was read as ", packed,
                      ", which the dataset was packed from");
}

// Lists a list's images in its own folder or, if they are not there, in --root at packing time. The
// latter is not tried if it has a list of this name, because it would be that list's own folder.
absl::StatusOr<ListedAgain> ListAgainWithRoot(const std::string& path, const Manifest& manifest,
                                              IoPool& pool, std::string& gap) {
  absl::StatusOr<ListedAgain> listed = ListAgain(path, Kind::kList, manifest, "", pool);
  const std::string& root = manifest.source_root;
  struct stat facts;
  std::error_code unread;
  const std::string namesake = absl::StrCat(root, "/", path.substr(path.rfind('/') + 1));
  if (absl::IsInvalidArgument(listed.status()) && std::filesystem::is_directory(root, unread) &&
      ::stat(namesake.c_str(), &facts) != 0) {
    absl::StatusOr<ListedAgain> elsewhere = ListAgain(path, Kind::kList, manifest, root, pool);
    if (elsewhere.ok()) {
      gap = absl::StrCat("the images of the list's own folder, which are not there; those of ",
                         EscapeForTerminal(root), " were read, where the packed ones lay");
      return elsewhere;
    }
  }
  if (listed.ok() || !absl::IsInvalidArgument(listed.status())) return listed;
  const std::string unrecorded = UnrecordedFlags(manifest);
  return absl::InvalidArgumentError(absl::StrCat(
      "--against ", EscapeForTerminal(path), OtherKind(path, OptionOf(manifest, "input-format")),
      ": ", std::string(listed.status().message()), unrecorded.empty() ? "" : "\n", unrecorded,
      "\npack validate takes no flags for the source; --against with the folder of the images "
      "compares these alone."));
}

// The files that the list names, and the files next to them that are parts of the samples.
SourceOpener FilesOfList(const Listing& listing, const SourceParts& parts) {
  auto named = std::make_shared<absl::flat_hash_set<uint64_t>>();
  std::string path;
  for (uint64_t row = 0; row < listing.rows(); ++row) {
    path.clear();
    listing.AppendPath(row, path);
    named->insert(Xxh3_64(AsBytes(path)));
    const size_t name = path.rfind('/') + 1;
    const size_t dot = path.find('.', name) == path.npos ? path.size() : path.rfind('.');
    for (const auto& [field, suffix] : parts)
      named->insert(Xxh3_64(AsBytes(absl::StrCat(path.substr(0, dot), ".", suffix))));
  }
  return [named,
          open = FilesBelow(listing.root)](const std::string& below) -> absl::StatusOr<SourceFile> {
    if (!named->contains(Xxh3_64(AsBytes(below))))
      return absl::NotFoundError("the list does not name it");
    return open(below);
  };
}

// A list is a text file; other files have no sensible columns.
absl::Status CheckIsText(const std::string& path) {
  ASSIGN_OR_RETURN(const File file, File::OpenRead(path));
  std::array<std::byte, 4096> head;
  ASSIGN_OR_RETURN(const size_t got, file.ReadAt(0, head));
  if (std::find(head.begin(), head.begin() + static_cast<ptrdiff_t>(got), std::byte{0}) ==
      head.begin() + static_cast<ptrdiff_t>(got))
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--against ", EscapeForTerminal(path),
      " is not text; the dataset was packed from a list: name that, or the folder of its files"));
}

// ": --against DIR" with the original source of a dataset, skipping datasets that it was converted
// from; "" if that source is missing.
std::string SourceToName(const Manifest& manifest) {
  constexpr int kMaxConversions = 16;
  Manifest at = manifest;
  for (int i = 0; i < kMaxConversions && !at.indexed_in_place(); ++i) {
    struct stat facts;
    const std::string root = at.source_root;
    if (root.empty() || ::stat(root.c_str(), &facts) != 0) return "";
    absl::StatusOr<Manifest> next = Manifest::Read(root);
    if (!next.ok()) return absl::StrCat(": --against ", ShellQuoted(root));
    at = *std::move(next);
  }
  return "";
}

absl::Status CheckCanBeCompared(const std::string& path, bool folder, const Manifest& manifest) {
  if (manifest.indexed_in_place()) {
    return absl::InvalidArgumentError(
        "--against: the dataset was indexed in place and has no paths of source files, so that "
        "there is nothing to compare");
  }
  const std::string packed = OptionOf(manifest, "input-format");
  if (const absl::StatusOr<Manifest> other = Manifest::Read(path); folder && other.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--against ", EscapeForTerminal(path), " names a dataset, not ",
        packed == "dataset" ? "the files that it was once packed from; name the folder of these"
                            : "its source; name the folder that was packed",
        SourceToName(manifest)));
  }
  if (!folder && packed == "dataset") {
    return absl::InvalidArgumentError(
        absl::StrCat("--against ", EscapeForTerminal(path),
                     " is not a folder; name the folder that holds the source's files"));
  }
  return absl::OkStatus();
}

// Whether a row that cannot be packed is nonetheless a file of the source, as an archive would have
// it. Others are of no file, of one elsewhere, or of a folder that was not listed.
bool IsFile(const Skip& skip) {
  switch (skip.reason) {
    case SkipReason::kEmpty:
    case SkipReason::kTooLarge:
    case SkipReason::kDangling:
      return true;
    default:
      return false;
  }
}

SourceVisit VisitRows(Listing listing) {
  return [shared = std::make_shared<const Listing>(std::move(listing))](const SourceSeen& see) {
    for (uint64_t row = 0; row < shared->rows(); ++row) {
      const Skip* const skip = FindSkip(shared->skips, row);
      if (skip != nullptr && !IsFile(*skip)) continue;
      see(shared->Path(row),
          shared->label.empty() ? "" : ClassName(shared->classes, shared->label[row]));
    }
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
  const bool folder = S_ISDIR(facts.st_mode);
  const std::string packed = OptionOf(manifest, "input-format");
  const bool tree = PackedFromFolder(manifest) || packed == "archive";
  const bool listed = !tree && packed != "dataset";
  RETURN_IF_ERROR(CheckCanBeCompared(path, folder, manifest));
  AgainstSource source{.open = FilesBelow(path)};
  if (const absl::StatusOr<std::vector<Sidecar>> sidecars =
          ParseSidecars(OptionOf(manifest, "sidecars"));
      sidecars.ok()) {
    for (const Sidecar& each : *sidecars) source.parts[each.field] = each.suffix;
  }
  if (folder && !tree) {
    source.gap = absl::StrCat(
        "labels, and which files of the source are not in the dataset, which was not packed from a "
        "folder",
        listed ? "; --against with the list itself tells both" : "");
    return source;
  }
  const Kind kind = folder ? Kind::kFolder : tree ? Kind::kArchive : Kind::kList;
  if (kind == Kind::kList) RETURN_IF_ERROR(CheckIsText(path));
  absl::StatusOr<ListedAgain> listed_again =
      kind == Kind::kList ? ListAgainWithRoot(path, manifest, pool, source.gap)
                          : ListAgain(path, kind, manifest, "", pool);
  if (!listed_again.ok()) {
    // An unusable source is an error; one that has changed can still be compared file by file.
    if (kind == Kind::kArchive && absl::IsInvalidArgument(listed_again.status())) {
      return absl::InvalidArgumentError(
          absl::StrCat("--against ", EscapeForTerminal(path),
                       " is not a folder, as the dataset was packed from one or from an archive of "
                       "it, and cannot be compared as an archive: ",
                       std::string(listed_again.status().message())));
    }
    if (!folder) return listed_again.status();
    source.gap = absl::StrCat("which files of the source are not in the dataset: ",
                              std::string(listed_again.status().message()));
    return source;
  }
  Listing& listing = listed_again->listing;
  source.open = listed_again->archive != nullptr ? MembersOf(*listed_again)
                : kind == Kind::kList            ? FilesOfList(listing, source.parts)
                                                 : FilesBelow(listing.root);
  if (std::any_of(listing.fields.begin(), listing.fields.end(),
                  [](const ListedField& field) { return field.suffix.empty(); })) {
    absl::StrAppend(&source.gap, source.gap.empty() ? "" : "; ",
                    "fields that come from columns or annotations, against the list");
  }
  source.visit = VisitRows(std::move(listing));
  return source;
}

}  // namespace shardpack
