#include "converters/building/shard_builder.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "converters/listing/probe_pass.h"
#include "converters/publishing/shard_results.h"
#include "formats/core/index_name.h"
#include "formats/io/sequential_reader.h"
#include "formats/io/status_macros.h"
#include "images/codecs/decode.h"
#include "images/probe/probe.h"

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

// Pixels without a header: all that can be wrong is how many they are.
ProbeResult JudgeRaw(const PreparedSample& sample, uint64_t max_pixels) {
  const ImageInfo& info = sample.image;
  const uint64_t pixels = uint64_t{info.width} * info.height;
  if (pixels > max_pixels)
    return {ProbeVerdict::kPixelLimit, info, 0, "more pixels than --max-pixels"};
  if (pixels * info.channels != sample.fields[0].bytes.size()) {
    return {ProbeVerdict::kTruncated, info, 0, "raw pixels of another size"};
  }
  return {ProbeVerdict::kOk, info};
}

void HashSample(PreparedSample& sample, SampleChunk& chunk) {
  sample.first_hash = chunk.hashes.size();
  for (const FieldView& field : sample.fields) chunk.hashes.push_back(Xxh3_64(field.bytes));
}

void CountChanges(uint16_t changes, DatasetFacts& facts) {
  ++facts.pixels[ChangesPixels(changes) ? "re-encoded" : "kept"];
  for (size_t i = 0; i < kPixelChangeNames.size(); ++i) {
    if ((changes >> i & 1) != 0) ++facts.pixels[std::string(kPixelChangeNames[i])];
  }
}

// An image that cannot be decoded is packed all the same, but not in the sums.
void SumPixels(const Plan& plan, const PreparedSample& sample, ImageDecoder& decoder,
               SampleChunk& chunk) {
  const absl::StatusOr<DecodedImage> image =
      decoder.Decode(sample.fields[0].bytes, sample.image,
                     {.orient = false, .max_pixels = plan.options().max_pixels});
  if (!image.ok()) {
    ++chunk.undecodable;
    return;
  }
  ++chunk.summed;
  chunk.sums.Add(image->view);
}

void AddSums(const SampleChunk& chunk, std::map<std::string, uint64_t>& into) {
  into["images"] += chunk.summed;
  into["pixels"] += chunk.sums.pixels;
  if (chunk.undecodable > 0) into["undecodable"] += chunk.undecodable;
  for (size_t c = 0; c < chunk.sums.sum.size(); ++c) {
    into[absl::StrCat("sum_", c)] += chunk.sums.sum[c];
    into[absl::StrCat("squares_", c)] += chunk.sums.squares[c];
  }
}

std::string_view ClassName(const Plan& plan, int64_t label) {
  return label < 0 ? std::string_view()
                   : std::string_view(plan.listing().classes[static_cast<size_t>(label)]);
}

}  // namespace

void SampleChunk::Reset() {
  arena.Reset();
  changed.Reset();
  samples.clear();
  hashes.clear();
  skips.clear();
  next = 0;
  sums = {};
  summed = undecodable = 0;
  bytes_in = 0;
  failed = absl::OkStatus();
}

void LoadSamples(const Plan& plan, const SampleSource& source, uint64_t first, uint64_t count,
                 SampleChunk& chunk) {
  for (uint64_t position = first; position < first + count; ++position) {
    LoadResult loaded = source.Load(plan.listing(), plan.row(position), chunk.arena);
    if (absl::Status* failed = std::get_if<absl::Status>(&loaded)) {
      chunk.samples.clear();
      chunk.skips.clear();
      chunk.failed = std::move(*failed);
      return;
    }
    if (Skip* skip = std::get_if<Skip>(&loaded)) {
      chunk.skips.push_back(std::move(*skip));
      continue;
    }
    const auto fields = std::get<LoadedSample>(loaded).fields;
    for (const FieldView& field : fields) chunk.bytes_in += field.bytes.size();
    chunk.samples.push_back({position, fields, std::get<LoadedSample>(loaded).image});
  }
}

