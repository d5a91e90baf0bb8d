#include "formats/lmdb/reading/record_reader.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/core/sample.h"
#include "formats/io/hash.h"
#include "formats/io/status_macros.h"
#include "formats/lmdb/reading/datum_scan.h"
#include "formats/lmdb/reading/lmdb_pages.h"
#include "formats/lmdb/reading/pickle_scan.h"

namespace shardpack {
namespace {

// A pair of an empty bytes object and a one-byte integer.
constexpr uint64_t kMinPickleValueBytes = 8;
// Pointer, node header and the shortest key.
constexpr uint64_t kMinPickleNodeBytes = 2 + 8 + 1 + kMinPickleValueBytes;

// A number as the pickle layout spells it: no sign, no leading zero.
std::optional<uint32_t> NumberOf(std::string_view key) {
  constexpr size_t kMaxDigits = 10;
  if (key.size() > kMaxDigits) return std::nullopt;
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), number);
  const bool whole = error == std::errc() && end == key.data() + key.size();
  const bool canonical = key.size() == 1 || (!key.empty() && key[0] != '0');
  return whole && canonical ? std::optional(number) : std::nullopt;
}

bool IsVisibleAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

}  // namespace

RecordReader::RecordReader(LmdbLayout layout, PageWindow& window, const LmdbMeta& meta,
                           const ScanOptions& options, RecordSink& records, FindingSink& findings)
    : layout_(layout),
      window_(window),
      page_bytes_(meta.page_bytes),
      options_(options),
      records_(records),
      findings_(findings) {
  static_assert(sizeof(Waiting) < kMinPickleNodeBytes, "what waits is less than the file");
  if (layout == LmdbLayout::kPickle) {
    // A larger stated count is believed only as its entries are read.
    constexpr uint64_t kMaxReserved = 1 << 20;
    waiting_.reserve(
        std::min({meta.entries.entries, window.size() / kMinPickleNodeBytes, kMaxReserved}));
  }
}

Finding RecordReader::Make(FindingId id, const LmdbEntry& entry) const {
  Finding finding = MakeFinding(id, options_.shard_name);
  finding.record = entry.number;
  finding.key = std::string(entry.key);
  finding.offset = entry.offset;
  finding.length = entry.length;
  return finding;
}

void RecordReader::Report(FindingId id, const LmdbEntry& entry, std::string detail) {
  Finding finding = Make(id, entry);
  finding.detail = std::move(detail);
  findings_.Report(std::move(finding));
}

void RecordReader::HandOn(const LmdbEntry& entry, Bytes value, uint64_t image_offset,
                          uint64_t image_bytes, std::string_view key, std::string_view source_path,
                          int64_t label) {
  const ScannedField image{.name = kImageField,
                           .offset = entry.value_offset + image_offset,
                           .length = image_bytes,
                           .hash = Xxh3_64(value.subspan(image_offset, image_bytes))};
  records_.OnRecord({.key = key,
                     .source_path = source_path,
                     .label = label,
                     .offset = entry.offset,
                     .length = entry.length,
                     .fields = {&image, 1}});
}

absl::Status RecordReader::OnEntry(const LmdbEntry& entry) {
  if (!entry.is_plain) {
    named_databases_ = true;
    Report(FindingId::kLmdbLayout, entry, "a named database, or several values of one key");
    return absl::OkStatus();
  }
  if (layout_ == LmdbLayout::kPickle) return KeepPickle(entry);
  ASSIGN_OR_RETURN(Bytes value, window_.Read(entry.value_offset, entry.value_bytes));
  layout_ == LmdbLayout::kCaffe ? OnDatum(entry, value) : OnRaw(entry, value);
  return absl::OkStatus();
}

void RecordReader::OnRaw(const LmdbEntry& entry, Bytes value) {
  if (options_.strict && value.empty()) Report(FindingId::kLmdbEmptyValue, entry, "");
  if (options_.strict && !IsVisibleAscii(entry.key)) Report(FindingId::kLmdbKeyStyle, entry, "");
  HandOn(entry, value, 0, value.size(), entry.key, "", kNoLabel);
}

void RecordReader::OnDatum(const LmdbEntry& entry, Bytes value) {
  Datum datum;
  if (!ScanDatum(value, datum)) return Report(FindingId::kLmdbDatum, entry, "it is malformed");
  if (!datum.has_data) return Report(FindingId::kLmdbDatum, entry, "it has no data");
  if (options_.strict && (!datum.encoded || !datum.has_label)) {
    Report(FindingId::kLmdbDatumStyle, entry,
           !datum.has_encoded ? "it does not say whether it is encoded"
           : !datum.encoded   ? "it holds pixels, of which readers disagree about the order"
                              : "it has no label");
  }
  HandOn(entry, value, datum.data_offset, datum.data_bytes, "", SourcePathOfCaffeKey(entry.key),
         datum.has_label ? datum.label : kNoLabel);
}

