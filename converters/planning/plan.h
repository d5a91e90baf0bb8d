// Plan: which sample goes into which shard, in which order, under which key: a pure function of
// listing and options.
//
//   absl::StatusOr<Plan> plan = Plan::Make(std::move(listing), options, format);
//   for (size_t n = 0; n < plan->shards().size(); ++n)
//     for (uint64_t i : ShardPositions(n)) plan->row(i), plan->AppendKey(i, key)
//
// Words: a *row* is an input's place in the listing; a *position* its place in the plan's order,
// over all shards. Rows that are skipped by the listing or filtered by an option have no position.
//
// Lifetime: a plain movable value; owns its listing.
// Thread-safety: const from any thread.
// Errors: InvalidArgument (exit 2) for options that cannot be met; FailedPrecondition (exit 5) for
// key collisions, with the list of them; DataLoss (exit 4) when no input is usable.
// Units: bytes of container for shard sizes.
#ifndef SHARDPACK_CONVERTERS_PLANNING_PLAN_H_
#define SHARDPACK_CONVERTERS_PLANNING_PLAN_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "converters/listing/listing.h"
#include "converters/planning/keys.h"
#include "converters/planning/splits.h"
#include "formats/core/format.h"
#include "images/probe/probe.h"
#include "images/transform/transform_options.h"

namespace shardpack {

enum class Dedupe : uint8_t { kOff, kReport, kDrop };

// Everything that can change a byte of the output. Two runs with equal options and listings give
// equal datasets.
struct PlanOptions {
  std::string layout;       // "" = the format's default
  std::string image_field;  // see ShardSpec
  bool with_metadata = false;

  // Sizing: at most one of the last two is set, and then shard_bytes does not count. shard_bytes is
  // the container size that no shard exceeds, except one that holds a single larger sample; as few
  // shards as that allows, about equally large. samples_per_shard is a maximum as well. Shards made
  // by count differ by one sample at most. 0 = chosen by AutomaticCapacity (shard_sizing.h): small
  // datasets get several shards.
  uint64_t shard_bytes = 0;
  uint64_t samples_per_shard = 0;
  uint64_t shards = 0;  // in all; divided among the splits by their size

  std::vector<std::pair<std::string, double>> splits;  // name, fraction; empty = one split "train"
  SplitBy split_by = SplitBy::kHash;

  bool shuffle = true;
  uint64_t seed = 0;
  KeyMode key = KeyMode::kAuto;
  OnDuplicateKey on_duplicate = OnDuplicateKey::kAuto;
  uint64_t limit =
      0;  // 0 = all; which ones: a seeded choice when shuffling, else the first of the listing

  // Judged while packing, on each file's bytes.
  ProbeLevel verify = ProbeLevel::kStructure;
  bool allow_truncated = false;
  uint64_t max_pixels = 64'000'000;
  uint64_t max_file_bytes = uint64_t{256} << 20;

  // These need the probe pass.
  uint32_t min_side = 0;  // --min-size: both sides at least
  double max_aspect = 0;  // --max-aspect: longer side / shorter side at most; 0 = any
  Dedupe dedupe = Dedupe::kOff;
  bool NeedsProbe() const { return min_side > 0 || max_aspect > 0 || dedupe != Dedupe::kOff; }

  // What becomes of the pixels; the identity unless the user asks.
  TransformOptions pixels;

  bool compute_stats = false;  // mean and standard deviation of the pixels, in the manifest
  bool sha256 = false;
  std::vector<std::string> sidecar_indexes;  // names of the format's SidecarSpecs
  // Options of the source that change the listing (label-from, ext, include, ...): name -> value,
  // for the digest and for saying what differs.
  std::map<std::string, std::string> source;

