#include "converters/building/shard_builder.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "converters/publishing/published.h"
#include "converters/publishing/shard_results.h"
#include "formats/core/index_name.h"
#include "formats/core/shard_index.h"
#include "formats/io/crypto_hash.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/io/sequential_reader.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

absl::StatusOr<std::string> Sha256Of(const File& file, uint64_t bytes) {
  Sha256Stream stream;
  std::vector<std::byte> block(1 << 20);
  for (uint64_t at = 0; at < bytes;) {
    const std::span<std::byte> into(block.data(), std::min<uint64_t>(block.size(), bytes - at));
    RETURN_IF_ERROR(file.ReadExactlyAt(at, into));
    stream.Update(into);
    at += into.size();
  }
  return stream.FinishHex();
}

void CountChanges(uint16_t changes, DatasetFacts& facts) {
  ++facts.pixels[ChangesPixels(changes) ? "re-encoded" : "kept"];
  for (size_t i = 0; i < kPixelChangeNames.size(); ++i) {
    if ((changes >> i & 1) != 0) ++facts.pixels[std::string(kPixelChangeNames[i])];
  }
}

void AddStats(const PixelStats& stats, std::map<std::string, uint64_t>& into) {
  into["images"] += stats.images;
  into["pixels"] += stats.sums.pixels;
  if (stats.undecodable > 0) into["undecodable"] += stats.undecodable;
  for (size_t c = 0; c < stats.sums.sum.size(); ++c) {
    into[absl::StrCat("sum_", c)] += stats.sums.sum[c];
    into[absl::StrCat("squares_", c)] += stats.sums.squares[c];
  }
}

std::string_view ClassName(const Plan& plan, int64_t label) {
  return label < 0 ? std::string_view()
                   : std::string_view(plan.listing().classes[static_cast<size_t>(label)]);
}

}  // namespace

ShardBuilder::~ShardBuilder() = default;

ShardBuilder::ShardBuilder(const Plan& plan, size_t shard, OutputDir& out)
    : plan_(plan), out_(out), planned_(plan.shards()[shard]), spec_(plan.Spec(shard)) {
  result_.shard = static_cast<uint32_t>(shard);
  result_.plan = plan.digest();
  result_.times = plan.ShardTimes(shard);
  expected_.reserve(planned_.count);
  expected_fields_.reserve(planned_.count);
}

absl::StatusOr<std::unique_ptr<ShardBuilder>> ShardBuilder::Create(const Plan& plan, size_t shard,
                                                                   OutputDir& out) {
  RETURN_IF_ERROR(plan.CheckSlice(shard));
  auto builder = std::unique_ptr<ShardBuilder>(new ShardBuilder(plan, shard, out));
  ASSIGN_OR_RETURN(builder->staged_, out.Stage(builder->planned_.name));
  if (plan.sizes_change() && FindLayout(plan.format(), plan.layout())->needs_totals) {
    ASSIGN_OR_RETURN(std::unique_ptr<StagedFile> file,
                     out.Stage(builder->planned_.name + ".spool"));
    builder->spool_ = std::make_unique<SampleSpool>(std::move(file));
    return builder;
  }
  RETURN_IF_ERROR(builder->CreateWriter());
  return builder;
}

absl::Status ShardBuilder::CreateWriter() {
  ASSIGN_OR_RETURN(writer_, plan_.format().create(*staged_, spec_));
  return absl::OkStatus();
}

absl::Status ShardBuilder::Unspool() {
  const std::unique_ptr<SampleSpool> spool = std::move(spool_);
  const std::vector<FieldTotal> totals = spool->Totals();
  if (!totals.empty()) spec_.fields = totals;
  RETURN_IF_ERROR(CreateWriter());
  return spool->ForEach([&](const PreparedSample& sample, std::span<const uint64_t> hashes) {
    return AppendSample(sample, hashes);
  });
}

