// Any bytes as a shard, and any bytes as a header: no crash, no more memory than the file's size,
// and everything found lies within the file.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "formats/core/shard_scanner.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/io/sequential_reader.h"
#include "formats/tar/tar_header.h"
#include "formats/webdataset/tool_indexes/dali_index.h"
#include "formats/webdataset/webdataset_scanner.h"

namespace shardpack {
namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

class CheckRecords : public RecordSink {
 public:
  explicit CheckRecords(Bytes all) : all_(all) {}

  void OnRecord(const ScannedRecord& record) override {
    Require(record.length > 0 && record.offset >= end_);
    Require(record.offset <= all_.size() && record.length <= all_.size() - record.offset);
    end_ = record.offset + record.length;
    for (const ScannedField& field : record.fields) {
      Require(field.offset >= record.offset && field.offset + field.length <= end_);
      Require(field.offset % kTarBlockBytes == 0);
      Require(field.hash == Xxh3_64(all_.subspan(field.offset, field.length)));
    }
  }

 private:
  const Bytes all_;
  uint64_t end_ = 0;
};

void ScanAsShard(Bytes bytes) {
  static const int descriptor = ::memfd_create("shard", MFD_CLOEXEC);
  static File file(descriptor, "shard");
  Require(::ftruncate(descriptor, 0) == 0 && ::lseek(descriptor, 0, SEEK_SET) == 0);
  Require(file.Write(std::span(&bytes, 1)).ok());
  for (const bool strict : {false, true}) {
    SequentialReader in(file, bytes.size());
    FindingList findings(100);
    CheckRecords records(bytes);
    const absl::Status scanned =
        WebdatasetScanner().Scan(in, {.shard_name = "shard", .strict = strict}, records, findings);
    Require(scanned.ok() || absl::IsUnimplemented(scanned));
    for (const Finding& finding : findings.findings()) Require(!ToText(finding).empty());
    Require(in.Finish().value() == Xxh3_128(bytes));
  }
  DaliIndexText(file, bytes.size(), "shard").IgnoreError();
}

void DecodeAndEncode(Bytes bytes) {
  if (bytes.size() < kTarBlockBytes) return;
  TarHeader header;
  if (DecodeTarHeader(bytes.data(), header) != TarHeaderFault::kNone) return;
  Require(header.name.size() <= kTarNameBytes && header.prefix.size() <= kTarPrefixBytes);
  if (header.size_bytes > kTarMaxOctalSize) return;
  std::array<std::byte, kTarBlockBytes> block;
  EncodeTarHeader({header.prefix, header.name}, header.size_bytes, header.type, block.data());
  TarHeader again;
  Require(DecodeTarHeader(block.data(), again) == TarHeaderFault::kNone);
  Require(again.name == header.name && again.prefix == header.prefix);
  Require(again.size_bytes == header.size_bytes && again.type == header.type);
}

// Random mutations never produce a valid checksum, so every block that looks like a header gets
// one.
std::string WithChecksums(Bytes bytes) {
  std::string text(AsText(bytes));
  for (size_t at = 0; at + kTarBlockBytes <= text.size(); at += kTarBlockBytes) {
    if (std::memcmp(&text[at + 257], "ustar", 5) != 0) continue;
    const uint32_t sum = TarChecksum(reinterpret_cast<const std::byte*>(&text[at]));
    std::snprintf(&text[at + 148], 8, "%06o", sum);
    text[at + 155] = ' ';
  }
  return text;
}

}  // namespace
}  // namespace shardpack

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const shardpack::Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
  shardpack::ScanAsShard(bytes);
  const std::string sealed = shardpack::WithChecksums(bytes);
  shardpack::ScanAsShard(shardpack::AsBytes(sealed));
  shardpack::DecodeAndEncode(shardpack::AsBytes(sealed));
  return 0;
}
