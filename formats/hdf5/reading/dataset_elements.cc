#include "formats/hdf5/reading/dataset_elements.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr uint64_t kNodeHeadBytes = 24;
constexpr int kMaxLevel = 16;
constexpr uint64_t kChecksumBytes = 4;
constexpr uint64_t kArrayHeaderBytes = 28, kArrayBlockHeadBytes = 14;

// The state of one ReadElements.
class ElementWalk {
 public:
  ElementWalk(Hdf5Reader& reader, const Hdf5Dataset& dataset)
      : reader_(reader), dataset_(dataset) {}
  absl::StatusOr<std::string> Run();

 private:
  uint64_t total_bytes() const { return dataset_.dims[0] * dataset_.element_bytes; }
  absl::Status ReadTree(uint64_t address, int parent_level);
  absl::Status ReadFixedArray();
  absl::Status ReadArrayBlock(uint64_t address, uint64_t chunks, uint64_t page_chunks);
  absl::Status ReadArrayPage(uint64_t address, uint64_t entries, uint64_t first_chunk);
  absl::Status CheckSum(uint64_t address, Bytes all);
  absl::Status CopyChunk(uint64_t first_element, uint64_t address);

  Hdf5Reader& reader_;
  const Hdf5Dataset& dataset_;
  uint64_t chunk_bytes_ = 0;
  std::string elements_;
  std::vector<bool> seen_;  // one per chunk
};

absl::StatusOr<std::string> ElementWalk::Run() {
  if (dataset_.dims[0] == 0) return std::string();
  uint64_t chunk_elements = 1;
  chunk_bytes_ = dataset_.element_bytes;
  for (const uint64_t dim : dataset_.chunk_dims) {
    if (__builtin_mul_overflow(chunk_bytes_, dim, &chunk_bytes_)) chunk_bytes_ = ~uint64_t{0};
  }
  chunk_elements = dataset_.chunk_dims[0];
  if (chunk_bytes_ > reader_.size()) {
    return reader_.Malformed(dataset_.header_address, absl::StrCat("a chunk of ", dataset_.path,
                                                                   " is larger than the file"));
  }
  if (chunk_bytes_ != chunk_elements * dataset_.element_bytes) {
    return reader_.Unsupported(absl::StrCat(dataset_.path, " has chunks wider than itself"));
  }
  const uint64_t chunks = (dataset_.dims[0] - 1) / chunk_elements + 1;
  elements_.resize(total_bytes());
  seen_.resize(chunks);
  absl::Status read;
  if (dataset_.address == kUndefinedAddress) {
    // No chunk was written; the check below reports it.
  } else if (dataset_.chunk_index == ChunkIndex::kTree) {
    read = ReadTree(dataset_.address, kMaxLevel + 1);
  } else if (dataset_.chunk_index == ChunkIndex::kFixedArray) {
    read = ReadFixedArray();
  } else {
    for (uint64_t i = 0; i < chunks && read.ok(); ++i) {
      read = CopyChunk(i * chunk_elements, dataset_.address + i * chunk_bytes_);
    }
  }
  if (!read.ok()) return read;
  const auto missing = std::find(seen_.begin(), seen_.end(), false);
  if (missing != seen_.end()) {
    return reader_.Damage(FindingId::kHdf5Layout, dataset_.header_address,
                          absl::StrCat("chunk ", missing - seen_.begin(), " of ", dataset_.path,
                                       " was never written"));
  }
  return std::move(elements_);
}

