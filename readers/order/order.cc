#include "readers/order/order.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "formats/io/bytes.h"
#include "formats/io/hash.h"
#include "formats/io/status_macros.h"
#include "readers/order/block_shuffle.h"
#include "readers/order/mixture.h"
#include "readers/order/permutation.h"

namespace shardpack {
namespace {

// Makes the keys of orders differ from other keys derived from the same seed.
constexpr uint64_t kOrderKey = 0x53504F5244455231;  // "SPORDER1"

// How many bits of a weight count, relative to the largest one.
constexpr int kWeightBits = 44;

// A dataset or a part of a mixture: an endless sequence of passes, of which each epoch takes the
// next `epoch_samples`.
struct Row {
  uint64_t first = 0, samples = 0;
  uint64_t epoch_samples = 0;
  uint64_t key = 0;

  void Fill(const OrderSpec& spec, uint64_t epoch, uint64_t index, std::span<uint64_t> out) const;
  void FillFromPass(const OrderSpec& spec, uint64_t pass, uint64_t position,
                    std::span<uint64_t> out) const;
};

void Row::Fill(const OrderSpec& spec, uint64_t epoch, uint64_t index,
               std::span<uint64_t> out) const {
  using Wide = unsigned __int128;
  const Wide at = Wide{epoch} * epoch_samples + index;
  auto pass = static_cast<uint64_t>(at / samples);
  auto position = static_cast<uint64_t>(at % samples);
  while (!out.empty()) {
    const uint64_t run = std::min<uint64_t>(out.size(), samples - position);
    FillFromPass(spec, pass, position, out.first(run));
    out = out.subspan(run);
    ++pass;
    position = 0;
  }
}

void Row::FillFromPass(const OrderSpec& spec, uint64_t pass, uint64_t position,
                       std::span<uint64_t> out) const {
  const uint64_t pass_key = MixKey(key, pass);
  if (spec.mode == OrderMode::kBlockShuffle) {
    BlockShuffle(samples, spec.block_samples, spec.window_blocks, pass_key).Fill(position, out);
  } else {
    std::iota(out.begin(), out.end(), position);
    if (spec.mode == OrderMode::kShuffle) Permutation(samples, pass_key).MapAll(out);
  }
  for (uint64_t& id : out) id += first;
  if (spec.subset != nullptr) {
    for (uint64_t& id : out) id = (*spec.subset)[id];
  }
}

absl::Status Invalid(std::string why) { return absl::InvalidArgumentError(std::move(why)); }

absl::Status CheckSubset(const OrderSpec& spec) {
  if (spec.subset == nullptr) return absl::OkStatus();
  const std::vector<uint64_t>& ids = *spec.subset;
  if (ids.empty()) return Invalid("an order of 0 samples: the subset is empty");
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < spec.samples) continue;
    return Invalid(absl::StrCat("the subset's id ", ids[i], ", at place ", i,
                                ", is beyond the dataset of ", spec.samples, " samples"));
  }
  return absl::OkStatus();
}

