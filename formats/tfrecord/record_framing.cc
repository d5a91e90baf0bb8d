#include "formats/tfrecord/record_framing.h"

#include "formats/io/hash.h"

namespace shardpack {

uint32_t MaskedCrc32c(Bytes bytes) { return MaskCrc(Crc32c(bytes)); }

std::array<std::byte, kRecordHeaderBytes> EncodeRecordHeader(uint64_t payload_bytes) {
  std::array<std::byte, kRecordHeaderBytes> header;
  StoreLittle<uint64_t>(header.data(), payload_bytes);
  StoreLittle<uint32_t>(header.data() + 8, MaskedCrc32c(Bytes(header).first(8)));
  return header;
}

RecordHeader DecodeRecordHeader(std::span<const std::byte, kRecordHeaderBytes> header) {
  return {.length = LoadLittle<uint64_t>(header.data()),
          .stored_crc = LoadLittle<uint32_t>(header.data() + 8),
          .computed_crc = MaskedCrc32c(header.first(8))};
}

std::array<std::byte, kRecordFooterBytes> EncodeRecordFooter(uint32_t payload_crc) {
  std::array<std::byte, kRecordFooterBytes> footer;
  StoreLittle<uint32_t>(footer.data(), MaskCrc(payload_crc));
  return footer;
}

}  // namespace shardpack