void JudgeSamples(const Plan& plan, SampleChunk& chunk) {
  const PlanOptions& options = plan.options();
  const ProbeOptions probe{.level = options.verify,
                           .max_pixels = options.max_pixels,
                           .allow_truncated = options.allow_truncated};
  const bool hash = options.pixels.identity() && !options.compute_stats;
  auto keep = chunk.samples.begin();
  for (PreparedSample& sample : chunk.samples) {
    const ProbeResult judged = sample.image.format == ImageFormat::kRaw
                                   ? JudgeRaw(sample, options.max_pixels)
                                   : ProbeImage(sample.fields[0].bytes, probe);
    if (judged.verdict != ProbeVerdict::kOk) {
      chunk.skips.push_back({plan.row(sample.position), SkipReasonOf(judged.verdict),
                             absl::StrCat(judged.detail, " at offset ", judged.offset)});
      continue;
    }
    sample.image = judged.info;
    if (hash) HashSample(sample, chunk);
    *keep++ = sample;
  }
  chunk.samples.erase(keep, chunk.samples.end());
}

uint64_t TransformNext(const Plan& plan, const ImageTransform& transform,
                       const TransformTarget& target, TransformScratch& scratch,
                       SampleChunk& chunk) {
  PreparedSample& sample = chunk.samples[chunk.next++];
  const auto fail = [&](SkipReason reason, std::string why) {
    sample.failed = true;
    chunk.skips.push_back({plan.row(sample.position), reason, std::move(why)});
    return uint64_t{0};
  };
  absl::StatusOr<TransformedImage> image =
      transform.Run(sample.fields[0].bytes, sample.image, target, scratch);
  if (!image.ok()) return fail(SkipReason::kDecodeFailed, std::string(image.status().message()));
  sample.changes = image->changes;
  if (!ChangesPixels(image->changes)) {
    if (plan.options().compute_stats) SumPixels(plan, sample, scratch.decoder(), chunk);
    return 0;
  }
  const uint64_t most = plan.format().traits.max_record_bytes;
  if (most > 0 && image->bytes.size() > most) {
    return fail(SkipReason::kTooLarge,
                absl::StrCat(image->bytes.size(), " bytes when encoded, a record of ",
                             std::string(plan.format().name), " takes ", most));
  }
  sample.image = image->info;
  const std::span<std::byte> bytes = chunk.changed.Allocate(image->bytes.size());
  std::memcpy(bytes.data(), image->bytes.data(), bytes.size());
  const size_t count = sample.fields.size();
  static_assert(std::is_trivially_destructible_v<FieldView>);
  auto* fields =
      reinterpret_cast<FieldView*>(chunk.changed.Allocate(count * sizeof(FieldView)).data());
  std::uninitialized_copy(sample.fields.begin(), sample.fields.end(), fields);
  fields[0].bytes = bytes;
  sample.fields = {fields, count};
  if (plan.options().compute_stats) SumPixels(plan, sample, scratch.decoder(), chunk);
  return bytes.size() + count * sizeof(FieldView);
}

void HashSamples(SampleChunk& chunk) {
  std::erase_if(chunk.samples, [](const PreparedSample& sample) { return sample.failed; });
  for (PreparedSample& sample : chunk.samples) HashSample(sample, chunk);
}

void HandOver(SampleChunk& chunk, const std::function<void(const SampleChunk&)>& append) {
  const auto end = chunk.samples.begin() + static_cast<ptrdiff_t>(chunk.next);
  std::vector<PreparedSample> later(end, chunk.samples.end());
  chunk.samples.erase(end, chunk.samples.end());
  HashSamples(chunk);
  append(chunk);
  chunk.samples = std::move(later);
  chunk.hashes.clear();
  chunk.skips.clear();
  chunk.changed.Reset();
  chunk.next = 0;
}

// Samples in a file of their own, until it is known what they add up to.
class ShardBuilder::Spool {
 public:
  static absl::StatusOr<std::unique_ptr<Spool>> Create(const OutputDir& out,
                                                       const std::string& name) {
    ASSIGN_OR_RETURN(std::unique_ptr<StagedFile> file, out.Stage(name));
    auto spool = std::make_unique<Spool>();
    spool->file_ = std::move(file);
    return spool;
  }

