// WriteShard and ScanBytes: the two directions of a format, with everything kept for a test to look
// at.
//
//   absl::StatusOr<std::string> bytes = WriteShard(format, spec, samples, scratch.File("shard"));
//   ScanResult scan = ScanBytes(format, *bytes);
//   EXPECT_EQ(scan.records[0].fields[0].hash, Xxh3_64(AsBytes(samples[0].fields[0].second)));
//
// Lifetime: results own what they hold.
// Thread-safety: pure but for the file.
// Errors: WriteShard answers the writer's; a scan's status is part of its result.
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
  ImageInfo image;  // as the container has it
  friend bool operator==(const FoundRecord&, const FoundRecord&) = default;

  const FoundField* Find(std::string_view field) const;  // nullptr when it is not there
};

struct ScanResult {
  absl::Status status;
  std::vector<FoundRecord> records;
  FindingList findings;
  Digest digest;  // of the whole file; zero when it could not be read

  // Whatever there is to say about damage, one line a finding, and the status. Empty: nothing was
  // noticed.
  std::string Complaints() const;
};

// The spec with what a plan of these samples would add.
ShardSpec SpecFor(const ShardSpec& spec, std::span<const OwnedSample> samples);

// Writes, flushes and publishes a shard at `path`, which must not exist, and returns its bytes. The
// writer's spec is SpecFor(spec, samples).
absl::StatusOr<std::string> WriteShard(const Format& format, const ShardSpec& spec,
                                       std::span<const OwnedSample> samples,
                                       const std::string& path);

// Scans bytes through a file in memory, and the file's digest to its end.
ScanResult ScanBytes(const Format& format, std::string_view bytes, bool strict = true,
                     std::optional<int64_t> label_base = {});

// The index the packer would write for this shard.
absl::StatusOr<ShardIndex> IndexOf(const ScanResult& scan, std::span<const OwnedSample> samples,
                                   uint64_t shard_bytes);

// The sizes that record_bound wants to know.
RecordShape ShapeOf(const OwnedSample& sample, std::vector<uint64_t>& field_bytes);

}  // namespace shardpack::testing

#endif  // SHARDPACK_FORMATS_TESTING_TEST_SHARD_H_
