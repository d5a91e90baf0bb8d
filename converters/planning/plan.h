// Plan: assigns each sample its shard, its position and its key; a pure function of listing and
// options.
//
//   absl::StatusOr<Plan> plan = Plan::Make(std::move(listing), options, format);
//   for (size_t n = 0; n < plan->shards().size(); ++n)
//     for (uint64_t i : ShardPositions(n)) plan->row(i), plan->AppendKey(i, key)
//
// Words: a *row* is an input's index in the listing; a *position* is its index in the plan's order,
// across all shards. Rows skipped by the listing or filtered by an option have no position.
//
// A plan that was opened from a file is *sliced*: its rows are in packing order, those of no shard
// after them, and may be used after CheckSlice of their shard only. What a plan says of all rows,
// it knows without them.
//
// Lifetime: a plain movable value; owns its listing, or the file that lends it.
// Thread-safety: const from any thread.
// Errors: InvalidArgument (exit 2) for options that cannot be met; FailedPrecondition (exit 5) for
// key collisions, with the list of them; DataLoss (exit 4) when no input is usable.
// Units: bytes of container for shard sizes.
#ifndef SHARDPACK_CONVERTERS_PLANNING_PLAN_H_
#define SHARDPACK_CONVERTERS_PLANNING_PLAN_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "converters/listing/listing.h"
#include "converters/planning/plan_options.h"
#include "converters/planning/plan_slices.h"
#include "formats/core/format.h"
#include "formats/io/staged_file.h"

namespace shardpack {

struct PlannedShard {
  std::string name;    // of its file, or of the folder that holds it (Format::Traits::data_file)
  uint32_t split = 0;  // index into splits()
  uint64_t first = 0, count = 0;  // positions [first, first + count)
  // Upper bound of the container size; if pixels are re-encoded, computed from the sizes of the
  // source (docs/decisions/0006-sizes-of-changed-pixels.md).
  uint64_t bound_bytes = 0;
};

// A row whose image has the same bytes as an earlier row's.
struct Copy {
  uint32_t row = 0, original = 0;
};

// Raised whenever equal options and listings would give a different plan.
inline constexpr uint32_t kPlanVersion = 5;
// The same for the file that holds it.
inline constexpr uint32_t kPlanFileVersion = 6;

class Plan {
 public:
  static absl::StatusOr<Plan> Make(Listing listing, const PlanOptions& options,
                                   const Format& format);
  using FindFormat = std::function<const Format*(std::string_view)>;  // by name
  // What WriteTo wrote, sliced; DataLoss when damaged, as far as it is read; InvalidArgument when
  // made by another version or for another format.
  static absl::StatusOr<Plan> Open(PlanFile file, const FindFormat& find_format);
  // The same, wholly checked and in memory, with the rows of the listing that was planned.
  static absl::StatusOr<Plan> FromBytes(std::string_view bytes, const FindFormat& find_format);
  absl::StatusOr<Plan> Whole() const;
  // Appends the file piece by piece; the same bytes for equal plans.
  absl::Status WriteTo(const std::function<absl::Status(std::string_view)>& append) const;
  std::string ToBytes() const;
  // Of a sliced plan, the file with a hole in place of its rows: Open knows what it says of all
  // rows, and no slice is good.
  absl::Status WriteWithoutRowsTo(StagedFile& file) const;

  // nullptr: not sliced.
  const PlanSlices* slices() const { return slices_.get(); }
  // Of the rows of a shard, before they are used: DataLoss when they are damaged. Cheap when
  // repeated, and where the plan is not sliced.
  absl::Status CheckSlice(size_t shard) const;
  // With the rows of no shard; ends early with the first error of `before_each`.
  absl::Status CheckAllSlices(const std::function<absl::Status()>& before_each = nullptr) const;
  // Whether the first slice is good: what WriteWithoutRowsTo wrote has none that is.
  bool HasRows() const;
  // They may be used again, but need no memory until then.
  void DropSlice(size_t shard) const;
  // The row in the listing that was planned.
  uint64_t source_row(uint64_t row) const { return source_rows_.empty() ? row : source_rows_[row]; }

  const Listing& listing() const { return listing_; }
  const PlanOptions& options() const { return options_; }
  const Format& format() const { return *format_; }
  std::string_view layout() const { return layout_; }
  const std::vector<std::string>& splits() const { return splits_; }
  const std::vector<PlannedShard>& shards() const { return shards_; }

