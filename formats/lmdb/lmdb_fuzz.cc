// Arbitrary bytes as an LMDB file: the scan ends with OK, every extent lies within the file and its
// record, no two records share bytes, and no more is hashed than the file has.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/lmdb/lmdb_scanner.h"

namespace shardpack {
namespace {

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "lmdb_fuzz: %s\n", what);
  std::abort();
}

class CheckRecords : public RecordSink {
 public:
  explicit CheckRecords(std::string_view bytes) : bytes_(bytes) {}
  void OnRecord(const ScannedRecord& record) override {
    Require(record.offset <= bytes_.size() && record.length <= bytes_.size() - record.offset,
            "a record passes the end");
    const uint64_t end = record.offset + record.length;
    extents_.emplace_back(record.offset, end);
    for (const ScannedField& field : record.fields) {
      Require(field.offset >= record.offset && field.offset <= end &&
                  field.length <= end - field.offset,
              "a field passes its record");
      Require(field.hash == Xxh3_64(AsBytes(bytes_.substr(field.offset, field.length))),
              "a field's hash is not that of its bytes");
    }
  }
  // Nodes may overlap by their padding's byte only if one is damaged; pages never do.
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
  static const int descriptor = ::memfd_create("fuzz", MFD_CLOEXEC);
  Require(::ftruncate(descriptor, 0) == 0, "ftruncate");
  Require(::pwrite(descriptor, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
          "pwrite");
  File file(::dup(descriptor), "fuzz");
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
