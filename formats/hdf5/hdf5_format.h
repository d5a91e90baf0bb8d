// kHdf5Format: the entry for HDF5 files in the table of formats (FORMAT.md).
//
//   auto writer = kHdf5Format.create(staged_file, spec);
//   std::string name = kHdf5Format.shard_name("train", 0, 12);       // train-00000-of-00012.h5
//   uint64_t most = kHdf5Format.record_bound(spec, shape);
//
// The source path is not stored (the index has it). ShardSpec::with_metadata changes nothing;
// ShardSpec::image_field is refused: the image is always "images".
//
// Lifetime: static storage, constant-initialised.
// Thread-safety: any thread.
// Errors: as Format.
#ifndef SHARDPACK_FORMATS_HDF5_HDF5_FORMAT_H_
#define SHARDPACK_FORMATS_HDF5_HDF5_FORMAT_H_

#include "formats/core/format.h"

namespace shardpack {

extern const Format kHdf5Format;

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_HDF5_HDF5_FORMAT_H_