absl::Status RecordReader::KeepPickle(const LmdbEntry& entry) {
  if (const std::optional<uint32_t> number = NumberOf(entry.key)) {
    // Too short for any pair. This also keeps the memory for waiting entries below that of their
    // nodes.
    if (entry.value_bytes < kMinPickleValueBytes) {
      Report(FindingId::kLmdbPickle, entry, "it is not a pair of bytes and label");
    } else {
      waiting_.push_back({entry.value_offset, static_cast<uint32_t>(entry.value_bytes), *number});
    }
    return absl::OkStatus();
  }
  if (entry.key != kPickleKeysKey && entry.key != kPickleLengthKey) {
    Report(FindingId::kLmdbPickle, entry, "its key is not a number");
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(Bytes value, window_.Read(entry.value_offset, entry.value_bytes));
  if (entry.key == kPickleKeysKey) {
    OnPickleKeys(entry, value);
    return absl::OkStatus();
  }
  const PickleValue length = ScanPickle(value);
  if (length.kind == PickleValue::Kind::kInteger && length.integer >= 0) {
    stated_length_ = static_cast<uint64_t>(length.integer);
  } else {
    Report(FindingId::kLmdbPickle, entry, absl::StrCat("it is not an integer: ", length.problem));
  }
  return absl::OkStatus();
}

void RecordReader::OnPickleKeys(const LmdbEntry& entry, Bytes value) {
  const PickleValue keys = ScanPickle(value, [&](uint64_t number, Bytes item) {
    if (!keys_in_order_) return;
    const std::optional<uint32_t> stated = NumberOf(AsText(item));
    keys_in_order_ = stated && *stated == number;
  });
  if (keys.kind == PickleValue::Kind::kList) {
    listed_keys_ = keys.items;
  } else {
    Report(FindingId::kLmdbPickle, entry, absl::StrCat("it is not a list of keys: ", keys.problem));
  }
}

absl::Status RecordReader::OnPickle(const Waiting& waiting) {
  LmdbEntry entry;
  const std::string key = absl::StrCat(waiting.number);
  entry.key = key;
  entry.number = waiting.number;
  entry.value_offset = waiting.value_offset;
  entry.value_bytes = waiting.value_bytes;
  // A value begins right after a page header only if it has pages of its own.
  const uint64_t in_page = waiting.value_offset % page_bytes_;
  const bool alone = in_page == kPageHeaderBytes;
  entry.offset = waiting.value_offset - (alone ? kPageHeaderBytes : 8 + key.size());
  const uint64_t end = waiting.value_offset + waiting.value_bytes;
  entry.length = (alone ? (end + page_bytes_ - 1) / page_bytes_ * page_bytes_ : end) - entry.offset;
  ASSIGN_OR_RETURN(Bytes value, window_.Read(waiting.value_offset, waiting.value_bytes));
  const PickleValue pair = ScanPickle(value);
  if (pair.kind != PickleValue::Kind::kPair) {
    Report(FindingId::kLmdbPickle, entry,
           pair.problem.empty() ? "it is not a pair of bytes and label" : pair.problem);
    return absl::OkStatus();
  }
  HandOn(entry, value, pair.offset, pair.length, "", "", pair.integer);
  return absl::OkStatus();
}

absl::Status RecordReader::Finish() {
  if (layout_ != LmdbLayout::kPickle) return absl::OkStatus();
  std::sort(waiting_.begin(), waiting_.end(),
            [](const Waiting& a, const Waiting& b) { return a.number < b.number; });
  for (const Waiting& waiting : waiting_) {
    RETURN_IF_ERROR(OnPickle(waiting));
  }
  const uint64_t found = waiting_.size();
  const bool gap = !waiting_.empty() && waiting_.back().number != found - 1;
  const auto complain = [&](std::string_view key, const char* what,
                            std::optional<uint64_t> stated) {
    Finding finding = MakeFinding(FindingId::kLmdbPickle, options_.shard_name);
    finding.key = std::string(key);
    finding.detail = what;
    finding.expected = absl::StrCat(found, " samples from key 0 on");
    if (stated) finding.actual = absl::StrCat(*stated);
    findings_.Report(std::move(finding));
  };
  if (gap) complain("", "numbers are missing among the keys", waiting_.back().number + uint64_t{1});
  if (stated_length_ != found)
    complain(kPickleLengthKey, "it states another number", stated_length_);
  if (listed_keys_ != found) complain(kPickleKeysKey, "it lists another number", listed_keys_);
  if (!keys_in_order_) complain(kPickleKeysKey, "its keys are not 0, 1, 2, ...", std::nullopt);
  return absl::OkStatus();
}

}  // namespace shardpack
