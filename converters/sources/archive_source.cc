#include "converters/sources/archive_source.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <map>
#include <new>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "converters/listing/hidden_entries.h"
#include "converters/listing/input_failure.h"
#include "converters/listing/offered_flags.h"
#include "converters/listing/other_pictures.h"
#include "converters/listing/path_filter.h"
#include "converters/listing/sidecars_in_other_case.h"
#include "converters/sources/archive_members.h"
#include "converters/sources/folder_meaning.h"
#include "formats/io/hash.h"
#include "formats/io/relative_path.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr uint64_t kMaxMembers = std::numeric_limits<uint32_t>::max() - 1;

// A member that may be packed, or must be listed as a skip.
struct Found {
  std::string folder, name;
  uint64_t bytes = 0, place = 0;
  std::optional<Skip> skip = std::nullopt;
  bool operator<(const Found& other) const {
    return std::tie(folder, name) < std::tie(other.folder, other.name);
  }
};

// Sorts members into packed, skipped and ignored ones.
class MemberSorter {
 public:
  explicit MemberSorter(const FolderSourceOptions& options)
      : options_(options),
        filter_(options.extensions, options.any_extension, options.include, options.exclude) {}

  bool Wants(const ArchiveMember& member) {
    if (member.kind == ArchiveMember::Kind::kFolder) return false;
    const std::string path = PlainPath(member.path);
    leads_out_ = LeavesFolder(member.path);
    const size_t slash = path.rfind('/');
    found_ = {.folder = slash == std::string::npos ? "" : path.substr(0, slash),
              .name = slash == std::string::npos ? path : path.substr(slash + 1)};
    if (found_.name.empty()) {  // it must be accounted for
      found_ = {.folder = "", .name = "(no name)"};
      leads_out_ = true;
      return true;
    }
    const bool part =
        !options_.sidecars.empty() && SidecarOf(options_.sidecars, found_.name).has_value();
    if (!part && !filter_.HasInputExtension(found_.name)) {
      ++ignored[NameExtension(found_.name)];
      const size_t dot = std::min(found_.name.find('.'), found_.name.size() - 1);
      others_.emplace_back(KeyHash(found_), found_.name.substr(dot + 1));
      other_case_.Look(options_.sidecars, found_.folder, found_.name);
      return false;
    }
    if (!part && !filter_.Accepts(found_.folder, found_.name)) return false;
    for (std::string folder = found_.folder; !folder.empty();) {
      if (filter_.ExcludesFolder(folder)) return false;
      const size_t up = folder.rfind('/');
      folder.resize(up == std::string::npos ? 0 : up);
    }
    const std::string_view hidden = HiddenFolderOf(found_.folder);
    if (!hidden.empty()) {
      hidden_.AddFolder(hidden);
    } else if (IsHiddenFile(found_.name)) {
      hidden_.AddFile(path);
    } else {
      return true;
    }
    return false;
  }

  // Takes the member for which Wants has just returned true.
  void Take(const ArchiveMember& member) {
    found_.bytes = member.bytes;
    found_.place = member.place;
    if (leads_out_) {
      SkipIt(SkipReason::kOutsideRoot,
             absl::StrCat("the member's name is ", std::string(member.path)));
    } else if (member.kind == ArchiveMember::Kind::kLink) {
      SkipIt(SkipReason::kNotRegular, "a link; links in archives are not followed");
    } else if (member.kind != ArchiveMember::Kind::kFile) {
      SkipIt(SkipReason::kNotRegular, "");
    } else if (member.too_large || member.bytes > options_.max_file_bytes) {
      SkipIt(SkipReason::kTooLarge, absl::StrCat("the limit is ", options_.max_file_bytes));
    } else if (!member.unreadable.empty()) {
      SkipIt(SkipReason::kIoError, member.unreadable);
    }
    found.push_back(std::move(found_));
  }

  // The extensions of parts that the user did not ask for, if at least half of the images have
  // some, or there is a .cls; else nullopt.
  std::optional<std::vector<std::string>> UnwantedParts() const {
    absl::flat_hash_set<uint64_t> images, with_parts;
    for (const Found& each : found) images.insert(KeyHash(each));
    std::set<std::string> extensions;
    for (const auto& [key, extension] : others_) {
      if (!images.contains(key)) continue;
      with_parts.insert(key);
      extensions.insert(extension);
    }
    if (with_parts.empty() ||
        (with_parts.size() * 2 < images.size() && !extensions.contains("cls")))
      return std::nullopt;
    return std::vector<std::string>(extensions.begin(), extensions.end());
  }

  void Warn(Listing& listing) const {
    other_case_.Warn(listing);
    hidden_.Report(listing);
    for (std::string& line : filter_.Unmatched()) listing.warnings.push_back(std::move(line));
  }

