// ShardScanner: walks one shard from its first byte to its last, once, and says what is in it and
// what is wrong with it.
//
//   SequentialReader in(file, size);
//   absl::Status walked = format.scanner->Scan(
//       in, ScanOptions{.shard_name = "train-000000.tar"}, records, findings);
//
// One walk serves the packer's proof, the index of foreign shards and the validator
// (docs/decisions/0001).
//
// Lifetime: stateless, static storage; a ScannedRecord is valid during OnRecord only.
// Thread-safety: any thread at once.
// Errors: damage is a finding, and the walk goes on where the format lets it find the next record;
// Status means that the file could not be read; Unimplemented that the file has no extents
// (compressed as a whole, say).
// Memory: bounded by the largest record, never more than the file.
// Units: bytes from the start of the shard.
#ifndef SHARDPACK_FORMATS_CORE_SHARD_SCANNER_H_
#define SHARDPACK_FORMATS_CORE_SHARD_SCANNER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "formats/core/finding.h"
#include "formats/core/image_info.h"
#include "formats/io/sequential_reader.h"

namespace shardpack {

struct ScannedField {
  std::string_view name = {};  // kImageField for the image
  uint64_t offset = 0, length = 0;
  uint64_t hash = 0;  // XXH3-64
};

struct ScannedRecord {
  std::string_view key = {};          // empty when the format does not hold one
  std::string_view source_path = {};  // empty when the format does not hold one
  int64_t label = -1;                 // kNoLabel when there is none
  uint64_t offset = 0, length = 0;    // the whole container record, framing and padding included
  std::span<const ScannedField> fields = {};  // [0] = image, if the record has one
  // What the container says of an image that has no header of its own (kRaw); else kUnknown.
  ImageInfo image = {};
  // What the shard stores for class 0, by which `label` was lowered; of a record that stores 0 or
  // more. Where it stores less than that for the background, `label` is kNoLabel.
  std::optional<int64_t> label_base = {};
};

class RecordSink {
 public:
  virtual ~RecordSink() = default;
  virtual void OnRecord(const ScannedRecord& record) = 0;
  // A value of the record before its OnRecord that no field can hold: neither bytes nor a label.
  virtual void OnLeftOut(std::string_view /*name*/) {}
};

struct ScanOptions {
  std::string_view shard_name = {};  // for findings
  // False: only structure and checksums, as far as every reader agrees. True: also what this
  // format's well-known readers disagree about or refuse (names, field sets, extension records), as
  // findings.
  bool strict = true;
  // What the shard stores for class 0, as its manifest says; what is scanned counts from 0. Unknown
  // of a foreign shard: the scanner then takes what the layout of its records says, else 0.
  std::optional<int64_t> label_base = {};
};

class ShardScanner {
 public:
  virtual ~ShardScanner() = default;
  virtual absl::Status Scan(SequentialReader& in, const ScanOptions& options, RecordSink& records,
                            FindingSink& findings) const = 0;
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_CORE_SHARD_SCANNER_H_
