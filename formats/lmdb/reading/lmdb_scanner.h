// LmdbScanner: walks the data file of an LMDB environment page by page, without liblmdb, and finds
// the images in its values.
//
//   SequentialReader in(file, size);
//   const ScanOptions options{.shard_name = "train-00000-of-00001.lmdb"};
//   absl::Status walked = kLmdbScanner.Scan(in, options, records, findings);
//
// The layout is detected from the entries (layout_detection.h). Records come in key order; those of
// the pickle layout come by number. A record is the entry's node in its leaf, or its overflow
// pages; its only field is the image within the value. The raw layout has keys, caffe and pickle
// have labels, caffe has source paths. Pages are read in place from in.file(), so in.position()
// stays 0.
//
// Lifetime, thread-safety, errors: as ShardScanner.
// Memory: the largest value, one page per level of the tree, and 16 bytes per entry for pickle.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_LMDB_READING_LMDB_SCANNER_H_
#define SHARDPACK_FORMATS_LMDB_READING_LMDB_SCANNER_H_

#include "absl/status/status.h"
#include "formats/core/shard_scanner.h"

namespace shardpack {

class LmdbScanner : public ShardScanner {
 public:
  constexpr LmdbScanner() = default;
  absl::Status Scan(SequentialReader& in, const ScanOptions& options, RecordSink& records,
                    FindingSink& findings) const override;
};

extern const LmdbScanner kLmdbScanner;

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_LMDB_READING_LMDB_SCANNER_H_
