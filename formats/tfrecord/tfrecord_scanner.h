// TfrecordScanner: walks a TFRecord shard, checks both checksums of every record, and finds the
// fields of its Examples.
//
//   SequentialReader in(file, size);
//   const ScanOptions options{.shard_name = "train-00000-of-00001.tfrecord"};
//   absl::Status walked = kTfrecordScanner.Scan(in, options, records, findings);
//
// A record's key is empty (the format has no keys), its source path is image/filename, and its
// label is image/class/label minus the label_base of the options. If the options have none, the
// base is 1 if the first record with a label has the synset of the imagenet layout, else 0.
//
// A record is delivered only if its checksums and its Example are sound; it may lack an image. Its
// fields are the image, then every other bytes feature with exactly one value, in byte order of
// their names, without the layout's metadata.
//
// After a bad header (wrong checksum, or a length past the end) the walk resumes at the next offset
// with a sound header whose length fits; this search is linear. A file that is compressed as a
// whole gives one finding, kTfrecordCompressed, and no records.
//
// Lifetime, thread-safety, errors: as ShardScanner.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_TFRECORD_TFRECORD_SCANNER_H_
#define SHARDPACK_FORMATS_TFRECORD_TFRECORD_SCANNER_H_

#include "absl/status/status.h"
#include "formats/core/shard_scanner.h"

namespace shardpack {

class TfrecordScanner : public ShardScanner {
 public:
  constexpr TfrecordScanner() = default;
  absl::Status Scan(SequentialReader& in, const ScanOptions& options, RecordSink& records,
                    FindingSink& findings) const override;
};

extern const TfrecordScanner kTfrecordScanner;

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_TFRECORD_TFRECORD_SCANNER_H_
