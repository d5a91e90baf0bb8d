// Order: which sample is at which position of an epoch. A pure function of (spec, epoch, step,
// slot), independent of ranks, files and history, so any step of any epoch takes O(1) time and
// memory.
//
//   absl::StatusOr<Order> order = Order::Make({.samples = 50'000, .seed = 7, .global_batch = 256});
//   std::vector<uint64_t> ids(rank.slots(256));
//   order->Ids(epoch, step, rank.first_slot(256), ids);
//
// An epoch is a sequence of slots; each `global_batch` consecutive slots are a step. They are
// filled as follows:
//   passes   A pass holds every sample once: in order (kSequential), permuted (kShuffle), or
//            shuffled by blocks within a window (kBlockShuffle). Each pass is shuffled again, keyed
//            by (seed, pass). With a subset, its ids replace the samples.
//   epoch    epoch_samples == 0: an epoch is one pass. kDrop drops the samples of the incomplete
//            last step: in kSequential always the same ones, otherwise different ones per epoch.
//            epoch_samples > 0: consecutive epochs are cut from the endless sequence of passes
//            (kDrop rounds them down to whole steps and so loses nothing). Over time all samples
//            come equally often; an epoch that contains the end of a pass may hold an id twice
//            even if it is shorter than a pass.
//   mixture  Each part has its own sequence of passes, which continues across epochs and starts
//            over, permuted again, when all its samples have come, even within an epoch. Every
//            epoch (as rounded) takes the same number of samples from each part, by largest
//            remainders of the weights, and spreads them evenly: a part has the same slots in all
//            epochs (readers/order/mixture.h). With a subset, first_id is an index into its list.
//   padding  kPad fills the last step with kPaddingId, so that every sample comes and all ranks
//            have equal counts; there is no other padding.
// The same spec gives the same order in every version of the program; golden values are tested.
//
// Lifetime: a value; copies share their state.
// Thread-safety: const, any thread.
// Errors: InvalidArgument (Make), naming what is impossible.
// Units: ids, steps and slots count from 0.
#ifndef SHARDPACK_READERS_ORDER_ORDER_H_
#define SHARDPACK_READERS_ORDER_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace shardpack {

// In place of an id: the slot does not hold a sample.
inline constexpr uint64_t kPaddingId = ~uint64_t{0};

// The maximum number of samples of a dataset, a subset or an epoch.
inline constexpr uint64_t kMaxOrderSamples = uint64_t{1} << 48;
inline constexpr size_t kMaxMixtureParts = 65'536;

enum class OrderMode : uint8_t {
  kSequential,
  kShuffle,       // global and exact
  kBlockShuffle,  // keeps reads close together, for slow media (readers/order/block_shuffle.h)
};

// What happens when global batches do not divide an epoch.
enum class Tail : uint8_t { kDrop, kPad };

// One of several datasets with consecutive id ranges.
struct MixturePart {
  uint64_t first_id = 0, samples = 0;
  double weight = 1;  // relative to the other parts: finite, > 0, at least 2^-44 of the largest
};

struct OrderSpec {
  uint64_t samples = 0;  // of the dataset, or of all datasets of a mixture; ids are below it
  OrderMode mode = OrderMode::kShuffle;
  uint64_t seed = 0;
  uint32_t global_batch = 1;  // slots per step, over all ranks
  Tail tail = Tail::kDrop;
  // Only for kBlockShuffle: samples per block, blocks per window.
  uint32_t block_samples = 256, window_blocks = 64;
  // nullptr: all samples. Otherwise these ids, in this order if the mode is kSequential; an id
  // listed twice comes twice per pass. readers/dataset/subset.h builds one from a predicate.
  std::shared_ptr<const std::vector<uint64_t>> subset = nullptr;
  std::vector<MixturePart> mixture = {};  // empty: one dataset
  uint64_t epoch_samples = 0;             // 0: one pass; required for a mixture
};

class Order {
 public:
  // Cost: O(subset + parts). Also rejects an epoch without a step (kDrop and fewer samples than
  // slots in a step) and a mixture in which a part would get no sample in an epoch.
  static absl::StatusOr<Order> Make(OrderSpec spec);

  const OrderSpec& spec() const;
  uint64_t steps() const;    // per epoch, at least 1
  uint64_t samples() const;  // slots of an epoch, without padding

  // The sample in a slot; kPaddingId past the samples of the epoch.
  uint64_t IdAt(uint64_t epoch, uint64_t step, uint32_t slot) const;
  // The same for consecutive slots, many times faster (a mixture of k parts costs O(k log k) per
  // call). Slots past the end of the step are those of the following steps.
  void Ids(uint64_t epoch, uint64_t step, uint32_t first_slot, std::span<uint64_t> out) const;

  // XXH3-64 of explain(): equal digests mean the same ids. Stored in cursors.
  uint64_t digest() const;
  // One line with exactly what determines the order: no seed if sequential, a subset as its hash, a
  // mixture as the counts that follow from its weights.
  const std::string& explain() const;

 private:
  struct State;
  explicit Order(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_ORDER_ORDER_H_
