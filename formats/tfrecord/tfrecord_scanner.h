// TfrecordScanner: walks a TFRecord shard, checks both checksums of every record, and finds the
// fields of its Examples.
//
//   SequentialReader in(file, size);
//   const ScanOptions options{.shard_name = "train-00000-of-00001.tfrecord"};
//   absl::Status walked = kTfrecordScanner.Scan(in, options, records, findings);
//
// A record's key is empty (the format has none), its source path is image/filename, its label
// image/class/label less the label_base of the options; where these have none, less 1 if the first
// record with a label has the synset that the layout imagenet has. A record is handed on only when
// its checksums and its Example are sound; it may lack an image. Fields: the image, then every
// other bytes feature with exactly one value, in the byte order of their names, without the
// layout's metadata. After a header that cannot be right (checksum, or a length that passes the
// end) the walk goes on at the next offset that holds a header with a right checksum and a length
// that fits; the work of looking for it is linear. A file that is compressed as a whole is one
// finding, kTfrecordCompressed, and no records.
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
