// Record framing: the 12 bytes before and the 4 bytes after each payload of a TFRecord file.
//
//   std::array<std::byte, kRecordHeaderBytes> header = EncodeRecordHeader(payload.size());
//   RecordHeader read = DecodeRecordHeader(first_12_bytes);
//   if (read.valid() && read.length <= left) ...
//
// Layout (tensorflow/tensorflow: tensorflow/core/lib/io/record_writer.h, record_reader.cc),
// little-endian:
//   uint64 length | uint32 masked CRC-32C of the 8 length bytes | payload | uint32 masked CRC-32C
//   of the payload
//
// Errors: none; the result shows a wrong checksum.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_TFRECORD_RECORD_FRAMING_H_
#define SHARDPACK_FORMATS_TFRECORD_RECORD_FRAMING_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/io/bytes.h"

namespace shardpack {

inline constexpr size_t kRecordHeaderBytes = 12;
inline constexpr size_t kRecordFooterBytes = 4;
inline constexpr size_t kRecordOverheadBytes = kRecordHeaderBytes + kRecordFooterBytes;

// The stored form of a checksum: rotated and offset, because a CRC of data that contains its own
// CRC is degenerate (tensorflow/core/lib/hash/crc32c.h).
constexpr uint32_t MaskCrc(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u; }

// MaskCrc(Crc32c(bytes)).
uint32_t MaskedCrc32c(Bytes bytes);

struct RecordHeader {
  uint64_t length = 0;        // of the payload; untrusted unless valid()
  uint32_t stored_crc = 0;    // masked, as read
  uint32_t computed_crc = 0;  // masked, of the length bytes as read

  bool valid() const { return stored_crc == computed_crc; }
};

std::array<std::byte, kRecordHeaderBytes> EncodeRecordHeader(uint64_t payload_bytes);
RecordHeader DecodeRecordHeader(std::span<const std::byte, kRecordHeaderBytes> header);

// The four bytes after a payload whose plain CRC-32C is `payload_crc`.
std::array<std::byte, kRecordFooterBytes> EncodeRecordFooter(uint32_t payload_crc);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_TFRECORD_RECORD_FRAMING_H_
