#include "formats/tar/tar_header.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "formats/io/file.h"

namespace shardpack {
namespace {

// Offsets of the fields (POSIX.1-2017, pax, table "ustar Header Block").
constexpr size_t kNameAt = 0, kModeAt = 100, kUidAt = 108, kGidAt = 116, kSizeAt = 124;
constexpr size_t kMtimeAt = 136, kChecksumAt = 148, kTypeAt = 156, kMagicAt = 257;
constexpr size_t kDevMajorAt = 329, kDevMinorAt = 337, kPrefixAt = 345;
constexpr size_t kChecksumBytes = 8, kSizeBytes = 12;
constexpr size_t kSizeDigits = 11, kChecksumDigits = 6;
// Schily's xstar: "tar" at the very end, times in the last 24 bytes of the prefix field (libarchive
// archive_read_support_format_tar.c, header_ustar and tar(5)).
constexpr size_t kXstarMagicAt = 508, kXstarPrefixBytes = 131;

using Block = std::array<char, kTarBlockBytes>;

constexpr void Put(Block& block, size_t at, std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) block[at + i] = text[i];
}

// A header as we write it, without name, size, type and checksum.
constexpr Block MakeTemplate() {
  Block block{};
  Put(block, kModeAt, "0000444");
  Put(block, kUidAt, "0000000");
  Put(block, kGidAt, "0000000");
  Put(block, kMtimeAt, "00000000000");
  Put(block, kMagicAt, std::string_view("ustar\00000", 8));
  Put(block, kDevMajorAt, "0000000");
  Put(block, kDevMinorAt, "0000000");
  return block;
}

constexpr uint32_t SumOfTemplate() {
  uint32_t sum = kChecksumBytes * ' ';
  for (const char c : MakeTemplate()) sum += static_cast<unsigned char>(c);
  return sum;
}

constexpr Block kTemplate = MakeTemplate();
constexpr uint32_t kTemplateSum = SumOfTemplate();

uint32_t SumOfBytes(const char* from, size_t bytes) {
  constexpr uint64_t kEven = 0x00ff00ff00ff00ff;
  uint64_t lanes = 0;  // four 16-bit sums: 510 per step, so enough for 128 steps; a block has 64
  size_t i = 0;
  for (; i + 8 <= bytes; i += 8) {
    const uint64_t word = LoadLittle<uint64_t>(from + i);
    lanes += (word & kEven) + ((word >> 8) & kEven);
  }
  uint32_t sum = static_cast<uint32_t>(
      ((lanes & 0x0000ffff0000ffff) + ((lanes >> 16) & 0x0000ffff0000ffff)) * 0x0000000100000001 >>
      32);
  for (; i < bytes; ++i) sum += static_cast<unsigned char>(from[i]);
  return sum;
}

void PutOctal(char* at, size_t digits, uint64_t value) {
  for (size_t i = digits; i-- > 0; value >>= 3) at[i] = static_cast<char>('0' + (value & 7));
}

std::string_view UpToNul(const char* at, size_t bytes) {
  const void* nul = std::memchr(at, 0, bytes);
  return {at, nul == nullptr ? bytes : static_cast<size_t>(static_cast<const char*>(nul) - at)};
}

bool IsFiller(char c) { return c == ' ' || c == '\0'; }

// Octal digits, preceded by spaces and followed by spaces or NULs; an empty field is zero (Python's
// tarfile.nti).
std::optional<uint64_t> ParseOctal(std::string_view field) {
  size_t i = 0;
  while (i < field.size() && field[i] == ' ') ++i;
  uint64_t value = 0;  // at most 12 digits: 36 bits
  for (; i < field.size() && field[i] >= '0' && field[i] <= '7'; ++i) {
    value = value << 3 | static_cast<uint64_t>(field[i] - '0');
  }
  for (; i < field.size(); ++i) {
    if (!IsFiller(field[i])) return std::nullopt;
  }
  return value;
}

// GNU's base-256: 0x80 in the first byte, then the number, big-endian; 0xff there starts a negative
// number (GNU tar src/list.c, from_header). No file size exceeds 2^63.
std::optional<uint64_t> ParseSize(std::string_view field) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(field[i]); };
  if ((byte(0) & 0x80) == 0) return ParseOctal(field);
  if (byte(0) != 0x80) return std::nullopt;
  uint64_t value = 0;
  for (size_t i = 1; i < field.size(); ++i) {
    if (value >> 55 != 0) return std::nullopt;
    value = value << 8 | byte(i);
  }
  return value >> 62 != 0 ? std::nullopt : std::optional(value);
}

