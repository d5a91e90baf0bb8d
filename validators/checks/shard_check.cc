#include "validators/checks/shard_check.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/core/find_shard.h"
#include "formats/core/shard_index.h"
#include "formats/io/file.h"
#include "formats/io/sequential_reader.h"
#include "formats/io/status_macros.h"
#include "validators/checks/field_read.h"
#include "validators/checks/image_check.h"
#include "validators/checks/key_hashes.h"
#include "validators/checks/record_match.h"
#include "validators/checks/source_check.h"

namespace shardpack {
namespace {

class ShardCheck {
 public:
  ShardCheck(const ShardTask& task, const CheckRun& run, ShardOutcome& outcome)
      : task_(task), run_(run), row_(task.manifest.shards[task.shard]), out_(outcome) {}

  void Check();

 private:
  std::string PathOf(const std::string& name) const { return PathInDataset(task_.root, name); }
  void Report(FindingId id, const std::string& file, const std::string& expected,
              const std::string& actual, const std::string& detail = "");
  // Whether every record is checked, not a selection.
  bool Whole() const { return run_.level != ValidationLevel::kQuick && run_.sample_percent >= 100; }
  bool HashOfIndexFits();
  void OpenIndex();
  void CheckIndexColumns();
  bool OpenData();
  void CheckHead();
  bool CheckPass();
  bool CheckChosenRecords();
  bool CheckSources();
  bool CheckImages();
  std::vector<uint64_t> ChosenRecords() const;
  bool ReadFailed(const absl::Status& status);

