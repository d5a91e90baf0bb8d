#include "formats/tfrecord/tfrecord_scanner.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/core/sample.h"
#include "formats/io/hash.h"
#include "formats/io/status_macros.h"
#include "formats/tfrecord/example_scan.h"
#include "formats/tfrecord/record_framing.h"
#include "formats/tfrecord/tfrecord_checker.h"
#include "formats/tfrecord/tfrecord_layout.h"

namespace shardpack {
namespace {

// The step size for the search for the next header, and for the checksum of an oversized record.
constexpr uint64_t kStepBytes = 64 << 10;

std::string HexCrc(uint32_t crc) { return absl::StrFormat("%08x", crc); }

RecordHeader HeaderAt(Bytes bytes, size_t offset = 0) {
  return DecodeRecordHeader(bytes.subspan(offset).first<kRecordHeaderBytes>());
}

// Detects gzip (RFC 1952, 2.3.1) and zlib (RFC 1950, 2.2; the four usual levels of compression).
std::string_view CompressionOf(Bytes head) {
  if (head.size() < 2) return "";
  const auto first = std::to_integer<uint8_t>(head[0]), second = std::to_integer<uint8_t>(head[1]);
  if (first == 0x1f && second == 0x8b) return "gzip";
  const bool zlib =
      first == 0x78 && (second == 0x01 || second == 0x5e || second == 0x9c || second == 0xda);
  return zlib ? "zlib" : "";
}

// A negative number is not a label from a writer and stays unchanged.
int64_t LabelFromZero(int64_t stored, int64_t base) {
  int64_t label = 0;
  if (stored < 0 || __builtin_sub_overflow(stored, base, &label)) return stored;
  return std::max(label, kNoLabel);
}

// The label base of an Example with a label. Synsets belong to ImageNet; the programs that write
// them count from 1 (tensorflow/models: build_imagenet_data.py; tensorflow/tpu:
// imagenet_to_gcs.py).
int64_t LabelBaseOf(const ExampleScan& example) {
  const ScannedFeature* const synset = example.Find(kFeatureSynset);
  return synset != nullptr && synset->kind == FeatureKind::kBytes &&
                 example.label()->name == kFeatureLabel
             ? kImagenetLabelBase
             : 0;
}

// The state of one Scan.
class RecordWalk {
 public:
  RecordWalk(SequentialReader& in, const ScanOptions& options, RecordSink& records,
             FindingSink& findings)
      : in_(in),
        options_(options),
        records_(records),
        findings_(findings),
        label_base_(options.label_base) {}

  absl::Status Run();

 private:
  // True if a record with this payload size ends within the file when its header is at the current
  // position.
  static bool Fits(uint64_t payload_bytes, uint64_t left) {
    return left >= kRecordOverheadBytes && payload_bytes <= left - kRecordOverheadBytes;
  }

  Finding MakeHere(FindingId id, uint64_t offset, uint64_t length) const;
  absl::Status EndInHeader(Bytes head);
  absl::Status RefuseHeader(const RecordHeader& header);
  absl::StatusOr<bool> SeekNextHeader();
  absl::Status VisitRecord(uint64_t payload_bytes);
  absl::Status VisitOversized(uint64_t payload_bytes);
  bool CheckDataCrc(uint32_t computed, uint32_t stored, uint64_t payload_bytes);
  void VisitExample(Bytes payload, uint64_t record_offset);
  void HandOn(Bytes payload, uint64_t record_offset);

