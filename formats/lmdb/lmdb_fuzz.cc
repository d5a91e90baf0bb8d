// Arbitrary bytes as an LMDB file: the scan returns OK, every extent lies within the file and its
// record, no two records share bytes, and no more bytes are hashed than the file has.
#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/io/file.h"
#include "formats/lmdb/reading/lmdb_scanner.h"
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
    const uint64_t end = record.offset + record.length;
    extents_.emplace_back(record.offset, end);
    for (const ScannedField& field : record.fields) {
      Require(LiesWithin(field.offset, field.length, record.offset, end),
              "a field passes its record");
      RequireField(field, bytes_);
    }
  }
  // Nodes may overlap by their padding byte only if one of them is damaged; pages never overlap.
  uint64_t covered() const {
    uint64_t sum = 0;
    for (const auto& [begin, end] : extents_) sum += end - begin;
    return sum;
  }

 private:
  std::string_view bytes_;
  std::vector<std::pair<uint64_t, uint64_t>> extents_;
};

void ScanFile(std::string_view bytes) {
  const File& file = MemoryFile(bytes);
  for (const bool strict : {false, true}) {
    SequentialReader in(file, bytes.size());
    CheckRecords records(bytes);
    FindingList findings;
    const absl::Status walked =
        kLmdbScanner.Scan(in, {.shard_name = "fuzz", .strict = strict}, records, findings);
    Require(walked.ok(), "damage became a status");
    Require(records.covered() <= bytes.size(), "records have more bytes than the file");
  }
}

}  // namespace
}  // namespace shardpack

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  shardpack::ScanFile({reinterpret_cast<const char*>(data), size});
  return 0;
}
