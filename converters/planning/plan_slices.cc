#include "converters/planning/plan_slices.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "converters/planning/plan_bytes.h"
#include "formats/core/image_info.h"
#include "formats/io/file.h"
#include "formats/io/mapped_file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

static_assert(std::endian::native == std::endian::little, "plans are mapped as they are");

constexpr uint64_t kAlignment = 8;

bool IsText(PlanColumn column) {
  return column == PlanColumn::kNames || column == PlanColumn::kKeys;
}

uint32_t RowBytes(PlanColumn column, const PlanShape& shape) {
  const auto fields = static_cast<uint32_t>(shape.fields);
  switch (column) {
    case PlanColumn::kSourceRow:
    case PlanColumn::kFolder:
    case PlanColumn::kLabel:
      return 4;
    case PlanColumn::kNameEnd:
    case PlanColumn::kBytes:
    case PlanColumn::kMtime:
      return 8;
    case PlanColumn::kFieldBytes:
      return 8 * fields;
    case PlanColumn::kFieldMtime:
      return shape.field_times ? 8 * fields : 0;
    case PlanColumn::kPlace:
      return shape.places ? 8 * (1 + fields) : 0;
    case PlanColumn::kKeyEnd:
      return shape.keys ? 8 : 0;
    case PlanColumn::kSplit:
      return shape.split ? 2 : 0;
    case PlanColumn::kImage:
      return shape.images ? sizeof(ImageInfo) : 0;
    case PlanColumn::kContentHash:
      return shape.hashes ? 8 : 0;
    case PlanColumn::kUnsorted:
      return shape.reordered ? 4 : 0;
    case PlanColumn::kNames:
    case PlanColumn::kKeys:
      return 1;
  }
  return 0;
}

uint64_t RowsOf(PlanColumn column, const PlanShape& shape) {
  return column == PlanColumn::kNames      ? shape.names_bytes
         : column == PlanColumn::kKeys     ? shape.keys_bytes
         : column == PlanColumn::kUnsorted ? shape.positions
                                           : shape.rows;
}

}  // namespace

absl::StatusOr<PlanFile> MapPlan(const std::string& path) {
  ASSIGN_OR_RETURN(const File file, File::OpenRead(path));
  struct stat facts;
  if (::fstat(file.descriptor(), &facts) != 0) return IoStatus("stat", path, errno);
  if (!S_ISREG(facts.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(EscapeForTerminal(path), " is not a regular file"));
  }
  ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::Map(file));
  const auto owner = std::make_shared<const MappedFile>(std::move(mapped));
  return PlanFile{owner, AsText(owner->bytes()), path};
}

std::optional<PlanPlaces> PlacesOf(const PlanShape& shape, uint64_t most_bytes) {
  constexpr uint64_t kMostFields = uint64_t{1} << 24;  // so that widths fit
  if (shape.fields > kMostFields || most_bytes < kPlanHeaderBytes) return std::nullopt;
  PlanPlaces places{.end = kPlanHeaderBytes};
  for (size_t i = 0; i < kPlanColumns; ++i) {
    const auto column = static_cast<PlanColumn>(i);
    const uint64_t width = RowBytes(column, shape), rows = RowsOf(column, shape);
    if (width > 0 && rows > (most_bytes - places.end) / width) return std::nullopt;
    places.offset[i] = places.end;
    places.row_bytes[i] = static_cast<uint32_t>(width);
    places.end += (width * rows + kAlignment - 1) / kAlignment * kAlignment;
    if (places.end > most_bytes) return std::nullopt;
  }
  return places;
}

Digest AddToSlice(const Digest& before, std::string_view part) {
  const Digest of_part = Xxh3_128(AsBytes(part));
  const uint64_t words[] = {before.low, before.high, of_part.low, of_part.high};
  return Xxh3_128(std::as_bytes(std::span(words)));
}

PlanSlices::PlanSlices(PlanFile file, const PlanShape& shape, const PlanPlaces& places,
                       std::vector<PlanSlice> slices)
    : file_(std::move(file)),
      shape_(shape),
      places_(places),
      slices_(std::move(slices)),
      good_(new std::atomic<bool>[slices_.size()]()) {}

std::string_view PlanSlices::All(PlanColumn column) const {
  const auto i = static_cast<size_t>(column);
  return file_.bytes.substr(places_.offset[i], places_.row_bytes[i] * RowsOf(column, shape_));
}

std::optional<std::string_view> PlanSlices::Part(PlanColumn column, const PlanSlice& slice) const {
  const std::string_view all = All(column);
  if (!IsText(column)) {
    const uint64_t width = places_.row_bytes[static_cast<size_t>(column)];
    const uint64_t rows = width == 0 ? 0 : all.size() / width;
    if (slice.first >= rows) return std::string_view();  // rows of no shard are not sorted
    return all.substr(slice.first * width, slice.count * width);
  }
  const auto ends =
      Rows<uint64_t>(column == PlanColumn::kNames ? PlanColumn::kNameEnd : PlanColumn::kKeyEnd);
  if (ends.empty() || slice.count == 0) return std::string_view();
  const uint64_t begin = slice.first == 0 ? 0 : ends[slice.first - 1];
  const uint64_t end = ends[slice.first + slice.count - 1];
  if (begin > end || end > all.size()) return std::nullopt;
  return all.substr(begin, end - begin);
}

std::optional<Digest> PlanSlices::Compute(size_t slice) const {
  Digest digest;
  for (size_t i = 0; i < kPlanColumns; ++i) {
    const auto part = Part(static_cast<PlanColumn>(i), slices_[slice]);
    if (!part) return std::nullopt;
    digest = AddToSlice(digest, *part);
  }
  return digest;
}

void PlanSlices::Drop(size_t slice) const {
  // All before the first is dropped: names are found by their ends.
  std::array<std::string_view, kPlanColumns> parts;
  for (size_t i = 0; i < kPlanColumns; ++i) {
    parts[i] = Part(static_cast<PlanColumn>(i), slices_[slice]).value_or(std::string_view());
  }
  for (const std::string_view part : parts) DropPages(part);
}

void PlanSlices::DropPages(std::string_view bytes) const {
  if (file_.path.empty() || bytes.empty()) return;  // not mapped
  // With a page, the system maps the whole folio that holds it, of up to so many bytes.
  constexpr size_t kFolioBytes = size_t{2} << 20;
  const auto first = static_cast<size_t>(bytes.data() - file_.bytes.data());
  const size_t begin = first / kFolioBytes * kFolioBytes;
  const size_t end = std::min(file_.bytes.size(),
                              (first + bytes.size() + kFolioBytes - 1) / kFolioBytes * kFolioBytes);
  (void)::madvise(const_cast<char*>(file_.bytes.data()) + begin, end - begin, MADV_DONTNEED);
}

}  // namespace shardpack
