#include "converters/shard_builder.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "formats/io/sequential_reader.h"
#include "images/probe.h"

namespace shardpack {
namespace {

SkipReason ReasonOf(ProbeVerdict verdict) {
  switch (verdict) {
    case ProbeVerdict::kEmpty: return SkipReason::kEmpty;
    case ProbeVerdict::kTruncated: return SkipReason::kTruncated;
    case ProbeVerdict::kBadCrc: return SkipReason::kBadCrc;
    case ProbeVerdict::kPixelLimit: return SkipReason::kPixelLimit;
    case ProbeVerdict::kNotAnImage:
    case ProbeVerdict::kOk: break;
  }
  return SkipReason::kNotAnImage;
}

absl::StatusOr<std::string> Sha256Of(const File& file, uint64_t bytes) {
  Sha256Stream stream;
  std::vector<std::byte> block(1 << 20);
  for (uint64_t at = 0; at < bytes;) {
    const std::span<std::byte> into(block.data(), std::min<uint64_t>(block.size(), bytes - at));
    absl::Status read = file.ReadExactlyAt(at, into);
    if (!read.ok()) return read;
    stream.Update(into);
    at += into.size();
  }
  return stream.FinishHex();
}

std::string_view ClassName(const Plan& plan, int64_t label) {
  return label < 0 ? std::string_view() : std::string_view(plan.listing().classes[static_cast<size_t>(label)]);
}

}  // namespace

void SampleChunk::Reset() {
  arena.Reset();
  samples.clear();
  hashes.clear();
  skips.clear();
  bytes_in = 0;
}

void LoadSamples(const Plan& plan, const SampleSource& source, uint64_t first, uint64_t count, SampleChunk& chunk) {
  for (uint64_t position = first; position < first + count; ++position) {
    LoadResult loaded = source.Load(plan.listing(), plan.row(position), chunk.arena);
    if (Skip* skip = std::get_if<Skip>(&loaded)) {
      chunk.skips.push_back(std::move(*skip));
      continue;
    }
    const auto fields = std::get<LoadedSample>(loaded).fields;
    for (const FieldView& field : fields) chunk.bytes_in += field.bytes.size();
    chunk.samples.push_back({position, fields, {}, 0});
  }
}

void JudgeSamples(const Plan& plan, SampleChunk& chunk) {
  const PlanOptions& options = plan.options();
  const ProbeOptions probe{.level = options.verify,
                           .max_pixels = options.max_pixels,
                           .allow_truncated = options.allow_truncated};
  auto keep = chunk.samples.begin();
  for (PreparedSample& sample : chunk.samples) {
    const ProbeResult judged = ProbeImage(sample.fields[0].bytes, probe);
    if (judged.verdict != ProbeVerdict::kOk) {
      chunk.skips.push_back({plan.row(sample.position), ReasonOf(judged.verdict),
                             absl::StrCat(judged.detail, " at offset ", judged.offset)});
      continue;
    }
    sample.image = judged.info;
    sample.first_hash = chunk.hashes.size();
    for (const FieldView& field : sample.fields) chunk.hashes.push_back(Xxh3_64(field.bytes));
    *keep++ = sample;
  }
  chunk.samples.erase(keep, chunk.samples.end());
}

ShardBuilder::ShardBuilder(const Plan& plan, size_t shard, OutputDir& out)
    : plan_(plan), out_(out), planned_(plan.shards()[shard]), spec_(plan.Spec(shard)) {
  result_.shard = static_cast<uint32_t>(shard);
  expected_.reserve(planned_.count);
  expected_hashes_.reserve(planned_.count);
}

absl::StatusOr<std::unique_ptr<ShardBuilder>> ShardBuilder::Create(const Plan& plan, size_t shard, OutputDir& out) {
  auto builder = std::unique_ptr<ShardBuilder>(new ShardBuilder(plan, shard, out));
  absl::StatusOr<std::unique_ptr<StagedFile>> staged = StagedFile::Create(out.StagePathOf(builder->planned_.name));
  if (!staged.ok()) return staged.status();
  builder->staged_ = *std::move(staged);
  absl::StatusOr<std::unique_ptr<ShardWriter>> writer = plan.format().create(*builder->staged_, builder->spec_);
  if (!writer.ok()) return writer.status();
  builder->writer_ = *std::move(writer);
  return builder;
}

absl::Status ShardBuilder::Append(const SampleChunk& chunk) {
  const Listing& listing = plan_.listing();
  for (const PreparedSample& prepared : chunk.samples) {
    const uint32_t row = plan_.row(prepared.position);
    key_.clear();
    path_.clear();
    plan_.AppendKey(prepared.position, key_);
    listing.AppendPath(row, path_);
    const int64_t label = listing.label[row];
    const SampleView sample{.number = prepared.position,
                            .key = key_,
                            .source_path = path_,
                            .label = label,
                            .class_name = ClassName(plan_, label),
                            .image = prepared.image,
                            .fields = prepared.fields};
    absl::Status appended = writer_->Append(sample);
    if (!appended.ok()) return appended;
    if (field_names_.empty()) {
      for (const FieldView& field : sample.fields) field_names_.emplace_back(field.name);
    }
    expected_.push_back({prepared.position, prepared.image});
    for (size_t f = 0; f < sample.fields.size(); ++f) {
      expected_hashes_.push_back(chunk.hashes[prepared.first_hash + f]);
    }
    AddImageFacts(prepared.image, sample.fields[0].bytes.size(), result_.facts);
    ++format_counts_[static_cast<size_t>(prepared.image.format)];
  }
  result_.skips.insert(result_.skips.end(), chunk.skips.begin(), chunk.skips.end());
  return absl::OkStatus();
}

// Compares each scanned record with what was handed to the writer, and collects the index.
class ShardBuilder::Proof : public RecordSink {
 public:
  explicit Proof(ShardBuilder& builder)
      : builder_(builder),
        keeps_labels_(FindLayout(builder.plan_.format(), builder.plan_.layout())->keeps_labels) {}

