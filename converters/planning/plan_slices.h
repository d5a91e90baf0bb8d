// PlanSlices: the rows of a mapped plan file: columns in packing order, of which each shard's part,
// its *slice*, has a hash of its own.
//
//   absl::StatusOr<PlanFile> file = MapPlan("photos.plan");
//   const std::optional<PlanPlaces> places = PlacesOf(shape, file->bytes.size());
//   const PlanSlices slices(*file, shape, *places, table);
//   if (slices.Compute(7) == table[7].digest) use(slices.Rows<uint64_t>(PlanColumn::kBytes));
//
// A worker touches only the slices of its shards; the last slice has the rows of no shard. Internal
// to the plan.
//
// Lifetime: keeps the file mapped; the spans are valid as long as the object.
// Thread-safety: const from any thread.
// Errors: MapPlan: I/O Status. Nothing is read outside the file, whatever it holds. If another
// process truncates it meanwhile, this process dies of SIGBUS.
// Units: bytes; rows.
#ifndef SHARDPACK_CONVERTERS_PLANNING_PLAN_SLICES_H_
#define SHARDPACK_CONVERTERS_PLANNING_PLAN_SLICES_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/io/bytes.h"
#include "formats/io/hash.h"

namespace shardpack {

struct PlanFile {
  std::shared_ptr<const void> owner;  // keeps `bytes`
  std::string_view bytes;
  std::string path;  // "" = not a file
};
absl::StatusOr<PlanFile> MapPlan(const std::string& path);

// In the order in which they follow each other in the file, each from a multiple of eight bytes on.
enum class PlanColumn : uint8_t {
  kSourceRow,  // u32: the row in the listing that was planned
  kFolder,     // u32
  kNameEnd,    // u64
  kBytes,      // u64
  kMtime,      // i64
  kLabel,      // i32
  kFieldBytes,
  kFieldMtime,
  kPlace,
  kKeyEnd,
  kSplit,        // u16
  kImage,        // ImageInfo
  kContentHash,  // u64
  kUnsorted,     // u32; packed rows only
  kNames,        // text
  kKeys,         // text
};
inline constexpr size_t kPlanColumns = 16;

struct PlanShape {
  uint64_t rows = 0, positions = 0, fields = 0;
  uint64_t names_bytes = 0, keys_bytes = 0;
  // Columns that only some plans have.
  bool field_times = false, places = false, keys = false, split = false, images = false,
       hashes = false, reordered = false;
};

struct PlanPlaces {
  std::array<uint64_t, kPlanColumns> offset = {};
  std::array<uint32_t, kPlanColumns> row_bytes = {};  // 0 = the plan lacks the column
  uint64_t end = 0;                                   // of the columns
};
// nullopt if they take more than so many bytes.
std::optional<PlanPlaces> PlacesOf(const PlanShape& shape, uint64_t most_bytes);

struct PlanSlice {
  uint64_t first = 0, count = 0;  // rows, in packing order
  Digest digest;
};
// The digest of a slice is that of its parts of all columns, one after the other.
Digest AddToSlice(const Digest& before, std::string_view part);

class PlanSlices {
 public:
  PlanSlices(PlanFile file, const PlanShape& shape, const PlanPlaces& places,
             std::vector<PlanSlice> slices);

  const PlanFile& file() const { return file_; }
  const PlanShape& shape() const { return shape_; }
  std::span<const PlanSlice> slices() const { return slices_; }
  uint64_t rows_end() const { return places_.end; }  // where the columns end in the file

  // Empty if the plan lacks the column.
  template <typename T>
  std::span<const T> Rows(PlanColumn column) const {
    const std::string_view all = All(column);
    return {reinterpret_cast<const T*>(all.data()), all.size() / sizeof(T)};
  }
  std::string_view All(PlanColumn column) const;
  // What the slice's digest should be; nullopt if its names or keys lie outside their columns.
  std::optional<Digest> Compute(size_t slice) const;
  // Gives the slice's pages back to the system; they are read again when they are used again.
  void Drop(size_t slice) const;
  void DropPages(std::string_view bytes) const;  // the same of a part of the file

  // Whether the rows of a slice were found good before.
  bool good(size_t slice) const { return good_[slice].load(std::memory_order_acquire); }
  void SetGood(size_t slice) const { good_[slice].store(true, std::memory_order_release); }

 private:
  // The slice's part of a column.
  std::optional<std::string_view> Part(PlanColumn column, const PlanSlice& slice) const;

  const PlanFile file_;
  const PlanShape shape_;
  const PlanPlaces places_;
  const std::vector<PlanSlice> slices_;
  const std::unique_ptr<std::atomic<bool>[]> good_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PLANNING_PLAN_SLICES_H_
