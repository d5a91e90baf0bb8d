// The 512-byte header block of a tar member: written as POSIX ustar, read in every dialect that
// occurs in shards.
//
//   std::optional<TarName> name = SplitTarName("cat/1.jpg");        // nullopt: does not fit ustar
//   EncodeTarHeader(*name, jpeg.size(), kTarRegular, block);        // block: 512 bytes
//   TarHeader header;  TarHeaderFault fault = DecodeTarHeader(block, header);
//
// Lifetime: a TarName borrows the path, a TarHeader the block.
// Errors: a TarHeaderFault.
// Units: bytes. Sources: the ustar interchange format and the pax format in POSIX.1-2017, `pax`
// (https://pubs.opengroup.org/onlinepubs/9699919799/utilities/pax.html); GNU tar's src/tar.h for
// its magic, base-256 numbers and the types S, M, V, D, L, K.
#ifndef SHARDPACK_FORMATS_TAR_TAR_HEADER_H_
#define SHARDPACK_FORMATS_TAR_TAR_HEADER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "formats/io/bytes.h"

namespace shardpack {

inline constexpr size_t kTarBlockBytes = 512;
// The default blocking of GNU tar and Python's tarfile: 20 blocks. A file's size is a multiple of
// it.
inline constexpr size_t kTarBlockingBytes = 20 * kTarBlockBytes;
// The two zero blocks that end an archive.
inline constexpr size_t kTarEndBytes = 2 * kTarBlockBytes;
inline constexpr size_t kTarNameBytes = 100, kTarPrefixBytes = 155;
// Eleven octal digits.
inline constexpr uint64_t kTarMaxOctalSize = (uint64_t{1} << 33) - 1;

inline constexpr char kTarRegular = '0', kTarRegularV7 = '\0', kTarContiguous = '7';
inline constexpr char kTarFolder = '5';
inline constexpr char kTarPaxNext = 'x', kTarPaxGlobal = 'g';
inline constexpr char kTarGnuLongName = 'L', kTarGnuLongLink = 'K';
inline constexpr char kTarGnuSparse = 'S', kTarGnuMultiVolume = 'M';

// `bytes` <= 2^63, which DecodeTarHeader guarantees.
constexpr uint64_t PaddedToTarBlock(uint64_t bytes) {
  return (bytes + kTarBlockBytes - 1) & ~uint64_t{kTarBlockBytes - 1};
}

// A path as stored in a ustar header: the name alone, or prefix + '/' + name.
struct TarName {
  std::string_view prefix, name;
};

// Splits at the shortest prefix (as Python's tarfile and libarchive do); nullopt if there is none:
// more than 100 bytes without a '/' in the right place.
std::optional<TarName> SplitTarName(std::string_view path);

// Writes all 512 bytes: mode 0444, owner 0, time 0, no owner names. The parts must fit their
// fields, and size_bytes <= kTarMaxOctalSize.
void EncodeTarHeader(const TarName& name, uint64_t size_bytes, char type, std::byte* block);

enum class TarDialect : uint8_t { kUstar, kGnu, kV7 };

struct TarHeader {
  std::string_view prefix, name;  // up to the first NUL; only ustar has a prefix
  uint64_t size_bytes = 0;
  char type = kTarRegular;
  TarDialect dialect = TarDialect::kUstar;
  // The checksum is right and written as all known writers do: six digits, NUL, space. The checksum
  // does not cover its own field, so a flipped bit there can look like another spelling.
  bool usual_checksum = true;
};

enum class TarHeaderFault : uint8_t { kNone, kChecksum, kSize };

// Fills as much of `header` as the fault allows.
TarHeaderFault DecodeTarHeader(const std::byte* block, TarHeader& header);

// The sum of the block's bytes, with the checksum field counted as spaces; and that field's bytes,
// for messages.
uint32_t TarChecksum(const std::byte* block);
std::string TarChecksumField(const std::byte* block);

bool IsAllZero(Bytes bytes);
// The position of the first nonzero byte; bytes.size() if there is none.
size_t FirstNonZero(Bytes bytes);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_TAR_TAR_HEADER_H_