  // Every option that is part of the digest: name as on the command line -> canonical value.
  std::map<std::string, std::string> ToMap() const;
};

struct PlannedShard {
  std::string name;    // of its file, or of the folder that holds it (Format::Traits::data_file)
  uint32_t split = 0;  // position in splits()
  uint64_t first = 0, count = 0;  // positions [first, first + count)
  // No larger container than this; where pixels are encoded anew, what the source's sizes come to
  // (docs/decisions/0006-sizes-of-changed-pixels.md).
  uint64_t bound_bytes = 0;
};

// A row whose image has the bytes of an earlier one's.
struct Copy {
  uint32_t row = 0, original = 0;
};

// Raised whenever equal options and listings would give another plan or another plan file.
inline constexpr uint32_t kPlanVersion = 5;

class Plan {
 public:
  static absl::StatusOr<Plan> Make(Listing listing, const PlanOptions& options,
                                   const Format& format);
  // What ToBytes wrote; DataLoss when damaged; InvalidArgument when it was made by another version
  // or for another format. `find_format` looks a format up by name.
  static absl::StatusOr<Plan> FromBytes(
      std::string_view bytes, const std::function<const Format*(std::string_view)>& find_format);
  std::string ToBytes() const;

  const Listing& listing() const { return listing_; }
  const PlanOptions& options() const { return options_; }
  const Format& format() const { return *format_; }
  std::string_view layout() const { return layout_; }
  const std::vector<std::string>& splits() const { return splits_; }
  const std::vector<PlannedShard>& shards() const { return shards_; }

  uint64_t positions() const { return order_.size(); }
  uint32_t row(uint64_t position) const { return order_[position]; }
  // The position that the sample would have if the format did not want its shards in the order of
  // keys.
  uint64_t unsorted_position(uint64_t position) const {
    return unsorted_.empty() ? position : unsorted_[position];
  }
  // Whether the format's order of keys is another one than the plan's own.
  bool is_reordered() const { return !unsorted_.empty(); }
  // Appends the key of that position to `out`.
  void AppendKey(uint64_t position, std::string& out) const;
  bool index_keys() const { return index_keys_; }

  // Rows left out because the user asked (--limit, --min-size, --dedupe drop, ...).
  uint64_t filtered() const { return filtered_; }
  // Those of them that --dedupe drop leaves out, ascending by row. Cost: a sort of all rows.
  std::vector<Copy> DroppedCopies() const;
  // Rows left out by the plan itself beside listing().skips (duplicate keys with --on-duplicate-key
  // skip), by row.
  const std::vector<Skip>& skips() const { return skips_; }
  // Notes for the user: switched to index keys because ..., duplicates reported by --dedupe report,
  // ...
  const std::vector<std::string>& notes() const { return notes_; }

  // Whether an image's size in the shard is another one than planned.
  bool sizes_change() const { return !options_.pixels.identity() && !RawShape(options_.pixels); }
  // What every image becomes; kUnknown when they differ or keep their files.
  ImageInfo RawImage() const;
  // Borrows from the plan.
  ShardSpec Spec(size_t shard) const;
  // The shard's file, relative to the dataset: its name, or the data file in the folder of that
  // name.
  std::string DataFile(size_t shard) const;
  // Upper bound of all shards together.
  uint64_t bound_bytes() const;
  // Over options, listing, format and the versions of what writes bytes; not over mtimes and root.
  Digest digest() const { return digest_; }
  // What differs between two plans, one line each, for the user; empty when their digests are
  // equal.
  static std::vector<std::string> Differences(const Plan& was, const Plan& now);

 private:
  friend class PlanMaker;
  friend class PlanReader;
  Plan() = default;
  void ComputeDigest();
  // Of the image of that row, as far as it is known now.
  uint64_t ImageBytes(uint64_t row) const;
  size_t KeyBytes(uint64_t position, std::string& scratch) const;
  void MeasureKeys();
  void AppendPathKeyOf(uint32_t row, std::string& out) const;

  Listing listing_;
  PlanOptions options_;
  const Format* format_ = nullptr;
  std::string layout_;
  std::vector<std::string> splits_;
  std::vector<PlannedShard> shards_;
  std::vector<uint32_t> order_;
  std::vector<uint32_t>
      unsorted_;  // per position: see unsorted_position; empty when all are the same
  bool index_keys_ = false;
  size_t portable_key_bytes_ = 0;              // as in KeyPlan
  size_t max_key_bytes_ = 0;                   // no key is longer
  std::map<uint32_t, uint32_t> key_suffixes_;  // row -> n, with --on-duplicate-key suffix
  uint64_t filtered_ = 0;
  std::vector<Skip> skips_;
  std::vector<std::string> notes_;
  Digest digest_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PLANNING_PLAN_H_
