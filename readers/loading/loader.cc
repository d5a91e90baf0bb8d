#include "readers/loading/loader.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/io/rank_cores.h"
#include "formats/io/status_macros.h"
#include "readers/loading/loader_core.h"

namespace shardpack {
namespace {

constexpr uint32_t kMinPrefetch = 4, kMaxPrefetch = 1 << 16;

// Masks and other fields that are decoded are read like any other field. JSON can become objects
// and a label map.
absl::Status AddDecodedFields(LoaderOptions& options) {
  std::vector<std::string> masks = options.mask_fields, objects;
  for (const FieldDecode& more : options.decode_fields)
    (more.as == FieldAs::kCoco ? objects : masks).push_back(more.field);
  if (!(masks.empty() && objects.empty()) && !options.decode) {
    return absl::InvalidArgumentError(
        "masks and other fields are decoded with their images, or not at all");
  }
  for (const std::vector<std::string>& names : {masks, objects}) {
    for (const std::string& name : names) {
      if (name == kImageField || std::count(masks.begin(), masks.end(), name) > 1) {
        return absl::InvalidArgumentError(absl::StrCat(
            "the field ", EscapeForTerminal(name), " cannot be ",
            name == kImageField ? "a mask: it is decoded to pixels" : "decoded twice"));
      }
      if (std::find(options.fields.begin(), options.fields.end(), name) == options.fields.end())
        options.fields.push_back(name);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPixelOptions(const LoaderOptions& options, uint32_t global_batch,
                               uint32_t slots) {
  if (options.views < 1 || options.views > 64)
    return absl::InvalidArgumentError(absl::StrCat("views is ", options.views, "; it is 1 to 64"));
  if (!options.decode && (!options.augment.empty() || options.views > 1 || options.mix)) {
    return absl::InvalidArgumentError("augmentation, views and mixing need decoding");
  }
  if (!options.mask_fields.empty() && options.augment.MayWarp()) {
    return absl::InvalidArgumentError(
        "masks follow the crop and flip alone, not operations that move pixels: decode label maps");
  }
  if ((!options.mask_fields.empty() || !options.decode_fields.empty()) &&
      (options.views > 1 || options.mix)) {
    return absl::InvalidArgumentError("masks and other decoded fields are of one view, unmixed");
  }
  if (options.augment.MayDo(OperationKind::kElastic)) {
    for (const FieldDecode& field : options.decode_fields) {
      if (field.as != FieldAs::kCoco) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("field ", EscapeForTerminal(field.field),
                       ": objects do not follow the plan's elastic: no box is where its object is "
                       "then; label maps do"));
    }
  }
  if (options.augment.MayDo(OperationKind::kBlend)) {
    for (const FieldDecode& field : options.decode_fields) {
      if (field.as == FieldAs::kImage) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("field ", EscapeForTerminal(field.field),
                       ": labels and objects do not follow the plan's aug_mix, which blends copies "
                       "of the image that move in several ways"));
    }
  }
  if (!options.mix) return absl::OkStatus();
  if (options.views > 1) return absl::InvalidArgumentError("mixing is for one view");
  RETURN_IF_ERROR(CheckMixOptions(*options.mix, global_batch));
  if (slots % options.mix->group == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("mix: groups of ", options.mix->group,
                                                 " do not divide a rank's ", slots, " samples"));
}

// What decides pixels beside the seed; empty if nothing is augmented.
std::string AugmentFacts(const AugmentPlan& plan, uint32_t views,
                         const std::optional<MixOptions>& mix) {
  if (plan.empty() && !mix && views == 1) return {};
  std::string facts = absl::StrCat(plan.Facts(), " views ", views);
  if (mix) absl::StrAppend(&facts, " ", mix->ToText());
  return facts;
}

// Of what cursors remember; 0 for none.
uint32_t DigestOf(const std::string& facts) {
  if (facts.empty()) return 0;
  const uint64_t hash = Xxh3_64(AsBytes(facts));
  return std::max(static_cast<uint32_t>(hash ^ hash >> 32), uint32_t{1});
}

}  // namespace

// Half of the memory is for pixels and masks; if they do not fit, fewer batches are read ahead.
absl::StatusOr<std::unique_ptr<Loader::Decoding>> Loader::MakeDecoding(LoaderOptions& options,
                                                                       uint32_t slots,
                                                                       HostMemory& memory) {
  auto decoding = std::make_unique<Decoding>();
  const auto field = std::find(options.fields.begin(), options.fields.end(), kImageField);
  if (field == options.fields.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("decoding needs the field ", std::string(kImageField), " among the fields"));
  }
  decoding->field = static_cast<size_t>(field - options.fields.begin());
  ASSIGN_OR_RETURN(std::unique_ptr<BatchDecoder> decoder,
                   BatchDecoder::Create({.pixels = *options.decode,
                                         .augment = options.augment,
                                         .seed = options.augment_seed,
                                         .keep_warps = !options.decode_fields.empty()}));
  decoding->decoder = std::move(decoder);
  for (const std::string& name : options.mask_fields) {
    const auto mask = std::find(options.fields.begin(), options.fields.end(), name);
    decoding->masks.push_back(static_cast<size_t>(mask - options.fields.begin()));
  }
  decoding->pixel_bytes = AlignedPixels(decoding->decoder->sample_bytes() * slots * options.views);
  decoding->mask_bytes = AlignedPixels(decoding->decoder->mask_bytes() * slots);
  size_t batch_bytes = decoding->pixel_bytes + decoding->masks.size() * decoding->mask_bytes;
  RETURN_IF_ERROR(decoding->AddFields(options, slots, batch_bytes));
  const uint64_t fit = std::max<uint64_t>(options.memory_bytes / 2 / batch_bytes, 2);
  const auto batches = std::min<uint64_t>(fit, options.prefetch_batches + 1);
  options.prefetch_batches = static_cast<uint32_t>(batches - 1);
  ASSIGN_OR_RETURN(decoding->pool, SlabPool::Create(memory, batch_bytes, batches));
  return decoding;
}

absl::StatusOr<Loader> Loader::Open(Dataset dataset, Order order, Rank rank, LoaderOptions options,
                                    HostMemory& memory, std::optional<Cursor> cursor) {
  const uint32_t global_batch = order.spec().global_batch;
  RETURN_IF_ERROR(CheckRank(rank, global_batch));
  if (order.spec().samples != dataset.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the order is of ", order.spec().samples,
                                                   " samples, the dataset has ", dataset.size()));
  }
  RETURN_IF_ERROR(AddDecodedFields(options));
  RETURN_IF_ERROR(CheckPixelOptions(options, global_batch, rank.slots(global_batch)));
  if (options.mix && dataset.classes().size() > options.mix->classes) {
    return absl::InvalidArgumentError(absl::StrCat("mix: classes is ", options.mix->classes,
                                                   "; the dataset has ", dataset.classes().size()));
  }
  if (options.threads <= 0) options.threads = CoresOfRank();
  options.prefetch_batches = std::min(options.prefetch_batches, kMaxPrefetch);
  const uint32_t slots = rank.slots(global_batch);
  if (options.prefetch_batches == 0) {
    const auto for_disk = static_cast<uint32_t>(std::max(options.io_threads, 0)) / slots + 2;
    options.prefetch_batches = std::max(kMinPrefetch, for_disk);
  }
  std::unique_ptr<Decoding> decoding;
  if (options.decode) {
    ASSIGN_OR_RETURN(decoding, MakeDecoding(options, slots, memory));
    options.memory_bytes -= options.memory_bytes / 2;
  }
  const Digest identity = dataset.identity();
  ASSIGN_OR_RETURN(Fetcher fetcher,
                   Fetcher::Create(std::move(dataset),
                                   {.fields = options.fields,
                                    .verify = options.verify,
                                    .image_infos = options.image_infos || options.decode,
                                    .slab_bytes = options.slab_bytes,
                                    .batch_samples = slots,
                                    .batches = options.prefetch_batches + 2,
                                    .memory_bytes = options.memory_bytes,
                                    .map_warm_shards = options.map_warm_shards},
                                   memory));
  std::string augmentation = AugmentFacts(options.augment, options.views, options.mix);
  const uint32_t augment = DigestOf(augmentation);
  auto core = std::make_unique<Core>(std::move(order), rank, std::move(options), std::move(fetcher),
                                     identity, augment, std::move(decoding));
  core->TellAugmentation(std::move(augmentation));
  RETURN_IF_ERROR(core->Start(cursor));
  return Loader(std::move(core));
}

