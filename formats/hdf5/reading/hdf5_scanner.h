// kHdf5Scanner: walks an HDF5 file of images: its structures by our own bounded parser, never by
// the library, then its images in the order in which they lie.
//
//   SequentialReader in(file, size);
//   absl::Status walked = kHdf5Scanner.Scan(in, {.shard_name = name}, records, findings);
//
// A record of the layout packed is the image's bytes, one of vlen the heap object around them;
// further fields lie elsewhere in the file. Records come in the order of the datasets. Damage to a
// structure that all samples need ends the walk with a finding. A file whose images go through a
// filter has no extents: Unimplemented, and the message names the filter.
//
// Lifetime, thread-safety, errors: as ShardScanner.
// Memory: as ShardMap, and 48 bytes a sample and field.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_HDF5_READING_HDF5_SCANNER_H_
#define SHARDPACK_FORMATS_HDF5_READING_HDF5_SCANNER_H_

#include "absl/status/status.h"
#include "formats/core/shard_scanner.h"

namespace shardpack {

class Hdf5Scanner : public ShardScanner {
 public:
  constexpr Hdf5Scanner() = default;
  absl::Status Scan(SequentialReader& in, const ScanOptions& options, RecordSink& records,
                    FindingSink& findings) const override;
};

extern const Hdf5Scanner kHdf5Scanner;

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_HDF5_READING_HDF5_SCANNER_H_
