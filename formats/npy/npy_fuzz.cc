// Arbitrary bytes as images.npy, and as a header of labels: the scan ends with OK, every extent
// lies within the file, and its hash is that of its bytes.
#include <cstdint>
#include <string>

#include "formats/core/sample.h"
#include "formats/io/file.h"
#include "formats/npy/npy_layout.h"
#include "formats/npy/npy_scanner.h"
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
    Require(LiesWithin(record.offset, record.length, end_, bytes_.size()), "records overlap");
    end_ = record.offset + record.length;
    Require(record.fields.size() == 1 && record.fields[0].name == kImageField, "no image");
    Require(record.length == RawImageBytes(record.image), "pixels of another size");
    RequireField(record.fields[0], bytes_);
  }

 private:
  std::string_view bytes_;
  uint64_t end_ = 0;
};

}  // namespace
}  // namespace shardpack

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shardpack;  // NOLINT
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  NpyHeader header;
  if (ParseNpyHeader(AsBytes(bytes), &header).empty()) {
    testing::Require(header.data_offset <= size, "data begins after the end");
  }
  const File& file = testing::MemoryFile(bytes);
  SequentialReader in(file, bytes.size());
  CheckRecords records(bytes);
  FindingList findings;
  testing::Require(kNpyScanner.Scan(in, {.shard_name = "fuzz"}, records, findings).ok(),
                   "damage became a status");
  return 0;
}
