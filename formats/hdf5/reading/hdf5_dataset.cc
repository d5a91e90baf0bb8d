#include "formats/hdf5/reading/hdf5_dataset.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr size_t kMaxRank = 32;              // H5S_MAX_RANK
constexpr uint16_t kFirstNamedFilter = 256;  // in a pipeline of version 2
constexpr uint64_t kOverflow = std::numeric_limits<uint64_t>::max();

uint64_t Times(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kOverflow : product;
}

// The common names of a filter (HDF5 registered filter plugins; h5py, PyTables).
std::string FilterName(uint16_t id) {
  static constexpr std::pair<uint16_t, const char*> kNames[] = {
      {1, "deflate"},  {2, "shuffle"},     {3, "fletcher32"}, {4, "szip"},
      {5, "nbit"},     {6, "scaleoffset"}, {305, "lzo"},      {307, "bzip2"},
      {32000, "lzf"},  {32001, "blosc"},   {32004, "lz4"},    {32008, "bitshuffle"},
      {32015, "zstd"}, {32026, "blosc2"}};
  for (const auto& [known, name] : kNames) {
    if (known == id) return absl::StrCat(id, " (", name, ")");
  }
  return absl::StrCat(id);
}

// The state of one ReadDataset.
class DatasetParser {
 public:
  DatasetParser(Hdf5Reader& reader, const ObjectHeader& object, std::string_view path)
      : reader_(reader), object_(object) {
    dataset_.path = std::string(path);
    dataset_.header_address = object.address;
  }
  absl::StatusOr<Hdf5Dataset> Run();

 private:
  absl::Status Missing(std::string_view what) const {
    return reader_.Malformed(object_.address,
                             absl::StrCat(dataset_.path, " has no ", std::string(what)));
  }
  absl::Status TooShort(const HeaderMessage& message) const {
    return reader_.Malformed(message.address,
                             absl::StrCat("a message of ", dataset_.path, " is too short"));
  }
  absl::Status Unsupported(std::string_view what) const {
    return reader_.Unsupported(absl::StrCat(dataset_.path, " ", std::string(what)),
                               object_.address);
  }
  absl::StatusOr<const HeaderMessage*> Need(MessageType type, std::string_view what) const;
  absl::Status ReadSpace(const HeaderMessage& message);
  absl::Status ReadType(const HeaderMessage& message);
  absl::Status ReadVlenType(const HeaderMessage& message);
  absl::Status ReadFilters(const HeaderMessage& message);
  absl::Status ReadLayout(const HeaderMessage& message);
  absl::Status ReadCompact(const HeaderMessage& message);
  absl::Status ReadOldChunks(const HeaderMessage& message);
  absl::Status ReadNewChunks(const HeaderMessage& message);
  absl::Status CheckChunks(const HeaderMessage& message);

  Hdf5Reader& reader_;
  const ObjectHeader& object_;
  Hdf5Dataset dataset_;
};

absl::StatusOr<const HeaderMessage*> DatasetParser::Need(MessageType type,
                                                         std::string_view what) const {
  const HeaderMessage* message = object_.Find(type);
  if (message == nullptr) return Missing(what);
  if (message->shared) return Unsupported(absl::StrCat("shares its ", std::string(what)));
  return message;
}

absl::StatusOr<Hdf5Dataset> DatasetParser::Run() {
  if (const HeaderMessage* external = object_.Find(MessageType::kExternalFiles)) {
    return reader_.Damage(FindingId::kHdf5External, external->address,
                          absl::StrCat(dataset_.path, " keeps its data in external files"));
  }
  ASSIGN_OR_RETURN(const HeaderMessage* space, Need(MessageType::kDataspace, "dataspace"));
  absl::Status read = ReadSpace(*space);
  if (!read.ok()) return read;
  ASSIGN_OR_RETURN(const HeaderMessage* type, Need(MessageType::kDatatype, "datatype"));
  read = ReadType(*type);
  if (!read.ok()) return read;
  ASSIGN_OR_RETURN(const HeaderMessage* layout, Need(MessageType::kLayout, "layout"));
  read = ReadLayout(*layout);
  if (!read.ok()) return read;
  if (const HeaderMessage* filters = object_.Find(MessageType::kFilters)) {
    read = ReadFilters(*filters);
    if (!read.ok()) return read;
  }
  return std::move(dataset_);
}

