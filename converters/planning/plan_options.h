// PlanOptions: everything that can change a byte of the output. Two runs with equal options and
// listings give equal datasets.
//
//   PlanOptions options{.samples_per_shard = 10'000, .seed = 7};
//   manifest.options = options.ToMap();
//
// Lifetime: a plain value.
// Units: bytes of container for shard sizes.
#ifndef SHARDPACK_CONVERTERS_PLANNING_PLAN_OPTIONS_H_
#define SHARDPACK_CONVERTERS_PLANNING_PLAN_OPTIONS_H_

#include <array>
#include <concepts>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "converters/planning/keys.h"
#include "converters/planning/splits.h"
#include "images/probe/probe.h"
#include "images/transform/transform_options.h"

namespace shardpack {

enum class Dedupe : uint8_t { kOff, kReport, kDrop };
constexpr auto WordsOf(Dedupe) {
  return std::to_array<std::string_view>({"off", "report", "drop"});
}

struct PlanOptions {
  std::string layout;       // "" = the format's default
  std::string image_field;  // see ShardSpec
  bool with_metadata = false;

  // Sizing: at most one of samples_per_shard and shards is set, and then shard_bytes is ignored.
  // shard_bytes is the maximum container size, exceeded only by a shard that holds a single larger
  // sample; shards are as few as that allows, and about equally large. samples_per_shard is a
  // maximum as well. Shards made by count differ by at most one sample. 0 = chosen by
  // AutomaticCapacity (shard_sizing.h): small datasets get several shards.
  uint64_t shard_bytes = 0;
  uint64_t samples_per_shard = 0;
  uint64_t shards = 0;  // in total; divided among the splits by size

  std::vector<std::pair<std::string, double>> splits;  // name, fraction; empty = one split "train"
  SplitBy split_by = SplitBy::kHash;

  bool shuffle = true;
  uint64_t seed = 0;
  KeyMode key = KeyMode::kAuto;
  OnDuplicateKey on_duplicate = OnDuplicateKey::kAuto;
  uint64_t limit =
      0;  // 0 = all; otherwise a seeded choice when shuffling, else the first of the listing

  // Checked while packing, on each file's bytes.
  ProbeLevel verify = ProbeLevel::kStructure;
  bool allow_truncated = false;
  uint64_t max_pixels = 64'000'000;
  uint64_t max_file_bytes = uint64_t{256} << 20;

  // These need the probe pass.
  uint32_t min_side = 0;  // --min-size: both sides at least
  double max_aspect = 0;  // --max-aspect: longer side / shorter side at most; 0 = any
  Dedupe dedupe = Dedupe::kOff;
  bool NeedsProbe() const { return min_side > 0 || max_aspect > 0 || dedupe != Dedupe::kOff; }

  // How pixels are changed; the identity unless the user asks for something.
  TransformOptions pixels;

  bool compute_stats = false;  // mean and standard deviation of the pixels, in the manifest
  bool sha256 = false;
  std::vector<std::string> sidecar_indexes;  // names of the format's SidecarSpecs
  // Options of the source that change the listing (label-from, ext, include, ...): name -> value,
  // for the digest and for reporting differences.
  std::map<std::string, std::string> source;

  // Every option that is part of the digest: name as on the command line -> canonical value.
  std::map<std::string, std::string> ToMap() const;
  // Sets one of those from its canonical value, except `source`, which has no fixed names. False:
  // no option has that name. InvalidArgument: the option does not have such a value.
  absl::StatusOr<bool> Set(std::string_view name, std::string_view value);
};

// The only description of the options, in the order of plan files. For each member the visitor is
// called with
//   visitor.Option(name, member, shown)   an option of that name; it is in manifests where `shown`
//   visitor.Part(member)                  a member without text of its own: ToMap writes it
// The digest, the manifest, the differences between plans and the plan file are derived from it.
template <typename Self, typename Visitor>
requires std::same_as<std::remove_const_t<Self>, PlanOptions>
void VisitMembers(Self& options, Visitor& visitor) {
  visitor.Option("layout", options.layout);
  visitor.Option("image-field", options.image_field, !options.image_field.empty());
  visitor.Option("with-json", options.with_metadata, options.with_metadata);
  visitor.Part(options.shard_bytes);
  visitor.Part(options.samples_per_shard);
  visitor.Part(options.shards);
  visitor.Part(options.splits);
  visitor.Option("split-by", options.split_by,
                 !options.splits.empty() || options.split_by == SplitBy::kDir);
  visitor.Option("shuffle", options.shuffle);
  visitor.Option("seed", options.seed);
  visitor.Option("key", options.key);
  visitor.Option("on-duplicate-key", options.on_duplicate);
  visitor.Option("limit", options.limit, options.limit > 0);
  visitor.Option("verify", options.verify);
  visitor.Option("allow-truncated", options.allow_truncated);
  visitor.Option("max-pixels", options.max_pixels);
  visitor.Option("max-file-size", options.max_file_bytes);
  visitor.Option("min-size", options.min_side, options.min_side > 0);
  visitor.Option("max-aspect", options.max_aspect, options.max_aspect > 0);
  visitor.Option("dedupe", options.dedupe, options.dedupe != Dedupe::kOff);
  visitor.Part(options.pixels);
  visitor.Option("compute-stats", options.compute_stats, options.compute_stats);
  visitor.Option("sha256", options.sha256, options.sha256);
  visitor.Option("sidecar-index", options.sidecar_indexes, !options.sidecar_indexes.empty());
  visitor.Part(options.source);
}

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PLANNING_PLAN_OPTIONS_H_
