// The names, types and limits of the layouts packed, vlen and decoded (FORMAT.md).
//
//   /images/data, /images/offsets, /labels, /keys          packed
//   /images, /labels, /keys                                vlen, decoded
//   absl::Status fits = CheckFieldName("mask.png");
//
// Errors: stated there.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_HDF5_HDF5_LAYOUT_H_
#define SHARDPACK_FORMATS_HDF5_HDF5_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace shardpack {

inline constexpr std::string_view kPackedLayout = "packed";
inline constexpr std::string_view kVlenLayout = "vlen";
inline constexpr std::string_view kDecodedLayout = "decoded";

inline constexpr std::string_view kImagesName = "images";
inline constexpr std::string_view kLabelsName = "labels";
inline constexpr std::string_view kKeysName = "keys";
inline constexpr std::string_view kClassesName = "classes";
// In the group of a field of the packed layout.
inline constexpr std::string_view kDataName = "data";
inline constexpr std::string_view kOffsetsName = "offsets";

// The first 8 bytes of an HDF5 file, or the first 8 after its user block (HDF5 File Format
// Specification 3.0, II.A).
inline constexpr std::string_view kHdf5Signature = "\x89HDF\r\n\x1a\n";

// /images/data begins at a multiple of this unless it is smaller, so that it can be mapped or read
// with direct I/O.
inline constexpr uint64_t kDataAlignment = 4096;
// Keys are stored at the width of the shard's longest one, so this limits how much one long key can
// inflate the shard.
inline constexpr size_t kMaxHdf5KeyBytes = 1024;
inline constexpr size_t kMaxHdf5FieldNameBytes = 64;
// Elements per chunk of the vlen layout.
inline constexpr uint64_t kChunkElements = 1024;
// A vlen element's length is 32 bits wide.
inline constexpr uint64_t kMaxVlenBytes = (uint64_t{1} << 32) - 1;
// An attribute is stored in the object header, whose messages end at 64 KiB; a class name takes 16
// bytes there. With more classes than this, a dataset of the same name is written instead.
inline constexpr size_t kMaxClassesInAttribute = 4000;

// InvalidArgument for a field name that is not possible as a link in the root group.
absl::Status CheckFieldName(std::string_view name);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_HDF5_HDF5_LAYOUT_H_
