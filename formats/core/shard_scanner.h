// ShardScanner: reads one shard from start to end, once, and reports its records and everything
// that is wrong with it.
//
//   SequentialReader in(file, size);
//   absl::Status walked = format.scanner->Scan(
//       in, ScanOptions{.shard_name = "train-000000.tar"}, records, findings);
//
// The same scan serves the packer's verification, the index of foreign shards and the validator
// (docs/decisions/0001).
//
// Lifetime: stateless, static storage; a ScannedRecord is valid only during OnRecord.
// Thread-safety: any thread at once.
// Errors: damage is a finding, and the scan continues if the format allows it to find the next
// record. Status: the file could not be read; Unimplemented: the file has no extents (for example
// because it is compressed as a whole).
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
  std::string_view key = {};          // empty if the format does not store one
  std::string_view source_path = {};  // empty if the format does not store one
  int64_t label = -1;                 // kNoLabel if there is none
  uint64_t offset = 0, length = 0;    // the whole container record, including framing and padding
  std::span<const ScannedField> fields = {};  // [0] = image, if the record has one
  // What the container says about an image that has no header of its own (kRaw); otherwise
  // kUnknown.
  ImageInfo image = {};
  // The value stored for class 0, which was subtracted from `label`; set if the record stores 0 or
  // more. If it stores less, for the background, `label` is kNoLabel.
  std::optional<int64_t> label_base = {};
};

class RecordSink {
 public:
  virtual ~RecordSink() = default;
  virtual void OnRecord(const ScannedRecord& record) = 0;
  // Called for a value that no field and no label holds, such as a list of numbers: before the
  // record's OnRecord, or once for the shard.
  virtual void OnLeftOut(std::string_view /*name*/) {}
};

struct ScanOptions {
  std::string_view shard_name = {};  // for findings
  // False: checks only structure and checksums, as far as all readers agree. True: also reports, as
  // findings, what some well-known readers of this format interpret differently or reject (names,
  // field sets, extension records).
  bool strict = true;
  // The value stored for class 0 according to the manifest; scanned labels count from 0. Unset for
  // a foreign shard: the scanner then uses the base of the records' layout, else 0.
  std::optional<int64_t> label_base = {};
  // The names of the classes come from elsewhere: those in the shard are not reported as left out.
  bool has_classes = false;
};

class ShardScanner {
 public:
  virtual ~ShardScanner() = default;
  virtual absl::Status Scan(SequentialReader& in, const ScanOptions& options, RecordSink& records,
                            FindingSink& findings) const = 0;
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_CORE_SHARD_SCANNER_H_
