#include "validators/checks/source_check.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/relative_path.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr uint64_t kSourceBlockBytes = 128 << 10;

// That a path is missing or not a file is a property of the source; other errors say nothing about
// it.
bool IsNotThere(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsInvalidArgument(status);
}

}  // namespace

absl::StatusOr<size_t> SourceFile::ReadAt(uint64_t offset, std::span<std::byte> into) const {
  const uint64_t left = bytes - std::min(bytes, offset);
  return file->ReadAt(begin + offset, into.first(std::min<uint64_t>(into.size(), left)));
}

SourceOpener FilesBelow(std::string folder) {
  return [folder = std::move(folder)](const std::string& below) -> absl::StatusOr<SourceFile> {
    const std::string path = absl::StrCat(folder, "/", below);
    ASSIGN_OR_RETURN(File file, File::OpenRead(path));
    struct stat facts;
    if (::fstat(file.descriptor(), &facts) != 0) return IoStatus("stat", path, errno);
    if (!S_ISREG(facts.st_mode)) return absl::InvalidArgumentError("not a regular file");
    return SourceFile{.file = std::make_shared<const File>(std::move(file)),
                      .bytes = static_cast<uint64_t>(facts.st_size)};
  };
}

void SourceCheck::Report(FindingId id, const ShardIndex& index, const Place& place,
                         std::optional<uint64_t> offset, const std::string& detail) {
  Finding finding = MakeFinding(id, shard_);
  finding.record = place.record;
  finding.key = std::string(index.key(place.record));
  if (place.field > 0) finding.field = std::string(index.field_name(place.field));
  finding.offset = offset;
  finding.detail = absl::StrCat(place.path, detail.empty() ? "" : ": ", detail);
  findings_.Report(std::move(finding));
}

void SourceCheck::ReportUnread(const ShardIndex& index, const Place& place,
                               const absl::Status& why) {
  const FindingId missing =
      place.field > 0 ? FindingId::kSourceFieldMissing : FindingId::kSourceMissing;
  Report(IsNotThere(why) ? missing : FindingId::kSourceUnreadable, index, place, std::nullopt,
         std::string(why.message()));
}

void SourceCheck::CompareBytes(const File& shard_file, const ShardIndex& index, const Place& place,
                               const SourceFile& source) {
  const Extent extent = index.field(place.record, place.field);
  ours_.resize(std::min(extent.length, kSourceBlockBytes));
  theirs_.resize(ours_.size() + 1);  // one more, to see that the source ends here too
  uint64_t done = 0;
  for (bool first = true; first || done < extent.length; first = false) {
    const size_t wanted = std::min<uint64_t>(extent.length - done, ours_.size());
    const std::span<std::byte> ours(ours_.data(), wanted);
    absl::StatusOr<size_t> got = source.ReadAt(done, std::span(theirs_.data(), wanted + 1));
    if (!got.ok()) return ReportUnread(index, place, got.status());
    absl::StatusOr<size_t> here = shard_file.ReadAt(extent.offset + done, ours);
    if (!here.ok() || *here != wanted) return;  // the shard's own check reports this
    const bool last = done + wanted == extent.length;
    const size_t common = std::min(wanted, *got);
    const auto ends =
        std::mismatch(ours.begin(), ours.begin() + static_cast<ptrdiff_t>(common), theirs_.begin());
    const auto same = static_cast<uint64_t>(ends.first - ours.begin());
    if (same < wanted || (last && *got > wanted)) {
      const FindingId differs =
          place.field > 0 ? FindingId::kSourceFieldMismatch : FindingId::kSourceBytesMismatch;
      return Report(differs, index, place, extent.offset + done + same,
                    absl::StrCat("the source differs from its byte ", done + same, " on"));
    }
    done += wanted;
  }
}

void SourceCheck::Compare(const File& shard_file, const ShardIndex& index, uint64_t record) {
  const std::string path(index.source_path(record));
  if (index.fields() == 0 || !index.has_field(record, 0)) return;
  const Place image{record, 0, path};
  if (LeavesFolder(path)) {
    return Report(FindingId::kSourceMissing, index, image, std::nullopt,
                  path.empty() ? "the index holds no source path" : "leads out of the folder");
  }
  const absl::StatusOr<SourceFile> source = open_(path);
  if (!source.ok()) return ReportUnread(index, image, source.status());
  if (!changed_) {
    ++compared_;
    CompareBytes(shard_file, index, image, *source);
  }
  for (size_t field = 1; field < index.fields(); ++field)
    ComparePart(shard_file, index, record, field);
}

void SourceCheck::ComparePart(const File& shard_file, const ShardIndex& index, uint64_t record,
                              size_t field) {
  const auto part = parts_.find(std::string(index.field_name(field)));
  if (part == parts_.end()) return;
  const std::string_view path = index.source_path(record);
  const size_t slash = path.rfind('/'), name = slash == path.npos ? 0 : slash + 1;
  const size_t dot = std::min(path.substr(name).rfind('.'), path.size() - name);
  const Place place{record, field,
                    absl::StrCat(std::string(path.substr(0, name + dot)), ".", part->second)};
  const absl::StatusOr<SourceFile> source = open_(place.path);
  if (index.has_field(record, field)) {
    if (!source.ok()) return ReportUnread(index, place, source.status());
    return CompareBytes(shard_file, index, place, *source);
  }
  if (source.ok()) {
    Report(FindingId::kSourceFieldExtra, index, place, std::nullopt, "");
  } else if (!IsNotThere(source.status())) {
    ReportUnread(index, place, source.status());
  }
}

}  // namespace shardpack