  std::vector<Found> found;
  std::map<std::string, uint64_t> ignored;

 private:
  // For what readers of such shards treat as one sample: the name up to its first dot.
  static uint64_t KeyHash(const Found& member) {
    return Xxh3_64(
        AsBytes(absl::StrCat(member.folder, "/", member.name.substr(0, member.name.find('.')))));
  }

  void SkipIt(SkipReason reason, std::string detail) {
    found_.bytes = 0;
    found_.skip = Skip{0, reason, std::move(detail)};
  }

  const FolderSourceOptions& options_;
  const PathFilter filter_;
  std::vector<std::pair<uint64_t, std::string>> others_;  // key and extension of ignored members
  SidecarsInOtherCase other_case_;
  HiddenEntries hidden_;
  Found found_;
  bool leads_out_ = false;
};

Listing ToListing(std::vector<Found> found, int64_t mtime_ns) {
  std::stable_sort(found.begin(), found.end());
  Listing listing;
  for (size_t i = 0; i < found.size(); ++i) {
    Found& each = found[i];
    if (listing.folders.empty() || listing.folders.back() != each.folder)
      listing.folders.push_back(each.folder);
    const bool again = i > 0 && !(found[i - 1] < each);
    if (again && !each.skip)
      each.skip =
          Skip{0, SkipReason::kDuplicateKey, "the archive has a member of this name before"};
    if (each.skip) {
      listing.skips.push_back(*std::move(each.skip));
      listing.skips.back().row = i;
    }
    listing.folder.push_back(static_cast<uint32_t>(listing.folders.size() - 1));
    listing.names.append(each.name);
    listing.name_ends.push_back(listing.names.size());
    listing.bytes.push_back(each.bytes);
    listing.mtime_ns.push_back(mtime_ns);
    listing.places.push_back(each.place);
  }
  return listing;
}

absl::Status AskAboutParts(const std::string& path, const std::vector<std::string>& extensions,
                           bool plain) {
  constexpr size_t kNamed = 8;
  const bool many = extensions.size() > kNamed;
  std::vector<std::string> sidecars, named = extensions;
  if (many) named.resize(kNamed);
  // If the text after the first dot is unique to each name, extensions are too many to offer.
  for (const std::string& each : many ? std::vector<std::string>() : extensions) {
    if (IsFieldName(each)) sidecars.push_back(each);
  }
  std::vector<FlagWords> offers;
  if (plain) offers.push_back({std::string(kOfferConvert)});
  if (!sidecars.empty() && std::find(sidecars.begin(), sidecars.end(), "cls") == sidecars.end())
    offers.push_back({"--fields", absl::StrJoin(sidecars, ",")});
  offers.push_back({"--input-format", "archive"});
  return OfferFlags(absl::InvalidArgumentError(absl::StrCat(
                        EscapeForTerminal(path),
                        " is a tar of samples: beside its images lie files of their names (.",
                        EscapeForTerminal(absl::StrJoin(named, ", .")),
                        many ? absl::StrCat(", and ", extensions.size() - kNamed, " more") : "",
                        "), which would be left out. pack convert takes all of a sample, and its "
                        "label from .cls; --input-format archive "
                        "packs the images alone, with their folders for classes")),
                    offers);
}

absl::StatusOr<int64_t> ModifiedAt(const File& file) {
  struct stat facts;
  if (::fstat(file.descriptor(), &facts) != 0) return IoStatus("stat", file.path(), errno);
  if (!S_ISREG(facts.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("source ", EscapeForTerminal(file.path()), " is not a regular file"));
  }
  return facts.st_mtim.tv_sec * int64_t{1'000'000'000} + facts.st_mtim.tv_nsec;
}

}  // namespace

ArchiveSource::ArchiveSource(std::string path, FolderSourceOptions options, Shards shards)
    : path_(std::move(path)),
      options_(std::move(options)),
      shards_(shards),
      file_(File::OpenRead(path_)) {}