Loader::Loader(std::unique_ptr<Core> core) : core_(std::move(core)) {}
Loader::Loader(Loader&&) noexcept = default;
Loader& Loader::operator=(Loader&& other) noexcept {
  std::swap(core_, other.core_);
  return *this;
}
// In a forked child there are no threads to join, and a mutex may stay locked forever.
Loader::~Loader() {
  if (core_ != nullptr && !core_->InOwnProcess()) (void)core_.release();
}

absl::StatusOr<std::optional<HostBatch>> Loader::Next(const Interrupted& interrupted) {
  return core_->Next(interrupted);
}
absl::StatusOr<std::optional<HostBatch>> Loader::NextWithin(std::chrono::milliseconds most) {
  return core_->NextWithin(most);
}
Cursor Loader::cursor() const { return core_->InOwnProcess() ? core_->cursor() : Cursor(); }
absl::Status Loader::SetAugmentation(const AugmentPlan& plan) {
  std::string facts = AugmentFacts(plan, 1, std::nullopt);
  const uint32_t augment = DigestOf(facts);
  return core_->SetAugmentation(augment, std::move(facts));
}
absl::StatusOr<Cursor> Loader::CursorOf(const AugmentPlan& plan) const {
  return core_->CursorOf(DigestOf(AugmentFacts(plan, 1, std::nullopt)));
}
LoaderStats Loader::stats() const { return core_->InOwnProcess() ? core_->stats() : LoaderStats(); }
std::vector<BadSample> Loader::TakeBadSamples() {
  return core_->InOwnProcess() ? core_->TakeBadSamples() : std::vector<BadSample>();
}
std::string Loader::Describe(uint64_t id) const {
  return core_->InOwnProcess() ? core_->Describe(id) : std::string();
}
void Loader::Stop() {
  if (core_->InOwnProcess()) core_->Stop();
}

}  // namespace shardpack
