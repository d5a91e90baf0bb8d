#include "formats/hdf5/reading/shard_map.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "formats/core/image_info.h"
#include "formats/hdf5/hdf5_layout.h"
#include "formats/hdf5/reading/dataset_elements.h"
#include "formats/hdf5/reading/global_heap.h"
#include "formats/hdf5/reading/group_links.h"
#include "formats/hdf5/reading/hdf5_dataset.h"
#include "formats/hdf5/reading/object_header.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

// The first name that exists is used. Fuel: encoded_images, targets, filenames (mila-iqia/fuel:
// fuel/converters/ilsvrc2012.py); DLIO: records.
constexpr std::string_view kImageNames[] = {
    "images", "encoded_images", "image", "features", "data", "X", "records", "records_0"};
constexpr std::string_view kLabelNames[] = {kLabelsName, "label", "targets", "y"};
constexpr std::string_view kKeyNames[] = {kKeysName};
constexpr std::string_view kPathNames[] = {"filenames", "paths"};
constexpr uint64_t kReferenceBytes = 16;
constexpr uint64_t kMaxSide = 1 << 20;  // larger widths and heights are not images

template <typename Range, typename Value>
bool Contains(const Range& values, const Value& value) {
  return std::find(std::begin(values), std::end(values), value) != std::end(values);
}

// The state of one ReadShardMap.
class Mapper {
 public:
  Mapper(Hdf5Reader& reader, FindingSink& findings)
      : reader_(reader), findings_(findings), heap_(reader, findings) {}
  absl::StatusOr<ShardMap> Run();

 private:
  absl::StatusOr<ObjectHeader> Follow(const GroupLink& link, std::string_view path);
  const GroupLink* FirstOf(std::span<const std::string_view> names) const;
  absl::StatusOr<MappedField> ReadField(const ObjectHeader& object, std::string_view path);
  absl::StatusOr<MappedField> ReadPacked(std::span<const GroupLink> links, std::string_view path);
  absl::StatusOr<MappedField> ReadVlen(const Hdf5Dataset& dataset);
  absl::StatusOr<MappedField> ReadPixels(const Hdf5Dataset& dataset);
  absl::StatusOr<MappedExtent> Resolve(const std::byte* reference);
  absl::Status Reserve(uint64_t extents, const Hdf5Dataset& dataset, MappedField& field);
  absl::Status ReadFurtherFields();
  absl::Status ReadLabels();
  absl::Status ReadTexts(std::span<const std::string_view> names, TextColumn& column);
  absl::StatusOr<std::string> ReadColumn(const Hdf5Dataset& dataset);
  absl::Status AppendText(const Hdf5Dataset& dataset, const char* element, TextColumn& column);
  // Turns damage of one part into a finding, so that the rest can continue.
  absl::Status Forgive(const absl::Status& status);
  void ReportExtent(uint64_t record, std::string_view path, std::string_view expected,
                    std::string_view actual);

  Hdf5Reader& reader_;
  FindingSink& findings_;
  GlobalHeap heap_;
  std::vector<GroupLink> root_;
  const GroupLink* images_ = nullptr;
  // The headers of objects that are read already: another hard link to one is only another name.
  absl::flat_hash_set<uint64_t> known_;
  uint64_t extents_ = 0;  // of all fields
  ShardMap map_;
};

absl::Status Mapper::Forgive(const absl::Status& status) {
  if (absl::IsUnimplemented(status)) {
    (void)reader_.Damage(FindingId::kHdf5Layout, reader_.root_address(),
                         std::string(status.message()));
  } else if (!absl::IsDataLoss(status)) {
    return status;
  }
  findings_.Report(reader_.problem());
  return absl::OkStatus();
}

void Mapper::ReportExtent(uint64_t record, std::string_view path, std::string_view expected,
                          std::string_view actual) {
  (void)reader_.Damage(FindingId::kHdf5Extent, 0, path, expected, actual);
  Finding finding = reader_.problem();
  finding.record = record;
  finding.offset.reset();
  findings_.Report(std::move(finding));
}

