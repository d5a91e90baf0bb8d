// Order: which sample stands where in an epoch. A pure function of (spec, epoch, step, slot): it
// knows no rank, no file and no past, so any step of any epoch is found in O(1) time and memory.
//
//   absl::StatusOr<Order> order = Order::Make({.samples = 50'000, .seed = 7, .global_batch = 256});
//   std::vector<uint64_t> ids(rank.slots(256));
//   order->Ids(epoch, step, rank.first_slot(256), ids);
//
// An epoch is a row of slots; `global_batch` of them in a row are a step. What fills them:
//   passes   A pass holds every sample once: in order (kSequential), permuted (kShuffle), or by
//            blocks, a window of them mixed (kBlockShuffle). Every pass is shuffled anew, keyed by
//            (seed, pass). With a subset, its ids stand for the samples.
//   epoch    epoch_samples == 0: an epoch is a pass. kDrop leaves out what fills no whole step: in
//            kSequential the same samples each time, else others in every epoch.
//            epoch_samples > 0: epochs are cut one after the other from the endless row of passes
//            (rounded down to whole steps by kDrop, which therefore loses nothing), so that over
//            epochs all samples come equally often; an epoch in which a pass ends may hold an id
//            twice even where it is shorter than a pass.
//   mixture  Each part is a row of passes of its own, which goes on where the epoch before ended
//            and starts over, permuted anew, when all its samples have come, be it within an epoch.
//            Every epoch (as rounded) takes the same number from each part, by largest remainders
//            of the weights, and spreads them evenly: the slots of a part are the same in all
//            epochs (readers/order/mixture.h). With a subset, first_id counts places of its list.
//   padding  kPad fills the last step up with kPaddingId, so every sample comes and all ranks have
//            equal counts; there is no other padding.
// The same spec gives the same order in every version of the program: golden values are tested.
//
// Lifetime: a value; copies share what they hold.
// Thread-safety: const, any thread.
// Errors: InvalidArgument (Make) naming what cannot be.
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

// In the place of an id: this slot holds no sample.
inline constexpr uint64_t kPaddingId = ~uint64_t{0};

// More than this many samples, in a dataset, a subset or an epoch, are refused.
inline constexpr uint64_t kMaxOrderSamples = uint64_t{1} << 48;
inline constexpr size_t kMaxMixtureParts = 65'536;

enum class OrderMode : uint8_t {
  kSequential,
  kShuffle,       // global and exact
  kBlockShuffle,  // keeps reads near each other, for slow media (readers/order/block_shuffle.h)
};

// What becomes of an epoch that global batches do not divide.
enum class Tail : uint8_t { kDrop, kPad };

// One dataset of several, whose ids lie side by side.
struct MixturePart {
  uint64_t first_id = 0, samples = 0;
  double weight = 1;  // against the other parts: finite, > 0, down to 2^-44 of the largest
};

struct OrderSpec {
  uint64_t samples = 0;  // of the dataset, or of all datasets of a mixture: ids are below it
  OrderMode mode = OrderMode::kShuffle;
  uint64_t seed = 0;
  uint32_t global_batch = 1;  // slots a step, over all ranks
  Tail tail = Tail::kDrop;
  // Only for kBlockShuffle: samples a block, blocks a window.
  uint32_t block_samples = 256, window_blocks = 64;
  // nullptr: all samples. Else these ids, in this order where the mode is kSequential; an id listed
  // twice comes twice a pass. readers/dataset/subset.h makes one from a predicate.
  std::shared_ptr<const std::vector<uint64_t>> subset = nullptr;
  std::vector<MixturePart> mixture = {};  // empty: one dataset
  uint64_t epoch_samples = 0;             // 0: as many as a pass; a mixture must say
};

class Order {
 public:
  // Cost: O(subset + parts). Also refused: an epoch without a step (kDrop and fewer samples than
  // slots in a step), and a mixture of which a part would get no sample in an epoch.
  static absl::StatusOr<Order> Make(OrderSpec spec);

  const OrderSpec& spec() const;
  uint64_t steps() const;    // of an epoch, 1 or more
  uint64_t samples() const;  // slots of an epoch that are not padding

  // Which sample a slot holds; kPaddingId beyond the samples of the epoch.
  uint64_t IdAt(uint64_t epoch, uint64_t step, uint32_t slot) const;
  // The same for consecutive slots, many times faster (a mixture costs O(k log k) a call for its k
  // parts). Slots beyond the step's last one are those of the following steps.
  void Ids(uint64_t epoch, uint64_t step, uint32_t first_slot, std::span<uint64_t> out) const;

  // XXH3-64 of explain(): two orders with the same digest give the same ids. A cursor holds it.
  uint64_t digest() const;
  // One line with everything that decides the order and nothing else: no seed of a sequential one,
  // a subset by its hash, a mixture by the counts its weights come to.
  const std::string& explain() const;

 private:
  struct State;
  explicit Order(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_ORDER_ORDER_H_