  void OnRecord(const ScannedRecord& record) override {
    const size_t n = index_.records();
    if (n >= builder_.expected_.size()) return Fail(record, "more records than were written");
    const Expected& expected = builder_.expected_[n];
    const Plan& plan = builder_.plan_;
    const uint32_t row = plan.row(expected.position);
    key_.clear();
    path_.clear();
    plan.AppendKey(expected.position, key_);
    plan.listing().AppendPath(row, path_);
    const int64_t label = plan.listing().label[row];
    if (!record.key.empty() && record.key != key_) Fail(record, "another key");
    if (keeps_labels_ && record.label != label) Fail(record, "another label");
    const size_t fields = builder_.field_names_.size();
    for (size_t f = 0; f < fields; ++f) {
      const std::string_view name = builder_.field_names_[f];
      const auto found = std::find_if(record.fields.begin(), record.fields.end(),
                                      [&](const ScannedField& field) { return field.name == name; });
      if (found == record.fields.end()) {
        Fail(record, "a field is missing");
      } else if (found->hash != builder_.expected_hashes_[n * fields + f]) {
        Fail(record, "other bytes than the source");
      }
    }
    DatasetFacts& facts = builder_.result_.facts;
    facts.largest_record_bytes = std::max(facts.largest_record_bytes, record.length);
    index_.Add(record, key_, path_, label, expected.image);
  }

  absl::StatusOr<std::string> Take(uint64_t shard_bytes) {
    if (failed_.ok() && index_.records() != builder_.expected_.size()) {
      failed_ = absl::DataLossError(absl::StrCat(builder_.planned_.name, ": ", builder_.expected_.size(),
                                                 " records were written, ", index_.records(), " read back"));
    }
    if (!failed_.ok()) return failed_;
    return index_.Finish(shard_bytes);
  }

 private:
  void Fail(const ScannedRecord& record, const char* why) {
    if (!failed_.ok()) return;
    failed_ = absl::DataLossError(absl::StrCat(builder_.planned_.name, " record ", index_.records(), " key ",
                                               EscapeForTerminal(key_), " at offset ", record.offset,
                                               ": read back with ", why));
  }

  ShardBuilder& builder_;
  const bool keeps_labels_;
  ShardIndexBuilder index_;
  std::string key_, path_;
  absl::Status failed_;
};

absl::StatusOr<std::string> ShardBuilder::Prove(uint64_t bytes) {
  SequentialReader in(staged_->file(), bytes);
  Proof proof(*this);
  FindingList findings(1);
  // What readers disagree about is the writer's business and its tests'; here the bytes are proven.
  const LayoutSpec* layout = FindLayout(plan_.format(), plan_.layout());
  const ScanOptions options{.shard_name = planned_.name, .strict = false, .label_base = layout->label_base};
  absl::Status scanned = plan_.format().scanner->Scan(in, options, proof, findings);
  if (!scanned.ok()) return scanned;
  if (findings.errors() > 0) return absl::DataLossError(ToText(findings.findings().front()));
  absl::StatusOr<Digest> digest = in.Finish();
  if (!digest.ok()) return digest.status();
  result_.file = {plan_.DataFile(result_.shard), bytes, *digest};
  return proof.Take(bytes);
}

absl::StatusOr<ShardResult> ShardBuilder::Finish() {
  absl::Status status = writer_->Finish();
  if (status.ok()) status = staged_->Flush();
  if (!status.ok()) return status;
  const uint64_t bytes = staged_->size();
  result_.records = expected_.size();
  for (size_t f = 0; f < format_counts_.size(); ++f) {
    if (format_counts_[f] == 0) continue;
    result_.facts.image_formats[std::string(ImageExtension(static_cast<ImageFormat>(f)))] = format_counts_[f];
  }
  absl::StatusOr<std::string> index = Prove(bytes);
  if (!index.ok()) return index.status();
  if (plan_.options().sha256) {
    absl::StatusOr<std::string> sha256 = Sha256Of(staged_->file(), bytes);
    if (!sha256.ok()) return sha256.status();
    result_.sha256 = *std::move(sha256);
  }
  if (out_.options().fsync) status = staged_->SyncData();
  if (status.ok()) status = out_.Publish(*staged_, result_.file.name);
  if (!status.ok()) return status;
  absl::StatusOr<FileEntry> index_file = out_.WriteFile(planned_.name + std::string(kIndexSuffix), *index);
  if (!index_file.ok()) return index_file.status();
  result_.index = *std::move(index_file);
  status = out_.SyncFolder();
  if (status.ok()) status = out_.journal().Append(result_);
  if (!status.ok()) return status;
  return std::move(result_);
}

}  // namespace shardpack
