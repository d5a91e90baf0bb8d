// LmdbScanner: walks the data file of an LMDB environment page by page, without liblmdb, and finds
// the images in its values.
//
//   SequentialReader in(file, size);
//   const ScanOptions options{.shard_name = "train-00000-of-00001.lmdb"};
//   absl::Status walked = kLmdbScanner.Scan(in, options, records, findings);
//
// The layout is found by looking (layout_detection.h). Records come in key order, those of the
// layout pickle by number. A record is the entry's node in its leaf, or its overflow pages; its one
// field is the image within the value. Key: in layout raw. Label: in caffe and pickle. Source path:
// in caffe. Pages are read from in.file() where they lie, so in.position() stays at 0.
//
// Lifetime, thread-safety, errors: as ShardScanner.
// Memory: the largest value, a page for each level of the tree, sixteen bytes an entry for pickle.
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