const GroupLink* Mapper::FirstOf(std::span<const std::string_view> names) const {
  for (const std::string_view name : names) {
    if (const GroupLink* link = FindLink(root_, name); link != nullptr) return link;
  }
  return nullptr;
}

absl::StatusOr<ObjectHeader> Mapper::Follow(const GroupLink& link, std::string_view path) {
  if (link.kind == LinkKind::kExternal) {
    return reader_.Damage(FindingId::kHdf5External, kUndefinedAddress,
                          absl::StrCat(std::string(path), " is a link to another file"));
  }
  if (link.kind == LinkKind::kSoft) {
    return reader_.Unsupported(absl::StrCat(std::string(path), " is a soft link"));
  }
  return ReadObjectHeader(reader_, link.address);
}

absl::StatusOr<ShardMap> Mapper::Run() {
  ASSIGN_OR_RETURN(ObjectHeader root, ReadObjectHeader(reader_, reader_.root_address()));
  ASSIGN_OR_RETURN(root_, ReadLinks(reader_, root));
  images_ = FirstOf(kImageNames);
  if (images_ == nullptr) {
    return reader_.Damage(FindingId::kHdf5Layout, reader_.root_address(),
                          "no dataset or group of images in the root group",
                          "images, encoded_images, image, features, data, X, records or records_0");
  }
  const std::string path = absl::StrCat("/", images_->name);
  ASSIGN_OR_RETURN(ObjectHeader object, Follow(*images_, path));
  ASSIGN_OR_RETURN(MappedField field, ReadField(object, path));
  map_.samples = field.extents.size();
  if (!IsGroup(object) && map_.image.format != ImageFormat::kRaw) {
    map_.before_image = kHeapObjectHeadBytes;
    map_.image_alignment = 8;
  }
  field.name = std::string(kImageField);
  map_.fields.push_back(std::move(field));
  absl::Status status = Forgive(ReadLabels());
  if (status.ok()) status = Forgive(ReadTexts(kKeyNames, map_.keys));
  if (status.ok()) status = Forgive(ReadTexts(kPathNames, map_.source_paths));
  if (status.ok()) status = ReadFurtherFields();
  if (!status.ok()) return status;
  return std::move(map_);
}

absl::StatusOr<MappedField> Mapper::ReadField(const ObjectHeader& object, std::string_view path) {
  if (IsGroup(object)) {
    ASSIGN_OR_RETURN(std::vector<GroupLink> links, ReadLinks(reader_, object));
    return ReadPacked(links, path);
  }
  ASSIGN_OR_RETURN(Hdf5Dataset dataset, ReadDataset(reader_, object, path));
  if (dataset.kind == ElementKind::kBytesVlen && dataset.is_line()) return ReadVlen(dataset);
  // int8 holds no pixels: a mask's -1 would become 255.
  if (dataset.kind == ElementKind::kInteger && dataset.element_bytes == 1 && !dataset.is_signed &&
      (dataset.dims.size() == 3 || dataset.dims.size() == 4)) {
    return ReadPixels(dataset);
  }
  return reader_.Damage(FindingId::kHdf5Layout, object.address,
                        absl::StrCat(std::string(path), " holds no images"),
                        "runs of uint8 of any length, a group with data and offsets, or pixels");
}

// The bytes of different fields do not overlap, and neither do those that lead to them, which are
// at least eight for each sample.
absl::Status Mapper::Reserve(uint64_t extents, const Hdf5Dataset& dataset, MappedField& field) {
  if (extents > reader_.size() / 8 - extents_) {
    return reader_.Malformed(
        dataset.header_address,
        absl::StrCat(dataset.path, " has more elements than the file has room for"));
  }
  extents_ += extents;
  field.extents.resize(extents);
  return absl::OkStatus();
}