absl::Status DatasetParser::ReadSpace(const HeaderMessage& message) {
  const Bytes bytes = message.view();
  if (bytes.size() < 4) return TooShort(message);
  const auto version = std::to_integer<int>(bytes[0]);
  const auto rank = std::to_integer<size_t>(bytes[1]);
  if (version != 1 && version != 2) {
    return reader_.Malformed(message.address, "a dataspace of unknown version", "1 or 2",
                             absl::StrCat(version));
  }
  const size_t head = version == 1 ? 8 : 4;
  if (rank > kMaxRank) {
    return reader_.Malformed(message.address, absl::StrCat(dataset_.path, " has absurd dimensions"),
                             absl::StrCat("at most ", kMaxRank), absl::StrCat(rank));
  }
  if (bytes.size() < head + rank * 8) return TooShort(message);
  constexpr std::byte kNullSpace{2};
  if (version == 2 && bytes[3] == kNullSpace) {
    dataset_.dims = {0};
    return absl::OkStatus();
  }
  for (size_t i = 0; i < rank; ++i) {
    dataset_.dims.push_back(LoadLittle<uint64_t>(bytes.data() + head + i * 8));
  }
  return absl::OkStatus();
}

absl::Status DatasetParser::ReadType(const HeaderMessage& message) {
  const Bytes bytes = message.view();
  if (bytes.size() < 8) return TooShort(message);
  const auto type_class = std::to_integer<int>(bytes[0] & std::byte{0x0F});
  const auto bits = std::to_integer<int>(bytes[1]);
  dataset_.element_bytes = LoadLittle<uint32_t>(bytes.data() + 4);
  if (dataset_.element_bytes == 0) {
    return reader_.Malformed(message.address,
                             absl::StrCat(dataset_.path, " has elements of no bytes"));
  }
  constexpr int kInteger = 0, kString = 3, kVlen = 9;
  const uint32_t width = dataset_.element_bytes;
  if (type_class == kInteger) {
    if (bytes.size() < 12) return TooShort(message);
    // Whole bytes, in either byte order.
    const bool whole = LoadLittle<uint16_t>(bytes.data() + 8) == 0 &&
                       LoadLittle<uint16_t>(bytes.data() + 10) == 8 * width;
    if (whole && (width == 1 || width == 2 || width == 4 || width == 8)) {
      dataset_.kind = ElementKind::kInteger;
      dataset_.big_endian = (bits & 0x01) != 0;
      dataset_.is_signed = (bits & 0x08) != 0;
    }
  } else if (type_class == kString) {
    dataset_.kind = ElementKind::kString;
    const int padding = bits & 0x0F;
    dataset_.padding = padding == 0   ? StringPadding::kNullTerminated
                       : padding == 2 ? StringPadding::kSpace
                                      : StringPadding::kNull;
  } else if (type_class == kVlen) {
    return ReadVlenType(message);
  }
  return absl::OkStatus();
}

absl::Status DatasetParser::ReadVlenType(const HeaderMessage& message) {
  const Bytes bytes = message.view();
  if (dataset_.element_bytes != 16) {
    return reader_.Malformed(message.address, "a run of any length is stored in another width",
                             "16", absl::StrCat(dataset_.element_bytes));
  }
  const bool is_string = (bytes[1] & std::byte{0x0F}) == std::byte{1};
  if (is_string) {
    dataset_.kind = ElementKind::kStringVlen;
    return absl::OkStatus();
  }
  if (bytes.size() < 16) return TooShort(message);
  const auto base_class = std::to_integer<int>(bytes[8] & std::byte{0x0F});
  if (base_class == 0 && LoadLittle<uint32_t>(bytes.data() + 12) == 1) {
    dataset_.kind = ElementKind::kBytesVlen;
  }
  return absl::OkStatus();
}

