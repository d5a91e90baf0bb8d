// Arbitrary bytes as a TFRecord file, and as the payload of one record with correct checksums. The
// scan always returns OK, every extent lies within the file, and if stock protobuf can parse an
// Example, our result is the same.
#include <cstdint>
#include <optional>
#include <string>

#include "formats/core/sample.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/testing/fuzz_checks.h"
#include "formats/tfrecord/example.pb.h"
#include "formats/tfrecord/example_scan.h"
#include "formats/tfrecord/record_framing.h"
#include "formats/tfrecord/tfrecord_scanner.h"
#include "google/protobuf/stubs/logging.h"

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
    Require(record.offset == end_ || record.offset > end_, "records overlap");
    Require(LiesWithin(record.offset, record.length, 0, bytes_.size()), "a record passes the end");
    end_ = record.offset + record.length;
    for (const ScannedField& field : record.fields) {
      Require(LiesWithin(field.offset, field.length, record.offset, end_),
              "a field passes its record");
      RequireField(field, bytes_);
    }
    covered_ += record.length;
  }
  uint64_t covered() const { return covered_; }

 private:
  std::string_view bytes_;
  uint64_t end_ = 0, covered_ = 0;
};

void ScanFile(std::string_view bytes) {
  const File& file = MemoryFile(bytes);
  SequentialReader in(file, bytes.size());
  CheckRecords records(bytes);
  FindingList findings;
  const absl::Status walked =
      kTfrecordScanner.Scan(in, {.shard_name = "fuzz", .strict = true}, records, findings);
  Require(walked.ok(), "damage became a status");
  Require(findings.errors() > 0 || records.covered() == bytes.size(),
          "bytes were passed over in silence");
}

// The same facts about a record as the scan gives, from protobuf.
std::string FirstOf(const tfrecord::Example& example, std::span<const std::string_view> names) {
  for (const std::string_view name : names) {
    const auto found = example.features().feature().find(std::string(name));
    if (found == example.features().feature().end()) continue;
    const tfrecord::Feature& feature = found->second;
    if (feature.bytes_list().value_size() > 0) return feature.bytes_list().value(0);
  }
  return "(none)";
}

std::optional<int64_t> LabelOf(const tfrecord::Example& example) {
  for (const std::string_view name : LabelFeatureNames()) {
    const auto found = example.features().feature().find(std::string(name));
    if (found == example.features().feature().end()) continue;
    if (found->second.int64_list().value_size() > 0) return found->second.int64_list().value(0);
  }
  return std::nullopt;
}

void CompareWithProtobuf(std::string_view payload) {
  static ExampleScan scan;
  const ExampleScan::Outcome outcome = scan.Scan(AsBytes(payload));
  const auto text = [&](const ScannedFeature* feature) {
    return feature == nullptr ? std::string("(none)")
                              : std::string(payload.substr(feature->offset, feature->length));
  };
  tfrecord::Example example;
  if (!example.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) return;
  if (outcome == ExampleScan::Outcome::kSequenceExample) return;
  Require(outcome == ExampleScan::Outcome::kExample, "protobuf reads what the scan refuses");
  const auto& map = example.features().feature();
  Require(scan.features().size() == map.size(), "another number of features");
  for (const ScannedFeature& feature : scan.features()) {
    const auto found = map.find(std::string(feature.name));
    Require(found != map.end(), "a feature that protobuf does not see");
    Require(static_cast<int>(found->second.kind_case()) == static_cast<int>(feature.kind),
            "another kind");
  }
  Require(text(scan.image()) == FirstOf(example, ImageFeatureNames()), "another image");
  Require(text(scan.filename()) == FirstOf(example, FilenameFeatureNames()), "another file name");
  const std::optional<int64_t> label = LabelOf(example);
  Require(label.has_value() == (scan.label() != nullptr), "a label on one side");
  Require(!label || *label == scan.label()->first_integer, "another label");
}

// The same bytes with all record checksums corrected.
std::string MendChecksums(std::string bytes) {
  size_t at = 0;
  while (bytes.size() - at >= kRecordOverheadBytes) {
    const uint64_t room = bytes.size() - at - kRecordOverheadBytes;
    const uint64_t length = std::min(LoadLittle<uint64_t>(bytes.data() + at), room);
    const auto header = EncodeRecordHeader(length);
    bytes.replace(at, header.size(), AsText(header));
    const Bytes payload = AsBytes(bytes).subspan(at + kRecordHeaderBytes, length);
    const auto footer = EncodeRecordFooter(Crc32c(payload));
    bytes.replace(at + kRecordHeaderBytes + length, footer.size(), AsText(footer));
    at += kRecordOverheadBytes + length;
  }
  return bytes;
}

}  // namespace
}  // namespace shardpack

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const google::protobuf::LogSilencer
      quiet;  // a name that is not UTF-8 would be logged every time
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  shardpack::ScanFile(bytes);
  shardpack::CompareWithProtobuf(bytes);
  const std::string mended = shardpack::MendChecksums(std::string(bytes));
  shardpack::ScanFile(mended);
  // The payload of the first record, where the corpus files have their Examples.
  if (mended.size() >= shardpack::kRecordOverheadBytes) {
    const auto length = shardpack::LoadLittle<uint64_t>(mended.data());
    shardpack::CompareWithProtobuf(
        std::string_view(mended).substr(shardpack::kRecordHeaderBytes, length));
  }
  return 0;
}