absl::Status ShardBuilder::Append(const SampleChunk& chunk) {
  RETURN_IF_ERROR(chunk.status());
  for (const PreparedSample& prepared : chunk.samples()) {
    const std::span<const uint64_t> hashes = chunk.hashes(prepared);
    RETURN_IF_ERROR(spool_ != nullptr ? spool_->Add(prepared, hashes)
                                      : AppendSample(prepared, hashes));
  }
  for (Skip skip : chunk.skips()) {
    skip.row = plan_.source_row(skip.row);
    result_.skips.push_back(std::move(skip));
  }
  if (plan_.options().compute_stats) AddStats(chunk.pixel_stats(), result_.facts.pixel_sums);
  return absl::OkStatus();
}

absl::Status ShardBuilder::AppendSample(const PreparedSample& prepared,
                                        std::span<const uint64_t> hashes) {
  const Listing& listing = plan_.listing();
  const uint32_t row = plan_.row(prepared.position);
  const size_t key_begin = expected_texts_.size();
  plan_.AppendKey(prepared.position, expected_texts_);
  const size_t path_begin = expected_texts_.size();
  listing.AppendPath(row, expected_texts_);
  const int64_t label = listing.label[row];
  const auto texts = std::string_view(expected_texts_);
  const SampleView sample{.number = prepared.position,
                          .key = texts.substr(key_begin, path_begin - key_begin),
                          .source_path = texts.substr(path_begin),
                          .label = label,
                          .class_name = ClassName(plan_, label),
                          .image = prepared.image,
                          .fields = prepared.fields};
  RETURN_IF_ERROR(writer_->Append(sample));
  for (size_t f = 0, name = 0; f < sample.fields.size(); ++f, ++name) {
    // All samples have their fields in the same order; some may lack a field.
    while (name < field_names_.size() && field_names_[name] != sample.fields[f].name) ++name;
    if (name == field_names_.size()) field_names_.emplace_back(sample.fields[f].name);
    expected_fields_.push_back({static_cast<uint32_t>(name), hashes[f]});
  }
  expected_.push_back(
      {prepared.image, label, path_begin, expected_texts_.size(), expected_fields_.size()});
  AddImageFacts(prepared.image, sample.fields[0].bytes.size(), result_.facts);
  ++format_counts_[static_cast<size_t>(prepared.image.format)];
  if (!plan_.options().pixels.identity()) CountChanges(prepared.changes, result_.facts);
  return absl::OkStatus();
}

// Compares each scanned record with what was passed to the writer, and collects the index.
class ShardBuilder::Verification : public RecordSink {
 public:
  explicit Verification(ShardBuilder& builder)
      : builder_(builder),
        keeps_labels_(FindLayout(builder.plan_.format(), builder.plan_.layout())->keeps_labels) {}

  void OnRecord(const ScannedRecord& record) override {
    const size_t n = index_.records();
    if (n >= builder_.expected_.size()) return Fail(record, "more records than were written");
    const Expected& expected = builder_.expected_[n];
    const auto texts = std::string_view(builder_.expected_texts_);
    key_ = texts.substr(key_begin_, expected.path_begin - key_begin_);
    const auto path = texts.substr(expected.path_begin, expected.path_end - expected.path_begin);
    key_begin_ = expected.path_end;
    if (!record.key.empty() && record.key != key_) Fail(record, "another key");
    if (keeps_labels_ && record.label != expected.label) Fail(record, "another label");
    for (; next_field_ < expected.fields_end; ++next_field_) {
      const ExpectedField& wanted = builder_.expected_fields_[next_field_];
      const std::string_view name = builder_.field_names_[wanted.name];
      const auto found =
          std::find_if(record.fields.begin(), record.fields.end(),
                       [&](const ScannedField& field) { return field.name == name; });
      if (found == record.fields.end()) {
        Fail(record, "a field is missing");
      } else if (found->hash != wanted.hash) {
        Fail(record, "other bytes than the source");
      }
    }
    DatasetFacts& facts = builder_.result_.facts;
    facts.largest_record_bytes = std::max(facts.largest_record_bytes, record.length);
    index_.Add(record, key_, path, expected.label, expected.image);
  }

