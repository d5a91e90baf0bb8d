// Cursor: the position of a run: the first step of an epoch that has not been delivered.
//
//   std::string saved = CursorToText(MakeCursor(dataset.identity(), order, epoch, step));
//   absl::StatusOr<Cursor> cursor = CursorFromText(saved);
//   absl::Status fits = CheckCursor(*cursor, dataset.identity(), order);
//
// A cursor counts global steps, so it works for any rank and any world size that divides the global
// batch. step == order.steps() means the same as step 0 of the next epoch. The text form, for
// checkpoints, is one line of [a-z0-9:-]:
//   shardpack-cursor:1:<dataset>:<order>:<epoch>:<step>:<check>
// with digests in hex and counts in decimal. A run that augments its samples has version 2, with
// the digest of its augmentation in front of the epoch. The byte form (little-endian) is
//   0 magic "SPCURSOR"  8 version u32  12 augment u32  16 dataset high, low u64  32 order u64
//   40 epoch u64  48 step u64  56 check u64
// where the check is the XXH3-64 of everything before it (in the text, without the colon).
//
// Thread-safety: any thread.
// Errors: DataLoss for a damaged form; InvalidArgument for anything that is not a cursor, has a
// newer version, or belongs to another dataset, order or augmentation (CheckCursor).
// Units: epochs and global steps from 0.
#ifndef SHARDPACK_READERS_ORDER_CURSOR_H_
#define SHARDPACK_READERS_ORDER_CURSOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/io/bytes.h"
#include "formats/io/hash.h"
#include "readers/order/order.h"

namespace shardpack {

inline constexpr uint32_t kCursorVersion = 2;

struct Cursor {
  uint32_t version = 1;
  uint32_t augment = 0;      // the digest of the augmentation; version 1: none
  uint64_t dataset[2] = {};  // Dataset::identity(): high, low
  uint64_t order = 0;        // Order::digest()
  uint64_t epoch = 0, step = 0;

  friend bool operator==(const Cursor&, const Cursor&) = default;
};
static_assert(std::is_trivially_copyable_v<Cursor> && sizeof(Cursor) <= 128);

inline constexpr size_t kCursorBytes = 64;

Cursor MakeCursor(const Digest& dataset, const Order& order, uint64_t epoch = 0, uint64_t step = 0,
                  uint32_t augment = 0);

std::array<std::byte, kCursorBytes> CursorToBytes(const Cursor& cursor);
absl::StatusOr<Cursor> CursorFromBytes(Bytes bytes);

std::string CursorToText(const Cursor& cursor);
// Accepts exactly the output of CursorToText, without surrounding white space.
absl::StatusOr<Cursor> CursorFromText(std::string_view text);

// OK if a run over this dataset in this order can resume there; otherwise lists every difference.
// `augment`: nullopt accepts any.
absl::Status CheckCursor(const Cursor& cursor, const Digest& dataset, const Order& order,
                         std::optional<uint32_t> augment = 0);

}  // namespace shardpack

#endif  // SHARDPACK_READERS_ORDER_CURSOR_H_