  SequentialReader& in_;
  const ScanOptions& options_;
  RecordSink& records_;
  FindingSink& findings_;
  std::optional<int64_t> label_base_;  // unknown until the first record with a label
  uint64_t number_ = 0;  // of the record at the current position; a damaged range counts as one
  ExampleScan example_;
  TfrecordChecker checker_;
  std::vector<ScannedField> fields_;
};

Finding RecordWalk::MakeHere(FindingId id, uint64_t offset, uint64_t length) const {
  Finding finding = MakeFinding(id, options_.shard_name);
  finding.record = number_;
  finding.offset = offset;
  finding.length = length;
  return finding;
}

absl::Status RecordWalk::Run() {
  for (; in_.remaining() > 0; ++number_) {
    ASSIGN_OR_RETURN(Bytes head, in_.Peek(kRecordHeaderBytes));
    const bool whole_header = head.size() == kRecordHeaderBytes;
    const bool valid = whole_header && HeaderAt(head).valid();
    if (in_.position() == 0 && !valid) {
      const std::string_view compression = CompressionOf(head);
      if (!compression.empty()) {
        Finding finding = MakeFinding(FindingId::kTfrecordCompressed, options_.shard_name);
        finding.detail = std::string(compression);
        findings_.Report(std::move(finding));
        return absl::OkStatus();
      }
    }
    if (!whole_header) return EndInHeader(head);
    const RecordHeader header = HeaderAt(head);
    RETURN_IF_ERROR(!valid || !Fits(header.length, in_.remaining()) ? RefuseHeader(header)
                                                                    : VisitRecord(header.length));
  }
  return absl::OkStatus();
}

absl::Status RecordWalk::EndInHeader(Bytes head) {
  Finding finding = MakeHere(FindingId::kContainerTruncated, in_.position(), head.size());
  finding.detail = "the header of a record";
  finding.expected = absl::StrCat(kRecordHeaderBytes, " bytes");
  finding.actual = absl::StrCat(head.size(), " bytes");
  findings_.Report(std::move(finding));
  return in_.Skip(head.size());
}

absl::Status RecordWalk::RefuseHeader(const RecordHeader& header) {
  const uint64_t offset = in_.position(), left = in_.remaining();
  ASSIGN_OR_RETURN(bool found, SeekNextHeader());
  const FindingId id =
      header.valid() ? FindingId::kContainerTruncated : FindingId::kTfrecordLengthCrc;
  Finding finding = MakeHere(id, offset, in_.position() - offset);
  if (header.valid()) {
    finding.detail = "the record's length passes the end of the file";
    finding.expected = absl::StrCat(header.length, " bytes and ", kRecordOverheadBytes, " around");
    finding.actual = absl::StrCat(left, " bytes left");
  } else {
    finding.expected = HexCrc(header.computed_crc);
    finding.actual = HexCrc(header.stored_crc);
  }
  absl::StrAppend(&finding.detail, finding.detail.empty() ? "" : "; ",
                  found ? absl::StrCat("the next record begins at offset ", in_.position())
                        : "no record follows");
  findings_.Report(std::move(finding));
  return absl::OkStatus();
}

// Moves to the next offset whose 12 bytes are a header that fits the file, or to the end of the
// file. The data is not checked, so the work is linear for any file: a false match (32 bits of
// checksum and a length below the file's size) has a chance of less than one in 2^50 bytes.
absl::StatusOr<bool> RecordWalk::SeekNextHeader() {
  absl::Status skipped = in_.Skip(1);
  while (skipped.ok() && in_.remaining() >= kRecordOverheadBytes) {
    ASSIGN_OR_RETURN(Bytes window, in_.Peek(kStepBytes));
    const uint64_t left = in_.remaining();
    const size_t candidates = window.size() - kRecordHeaderBytes + 1;
    for (size_t i = 0; i < candidates; ++i) {
      // Check the length first: it rules out nearly all offsets without computing a checksum.
      if (!Fits(LoadLittle<uint64_t>(window.data() + i), left - i)) continue;
      if (!HeaderAt(window, i).valid()) continue;
      skipped = in_.Skip(i);
      if (!skipped.ok()) return skipped;
      return true;
    }
    skipped = in_.Skip(candidates);
  }
  if (skipped.ok()) skipped = in_.Skip(in_.remaining());
  if (!skipped.ok()) return skipped;
  return false;
}

bool RecordWalk::CheckDataCrc(uint32_t computed, uint32_t stored, uint64_t payload_bytes) {
  if (computed == stored) return true;
  Finding finding =
      MakeHere(FindingId::kTfrecordDataCrc, in_.position(), payload_bytes + kRecordOverheadBytes);
  finding.expected = HexCrc(computed);
  finding.actual = HexCrc(stored);
  findings_.Report(std::move(finding));
  return false;
}

absl::Status RecordWalk::VisitRecord(uint64_t payload_bytes) {
  if (payload_bytes > kMaxExampleBytes) return VisitOversized(payload_bytes);
  const uint64_t record_bytes = payload_bytes + kRecordOverheadBytes;
  ASSIGN_OR_RETURN(Bytes record, in_.Peek(record_bytes));
  const Bytes payload = record.subspan(kRecordHeaderBytes, payload_bytes);
  const auto stored = LoadLittle<uint32_t>(payload.data() + payload_bytes);
  if (CheckDataCrc(MaskedCrc32c(payload), stored, payload_bytes)) {
    VisitExample(payload, in_.position());
  }
  return in_.Skip(record_bytes);
}

// An Example cannot be that large, so its bytes need not be in memory at once.
absl::Status RecordWalk::VisitOversized(uint64_t payload_bytes) {
  Finding finding =
      MakeHere(FindingId::kTfrecordExample, in_.position(), payload_bytes + kRecordOverheadBytes);
  finding.detail = "larger than protobuf can parse";
  finding.expected = absl::StrCat("at most ", kMaxExampleBytes, " bytes");
  finding.actual = absl::StrCat(payload_bytes, " bytes");
  findings_.Report(std::move(finding));
  const uint64_t offset = in_.position();
  absl::Status skipped = in_.Skip(kRecordHeaderBytes);
  uint32_t crc = 0;
  for (uint64_t left = payload_bytes; skipped.ok() && left > 0;) {
    ASSIGN_OR_RETURN(Bytes piece, in_.Peek(std::min(left, kStepBytes)));
    crc = Crc32c(piece, crc);
    left -= piece.size();
    skipped = in_.Skip(piece.size());
  }
  if (!skipped.ok()) return skipped;
  ASSIGN_OR_RETURN(Bytes footer, in_.Peek(kRecordFooterBytes));
  const auto stored = LoadLittle<uint32_t>(footer.data());
  if (MaskCrc(crc) != stored) {
    Finding damaged =
        MakeHere(FindingId::kTfrecordDataCrc, offset, payload_bytes + kRecordOverheadBytes);
    damaged.expected = HexCrc(MaskCrc(crc));
    damaged.actual = HexCrc(stored);
    findings_.Report(std::move(damaged));
  }
  return in_.Skip(kRecordFooterBytes);
}

void RecordWalk::VisitExample(Bytes payload, uint64_t record_offset) {
  const uint64_t record_bytes = payload.size() + kRecordOverheadBytes;
  const ExampleScan::Outcome outcome = example_.Scan(payload);
  if (outcome == ExampleScan::Outcome::kMalformed) {
    Finding finding = MakeHere(FindingId::kTfrecordExample, record_offset, record_bytes);
    finding.detail = absl::StrCat(std::string(example_.problem()), " at byte ",
                                  example_.problem_offset(), " of the Example");
    findings_.Report(std::move(finding));
    return;
  }
  if (outcome == ExampleScan::Outcome::kSequenceExample) {
    findings_.Report(MakeHere(FindingId::kTfrecordSequenceExample, record_offset, record_bytes));
    return;
  }
  if (options_.strict) {
    checker_.Check(example_, payload,
                   MakeHere(FindingId::kTfrecordFeature, record_offset, record_bytes), findings_);
  }
  HandOn(payload, record_offset);
}

void RecordWalk::HandOn(Bytes payload, uint64_t record_offset) {
  const auto bytes_of = [&](const ScannedFeature& feature) {
    return payload.subspan(feature.offset, feature.length);
  };
  const auto add = [&](std::string_view name, const ScannedFeature& feature) {
    fields_.push_back({.name = name,
                       .offset = record_offset + kRecordHeaderBytes + feature.offset,
                       .length = feature.length,
                       .hash = Xxh3_64(bytes_of(feature))});
  };
  fields_.clear();
  if (example_.image() != nullptr) add(kImageField, *example_.image());
  for (const ScannedFeature& feature : example_.features()) {
    // A second bytes feature with the name that field 0 has here would hide it.
    if (example_.IsField(feature) && feature.name != kImageField) {
      add(feature.name, feature);
    } else if (options_.has_classes && example_.IsClassName(feature)) {
      continue;
    } else if (example_.IsField(feature) || example_.IsLost(feature)) {
      if (&feature == example_.image() || &feature == example_.label() ||
          &feature == example_.filename())
        records_.OnLeftOut(absl::StrCat(std::string(feature.name), " (all but its first value)"));
      else
        records_.OnLeftOut(feature.name);
    }
  }
  ScannedRecord record;
  if (example_.filename() != nullptr) record.source_path = AsText(bytes_of(*example_.filename()));
  if (example_.label() != nullptr) {
    const int64_t stored = example_.label()->first_integer;
    if (!label_base_) label_base_ = LabelBaseOf(example_);
    record.label = LabelFromZero(stored, *label_base_);
    if (stored >= 0) record.label_base = label_base_;
  }
  record.offset = record_offset;
  record.length = payload.size() + kRecordOverheadBytes;
  record.fields = fields_;
  records_.OnRecord(record);
}

}  // namespace

constinit const TfrecordScanner kTfrecordScanner;

absl::Status TfrecordScanner::Scan(SequentialReader& in, const ScanOptions& options,
                                   RecordSink& records, FindingSink& findings) const {
  return RecordWalk(in, options, records, findings).Run();
}

}  // namespace shardpack