  absl::StatusOr<std::string> Take(uint64_t shard_bytes) {
    if (failed_.ok() && index_.records() != builder_.expected_.size()) {
      failed_ = absl::DataLossError(
          absl::StrCat(builder_.planned_.name, ": ", builder_.expected_.size(),
                       " records were written, ", index_.records(), " read back"));
    }
    if (!failed_.ok()) return failed_;
    return index_.Finish(shard_bytes);
  }

 private:
  void Fail(const ScannedRecord& record, const char* why) {
    if (!failed_.ok()) return;
    failed_ = absl::DataLossError(absl::StrCat(builder_.planned_.name, " record ", index_.records(),
                                               " key ", EscapeForTerminal(key_), " at offset ",
                                               record.offset, ": read back with ", why));
  }

  ShardBuilder& builder_;
  const bool keeps_labels_;
  ShardIndexBuilder index_;
  uint64_t next_field_ = 0, key_begin_ = 0;
  std::string_view key_;
  absl::Status failed_;
};

absl::StatusOr<std::string> ShardBuilder::Verify(uint64_t bytes) {
  SequentialReader in(staged_->file(), bytes);
  Verification verification(*this);
  FindingList findings(1);
  // Not strict: this verifies bytes. What readers disagree about is left to the writer and its
  // tests.
  const LayoutSpec* layout = FindLayout(plan_.format(), plan_.layout());
  const ScanOptions options{
      .shard_name = planned_.name, .strict = false, .label_base = layout->label_base};
  RETURN_IF_ERROR(plan_.format().scanner->Scan(in, options, verification, findings));
  if (findings.errors() > 0) return absl::DataLossError(ToText(findings.findings().front()));
  ASSIGN_OR_RETURN(Digest digest, in.Finish());
  result_.file = {plan_.DataFile(result_.shard), bytes, digest};
  return verification.Take(bytes);
}

absl::StatusOr<ShardResult> ShardBuilder::Finish() {
  if (spool_ != nullptr) RETURN_IF_ERROR(Unspool());
  RETURN_IF_ERROR(writer_->Finish());
  // The disk writes while this thread verifies.
  RETURN_IF_ERROR(out_.options().fsync ? staged_->StartSync() : staged_->Flush());
  const uint64_t bytes = staged_->size();
  result_.records = expected_.size();
  for (size_t f = 0; f < format_counts_.size(); ++f) {
    if (format_counts_[f] == 0) continue;
    result_.facts.image_formats[std::string(ImageExtension(static_cast<ImageFormat>(f)))] =
        format_counts_[f];
  }
  // The disk of the source may have gone since the run began.
  const std::string& source = out_.options().planned_source;
  if (result_.records == 0 && !source.empty() && LacksWhatMayBeBack(result_))
    RETURN_IF_ERROR(CheckSourceFits(plan_, source, out_.wanted()));
  ASSIGN_OR_RETURN(std::string index, Verify(bytes));
  verified_ = true;
  if (plan_.options().sha256) {
    ASSIGN_OR_RETURN(result_.sha256, Sha256Of(staged_->file(), bytes));
  }
  if (out_.options().fsync) RETURN_IF_ERROR(staged_->SyncData());
  // If another worker was faster, what it has published stays.
  RETURN_IF_ERROR(out_.FollowOthers(plan_, std::span(&result_.shard, 1)).status());
  ASSIGN_OR_RETURN(std::optional<ShardResult> theirs, out_.TakeFinishedByOther(result_.shard));
  const bool as_good =
      theirs && (theirs->file.xxh3_128 == result_.file.xxh3_128 || LacksWhatMayBeBack(result_));
  if (as_good) return *std::move(theirs);
  result_.index = {IndexName(planned_.name), index.size(), Xxh3_128(AsBytes(index))};
  RETURN_IF_ERROR(out_.CheckMayPublish(result_.index));
  RETURN_IF_ERROR(out_.journal().AppendPending(result_));
  RETURN_IF_ERROR(out_.Publish(*staged_, result_.file));
  ASSIGN_OR_RETURN(result_.index, out_.WriteFile(result_.index.name, index));
  RETURN_IF_ERROR(out_.SyncFolder());
  RETURN_IF_ERROR(out_.journal().Append(result_));
  return std::move(result_);
}

}  // namespace shardpack