// (N, height, width) or (N, height, width, channels).
absl::StatusOr<MappedField> Mapper::ReadPixels(const Hdf5Dataset& dataset) {
  const std::vector<uint64_t>& dims = dataset.dims;
  const uint64_t channels = dims.size() == 4 ? dims[3] : 1;
  const bool sides = dims[1] >= 1 && dims[1] <= kMaxSide && dims[2] >= 1 && dims[2] <= kMaxSide;
  if (!sides || channels < 1 || channels > 4 || dims[1] * dims[2] * channels < kMinRawImageBytes) {
    return reader_.Damage(
        FindingId::kHdf5Layout, dataset.header_address,
        absl::StrCat(dataset.path, " holds no images"),
        absl::StrCat("N x height x width with 1 to 4 channels after them, at least ",
                     kMinRawImageBytes, " bytes per image"));
  }
  ASSIGN_OR_RETURN(uint64_t address, ContiguousAddress(reader_, dataset));
  const ImageInfo image =
      RawImageInfo(static_cast<uint32_t>(dims[1]), static_cast<uint32_t>(dims[2]),
                   static_cast<uint8_t>(channels));
  const uint64_t bytes = RawImageBytes(image);
  MappedField field;
  RETURN_IF_ERROR(Reserve(dims[0], dataset, field));
  for (uint64_t i = 0; i < dims[0]; ++i) {
    field.extents[i] = {reader_.OffsetOf(address + i * bytes), bytes};
  }
  if (map_.fields.empty()) map_.image = image;
  return field;
}

absl::StatusOr<MappedField> Mapper::ReadPacked(std::span<const GroupLink> links,
                                               std::string_view path) {
  Hdf5Dataset parts[2];
  const std::string_view names[2] = {kDataName, kOffsetsName};
  for (int i = 0; i < 2; ++i) {
    const std::string part_path = absl::StrCat(std::string(path), "/", std::string(names[i]));
    const GroupLink* link = FindLink(links, names[i]);
    if (link == nullptr) {
      return reader_.Damage(FindingId::kHdf5Layout, kUndefinedAddress,
                            absl::StrCat(part_path, " is missing"));
    }
    ASSIGN_OR_RETURN(ObjectHeader object, Follow(*link, part_path));
    if (i == 0 && !known_.insert(object.address).second) {
      return reader_.Damage(FindingId::kHdf5Layout, object.address,
                            absl::StrCat(part_path, " is the data of another field"));
    }
    ASSIGN_OR_RETURN(Hdf5Dataset part, ReadDataset(reader_, object, part_path));
    parts[i] = std::move(part);
  }
  const Hdf5Dataset &data = parts[0], &offsets = parts[1];
  if (data.kind != ElementKind::kInteger || data.element_bytes != 1 || data.dims.size() != 1 ||
      offsets.kind != ElementKind::kInteger || offsets.element_bytes != 8 || offsets.big_endian ||
      offsets.dims.size() != 1 || offsets.dims[0] == 0) {
    return reader_.Damage(FindingId::kHdf5Layout, offsets.header_address,
                          absl::StrCat(std::string(path), " has data or offsets of another type"),
                          "uint8 and little-endian uint64, of one dimension");
  }
  ASSIGN_OR_RETURN(uint64_t address, ContiguousAddress(reader_, data));
  ASSIGN_OR_RETURN(std::string bytes, ReadElements(reader_, offsets));
  MappedField field;
  const uint64_t samples = offsets.dims[0] - 1, total = data.dims[0];
  RETURN_IF_ERROR(Reserve(samples, offsets, field));
  for (uint64_t i = 0; i < samples; ++i) {
    const auto begin = LoadLittle<uint64_t>(bytes.data() + i * 8);
    const auto end = LoadLittle<uint64_t>(bytes.data() + i * 8 + 8);
    if (begin > end || end > total) {
      ReportExtent(i, absl::StrCat(std::string(path), "/offsets"),
                   absl::StrCat("ascending, at most ", total), absl::StrCat(begin, " to ", end));
      continue;
    }
    field.extents[i] = {reader_.OffsetOf(address + begin), end - begin};
  }
  return field;
}

