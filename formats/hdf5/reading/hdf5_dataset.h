// Hdf5Dataset: shape, type and location of one dataset of an HDF5 file.
//
//   absl::StatusOr<Hdf5Dataset> labels = ReadDataset(reader, *object, "/labels");
//   absl::StatusOr<uint64_t> at = ContiguousAddress(reader, *labels);
//
// Errors: as Hdf5Reader; Unimplemented for a sound dataset whose data is filtered; the message
// names the filters.
// Units: bytes; addresses as Hdf5Reader.
#ifndef SHARDPACK_FORMATS_HDF5_READING_HDF5_DATASET_H_
#define SHARDPACK_FORMATS_HDF5_READING_HDF5_DATASET_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/hdf5/reading/hdf5_reader.h"
#include "formats/hdf5/reading/object_header.h"

namespace shardpack {

enum class ElementKind : uint8_t { kInteger, kString, kBytesVlen, kStringVlen, kOther };
enum class Storage : uint8_t { kCompact, kContiguous, kChunked };
// For strings of fixed length.
enum class StringPadding : uint8_t { kNullTerminated, kNull, kSpace };

// How the chunks of a dataset are found.
enum class ChunkIndex : uint8_t { kTree, kSingle, kImplicit, kFixedArray };

struct Hdf5Dataset {
  std::string path;  // "/images/data"
  uint64_t header_address = 0;
  std::vector<uint64_t> dims;  // empty: a single element
  ElementKind kind = ElementKind::kOther;
  uint32_t element_bytes = 0;
  bool is_signed = false, big_endian = false;
  StringPadding padding = StringPadding::kNull;
  Storage storage = Storage::kContiguous;
  uint64_t address = kUndefinedAddress;  // of the data or of the chunk index
  std::string compact;
  ChunkIndex chunk_index = ChunkIndex::kTree;
  uint8_t page_bits = 0;             // of a fixed array
  std::vector<uint64_t> chunk_dims;  // as many as dims

  // The product of the dimensions, UINT64_MAX if it does not fit in 64 bits.
  uint64_t elements() const;
  uint64_t bytes() const;  // of all elements, with the same limit
  // True for one dimension, possibly followed by dimensions of 1.
  bool is_line() const;
};

absl::StatusOr<Hdf5Dataset> ReadDataset(Hdf5Reader& reader, const ObjectHeader& object,
                                        std::string_view path);

// The address of a contiguous dataset's bytes, checked against the file's size; an error for other
// storage.
absl::StatusOr<uint64_t> ContiguousAddress(Hdf5Reader& reader, const Hdf5Dataset& dataset);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_HDF5_READING_HDF5_DATASET_H_
