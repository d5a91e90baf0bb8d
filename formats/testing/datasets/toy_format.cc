#include "formats/testing/datasets/toy_format.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace shardpack::testing {
namespace {

constexpr std::string_view kMagic = "TOYSHARD";
constexpr std::string_view kEnd = "TOY-END!";
constexpr LayoutSpec kLayouts[] = {
    {.name = "plain", .doc = "records one after another", .max_key_bytes = 4096}};
constexpr size_t kHeadBytes = 20;  // of a record, before the lengths of its fields
constexpr uint32_t kMaxFields = 16;

template <typename T>
void Put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

class ToyWriter : public ShardWriter {
 public:
  explicit ToyWriter(StagedFile& file) : file_(file) {}

  absl::Status Append(const SampleView& sample) override {
    absl::Status begun = Begin();
    if (!begun.ok()) return begun;
    std::string head = "REC1";
    Put<uint32_t>(head, static_cast<uint32_t>(sample.key.size()));
    Put<int64_t>(head, sample.label);
    Put<uint32_t>(head, static_cast<uint32_t>(sample.fields.size()));
    for (const FieldView& field : sample.fields) {
      Put<uint64_t>(head, field.bytes.size());
      Put<uint32_t>(head, static_cast<uint32_t>(field.name.size()));
    }
    head += sample.key;
    for (const FieldView& field : sample.fields) head += field.name;
    std::vector<Bytes> parts = {AsBytes(head)};
    for (const FieldView& field : sample.fields) parts.push_back(field.bytes);
    return file_.Append(parts);
  }

  absl::Status Finish() override {
    absl::Status begun = Begin();
    return begun.ok() ? file_.Append(AsBytes(kEnd)) : begun;
  }

 private:
  absl::Status Begin() {
    return file_.size() == 0 ? file_.Append(AsBytes(kMagic)) : absl::OkStatus();
  }

  StagedFile& file_;
};

class ToyScanner : public ShardScanner {
 public:
  absl::Status Scan(SequentialReader& in, const ScanOptions& options, RecordSink& records,
                    FindingSink& findings) const override {
    const auto damaged = [&](uint64_t offset, const std::string& why) {
      Finding finding = MakeFinding(FindingId::kContainerTruncated, options.shard_name);
      finding.offset = offset;
      finding.detail = why;
      findings.Report(std::move(finding));
      return absl::OkStatus();
    };
    absl::StatusOr<Bytes> magic = in.Peek(kMagic.size());
    if (!magic.ok()) return magic.status();
    if (AsText(*magic) != kMagic) return damaged(0, "no magic");
    if (absl::Status skipped = in.Skip(kMagic.size()); !skipped.ok()) return skipped;
    for (;;) {
      const uint64_t offset = in.position();
      absl::StatusOr<Bytes> head = in.Peek(kHeadBytes);
      if (!head.ok()) return head.status();
      if (AsText(*head).substr(0, kEnd.size()) == kEnd) break;
      if (head->size() < kHeadBytes || AsText(*head).substr(0, 4) != "REC1") {
        return damaged(offset, "no record and no end mark");
      }
      bool whole = false;
      absl::Status scanned = ScanRecord(in, records, &whole);
      if (!scanned.ok()) return scanned;
      if (!whole) return damaged(offset, "the record's lengths do not fit the file");
    }
    if (absl::Status skipped = in.Skip(kEnd.size()); !skipped.ok()) return skipped;
    if (in.remaining() > 0) {
      Finding finding = MakeFinding(FindingId::kTrailingData, options.shard_name);
      finding.offset = in.position();
      finding.length = in.remaining();
      findings.Report(std::move(finding));
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status ScanRecord(SequentialReader& in, RecordSink& records, bool* whole) {
    const uint64_t offset = in.position();
    absl::StatusOr<Bytes> head = in.Peek(kHeadBytes);
    if (!head.ok()) return head.status();
    const auto key_bytes = LoadLittle<uint32_t>(head->data() + 4);
    const auto label = LoadLittle<int64_t>(head->data() + 8);
    const auto fields = LoadLittle<uint32_t>(head->data() + 16);
    if (fields > kMaxFields) return absl::OkStatus();
    const uint64_t lengths_end = kHeadBytes + uint64_t{fields} * 12;
    head = in.Peek(lengths_end);
    if (!head.ok()) return head.status();
    if (head->size() < lengths_end) return absl::OkStatus();
    std::vector<uint64_t> lengths;
    std::vector<size_t> name_bytes;
    uint64_t text_bytes = key_bytes;
    for (uint32_t f = 0; f < fields; ++f) {
      lengths.push_back(LoadLittle<uint64_t>(head->data() + kHeadBytes + f * 12));
      name_bytes.push_back(LoadLittle<uint32_t>(head->data() + kHeadBytes + f * 12 + 8));
      text_bytes += name_bytes.back();
    }
    head = in.Peek(lengths_end + text_bytes);
    if (!head.ok()) return head.status();
    if (head->size() < lengths_end + text_bytes) return absl::OkStatus();
    const std::string texts(AsText(head->subspan(lengths_end)));
    if (absl::Status skipped = in.Skip(lengths_end + text_bytes); !skipped.ok()) return skipped;
    std::vector<ScannedField> scanned;
    size_t name_at = key_bytes;
    for (uint32_t f = 0; f < fields; ++f) {
      if (lengths[f] > in.remaining()) return absl::OkStatus();
      const uint64_t at = in.position();
      absl::StatusOr<uint64_t> hash = in.HashNext(lengths[f]);
      if (!hash.ok()) return hash.status();
      scanned.push_back(
          {std::string_view(texts).substr(name_at, name_bytes[f]), at, lengths[f], *hash});
      name_at += name_bytes[f];
    }
    *whole = true;
    records.OnRecord({.key = std::string_view(texts).substr(0, key_bytes),
                      .source_path = {},
                      .label = label,
                      .offset = offset,
                      .length = in.position() - offset,
                      .fields = scanned});
    return absl::OkStatus();
  }
};

std::string ToyName(std::string_view split, uint32_t number, uint32_t) {
  return absl::StrCat(std::string(split), "-", number, ".toy");
}

uint64_t ToyBound(const ShardSpec&, const RecordShape& shape) {
  uint64_t bytes = kHeadBytes + shape.key_bytes;
  for (const uint64_t field : shape.field_bytes) bytes += field + 12 + 64;
  return bytes;
}

bool SniffToy(Bytes head, std::string_view) { return AsText(head).starts_with(kMagic); }

absl::StatusOr<std::unique_ptr<ShardWriter>> CreateToy(StagedFile& file, const ShardSpec&) {
  return std::unique_ptr<ShardWriter>(new ToyWriter(file));
}

}  // namespace

const Format& ToyFormat() {
  static const ToyScanner scanner;
  static const Format format = {
      .name = "toy",
      .doc = "a format for tests",
      .layouts = kLayouts,
      .traits = {.max_record_bytes = uint64_t{1} << 40,
                 .shard_overhead_bytes = kMagic.size() + kEnd.size(),
                 .data_file = ""},
      .shard_name = ToyName,
      .record_bound = ToyBound,
      .sniff = SniffToy,
      .create = CreateToy,
      .scanner = &scanner,
      .sidecars = {},
  };
  return format;
}

}  // namespace shardpack::testing
