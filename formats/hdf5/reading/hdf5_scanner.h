// kHdf5Scanner: walks an HDF5 file of images. It parses the structures with our own bounded parser,
// never with the library, then reads the images in file order.
//
//   SequentialReader in(file, size);
//   absl::Status walked = kHdf5Scanner.Scan(in, {.shard_name = name}, records, findings);
//
// A record of the packed layout is the image's bytes, one of vlen the heap object around them;
// further fields are stored elsewhere in the file. Records come in dataset order. Damage to a
// structure that all samples need ends the walk with a finding. Filtered images have no extents:
// Unimplemented, and the message names the filter.
//
// Lifetime, thread-safety, errors: as ShardScanner.
// Memory: as ShardMap, plus 48 bytes per sample and field.
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
