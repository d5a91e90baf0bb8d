// kNpyScanner: walks images.npy, an array (N, height, width[, channels]) of uint8, and reads the
// labels from the file next to it.
//
//   SequentialReader in(file, size);
//   absl::Status walked = kNpyScanner.Scan(in, {.shard_name = name}, records, findings);
//
// A record is the bytes of an image; it has no key.
//
// Lifetime, thread-safety, errors: as ShardScanner. An array with other elements or dimensions is a
// finding, and so is a column-major one (fortran_order), whose images have no byte extents.
// Memory: 8 bytes per sample.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_NPY_NPY_SCANNER_H_
#define SHARDPACK_FORMATS_NPY_NPY_SCANNER_H_

#include "absl/status/status.h"
#include "formats/core/shard_scanner.h"

namespace shardpack {

class NpyScanner : public ShardScanner {
 public:
  constexpr NpyScanner() = default;
  absl::Status Scan(SequentialReader& in, const ScanOptions& options, RecordSink& records,
                    FindingSink& findings) const override;
};

extern const NpyScanner kNpyScanner;

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_NPY_NPY_SCANNER_H_