// Walks the whole pipeline, so that only a sound one is accepted.
absl::Status DatasetParser::ReadFilters(const HeaderMessage& message) {
  const Bytes bytes = message.view();
  if (bytes.size() < 2) return TooShort(message);
  const auto version = std::to_integer<int>(bytes[0]), count = std::to_integer<int>(bytes[1]);
  if (version != 1 && version != 2) {
    return reader_.Malformed(message.address, "a filter pipeline of unknown version", "1 or 2",
                             absl::StrCat(version));
  }
  std::vector<std::string> names;
  size_t at = version == 1 ? 8 : 2;
  for (int i = 0; i < count; ++i) {
    if (bytes.size() < at + 8) return TooShort(message);
    const auto id = LoadLittle<uint16_t>(bytes.data() + at);
    const bool has_name = version == 1 || id >= kFirstNamedFilter;
    const size_t name_bytes = has_name ? LoadLittle<uint16_t>(bytes.data() + at + 2) : 0;
    const size_t values_at = at + (has_name ? 6 : 4);
    const size_t values = LoadLittle<uint16_t>(bytes.data() + values_at);
    const size_t odd = version == 1 && values % 2 == 1 ? 4 : 0;
    at = values_at + 2 + (version == 1 ? (name_bytes + 7) / 8 * 8 : name_bytes) + values * 4 + odd;
    if (at > bytes.size()) return TooShort(message);
    names.push_back(FilterName(id));
  }
  if (names.empty()) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      EscapeForTerminal(reader_.shard_name()), ": ", dataset_.path, " is stored through filter ",
      absl::StrJoin(names, ", "),
      ": such data has no byte extents; write it again without filters (`h5repack -f NONE`)"));
}

absl::Status DatasetParser::ReadLayout(const HeaderMessage& message) {
  const Bytes bytes = message.view();
  if (bytes.size() < 2) return TooShort(message);
  const auto version = std::to_integer<int>(bytes[0]);
  if (version == 1 || version == 2) {
    return Unsupported(
        "has a layout of HDF5 before 1.6, which is not read; copy the file with "
        "`h5repack` first");
  }
  if (version != 3 && version != 4) {
    return reader_.Malformed(message.address, "a layout of unknown version", "3 or 4",
                             absl::StrCat(version));
  }
  constexpr int kCompact = 0, kContiguous = 1, kChunked = 2, kVirtual = 3;
  const auto layout_class = std::to_integer<int>(bytes[1]);
  if (layout_class == kCompact) return ReadCompact(message);
  if (layout_class == kContiguous) {
    if (bytes.size() < 18) return TooShort(message);
    dataset_.storage = Storage::kContiguous;
    dataset_.address = LoadLittle<uint64_t>(bytes.data() + 2);
    return absl::OkStatus();
  }
  if (layout_class == kChunked) {
    dataset_.storage = Storage::kChunked;
    absl::Status read = version == 3 ? ReadOldChunks(message) : ReadNewChunks(message);
    return read.ok() ? CheckChunks(message) : read;
  }
  if (layout_class == kVirtual && version == 4) {
    return reader_.Damage(FindingId::kHdf5External, message.address,
                          absl::StrCat(dataset_.path, " is a virtual dataset"));
  }
  return reader_.Malformed(message.address, "a layout of unknown class", "0 to 3",
                           absl::StrCat(layout_class));
}

absl::Status DatasetParser::ReadCompact(const HeaderMessage& message) {
  const Bytes bytes = message.view();
  if (bytes.size() < 4) return TooShort(message);
  const auto length = LoadLittle<uint16_t>(bytes.data() + 2);
  if (length > bytes.size() - 4) return TooShort(message);
  dataset_.storage = Storage::kCompact;
  dataset_.compact = std::string(AsText(bytes.subspan(4, length)));
  return absl::OkStatus();
}

absl::Status DatasetParser::ReadOldChunks(const HeaderMessage& message) {
  const Bytes bytes = message.view();
  if (bytes.size() < 11) return TooShort(message);
  // The last dimension is the element's size.
  const auto rank = std::to_integer<size_t>(bytes[2]);
  if (rank == 0 || bytes.size() < 11 + rank * 4) return TooShort(message);
  dataset_.address = LoadLittle<uint64_t>(bytes.data() + 3);
  for (size_t i = 0; i + 1 < rank; ++i) {
    dataset_.chunk_dims.push_back(LoadLittle<uint32_t>(bytes.data() + 11 + i * 4));
  }
  return absl::OkStatus();
}

