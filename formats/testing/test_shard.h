// WriteShard and ScanBytes: write and read a format, and keep all results for a test to examine.
//
//   absl::StatusOr<std::string> bytes = WriteShard(format, spec, samples, scratch.File("shard"));
//   ScanResult scan = ScanBytes(format, *bytes);
//   EXPECT_EQ(scan.records[0].fields[0].hash, Xxh3_64(AsBytes(samples[0].fields[0].second)));
//
// Lifetime: results own their data.
// Thread-safety: any thread; only WriteShard touches a file.
// Errors: WriteShard returns those of the writer; the status of a scan is part of its result.
// Units: bytes from the start of the shard.
#ifndef SHARDPACK_FORMATS_TESTING_TEST_SHARD_H_
#define SHARDPACK_FORMATS_TESTING_TEST_SHARD_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/core/finding.h"
#include "formats/core/format.h"
#include "formats/core/shard_index.h"
#include "formats/io/hash.h"
#include "formats/testing/sample_generator.h"

namespace shardpack::testing {

struct FoundField {
  std::string name;
  uint64_t offset = 0, length = 0, hash = 0;
  friend bool operator==(const FoundField&, const FoundField&) = default;
};

struct FoundRecord {
  std::string key, source_path;
  int64_t label = kNoLabel;
  uint64_t offset = 0, length = 0;
  std::vector<FoundField> fields;
  ImageInfo image;  // as stored in the container
  friend bool operator==(const FoundRecord&, const FoundRecord&) = default;

  const FoundField* Find(std::string_view field) const;  // nullptr if absent
};

struct ScanResult {
  absl::Status status;
  std::vector<FoundRecord> records;
  FindingList findings;
  Digest digest;  // of the whole file; zero if it could not be read

  // All signs of damage: one line per finding, and the status. Empty: no damage was detected.
  std::string Complaints() const;
};

// The spec, completed as a plan of these samples would.
ShardSpec SpecFor(const ShardSpec& spec, std::span<const OwnedSample> samples);

// Writes, flushes and publishes a shard at `path`, which must not exist yet, and returns its bytes.
// The writer's spec is SpecFor(spec, samples).
absl::StatusOr<std::string> WriteShard(const Format& format, const ShardSpec& spec,
                                       std::span<const OwnedSample> samples,
                                       const std::string& path);

// Scans bytes through a file in memory, and computes the digest of the whole file.
ScanResult ScanBytes(const Format& format, std::string_view bytes, bool strict = true,
                     std::optional<int64_t> label_base = {});

// The index that the packer would write for this shard.
absl::StatusOr<ShardIndex> IndexOf(const ScanResult& scan, std::span<const OwnedSample> samples,
                                   uint64_t shard_bytes);

// The sizes that record_bound needs.
RecordShape ShapeOf(const OwnedSample& sample, std::vector<uint64_t>& field_bytes);

}  // namespace shardpack::testing

#endif  // SHARDPACK_FORMATS_TESTING_TEST_SHARD_H_