absl::StatusOr<Listing> ArchiveSource::List() {
  if (absl::IsNotFound(file_.status())) {
    return absl::InvalidArgumentError(
        absl::StrCat("source ", EscapeForTerminal(path_), " does not exist"));
  }
  if (!file_.ok()) return file_.status();
  ASSIGN_OR_RETURN(const int64_t mtime_ns, ModifiedAt(*file_));
  MemberSorter sorter(options_);
  ArchiveMembers members(*file_, options_.max_file_bytes);
  absl::Status status = members.Walk(
      [&](const ArchiveMember& member) {
        return sorter.found.size() < kMaxMembers && sorter.Wants(member);
      },
      [&](const ArchiveMember& member) {
        sorter.Take(member);
        listed_.fetch_add(1, std::memory_order_relaxed);
      });
  if (!status.ok()) return status;
  spool_ = members.TakeSpool();
  if (shards_ == Shards::kRefuse) {
    if (const auto parts = sorter.UnwantedParts())
      return AskAboutParts(path_, *parts, /*plain=*/!is_spooled());
  }
  Listing listing = ToListing(std::move(sorter.found), mtime_ns);
  if (keeps_places_) NotePlaces(listing);
  listing.ignored = std::move(sorter.ignored);
  sorter.Warn(listing);
  if (options_.extensions.empty()) WarnOfOtherPictures(listing);
  if (members.ends_early()) {
    listing.warnings.push_back(absl::StrCat(
        "the archive ", EscapeForTerminal(path_),
        " has no end-of-archive block: it may have been cut, and what followed is not packed; "
        "compare it with its origin"));
  }
  std::error_code error;
  listing.root = std::filesystem::absolute(path_, error).string();
  if (!options_.sidecars.empty())
    status = PairSidecars(options_.sidecars, options_.missing, listing);
  if (!status.ok()) return status;
  if (listing.rows() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the archive ", EscapeForTerminal(path_), " holds no image",
                     listing.warnings.empty() ? "" : absl::StrCat("; ", listing.warnings[0]),
                     listing.ignored.empty() ? "" : "; --ext takes other files as images"));
  }
  LabelOptions labels = LabelOptionsOf(options_);
  labels.outside_counts = false;  // the rest of such a name is not a folder of the archive
  status = AssignFolders(options_, labels, {}, SourceKind::kArchive, listing);
  if (!status.ok()) return status;
  return listing;
}

void ArchiveSource::NotePlaces(const Listing& walked) {
  auto skip = walked.skips.begin();
  for (uint64_t row = 0; row < walked.rows(); ++row) {
    Kept kept{walked.places[row], walked.bytes[row]};
    if (skip != walked.skips.end() && skip->row == row) kept.skip = *skip++;
    places_.try_emplace(Xxh3_64(AsBytes(walked.Path(row))),
                        std::move(kept));  // the first one counts
  }
}

absl::StatusOr<ArchivePlace> ArchiveSource::Find(std::string_view path) const {
  const auto found = places_.find(Xxh3_64(AsBytes(path)));
  if (found == places_.end()) {
    return absl::NotFoundError(
        absl::StrCat(EscapeForTerminal(path_), " has no member of this name"));
  }
  const Kept& kept = found->second;
  if (!kept.skip) return ArchivePlace{is_spooled() ? &spool_ : &*file_, kept.place, kept.bytes};
  const bool is_file = kept.skip->reason != SkipReason::kNotRegular;
  return absl::Status(
      is_file ? absl::StatusCode::kUnavailable : absl::StatusCode::kInvalidArgument,
      kept.skip->detail.empty() ? "not a regular file" : EscapeForTerminal(kept.skip->detail));
}

LoadResult ArchiveSource::Load(const Listing& listing, uint64_t row, Arena& arena) const {
  if (!file_.ok()) return InputFailure(row, file_.status(), SkipReason::kIoError);
  const absl::StatusOr<int64_t> mtime_ns =
      is_spooled() ? listing.mtime_ns[row] : ModifiedAt(*file_);
  if (!mtime_ns.ok()) return InputFailure(row, mtime_ns.status(), SkipReason::kChanged);
  if (*mtime_ns != listing.mtime_ns[row]) {
    return Skip{row, SkipReason::kChanged, "the archive was modified since it was listed"};
  }
  const File& file = is_spooled() ? spool_ : *file_;
  const size_t fields = listing.fields.size();
  const std::span<std::byte> room = arena.Allocate((1 + fields) * sizeof(FieldView));
  auto* const views = reinterpret_cast<FieldView*>(room.data());
  size_t count = 0;
  for (size_t i = 0; i <= fields; ++i) {
    if (i > 0 && !listing.HasField(row, i - 1)) continue;
    const uint64_t bytes = i == 0 ? listing.bytes[row] : listing.field_bytes[row * fields + i - 1];
    if (bytes == 0 && i == 0) return Skip{row, SkipReason::kEmpty, ""};
    if (bytes > options_.max_file_bytes) {
      return Skip{row, SkipReason::kTooLarge,
                  absl::StrCat(bytes, " bytes, the limit is ", options_.max_file_bytes)};
    }
    const std::span<std::byte> payload = arena.Allocate(bytes);
    const absl::Status read = file.ReadExactlyAt(listing.places[row * (1 + fields) + i], payload);
    if (!read.ok()) return InputFailure(row, read, SkipReason::kTruncated);
    new (views + count++)
        FieldView{i == 0 ? kImageField : std::string_view(listing.fields[i - 1].name), payload};
  }
  return LoadedSample{{views, count}};
}

}  // namespace shardpack