bool ChecksumMatches(const char* block, uint32_t sum) {
  std::string_view field(block + kChecksumAt, kChecksumBytes);
  const size_t digit = field.find_first_not_of(' ');
  if (digit == field.npos || field[digit] == '\0') return false;
  const std::optional<uint64_t> stored = ParseOctal(field);
  if (!stored) return false;
  if (*stored == sum) return true;
  // Some old writers summed signed chars (POSIX.1-2017, pax, rationale; GNU tar checks both).
  uint32_t high = 0;
  for (size_t i = 0; i < kTarBlockBytes; ++i) high += static_cast<unsigned char>(block[i]) >> 7;
  return static_cast<int64_t>(*stored) == static_cast<int64_t>(sum) - 256 * int64_t{high};
}

bool IsUsualChecksum(const char* field) {
  for (size_t i = 0; i < kChecksumDigits; ++i) {
    if (field[i] < '0' || field[i] > '7') return false;
  }
  return field[kChecksumDigits] == '\0' && field[kChecksumDigits + 1] == ' ';
}

const char* AsChars(const std::byte* block) { return reinterpret_cast<const char*>(block); }

}  // namespace

std::optional<TarName> SplitTarName(std::string_view path) {
  if (path.size() <= kTarNameBytes) return TarName{{}, path};
  if (path.size() > kTarPrefixBytes + 1 + kTarNameBytes) return std::nullopt;
  // An empty prefix would lose the slash; an empty name is invalid.
  const size_t first = std::max<size_t>(path.size() - kTarNameBytes - 1, 1);
  const size_t slash = path.find('/', first);
  if (slash == path.npos || slash > kTarPrefixBytes || slash + 1 == path.size()) {
    return std::nullopt;
  }
  return TarName{path.substr(0, slash), path.substr(slash + 1)};
}

void EncodeTarHeader(const TarName& name, uint64_t size_bytes, char type, std::byte* block) {
  char* out = reinterpret_cast<char*>(block);
  std::memcpy(out, kTemplate.data(), kTarBlockBytes);
  std::memcpy(out + kNameAt, name.name.data(), name.name.size());
  PutOctal(out + kSizeAt, kSizeDigits, size_bytes);
  out[kTypeAt] = type;
  uint32_t sum = kTemplateSum + static_cast<unsigned char>(type) +
                 SumOfBytes(name.name.data(), name.name.size()) +
                 SumOfBytes(out + kSizeAt, kSizeDigits);
  if (!name.prefix.empty()) {
    std::memcpy(out + kPrefixAt, name.prefix.data(), name.prefix.size());
    sum += SumOfBytes(name.prefix.data(), name.prefix.size());
  }
  PutOctal(out + kChecksumAt, kChecksumDigits, sum);
  out[kChecksumAt + kChecksumDigits] = '\0';
  out[kChecksumAt + kChecksumDigits + 1] = ' ';
}

TarHeaderFault DecodeTarHeader(const std::byte* block, TarHeader& header) {
  const char* in = AsChars(block);
  if (!ChecksumMatches(in, TarChecksum(block))) return TarHeaderFault::kChecksum;
  header.usual_checksum = IsUsualChecksum(in + kChecksumAt);
  header.type = in[kTypeAt];
  header.name = UpToNul(in + kNameAt, kTarNameBytes);
  header.prefix = {};
  if (std::memcmp(in + kMagicAt, "ustar\0", 6) == 0) {
    header.dialect = TarDialect::kUstar;
    const bool xstar = std::memcmp(in + kXstarMagicAt, "tar\0", 4) == 0;
    header.prefix = UpToNul(in + kPrefixAt, xstar ? kXstarPrefixBytes : kTarPrefixBytes);
  } else if (std::memcmp(in + kMagicAt, "ustar  \0", 8) == 0) {
    header.dialect = TarDialect::kGnu;  // its prefix field holds times and sparse maps
  } else {
    header.dialect = TarDialect::kV7;
  }
  const std::optional<uint64_t> size = ParseSize({in + kSizeAt, kSizeBytes});
  if (!size) return TarHeaderFault::kSize;
  header.size_bytes = *size;
  return TarHeaderFault::kNone;
}

uint32_t TarChecksum(const std::byte* block) {
  const char* in = AsChars(block);
  return SumOfBytes(in, kTarBlockBytes) - SumOfBytes(in + kChecksumAt, kChecksumBytes) +
         kChecksumBytes * ' ';
}

std::string TarChecksumField(const std::byte* block) {
  return std::string(AsChars(block) + kChecksumAt, kChecksumBytes);
}

bool IsAllZero(Bytes bytes) { return FirstNonZero(bytes) == bytes.size(); }

size_t FirstNonZero(Bytes bytes) {
  size_t i = 0;
  while (i + 8 <= bytes.size() && LoadLittle<uint64_t>(bytes.data() + i) == 0) i += 8;
  while (i < bytes.size() && bytes[i] == std::byte{0}) ++i;
  return i;
}

}  // namespace shardpack