  const ShardTask& task_;
  const CheckRun& run_;
  const ManifestShard& row_;
  ShardOutcome& out_;
  std::optional<ShardIndex> index_;
  File data_;
  uint64_t data_bytes_ = 0;
};

void ShardCheck::Report(FindingId id, const std::string& file, const std::string& expected,
                        const std::string& actual, const std::string& detail) {
  Finding finding = MakeFinding(id, file);
  finding.expected = expected;
  finding.actual = actual;
  finding.detail = detail;
  out_.findings.Report(std::move(finding));
}

// Always false, for `return ReadFailed(...)`. Cancellation is not a finding.
bool ShardCheck::ReadFailed(const absl::Status& status) {
  if (!absl::IsCancelled(status)) {
    Report(FindingId::kReadError, row_.name, "", "", std::string(status.message()));
  }
  return false;
}

// The index is not the manifest's, or is the manifest's but unusable: reports which.
bool ShardCheck::HashOfIndexFits() {
  absl::StatusOr<File> file = File::OpenRead(PathOf(row_.index.name));
  absl::StatusOr<uint64_t> size = file.ok() ? file->Size() : file.status();
  absl::StatusOr<Digest> digest = size.ok() ? HashFile(*file, *size, run_) : size.status();
  if (!digest.ok()) {
    if (!absl::IsCancelled(digest.status())) {
      Report(FindingId::kReadError, row_.index.name, "", "",
             std::string(digest.status().message()));
    }
    return false;
  }
  if (*digest == row_.index.xxh3_128) return true;
  Report(FindingId::kFileHash, row_.index.name, row_.index.xxh3_128.ToHex(), digest->ToHex());
  return false;
}

void ShardCheck::OpenIndex() {
  if (!task_.folder.present.contains(row_.index.name)) return;
  const std::string path = PathOf(row_.index.name);
  absl::StatusOr<ShardIndex> index = ShardIndex::Open(path, row_.bytes, row_.index.xxh3_128);
  if (index.ok()) {
    index_ = *std::move(index);
    out_.bytes_read += row_.index.bytes;
    (void)run_.Advance(row_.index.bytes);  // the pass over the shard checks again
    return;
  }
  if (!absl::IsDataLoss(index.status())) {
    Report(absl::IsUnimplemented(index.status()) ? FindingId::kOtherVersion : FindingId::kReadError,
           row_.index.name, "", "", std::string(index.status().message()));
  } else if (HashOfIndexFits()) {
    Report(FindingId::kIndexInvalid, row_.index.name, "", "",
           std::string(index.status().message()));
  } else if (ShardIndex::Open(path, row_.bytes).ok()) {
    Report(FindingId::kIndexShardMismatch, row_.index.name, "", "",
           "a sound index, but not the one that the manifest names");
  }
}

void ShardCheck::CheckIndexColumns() {
  if (index_->records() != row_.records) {
    Report(FindingId::kCountMismatch, row_.index.name, absl::StrCat(row_.records),
           absl::StrCat(index_->records()));
  }
  const auto classes = static_cast<int64_t>(task_.manifest.classes.size());
  out_.key_hashes.resize(index_->records());
  for (uint64_t r = 0; r < index_->records(); ++r) {
    out_.key_hashes[r] = HashKey(index_->key(r));
    const int64_t label = index_->label(r);
    if (label == kNoLabel || (label >= 0 && (classes == 0 || label < classes))) continue;
    Finding finding = MakeFinding(FindingId::kLabelRange, row_.name);
    finding.record = r;
    finding.key = std::string(index_->key(r));
    finding.expected = classes == 0 ? "0 or more" : absl::StrCat("0 to ", classes - 1);
    finding.actual = absl::StrCat(label);
    out_.findings.Report(std::move(finding));
  }
}

bool ShardCheck::OpenData() {
  const std::string name = task_.manifest.DataFileOf(row_);
  if (!task_.folder.present.contains(name)) return false;
  absl::StatusOr<File> file = File::OpenRead(PathOf(name));
  if (!file.ok()) return ReadFailed(file.status());
  absl::StatusOr<uint64_t> bytes = file->Size();
  if (!bytes.ok()) return ReadFailed(bytes.status());
  data_ = *std::move(file);
  data_bytes_ = *bytes;
  return true;
}

void ShardCheck::CheckHead() {
  std::array<std::byte, kSniffBytes> head;
  absl::StatusOr<size_t> got = data_.ReadAt(0, head);
  if (!got.ok()) {
    ReadFailed(got.status());
  } else if (task_.format != nullptr && row_.records > 0 &&
             !task_.format->sniff(Bytes(head).first(*got),
                                  task_.manifest.indexed_in_place() ? row_.name : "")) {
    Report(FindingId::kUnknownFormat, row_.name, std::string(task_.format->name), "",
           "the file does not begin like one of this format");
  }
}

// Reads every byte once.
bool ShardCheck::CheckPass() {
  SequentialReader in(data_, data_bytes_);
  in.OnBlock([this](uint64_t bytes) {
    out_.bytes_read += bytes;
    return run_.Advance(bytes);
  });
  if (task_.format != nullptr) {
    // Without an index there is nothing to compare with, but the container is still scanned.
    static const ShardIndex* const kEmpty =
        new ShardIndex(*ShardIndex::FromBytes(ShardIndexBuilder().Finish(0), 0));
    FindingTally ignored;
    RecordMatch match(index_ ? *index_ : *kEmpty, row_.name, task_.manifest.indexed_in_place(),
                      index_ ? static_cast<FindingSink&>(out_.findings) : ignored);
    absl::Status scanned = task_.format->scanner->Scan(
        in, {.shard_name = row_.name, .strict = true, .label_base = task_.manifest.label_base},
        match, out_.findings);
    if (!scanned.ok()) return ReadFailed(scanned);
    match.Finish();
    out_.records_checked = index_ ? match.matched() : match.scanned();
    if (match.scanned() != row_.records) {
      Report(FindingId::kCountMismatch, row_.name, absl::StrCat(row_.records),
             absl::StrCat(match.scanned()));
    }
  }
  absl::StatusOr<Digest> digest = in.Finish();
  if (!digest.ok()) return ReadFailed(digest.status());
  if (*digest != row_.xxh3_128) {
    Report(FindingId::kFileHash, row_.name, row_.xxh3_128.ToHex(), digest->ToHex());
  }
  return true;
}

// The first and the last record, and with --sample at full a share in between: always the same
// ones, with smaller shares contained in larger ones.
std::vector<uint64_t> ShardCheck::ChosenRecords() const {
  std::vector<uint64_t> records;
  const uint64_t count = index_->records();
  const bool sample = run_.level != ValidationLevel::kQuick;
  const double share = run_.sample_percent / 100;
  const uint64_t seed = Xxh3_64(AsBytes(row_.name));
  for (uint64_t r = 0; r < count; r = sample ? r + 1 : std::max(r + 1, count - 1)) {
    bool take = r == 0 || r + 1 == count;
    if (!take && sample) {
      const uint64_t numbers[] = {seed, r};
      const uint64_t hash = Xxh3_64(std::as_bytes(std::span(numbers)));
      take = static_cast<double>(hash >> 11) < share * static_cast<double>(uint64_t{1} << 53);
    }
    if (take) records.push_back(r);
  }
  return records;
}

bool ShardCheck::CheckChosenRecords() {
  const std::vector<uint64_t> records = ChosenRecords();
  const uint64_t before = out_.findings.errors();
  uint64_t damaged = 0;
  std::vector<std::byte> block;
  for (const uint64_t record : records) {
    uint64_t bytes = 0;
    const uint64_t errors = out_.findings.errors();
    absl::Status checked =
        CheckRecordFields(data_, *index_, record, row_.name, block, bytes, out_.findings);
    out_.bytes_read += bytes;
    if (checked.ok()) checked = run_.Advance(bytes);
    if (!checked.ok()) return ReadFailed(checked);
    ++out_.records_checked;
    damaged += out_.findings.errors() > errors ? 1 : 0;
  }
  // No record where the index has one: not a damaged shard, but a different one.
  if (damaged > 1 && damaged == records.size() && out_.findings.errors() > before) {
    Report(FindingId::kIndexShardMismatch, row_.name, "", "",
           absl::StrCat("none of the ", records.size(), " records read is where its index says"));
  }
  return true;
}

bool ShardCheck::CheckSources() {
  if (!run_.open_source) return true;
  const auto& pixels = task_.manifest.facts.pixels;
  const bool changed = pixels.contains("re-encoded");
  if (changed) {
    out_.not_checked.emplace_back(
        "the bytes of images against their files in the source, because pixels were changed on "
        "purpose; only that the files are there");
  }
  SourceCheck check(run_.open_source, run_.against_parts, row_.name, changed, out_.findings);
  const bool all = Whole();
  std::vector<uint64_t> chosen;
  if (!all) chosen = ChosenRecords();
  const uint64_t count = all ? index_->records() : chosen.size();
  for (uint64_t i = 0; i < count; ++i) {
    if (run_.Stopped()) return false;
    check.Compare(data_, *index_, all ? i : chosen[i]);
  }
  out_.sources_compared = check.compared();
  return true;
}

// Goes by the index: the pass has already reported records found elsewhere.
bool ShardCheck::CheckImages() {
  ImageCheck check(data_, row_.name, run_, out_);
  std::vector<uint64_t> chosen;
  if (!Whole()) chosen = ChosenRecords();
  const uint64_t count = Whole() ? index_->records() : chosen.size();
  for (uint64_t i = 0; i < count && !run_.Stopped(); ++i) {
    const uint64_t record = Whole() ? i : chosen[i];
    for (size_t f = 0; f < index_->fields(); ++f) {
      const std::string_view name = index_->field_name(f);
      // An index of a shard of other tools has the fields in the order in which they came.
      const bool is_image = name == kImageField;
      if (!index_->has_field(record, f) || !(is_image || ImageCheck::IsImageField(name))) continue;
      ImageToCheck image{.record = record,
                         .key = std::string(index_->key(record)),
                         .field = std::string(name),
                         .extent = index_->field(record, f)};
      if (is_image) image.indexed = index_->image(record);
      check.Add(std::move(image));
    }
  }
  check.Flush();
  return !run_.Stopped();
}

void ShardCheck::Check() {
  out_.format = task_.manifest.format;
  out_.bytes = row_.bytes;
  out_.records = row_.records;
  OpenIndex();
  if (index_) CheckIndexColumns();
  if (row_.records == 0) out_.findings.Report(MakeFinding(FindingId::kShardEmpty, row_.name));
  if (!index_) out_.not_checked.push_back(absl::StrCat(row_.name, ": records against the index"));
  if (!OpenData()) {
    out_.not_checked.push_back(absl::StrCat(row_.name, ": its bytes"));
    return;
  }
  CheckHead();
  bool done = Whole() ? CheckPass() : !index_ || CheckChosenRecords();
  if (done && index_) done = CheckSources();
  if (done && index_ && run_.level == ValidationLevel::kDeep) done = CheckImages();
  out_.complete = done;
}

}  // namespace

void CheckShard(const ShardTask& task, const CheckRun& run, ShardOutcome& outcome) {
  ShardCheck(task, run, outcome).Check();
}

absl::StatusOr<std::vector<std::string>> KeysOfShard(const ShardTask& task,
                                                     std::span<const uint64_t> records) {
  const ManifestShard& row = task.manifest.shards[task.shard];
  ASSIGN_OR_RETURN(ShardIndex index, ShardIndex::Open(absl::StrCat(task.root, "/", row.index.name),
                                                      row.bytes, row.index.xxh3_128));
  std::vector<std::string> keys;
  for (const uint64_t record : records) keys.emplace_back(index.key(record));
  return keys;
}

}  // namespace shardpack