absl::StatusOr<MappedExtent> Mapper::Resolve(const std::byte* reference) {
  const auto length = LoadLittle<uint32_t>(reference);
  const auto collection = LoadLittle<uint64_t>(reference + 4);
  const auto index = LoadLittle<uint32_t>(reference + 12);
  if (length == 0) return MappedExtent{0, 0};
  ASSIGN_OR_RETURN(HeapObject object, heap_.Find(collection, index));
  // The library stores an element of bytes as an object of the element's length.
  if (object.bytes != length) {
    return reader_.Damage(FindingId::kHdf5Extent, object.address,
                          "a heap object is not as long as its element",
                          absl::StrCat(length, " bytes"), absl::StrCat(object.bytes, " bytes"));
  }
  return MappedExtent{reader_.OffsetOf(object.address), length};
}

absl::StatusOr<MappedField> Mapper::ReadVlen(const Hdf5Dataset& dataset) {
  ASSIGN_OR_RETURN(std::string references, ReadElements(reader_, dataset));
  MappedField field;
  RETURN_IF_ERROR(Reserve(dataset.dims[0], dataset, field));
  for (uint64_t i = 0; i < dataset.dims[0]; ++i) {
    absl::StatusOr<MappedExtent> extent = Resolve(AsBytes(references).data() + i * kReferenceBytes);
    if (extent.ok()) {
      field.extents[i] = *extent;
      continue;
    }
    if (!absl::IsDataLoss(extent.status())) return extent.status();
    Finding finding = reader_.problem();
    finding.record = i;
    findings_.Report(std::move(finding));
  }
  return field;
}

