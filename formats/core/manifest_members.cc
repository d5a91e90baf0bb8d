#include "formats/core/manifest_members.h"

namespace shardpack::manifest_internal {
namespace {

Object MembersOf(ManifestCounts& counts) {
  return {{"failed", &counts.failed}, {"filtered", &counts.filtered}, {"ignored", &counts.ignored},
          {"packed", &counts.packed}, {"seen", &counts.seen},         {"skipped", &counts.skipped}};
}

Object MembersOf(DatasetFacts& facts) {
  return {{"image_bytes", &facts.image_bytes},
          {"image_formats", &facts.image_formats},
          {"largest_image_bytes", &facts.max_image_bytes},
          {"largest_record_bytes", &facts.largest_record_bytes},
          {"max_height", &facts.max_height},
          {"max_width", &facts.max_width},
          {"min_height", &facts.min_height},
          {"min_width", &facts.min_width},
          {"pixel_stats", &facts.pixel_stats, true},
          {"pixel_sums", &facts.pixel_sums, true},
          {"pixels", &facts.pixels, true}};
}

}  // namespace

Object MembersOf(FileEntry& file) {
  return {{"bytes", &file.bytes}, {"name", &file.name}, {"xxh3_128", &file.xxh3_128}};
}

Object MembersOf(ManifestShard& shard) {
  return {{"bytes", &shard.bytes},
          {"index", MembersOf(shard.index)},
          {"location", &shard.location, true},
          {"name", &shard.name},
          {"planned", &shard.planned, true},
          {"records", &shard.records},
          {"sha256", &shard.sha256, true},
          {"split", &shard.split},
          {"xxh3_128", &shard.xxh3_128}};
}

Object MembersOf(Manifest& m, Envelope& envelope) {
  return {{"classes", &m.classes},
          {"counts", MembersOf(m.counts)},
          {"facts", MembersOf(m.facts)},
          {"files", &m.files},
          {"format", &m.format},
          {"label_base", &m.label_base},
          {"layout", &m.layout},
          {"options", &m.options},
          {"options_digest", &m.options_digest},
          {"origin", &m.origin, true},
          {"plan_digest", &m.plan_digest},
          {"schema", &envelope.schema},
          {"self", &envelope.self},
          {"shards", &m.shards},
          {"source", Object{{"bytes", &m.source_bytes},
                            {"files", &m.source_files},
                            {"listing_digest", &m.listing_digest},
                            {"root", &m.source_root},
                            {"times", &m.source_times, true}}},
          {"splits", &m.splits},
          {"tool", &m.tool}};
}

}  // namespace shardpack::manifest_internal