absl::Status CheckMixture(const OrderSpec& spec) {
  if (spec.mixture.empty()) return absl::OkStatus();
  if (spec.mixture.size() > kMaxMixtureParts) {
    return Invalid(absl::StrCat("a mixture of ", spec.mixture.size(), " parts; at most ",
                                kMaxMixtureParts, " are possible"));
  }
  if (spec.epoch_samples == 0) {
    return Invalid("a mixture has no natural end: epoch_samples must say how long an epoch is");
  }
  const uint64_t all = spec.subset != nullptr ? spec.subset->size() : spec.samples;
  for (size_t i = 0; i < spec.mixture.size(); ++i) {
    const MixturePart& part = spec.mixture[i];
    if (part.samples == 0)
      return Invalid(absl::StrCat("part ", i, " of the mixture has 0 samples"));
    if (part.first_id >= all || part.samples > all - part.first_id) {
      return Invalid(absl::StrCat("part ", i, " of the mixture, ", part.samples, " samples from ",
                                  part.first_id, " on, is beyond the ", all, " samples of the ",
                                  spec.subset != nullptr ? "subset" : "datasets"));
    }
    if (!std::isfinite(part.weight) || part.weight <= 0) {
      return Invalid(absl::StrCat("part ", i, " of the mixture has the weight ", part.weight,
                                  "; it must be a finite number above 0"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSpec(const OrderSpec& spec) {
  if (spec.samples == 0) return Invalid("an order of 0 samples: the dataset is empty");
  for (const uint64_t samples : {spec.samples, spec.epoch_samples}) {
    if (samples <= kMaxOrderSamples) continue;
    return Invalid(
        absl::StrCat("an order of ", samples, " samples; at most ", kMaxOrderSamples, " fit"));
  }
  if (spec.global_batch == 0) return Invalid("a global batch of 0 samples");
  if (spec.mode > OrderMode::kBlockShuffle || spec.tail > Tail::kPad) {
    return Invalid("an order whose mode or tail is none of those there are");
  }
  if (spec.mode == OrderMode::kBlockShuffle &&
      (spec.block_samples == 0 || spec.window_blocks == 0)) {
    return Invalid(absl::StrCat("a block shuffle of ", spec.window_blocks, " blocks a window and ",
                                spec.block_samples, " samples a block; both must be 1 or more"));
  }
  const absl::Status subset = CheckSubset(spec);
  return subset.ok() ? CheckMixture(spec) : subset;
}

// How many samples of an epoch each part contributes.
absl::StatusOr<std::vector<uint64_t>> PartCounts(const OrderSpec& spec, uint64_t samples) {
  double largest = 0;
  for (const MixturePart& part : spec.mixture) largest = std::max(largest, part.weight);
  std::vector<uint64_t> weights;
  for (const MixturePart& part : spec.mixture) {
    // The quotient is rounded by IEEE 754 and the rest is exact, so results are the same on every
    // machine.
    weights.push_back(static_cast<uint64_t>(std::ldexp(part.weight / largest, kWeightBits)));
  }
  std::vector<uint64_t> counts = Apportion(samples, weights);
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) continue;
    return Invalid(absl::StrCat("part ", i, " of the mixture, of the weight ",
                                spec.mixture[i].weight, ", would get no sample in an epoch of ",
                                samples));
  }
  return counts;
}

std::string Explain(const OrderSpec& spec, uint64_t steps, std::span<const Row> rows) {
  static constexpr const char* kModes[] = {"sequential", "shuffle", "block_shuffle"};
  std::string text = absl::StrCat("shardpack-order-1 mode=", kModes[static_cast<int>(spec.mode)]);
  if (spec.mode != OrderMode::kSequential) absl::StrAppend(&text, " seed=", spec.seed);
  if (spec.mode == OrderMode::kBlockShuffle) {
    absl::StrAppend(&text, " block_samples=", spec.block_samples,
                    " window_blocks=", spec.window_blocks);
  }
  absl::StrAppend(&text, " samples=", spec.samples);
  if (spec.subset != nullptr) {
    const uint64_t hash = Xxh3_64(std::as_bytes(std::span(*spec.subset)));
    absl::StrAppend(&text, " subset=", spec.subset->size(), ":", absl::Hex(hash, absl::kZeroPad16));
  }
  absl::StrAppend(&text, " global_batch=", spec.global_batch,
                  " tail=", spec.tail == Tail::kPad ? "pad" : "drop",
                  " epoch_samples=", spec.epoch_samples, " steps=", steps);
  // first id + samples : of each epoch
  for (size_t i = 0; !spec.mixture.empty() && i < rows.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? " mixture=" : ",", rows[i].first, "+", rows[i].samples, ":",
                    rows[i].epoch_samples);
  }
  return text;
}

}  // namespace

struct Order::State {
  OrderSpec spec;
  uint64_t steps = 0, samples = 0;
  std::vector<Row> rows;         // one, or one per part
  std::vector<uint64_t> counts;  // per row and epoch; only for a mixture
  std::string text;
  uint64_t digest = 0;

  void FillMixture(uint64_t epoch, uint64_t first, std::span<uint64_t> out) const;
};

absl::StatusOr<Order> Order::Make(OrderSpec spec) {
  RETURN_IF_ERROR(CheckSpec(spec));
  const uint64_t pass = spec.subset != nullptr ? spec.subset->size() : spec.samples;
  const uint64_t epoch = spec.epoch_samples != 0 ? spec.epoch_samples : pass;
  auto state = std::make_shared<State>();
  state->steps = epoch / spec.global_batch;
  state->samples = state->steps * spec.global_batch;
  if (spec.tail == Tail::kPad) {
    state->steps = (epoch - 1) / spec.global_batch + 1;
    state->samples = epoch;
  }
  if (state->steps == 0) {
    return Invalid(absl::StrCat("an epoch of ", epoch, " samples is shorter than the global batch ",
                                "of ", spec.global_batch, ", so dropping its tail leaves nothing"));
  }
  const uint64_t key = MixKey(kOrderKey, spec.seed);
  if (spec.mixture.empty()) {
    state->rows.push_back(
        {0, pass, spec.epoch_samples != 0 ? state->samples : pass, MixKey(key, 0)});
  } else {
    ASSIGN_OR_RETURN(std::vector<uint64_t> counts, PartCounts(spec, state->samples));
    for (size_t i = 0; i < counts.size(); ++i) {
      const MixturePart& part = spec.mixture[i];
      state->rows.push_back({part.first_id, part.samples, counts[i], MixKey(key, i)});
    }
    state->counts = std::move(counts);
  }
  state->text = Explain(spec, state->steps, state->rows);
  state->digest = Xxh3_64(AsBytes(state->text));
  state->spec = std::move(spec);
  return Order(std::move(state));
}

const OrderSpec& Order::spec() const { return state_->spec; }
uint64_t Order::steps() const { return state_->steps; }
uint64_t Order::samples() const { return state_->samples; }
uint64_t Order::digest() const { return state_->digest; }
const std::string& Order::explain() const { return state_->text; }

uint64_t Order::IdAt(uint64_t epoch, uint64_t step, uint32_t slot) const {
  uint64_t id;
  Ids(epoch, step, slot, {&id, 1});
  return id;
}

void Order::Ids(uint64_t epoch, uint64_t step, uint32_t first_slot, std::span<uint64_t> out) const {
  uint64_t filled = 0;
  if (step < state_->steps) {
    const uint64_t first = step * state_->spec.global_batch + first_slot;
    const uint64_t left = state_->samples - std::min(first, state_->samples);
    filled = std::min<uint64_t>(out.size(), left);
    if (filled == 0) {
      // All padding.
    } else if (state_->counts.empty()) {
      state_->rows[0].Fill(state_->spec, epoch, first, out.first(filled));
    } else {
      state_->FillMixture(epoch, first, out.first(filled));
    }
  }
  std::fill(out.begin() + static_cast<ptrdiff_t>(filled), out.end(), kPaddingId);
}

void Order::State::FillMixture(uint64_t epoch, uint64_t first, std::span<uint64_t> out) const {
  constexpr size_t kSlots = 256;
  std::array<MixtureWalk::Slot, kSlots> slots;
  std::array<bool, kSlots> done;
  std::array<uint64_t, kSlots> ids;
  MixtureWalk walk(counts, first);
  while (!out.empty()) {
    const size_t run = std::min(out.size(), kSlots);
    for (size_t i = 0; i < run; ++i) slots[i] = walk.Next();
    done.fill(false);
    // The slots of one part hold consecutive samples of its row, so fetch them at once.
    for (size_t i = 0; i < run; ++i) {
      if (done[i]) continue;
      const uint32_t part = slots[i].part;
      size_t taken = 0;
      for (size_t j = i; j < run; ++j) taken += slots[j].part == part;
      rows[part].Fill(spec, epoch, slots[i].index, std::span(ids).first(taken));
      for (size_t j = i; j < run; ++j) {
        if (slots[j].part != part) continue;
        out[j] = ids[slots[j].index - slots[i].index];
        done[j] = true;
      }
    }
    out = out.subspan(run);
  }
}

}  // namespace shardpack