  absl::Status Add(const PreparedSample& sample, std::span<const uint64_t> hashes) {
    if (names_.empty()) {
      for (const FieldView& field : sample.fields) names_.emplace_back(field.name);
    }
    samples_.push_back(sample);
    for (size_t f = 0; f < sample.fields.size(); ++f) {
      sizes_.push_back(sample.fields[f].bytes.size());
      hashes_.push_back(hashes[f]);
      RETURN_IF_ERROR(file_->Append(sample.fields[f].bytes));
    }
    return absl::OkStatus();
  }

  std::vector<FieldTotal> Totals() const {
    std::vector<FieldTotal> totals;
    for (const std::string& name : names_) totals.push_back({name, 0});
    for (size_t i = 0; i < sizes_.size(); ++i) totals[i % names_.size()].max_bytes += sizes_[i];
    return totals;
  }

  // `append(sample, hashes)` for each, in order.
  template <typename Append>
  absl::Status ForEach(const Append& append) {
    absl::Status status = file_->Flush();
    std::vector<std::byte> bytes;
    std::vector<FieldView> fields(names_.size());
    uint64_t offset = 0;
    for (size_t i = 0; i < samples_.size() && status.ok(); ++i) {
      const std::span<const uint64_t> sizes =
          std::span(sizes_).subspan(i * fields.size(), fields.size());
      bytes.resize(std::accumulate(sizes.begin(), sizes.end(), uint64_t{0}));
      status = file_->file().ReadExactlyAt(offset, std::span(bytes));
      offset += bytes.size();
      for (size_t f = 0, at = 0; f < fields.size(); at += sizes[f++]) {
        fields[f] = {names_[f], std::span(bytes).subspan(at, sizes[f])};
      }
      PreparedSample sample = samples_[i];
      sample.fields = fields;
      if (status.ok())
        status = append(sample, std::span(hashes_).subspan(i * fields.size(), fields.size()));
    }
    return status;
  }

 private:
  std::unique_ptr<StagedFile> file_;
  std::vector<std::string> names_;
  std::vector<PreparedSample> samples_;   // without their fields
  std::vector<uint64_t> sizes_, hashes_;  // one a field
};

ShardBuilder::~ShardBuilder() = default;

ShardBuilder::ShardBuilder(const Plan& plan, size_t shard, OutputDir& out)
    : plan_(plan), out_(out), planned_(plan.shards()[shard]), spec_(plan.Spec(shard)) {
  result_.shard = static_cast<uint32_t>(shard);
  result_.plan = plan.digest();
  result_.times = ShardTimes(plan, shard);
  expected_.reserve(planned_.count);
  expected_fields_.reserve(planned_.count);
}

