// The headers of .npy files (FORMAT.md): parsed from untrusted bytes, and written.
//
//   NpyHeader header;
//   std::string why = ParseNpyHeader(file_bytes_so_far, &header);   // empty: it is one
//   std::string bytes = MakeNpyHeader("|u1", {n, height, width, channels});
//
// Errors: a text that says what is wrong.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_NPY_NPY_LAYOUT_H_
#define SHARDPACK_FORMATS_NPY_NPY_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/io/bytes.h"

namespace shardpack {

inline constexpr std::string_view kDecodedLayout = "decoded";
inline constexpr std::string_view kImagesFile = "images.npy";
inline constexpr std::string_view kLabelsFile = "labels.npy";
inline constexpr std::string_view kNpyMagic = "\x93NUMPY";
// The size of the headers written here, whatever the numbers in them: the longest shape fits, and
// the data begins at a multiple of 64, as with numpy.save.
inline constexpr size_t kNpyHeaderBytes = 128;
// Like numpy.load (numpy/lib/format.py: _MAX_HEADER_SIZE), this parser refuses longer headers.
inline constexpr size_t kMaxNpyHeaderBytes = 10000;
// Magic, version, and the 4-byte length of versions 2.0 and 3.0.
inline constexpr size_t kMaxNpyPrefixBytes = 12;

struct NpyHeader {
  std::string descr;  // "|u1", "<i8"; empty: a structure
  bool fortran_order = false;
  std::vector<uint64_t> shape;
  uint64_t data_offset = 0;
};

// `file` is the beginning of the file: kMaxNpyPrefixBytes + kMaxNpyHeaderBytes of it, or all of it.
std::string ParseNpyHeader(Bytes file, NpyHeader* header);

// Returns kNpyHeaderBytes bytes.
std::string MakeNpyHeader(std::string_view descr, std::span<const uint64_t> shape);

// "(3, 32, 32, 3)"
std::string NpyShapeText(std::span<const uint64_t> shape);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_NPY_NPY_LAYOUT_H_
