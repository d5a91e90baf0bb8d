// Dataset::FindKey: the first look-up scans the keys, the second one makes a hash table of them.
#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "formats/core/shard_index.h"
#include "formats/io/bytes.h"
#include "formats/io/error_facts.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/io/status_macros.h"
#include "readers/dataset/dataset.h"
#include "readers/dataset/per_process.h"

namespace shardpack {
namespace {

// With linear probing. A slot is 0, or the upper half of a key's hash and, plus 1, the first id
// with the key.
using Slots = std::vector<uint64_t>;
constexpr uint64_t kIdMask = std::numeric_limits<uint32_t>::max();

absl::StatusOr<std::string_view> KeyOf(const Dataset& dataset, uint64_t id) {
  const SampleLocation at = dataset.Locate(id);
  ASSIGN_OR_RETURN(const ShardIndex* const index, dataset.BorrowIndex(at.shard));
  return index->key(at.record);
}

// The slot of the key, or the free one where it would be.
absl::StatusOr<size_t> SlotOf(const Dataset& dataset, const Slots& slots, std::string_view key,
                              uint64_t hash) {
  const size_t mask = slots.size() - 1;
  for (size_t slot = hash & mask;; slot = (slot + 1) & mask) {
    if (slots[slot] == 0) return slot;
    if ((slots[slot] ^ hash) > kIdMask) continue;
    ASSIGN_OR_RETURN(const std::string_view other, KeyOf(dataset, (slots[slot] & kIdMask) - 1));
    if (other == key) return slot;
  }
}

absl::StatusOr<Slots> MakeSlots(const Dataset& dataset) {
  if (dataset.size() >= kIdMask) return absl::ResourceExhaustedError("too many keys for a table");
  Slots slots(std::bit_ceil(dataset.size() + dataset.size() / 2 + 1));
  for (uint64_t id = 0; id < dataset.size(); ++id) {
    ASSIGN_OR_RETURN(const std::string_view key, KeyOf(dataset, id));
    const uint64_t hash = Xxh3_64(AsBytes(key));
    ASSIGN_OR_RETURN(const size_t slot, SlotOf(dataset, slots, key, hash));
    if (slots[slot] == 0) slots[slot] = (hash & ~kIdMask) | (id + 1);
  }
  return slots;
}

}  // namespace

struct Dataset::KeyTable {
  struct Guarded {
    std::mutex mutex;
    bool was_asked = false, cannot_be_made = false;
    std::shared_ptr<const Slots> slots;
  };
  PerProcess<Guarded> guarded;
};

std::shared_ptr<const Dataset::KeyTable> Dataset::NewKeyTable() {
  return std::make_shared<const KeyTable>();
}

absl::StatusOr<uint64_t> Dataset::FindKey(std::string_view key) const {
  std::shared_ptr<const Slots> slots;
  {
    KeyTable::Guarded& table = keys_->guarded.Get();
    const std::lock_guard lock(table.mutex);
    if (std::exchange(table.was_asked, true) && table.slots == nullptr && !table.cannot_be_made) {
      // Where an index is damaged, the scan says so, unless it finds the key before.
      absl::StatusOr<Slots> made = MakeSlots(*this);
      table.cannot_be_made = !made.ok();
      if (made.ok()) table.slots = std::make_shared<const Slots>(*std::move(made));
    }
    slots = table.slots;
  }
  if (slots != nullptr) {
    ASSIGN_OR_RETURN(const size_t slot, SlotOf(*this, *slots, key, Xxh3_64(AsBytes(key))));
    if ((*slots)[slot] != 0) return ((*slots)[slot] & kIdMask) - 1;
  } else {
    for (uint64_t id = 0; id < size(); ++id) {
      ASSIGN_OR_RETURN(const std::string_view other, KeyOf(*this, id));
      if (other == key) return id;
    }
  }
  return WithFacts(
      absl::NotFoundError(absl::StrCat("no sample has the key ", EscapeForTerminal(key))),
      {.key = std::string(key)});
}

}  // namespace shardpack