absl::Status DatasetParser::ReadNewChunks(const HeaderMessage& message) {
  Bytes bytes = message.view();
  if (bytes.size() < 5) return TooShort(message);
  const auto flags = std::to_integer<int>(bytes[2]);
  const auto rank = std::to_integer<size_t>(bytes[3]), width = std::to_integer<size_t>(bytes[4]);
  if (rank == 0 || width == 0 || width > 8 || bytes.size() < 5 + rank * width + 1) {
    return TooShort(message);
  }
  for (size_t i = 0; i + 1 < rank; ++i) {
    uint64_t dim = 0;
    for (size_t b = 0; b < width; ++b) {
      dim |= std::to_integer<uint64_t>(bytes[5 + i * width + b]) << (8 * b);
    }
    dataset_.chunk_dims.push_back(dim);
  }
  const auto index = std::to_integer<int>(bytes[5 + rank * width]);
  bytes = bytes.subspan(5 + rank * width + 1);
  constexpr int kSingle = 1, kImplicit = 2, kFixedArray = 3, kExtensible = 4, kTree2 = 5;
  if (index == kExtensible || index == kTree2) {
    return Unsupported(
        "has chunks in an extensible array or a B-tree of version 2, which are not "
        "read; write the dataset again with a fixed shape");
  }
  const bool single_filtered = index == kSingle && (flags & 0x02) != 0;
  const size_t before = index == kFixedArray ? 1 : single_filtered ? 12 : 0;
  if (index < kSingle || index > kFixedArray) {
    return reader_.Malformed(message.address, "a chunk index of unknown kind", "1 to 5",
                             absl::StrCat(index));
  }
  if (bytes.size() < before + 8) return TooShort(message);
  dataset_.chunk_index = index == kSingle     ? ChunkIndex::kSingle
                         : index == kImplicit ? ChunkIndex::kImplicit
                                              : ChunkIndex::kFixedArray;
  if (index == kFixedArray) dataset_.page_bits = std::to_integer<uint8_t>(bytes[0]);
  dataset_.address = LoadLittle<uint64_t>(bytes.data() + before);
  return absl::OkStatus();
}

absl::Status DatasetParser::CheckChunks(const HeaderMessage& message) {
  const bool zero = std::find(dataset_.chunk_dims.begin(), dataset_.chunk_dims.end(), 0) !=
                    dataset_.chunk_dims.end();
  if (dataset_.chunk_dims.size() == dataset_.dims.size() && !zero) return absl::OkStatus();
  return reader_.Malformed(message.address,
                           absl::StrCat("the chunks of ", dataset_.path, " do not fit its shape"));
}

}  // namespace

uint64_t Hdf5Dataset::elements() const {
  uint64_t product = 1;
  for (const uint64_t dim : dims) {
    if (dim == 0) return 0;
    product = Times(product, dim);
  }
  return product;
}

uint64_t Hdf5Dataset::bytes() const { return Times(elements(), element_bytes); }

bool Hdf5Dataset::is_line() const {
  return !dims.empty() &&
         std::all_of(dims.begin() + 1, dims.end(), [](uint64_t dim) { return dim == 1; });
}

absl::StatusOr<Hdf5Dataset> ReadDataset(Hdf5Reader& reader, const ObjectHeader& object,
                                        std::string_view path) {
  return DatasetParser(reader, object, path).Run();
}

absl::StatusOr<uint64_t> ContiguousAddress(Hdf5Reader& reader, const Hdf5Dataset& dataset) {
  if (dataset.storage != Storage::kContiguous) {
    return reader.Unsupported(
        absl::StrCat(dataset.path,
                     " is not contiguous, so that its bytes have no extents; copy "
                     "the file with `h5repack -l CONTI` first"));
  }
  const uint64_t bytes = dataset.bytes();
  if (bytes == 0) return 0;
  if (dataset.address == kUndefinedAddress) {
    return reader.Damage(FindingId::kHdf5Layout, dataset.header_address,
                         absl::StrCat(dataset.path, " was never written"));
  }
  if (!reader.Holds(dataset.address, bytes)) {
    return reader.Malformed(
        dataset.header_address,
        absl::StrCat("the data of ", dataset.path, " passes the end of the file"),
        absl::StrCat("within ", reader.size() - reader.base(), " bytes"),
        absl::StrCat(bytes, " bytes at address ", dataset.address));
  }
  return dataset.address;
}

}  // namespace shardpack