  uint64_t positions() const { return slices_ ? slices_->shape().positions : order_.size(); }
  uint32_t row(uint64_t position) const {
    return slices_ ? static_cast<uint32_t>(position) : order_[position];
  }
  // The position that the sample would have if the format did not require its shards in key order.
  uint64_t unsorted_position(uint64_t position) const {
    return unsorted_.empty() ? position : unsorted_[position];
  }
  // Whether the format's key order differs from the plan's own order.
  bool is_reordered() const { return !unsorted_.empty(); }
  // Appends the key of a position to `out`.
  void AppendKey(uint64_t position, std::string& out) const;
  // The size of that key; `scratch` is overwritten.
  size_t KeyBytes(uint64_t position, std::string& scratch) const;
  bool index_keys() const { return index_keys_; }

  // Rows left out on request (--limit, --min-size, --dedupe drop, ...).
  uint64_t filtered() const { return filtered_; }
  // Those left out by --dedupe drop, sorted by row. Cost: a sort of all rows.
  std::vector<Copy> DroppedCopies() const;
  // Rows left out by the plan itself, besides listing().skips (duplicate keys with
  // --on-duplicate-key skip), sorted by row.
  const std::vector<Skip>& skips() const { return skips_; }
  // Notes for the user: switched to index keys because ..., duplicates reported by --dedupe report,
  // ...
  const std::vector<std::string>& notes() const { return notes_; }

  // Whether image sizes in the shard may differ from the planned ones.
  bool sizes_change() const { return !options_.pixels.identity() && !RawShape(options_.pixels); }
  // What every image is converted to; kUnknown when images differ or their files are kept.
  ImageInfo RawImage() const;
  // The spec borrows from the plan.
  ShardSpec Spec(size_t shard) const;
  // The shard's file, relative to the dataset: its name, or the data file in the folder of that
  // name.
  std::string DataFile(size_t shard) const;
  // Upper bound for all shards together.
  uint64_t bound_bytes() const;
  // Covers options, listing, format and the versions of the code that writes bytes; not mtimes and
  // root.
  Digest digest() const { return digest_; }
  // Those of the listing that was planned: ComputeDigest, TimesDigest, and the bytes of all rows.
  const Digest& listing_digest() const { return listing_digest_; }
  Digest times_digest() const;
  uint64_t source_bytes() const;
  // Of the modification times of the shard's files.
  Digest ShardTimes(size_t shard) const;
  // Differences between two plans, one line each, for the user; empty when their digests are equal.
  static std::vector<std::string> Differences(const Plan& was, const Plan& now);

 private:
  friend class PlanMaker;
  friend class PlanReader;
  friend class PlanWriter;
  Plan() = default;
  void ComputeDigest();  // from listing_digest_
  absl::Status CheckPart(size_t slice) const;
  bool RowsFit(size_t slice) const;
  // Size of the row's image, as far as it is known now.
  uint64_t ImageBytes(uint64_t row) const;
  void MeasureKeys();
  void AppendPathKeyOf(uint32_t row, std::string& out) const;

  Listing listing_;
  PlanOptions options_;
  const Format* format_ = nullptr;
  std::string layout_;
  std::vector<std::string> splits_;
  std::vector<PlannedShard> shards_;
  std::vector<uint32_t> order_;
  Column<uint32_t> unsorted_;  // per position: see unsorted_position; empty when both are equal
  bool index_keys_ = false;
  size_t portable_key_bytes_ = 0;              // as in KeyPlan
  size_t max_key_bytes_ = 0;                   // upper bound of all keys
  std::map<uint32_t, uint32_t> key_suffixes_;  // row -> n, with --on-duplicate-key suffix
  uint64_t filtered_ = 0;
  std::vector<Skip> skips_;
  std::vector<std::string> notes_;
  Digest digest_, listing_digest_;
  // Of a sliced plan only.
  std::shared_ptr<const PlanSlices> slices_;
  Column<uint32_t> source_rows_;
  std::vector<Digest> shard_times_;
  std::vector<Copy> copies_;
  Digest times_digest_;
  uint64_t source_bytes_ = 0;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PLANNING_PLAN_H_
