#include "validators/checks/record_match.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace shardpack {
namespace {

std::string HexText(uint64_t hash) { return absl::StrCat(absl::Hex(hash, absl::kZeroPad16)); }
std::string ExtentText(const Extent& extent) {
  return absl::StrCat(extent.length, " bytes at ", extent.offset);
}

}  // namespace

RecordMatch::RecordMatch(const ShardIndex& index, std::string_view shard, bool scanned_labels,
                         FindingSink& findings)
    : index_(index),
      shard_(shard),
      scanned_labels_(scanned_labels),
      findings_(findings),
      most_fields_(MostFieldsOfForeign(index.records(), index.shard_bytes())) {
  for (uint64_t r = 1; r < index_.records() && ascending_; ++r) {
    ascending_ = index_.record(r - 1).offset < index_.record(r).offset;
  }
}

Finding RecordMatch::Make(FindingId id, uint64_t record) const {
  Finding finding = MakeFinding(id, shard_);
  finding.record = record;
  if (record < index_.records()) finding.key = std::string(index_.key(record));
  return finding;
}

void RecordMatch::Missing(uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  Finding finding = Make(FindingId::kRecordMissing, begin);
  finding.offset = index_.record(begin).offset;
  finding.length = index_.record(begin).length;
  if (end - begin > 1) {
    finding.detail = absl::StrCat(end - begin, " records, to number ", end - 1);
  }
  findings_.Report(std::move(finding));
}

// Moves next_ to the index's record that begins where this one does; false if there is none.
bool RecordMatch::Align(const ScannedRecord& record) {
  if (next_ < index_.records() && index_.record(next_).offset == record.offset) return true;
  // Without ascending offsets, a gap cannot be distinguished from a move.
  if (!ascending_) return false;
  uint64_t low = next_, high = index_.records();
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (index_.record(middle).offset < record.offset)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == index_.records() || index_.record(low).offset != record.offset) return false;
  Missing(next_, low);
  next_ = low;
  return true;
}

size_t RecordMatch::ColumnOf(std::string_view name, size_t guess) const {
  if (guess < index_.fields() && index_.field_name(guess) == name) return guess;
  return index_.FindField(name).value_or(index_.fields());
}

void RecordMatch::CompareFields(const ScannedRecord& record) {
  size_t in_index = 0;
  for (size_t f = 0; f < index_.fields(); ++f) in_index += index_.has_field(next_, f) ? 1 : 0;
  for (size_t i = 0; i < record.fields.size(); ++i) {
    const ScannedField& field = record.fields[i];
    const size_t column = ColumnOf(field.name, i);
    // An index made for a foreign shard does not have these.
    if (column == index_.fields() &&
        (index_.fields() >= most_fields_ || field.name.find('\0') != field.name.npos))
      continue;
    const Extent actual{field.offset, field.length};
    if (column == index_.fields() || !index_.has_field(next_, column)) {
      Finding finding = Make(FindingId::kRecordExtent, next_);
      finding.field = std::string(field.name);
      finding.actual = ExtentText(actual);
      finding.detail = "the index does not have this field";
      findings_.Report(std::move(finding));
      continue;
    }
    if (in_index > 0) --in_index;
    const Extent expected = index_.field(next_, column);
    const bool moved = expected != actual;
    if (!moved && index_.hash(next_, column) == field.hash) continue;
    Finding finding = Make(moved ? FindingId::kRecordExtent : FindingId::kRecordHash, next_);
    finding.field = std::string(field.name);
    finding.offset = field.offset;
    finding.length = field.length;
    finding.expected = moved ? ExtentText(expected) : HexText(index_.hash(next_, column));
    finding.actual = moved ? ExtentText(actual) : HexText(field.hash);
    findings_.Report(std::move(finding));
  }
  if (in_index == 0) return;
  Finding finding = Make(FindingId::kRecordExtent, next_);
  finding.detail = absl::StrCat(in_index, " fields of the index are not in the record");
  findings_.Report(std::move(finding));
}

void RecordMatch::OnRecord(const ScannedRecord& record) {
  const uint64_t number = scanned_++;
  if (!Align(record)) {
    Finding finding = Make(FindingId::kRecordExtra, number);
    finding.key = std::string(record.key);
    finding.offset = record.offset;
    finding.length = record.length;
    findings_.Report(std::move(finding));
    return;
  }
  ++matched_;
  if (const Extent expected = index_.record(next_); expected.length != record.length) {
    Finding finding = Make(FindingId::kRecordExtent, next_);
    finding.offset = record.offset;
    finding.expected = ExtentText(expected);
    finding.actual = ExtentText({record.offset, record.length});
    findings_.Report(std::move(finding));
  }
  // A container without keys or labels says nothing about them.
  if (!record.key.empty() && record.key != index_.key(next_)) {
    Finding finding = Make(FindingId::kKeyMismatch, next_);
    finding.offset = record.offset;
    finding.expected = std::string(index_.key(next_));
    finding.actual = std::string(record.key);
    findings_.Report(std::move(finding));
  }
  const bool says_label = scanned_labels_ || record.label != kNoLabel;
  if (says_label && record.label != index_.label(next_)) {
    Finding finding = Make(FindingId::kLabelMismatch, next_);
    finding.offset = record.offset;
    finding.expected = absl::StrCat(index_.label(next_));
    finding.actual = absl::StrCat(record.label);
    findings_.Report(std::move(finding));
  }
  CompareFields(record);
  ++next_;
}

void RecordMatch::Finish() {
  Missing(next_, index_.records());
  next_ = index_.records();
}

}  // namespace shardpack
