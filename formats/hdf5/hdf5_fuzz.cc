// Arbitrary bytes as an HDF5 file, once unchanged and once with the checksums of the newer
// structures corrected. The scan always returns OK, or Unimplemented for filtered data; every
// extent lies within the file, and its hash matches its bytes.
#include <cstdint>
#include <string>

#include "formats/core/sample.h"
#include "formats/hdf5/reading/hdf5_reader.h"
#include "formats/hdf5/reading/hdf5_scanner.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/testing/fuzz_checks.h"

namespace shardpack {
namespace {

using testing::LiesWithin;
using testing::MemoryFile;
using testing::Require;
using testing::RequireField;

class CheckRecords : public RecordSink {
 public:
  explicit CheckRecords(std::string_view bytes) : bytes_(bytes) {}
  void OnRecord(const ScannedRecord& record) override {
    Require(LiesWithin(record.offset, record.length, 0, bytes_.size()), "a record passes the end");
    Require(!record.fields.empty() && record.fields[0].name == kImageField, "no image");
    for (const ScannedField& field : record.fields) {
      RequireField(field, bytes_);
      field_bytes_ += field.length;
    }
    Require(field_bytes_ <= bytes_.size(), "fields share bytes");
  }

 private:
  std::string_view bytes_;
  uint64_t field_bytes_ = 0;
};

void ScanFile(std::string_view bytes) {
  const File& file = MemoryFile(bytes);
  SequentialReader in(file, bytes.size());
  CheckRecords records(bytes);
  FindingList findings;
  const absl::Status walked =
      kHdf5Scanner.Scan(in, {.shard_name = "fuzz", .strict = true}, records, findings);
  Require(walked.ok() || absl::IsUnimplemented(walked), "damage became a status");
}

void MendAt(std::string& bytes, size_t begin, uint64_t covered) {
  if (covered > bytes.size() - begin || bytes.size() - begin - covered < 4) return;
  StoreLittle<uint32_t>(bytes.data() + begin + covered,
                        Lookup3(AsBytes(bytes).subspan(begin, covered)));
}

// Corrects what the corpus files have: a superblock at the start, object headers without times
// whose first block has a short size, and headers of fixed arrays.
std::string MendChecksums(std::string bytes) {
  if (bytes.size() > 48 && (bytes[8] == 2 || bytes[8] == 3)) MendAt(bytes, 0, 44);
  for (size_t at = bytes.find("OHDR"); at != std::string::npos; at = bytes.find("OHDR", at + 1)) {
    if (bytes.size() - at < 32) break;
    const auto flags = static_cast<uint8_t>(bytes[at + 5]);
    const size_t size_at = 6 + ((flags & 0x20) != 0 ? 16 : 0) + ((flags & 0x10) != 0 ? 4 : 0);
    const size_t width = size_t{1} << (flags & 3);
    if (width > 2) continue;
    const uint64_t size = width == 1 ? static_cast<uint8_t>(bytes[at + size_at])
                                     : LoadLittle<uint16_t>(bytes.data() + at + size_at);
    MendAt(bytes, at, size_at + width + size);
  }
  for (size_t at = bytes.find("FAHD"); at != std::string::npos; at = bytes.find("FAHD", at + 1)) {
    MendAt(bytes, at, 24);
  }
  return bytes;
}

}  // namespace
}  // namespace shardpack

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  shardpack::ScanFile(bytes);
  const std::string mended = shardpack::MendChecksums(std::string(bytes));
  if (mended != bytes) shardpack::ScanFile(mended);
  return 0;
}