absl::Status Mapper::ReadFurtherFields() {
  const GroupLink* const used[] = {images_, FirstOf(kLabelNames), FirstOf(kKeyNames),
                                   FirstOf(kPathNames)};
  for (const GroupLink* const link : used) {
    if (link != nullptr && link->kind == LinkKind::kHard) known_.insert(link->address);
  }
  for (const GroupLink& link : root_) {
    if (Contains(used, &link) || link.name == kClassesName) continue;
    // A soft link may lead to what is used; a field of the name would hide the image.
    if (link.kind != LinkKind::kHard || link.name == kImageField ||
        !known_.insert(link.address).second) {
      map_.fields.push_back({link.name, {}});
      continue;
    }
    const std::string path = absl::StrCat("/", link.name);
    absl::StatusOr<ObjectHeader> object = Follow(link, path);
    absl::Status status = object.status();
    if (status.ok()) {
      absl::StatusOr<MappedField> field = ReadField(*object, path);
      status = field.status();
      if (field.ok() && field->extents.size() == map_.samples) {
        field->name = link.name;
        map_.fields.push_back(*std::move(field));
        continue;
      }
    }
    // An object that is not a field of these samples is left out; damage is an error.
    if (status.ok() || absl::IsUnimplemented(status) ||
        (absl::IsDataLoss(status) && reader_.problem().id == FindingId::kHdf5Layout)) {
      map_.fields.push_back({link.name, {}});
      continue;
    }
    status = Forgive(status);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Reads a dataset with one element per sample.
absl::StatusOr<std::string> Mapper::ReadColumn(const Hdf5Dataset& dataset) {
  if (!dataset.is_line() || dataset.dims[0] != map_.samples) {
    return reader_.Damage(FindingId::kHdf5Layout, dataset.header_address,
                          absl::StrCat(dataset.path, " does not have one element per sample"),
                          absl::StrCat(map_.samples),
                          absl::StrCat(dataset.elements(), " elements"));
  }
  return ReadElements(reader_, dataset);
}

absl::Status Mapper::ReadLabels() {
  const GroupLink* link = FirstOf(kLabelNames);
  if (link == nullptr) return absl::OkStatus();
  const std::string path = absl::StrCat("/", link->name);
  ASSIGN_OR_RETURN(ObjectHeader object, Follow(*link, path));
  ASSIGN_OR_RETURN(Hdf5Dataset dataset, ReadDataset(reader_, object, path));
  if (dataset.kind != ElementKind::kInteger) {
    return reader_.Damage(FindingId::kHdf5Layout, object.address,
                          absl::StrCat(path, " holds no integers"));
  }
  ASSIGN_OR_RETURN(std::string bytes, ReadColumn(dataset));
  const uint32_t width = dataset.element_bytes;
  map_.labels.reserve(map_.samples);
  for (uint64_t i = 0; i < map_.samples; ++i) {
    uint64_t value = 0;
    for (uint32_t b = 0; b < width; ++b) {
      const uint32_t from = dataset.big_endian ? width - 1 - b : b;
      value |= uint64_t{static_cast<uint8_t>(bytes[i * width + from])} << (8 * b);
    }
    const unsigned unused = 64 - 8 * width;
    map_.labels.push_back(dataset.is_signed ? static_cast<int64_t>(value << unused) >> unused
                                            : static_cast<int64_t>(value));
  }
  return absl::OkStatus();
}

absl::Status Mapper::AppendText(const Hdf5Dataset& dataset, const char* element,
                                TextColumn& column) {
  if (dataset.kind == ElementKind::kString) {
    std::string_view text(element, dataset.element_bytes);
    if (dataset.padding == StringPadding::kNullTerminated) {
      text = text.substr(0, text.find('\0'));
    } else {
      const char pad = dataset.padding == StringPadding::kSpace ? ' ' : '\0';
      while (text.ends_with(pad)) text.remove_suffix(1);
    }
    column.bytes.append(text);
  } else {
    ASSIGN_OR_RETURN(MappedExtent extent, Resolve(AsBytes({element, kReferenceBytes}).data()));
    // Strings do not overlap in a file.
    if (extent.length > reader_.size() - std::min(column.bytes.size(), reader_.size())) {
      return reader_.Malformed(dataset.header_address, absl::StrCat("the strings of ", dataset.path,
                                                                    " are longer than the file"));
    }
    if (extent.length > 0) {
      ASSIGN_OR_RETURN(Bytes text,
                       reader_.Read(extent.offset - reader_.base(), extent.length, dataset.path));
      column.bytes.append(AsText(text).substr(0, AsText(text).find('\0')));
    }
  }
  column.ends.push_back(column.bytes.size());
  return absl::OkStatus();
}

absl::Status Mapper::ReadTexts(std::span<const std::string_view> names, TextColumn& column) {
  const GroupLink* link = FirstOf(names);
  if (link == nullptr) return absl::OkStatus();
  const std::string path = absl::StrCat("/", link->name);
  ASSIGN_OR_RETURN(ObjectHeader object, Follow(*link, path));
  ASSIGN_OR_RETURN(Hdf5Dataset dataset, ReadDataset(reader_, object, path));
  if (dataset.kind != ElementKind::kString && dataset.kind != ElementKind::kStringVlen) {
    return reader_.Damage(FindingId::kHdf5Layout, object.address,
                          absl::StrCat(path, " holds no strings"));
  }
  ASSIGN_OR_RETURN(std::string bytes, ReadColumn(dataset));
  TextColumn read;
  absl::Status status;
  for (uint64_t i = 0; i < map_.samples && status.ok(); ++i) {
    status = AppendText(dataset, bytes.data() + i * dataset.element_bytes, read);
  }
  if (status.ok()) column = std::move(read);
  return status;
}

}  // namespace

absl::StatusOr<ShardMap> ReadShardMap(Hdf5Reader& reader, FindingSink& findings) {
  return Mapper(reader, findings).Run();
}

}  // namespace shardpack