absl::StatusOr<std::unique_ptr<ShardBuilder>> ShardBuilder::Create(const Plan& plan, size_t shard,
                                                                   OutputDir& out) {
  auto builder = std::unique_ptr<ShardBuilder>(new ShardBuilder(plan, shard, out));
  ASSIGN_OR_RETURN(builder->staged_, out.Stage(builder->planned_.name));
  if (plan.sizes_change() && FindLayout(plan.format(), plan.layout())->needs_totals) {
    auto spool = Spool::Create(out, builder->planned_.name + ".spool");
    if (!spool.ok()) return spool.status();
    builder->spool_ = *std::move(spool);
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
  const std::unique_ptr<Spool> spool = std::move(spool_);
  const std::vector<FieldTotal> totals = spool->Totals();
  if (!totals.empty()) spec_.fields = totals;
  RETURN_IF_ERROR(CreateWriter());
  return spool->ForEach([&](const PreparedSample& sample, std::span<const uint64_t> hashes) {
    return AppendSample(sample, hashes);
  });
}

absl::Status ShardBuilder::Append(const SampleChunk& chunk) {
  if (!chunk.failed.ok()) return chunk.failed;
  for (const PreparedSample& prepared : chunk.samples) {
    const auto hashes =
        std::span(chunk.hashes).subspan(prepared.first_hash, prepared.fields.size());
    RETURN_IF_ERROR(spool_ != nullptr ? spool_->Add(prepared, hashes)
                                      : AppendSample(prepared, hashes));
  }
  result_.skips.insert(result_.skips.end(), chunk.skips.begin(), chunk.skips.end());
  if (plan_.options().compute_stats) AddSums(chunk, result_.facts.pixel_sums);
  return absl::OkStatus();
}

absl::Status ShardBuilder::AppendSample(const PreparedSample& prepared,
                                        std::span<const uint64_t> hashes) {
  const Listing& listing = plan_.listing();
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
  RETURN_IF_ERROR(writer_->Append(sample));
  for (size_t f = 0, name = 0; f < sample.fields.size(); ++f, ++name) {
    // Of every sample in the same order, in which some may be missing.
    while (name < field_names_.size() && field_names_[name] != sample.fields[f].name) ++name;
    if (name == field_names_.size()) field_names_.emplace_back(sample.fields[f].name);
    expected_fields_.push_back({static_cast<uint32_t>(name), hashes[f]});
  }
  expected_.push_back({prepared.position, prepared.image, expected_fields_.size()});
  AddImageFacts(prepared.image, sample.fields[0].bytes.size(), result_.facts);
  ++format_counts_[static_cast<size_t>(prepared.image.format)];
  if (!plan_.options().pixels.identity()) CountChanges(prepared.changes, result_.facts);
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
    index_.Add(record, key_, path_, label, expected.image);
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
  uint64_t next_field_ = 0;
  std::string key_, path_;
  absl::Status failed_;
};

absl::StatusOr<std::string> ShardBuilder::Prove(uint64_t bytes) {
  SequentialReader in(staged_->file(), bytes);
  Proof proof(*this);
  FindingList findings(1);
  // What readers disagree about is the writer's business and its tests'; here the bytes are proven.
  const LayoutSpec* layout = FindLayout(plan_.format(), plan_.layout());
  const ScanOptions options{
      .shard_name = planned_.name, .strict = false, .label_base = layout->label_base};
  RETURN_IF_ERROR(plan_.format().scanner->Scan(in, options, proof, findings));
  if (findings.errors() > 0) return absl::DataLossError(ToText(findings.findings().front()));
  ASSIGN_OR_RETURN(Digest digest, in.Finish());
  result_.file = {plan_.DataFile(result_.shard), bytes, digest};
  return proof.Take(bytes);
}

absl::StatusOr<ShardResult> ShardBuilder::Finish() {
  absl::Status status = spool_ != nullptr ? Unspool() : absl::OkStatus();
  if (status.ok()) status = writer_->Finish();
  if (status.ok()) status = staged_->Flush();
  if (!status.ok()) return status;
  const uint64_t bytes = staged_->size();
  result_.records = expected_.size();
  for (size_t f = 0; f < format_counts_.size(); ++f) {
    if (format_counts_[f] == 0) continue;
    result_.facts.image_formats[std::string(ImageExtension(static_cast<ImageFormat>(f)))] =
        format_counts_[f];
  }
  ASSIGN_OR_RETURN(std::string index, Prove(bytes));
  if (plan_.options().sha256) {
    ASSIGN_OR_RETURN(result_.sha256, Sha256Of(staged_->file(), bytes));
  }
  if (out_.options().fsync) status = staged_->SyncData();
  if (!status.ok()) return status;
  // A worker that was faster: what it has published stays.
  ASSIGN_OR_RETURN(std::optional<ShardResult> theirs, out_.FinishedByOther(plan_, result_.shard));
  if (theirs.has_value()) return *std::move(theirs);
  result_.index = {IndexName(planned_.name), index.size(), Xxh3_128(AsBytes(index))};
  status = out_.journal().AppendPending(result_);
  if (status.ok()) status = out_.Publish(*staged_, result_.file);
  if (!status.ok()) return status;
  ASSIGN_OR_RETURN(result_.index, out_.WriteFile(result_.index.name, index));
  status = out_.SyncFolder();
  if (status.ok()) status = out_.journal().Append(result_);
  if (!status.ok()) return status;
  return std::move(result_);
}

}  // namespace shardpack