absl::Status ElementWalk::ReadTree(uint64_t address, int parent_level) {
  ASSIGN_OR_RETURN(Bytes head, reader_.Read(address, kNodeHeadBytes, "a B-tree node of chunks"));
  if (AsText(head.first(4)) != "TREE" || head[4] != std::byte{1}) {
    return reader_.Malformed(address, "no B-tree node of chunks");
  }
  const auto level = std::to_integer<int>(head[5]);
  const auto entries = LoadLittle<uint16_t>(head.data() + 6);
  if (level >= parent_level || (parent_level <= kMaxLevel && level != parent_level - 1)) {
    return reader_.Malformed(address, "a B-tree node of the wrong level", "", absl::StrCat(level));
  }
  // Size, filter mask, an offset per dimension, and one within the element.
  const uint64_t key_bytes = 8 + (dataset_.dims.size() + 1) * 8, step = key_bytes + 8;
  ASSIGN_OR_RETURN(Bytes body, reader_.Read(address + kNodeHeadBytes, entries * step + key_bytes,
                                            "a B-tree node of chunks"));
  struct Child {
    uint64_t element, address;
    uint32_t bytes;
  };
  std::vector<Child> children;
  for (uint16_t i = 0; i < entries; ++i) {
    const std::byte* key = body.data() + i * step;
    children.push_back({LoadLittle<uint64_t>(key + 8), LoadLittle<uint64_t>(key + key_bytes),
                        LoadLittle<uint32_t>(key)});
  }
  for (const Child& child : children) {
    if (level == 0 && child.bytes != chunk_bytes_) {
      return reader_.Malformed(address,
                               absl::StrCat("a chunk of ", dataset_.path, " has another size"),
                               absl::StrCat(chunk_bytes_), absl::StrCat(child.bytes));
    }
    RETURN_IF_ERROR(level == 0 ? CopyChunk(child.element, child.address)
                               : ReadTree(child.address, level));
  }
  return absl::OkStatus();
}

absl::Status ElementWalk::CheckSum(uint64_t address, Bytes all) {
  const uint32_t computed = Lookup3(all.first(all.size() - kChecksumBytes));
  const auto stored = LoadLittle<uint32_t>(all.data() + all.size() - kChecksumBytes);
  if (computed == stored) return absl::OkStatus();
  return reader_.Malformed(address, "the checksum of a chunk index is wrong",
                           absl::StrFormat("%08x", computed), absl::StrFormat("%08x", stored));
}

absl::Status ElementWalk::ReadFixedArray() {
  ASSIGN_OR_RETURN(
      Bytes head, reader_.Read(dataset_.address, kArrayHeaderBytes, "the header of a fixed array"));
  if (AsText(head.first(4)) != "FAHD" || head[4] != std::byte{0}) {
    return reader_.Malformed(dataset_.address, "no header of a fixed array");
  }
  RETURN_IF_ERROR(CheckSum(dataset_.address, head));
  const auto client = std::to_integer<int>(head[5]), width = std::to_integer<int>(head[6]);
  const auto page_bits = std::to_integer<unsigned>(head[7]);
  const auto entries = LoadLittle<uint64_t>(head.data() + 8);
  const auto block = LoadLittle<uint64_t>(head.data() + 16);
  if (client != 0 || width != 8 || entries < seen_.size() || page_bits >= 32) {
    return reader_.Malformed(dataset_.address, "a fixed array of another kind");
  }
  if (entries > reader_.size() / 8) {
    return reader_.Malformed(dataset_.address, "a fixed array is larger than the file", "",
                             absl::StrCat(entries, " entries"));
  }
  if (block == kUndefinedAddress) return absl::OkStatus();
  return ReadArrayBlock(block, entries, uint64_t{1} << page_bits);
}

absl::Status ElementWalk::ReadArrayBlock(uint64_t address, uint64_t chunks, uint64_t page_chunks) {
  const uint64_t pages = chunks <= page_chunks ? 0 : (chunks - 1) / page_chunks + 1;
  const uint64_t bitmap_bytes = (pages + 7) / 8;
  const uint64_t head_bytes =
      kArrayBlockHeadBytes + (pages == 0 ? chunks * 8 : bitmap_bytes) + kChecksumBytes;
  ASSIGN_OR_RETURN(Bytes head, reader_.Read(address, head_bytes, "a block of a fixed array"));
  if (AsText(head.first(4)) != "FADB" || head[4] != std::byte{0}) {
    return reader_.Malformed(address, "no block of a fixed array");
  }
  absl::Status sound = CheckSum(address, head);
  if (!sound.ok()) return sound;
  if (pages == 0) return ReadArrayPage(address + kArrayBlockHeadBytes, chunks, 0);
  const std::string bitmap(AsText(head.subspan(kArrayBlockHeadBytes, bitmap_bytes)));
  uint64_t at = address + head_bytes;
  for (uint64_t page = 0; page < pages; ++page) {
    const uint64_t count = std::min(page_chunks, chunks - page * page_chunks);
    // The highest bit is the first page (HDFGroup/hdf5: src/H5VM.c, H5VM_bit_get).
    if (((static_cast<uint8_t>(bitmap[page / 8]) << (page % 8)) & 0x80) != 0) {
      ASSIGN_OR_RETURN(Bytes whole,
                       reader_.Read(at, count * 8 + kChecksumBytes, "a page of a fixed array"));
      sound = CheckSum(at, whole);
      if (sound.ok()) sound = ReadArrayPage(at, count, page * page_chunks);
      if (!sound.ok()) return sound;
    }
    at += page_chunks * 8 + kChecksumBytes;
  }
  return absl::OkStatus();
}

absl::Status ElementWalk::ReadArrayPage(uint64_t address, uint64_t entries, uint64_t first_chunk) {
  ASSIGN_OR_RETURN(Bytes read, reader_.Read(address, entries * 8, "a page of a fixed array"));
  std::vector<uint64_t> addresses;
  for (uint64_t i = 0; i < entries; ++i) {
    addresses.push_back(LoadLittle<uint64_t>(read.data() + i * 8));
  }
  for (uint64_t i = 0; i < entries && first_chunk + i < seen_.size(); ++i) {
    if (addresses[i] == kUndefinedAddress) continue;
    RETURN_IF_ERROR(CopyChunk((first_chunk + i) * dataset_.chunk_dims[0], addresses[i]));
  }
  return absl::OkStatus();
}

absl::Status ElementWalk::CopyChunk(uint64_t first_element, uint64_t address) {
  const uint64_t chunk_elements = dataset_.chunk_dims[0];
  const uint64_t chunk = first_element / chunk_elements;
  if (first_element % chunk_elements != 0 || chunk >= seen_.size() || seen_[chunk]) {
    return reader_.Malformed(address,
                             absl::StrCat("a chunk of ", dataset_.path,
                                          " at a place where none "
                                          "belongs or that is taken"),
                             "", absl::StrCat("element ", first_element));
  }
  seen_[chunk] = true;
  const uint64_t begin = first_element * dataset_.element_bytes;
  ASSIGN_OR_RETURN(Bytes read, reader_.Read(address, chunk_bytes_, "a chunk"));
  const uint64_t bytes = std::min(chunk_bytes_, total_bytes() - begin);
  const std::string_view text = AsText(read.first(bytes));
  std::copy(text.begin(), text.end(), elements_.begin() + static_cast<ptrdiff_t>(begin));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadElements(Hdf5Reader& reader, const Hdf5Dataset& dataset) {
  const uint64_t bytes = dataset.bytes();
  // Elements do not overlap in a file, so this bounds the allocation below.
  if (bytes > reader.size()) {
    return reader.Malformed(
        dataset.header_address, absl::StrCat(dataset.path, " is larger than the file"),
        absl::StrCat("at most ", reader.size(), " bytes"),
        absl::StrCat(dataset.elements(), " elements of ", dataset.element_bytes, " bytes"));
  }
  if (dataset.storage == Storage::kCompact) {
    if (dataset.compact.size() < bytes) {
      return reader.Malformed(dataset.header_address,
                              absl::StrCat("the data of ", dataset.path, " is too short"),
                              absl::StrCat(bytes), absl::StrCat(dataset.compact.size()));
    }
    return dataset.compact.substr(0, bytes);
  }
  if (dataset.storage == Storage::kContiguous) {
    ASSIGN_OR_RETURN(uint64_t address, ContiguousAddress(reader, dataset));
    if (bytes == 0) return std::string();
    ASSIGN_OR_RETURN(Bytes read, reader.Read(address, bytes, dataset.path));
    return std::string(AsText(read));
  }
  if (!dataset.is_line()) {
    return reader.Unsupported(absl::StrCat(dataset.path, " has chunks of several dimensions"));
  }
  return ElementWalk(reader, dataset).Run();
}

}  // namespace shardpack
