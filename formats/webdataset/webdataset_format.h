// kWebDatasetFormat: the entry for WebDataset in the table of formats. Samples are members of
// uncompressed tar files.
//
//   std::string name = kWebDatasetFormat.shard_name("train", 0, 12);  // train-000000.tar
//   auto writer = kWebDatasetFormat.create(staged_file, spec);
//   kWebDatasetFormat.scanner->Scan(in, {.shard_name = name}, records, findings);
//
// Thread-safety: any thread.
// Errors: see Format.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_WEBDATASET_WEBDATASET_FORMAT_H_
#define SHARDPACK_FORMATS_WEBDATASET_WEBDATASET_FORMAT_H_

#include "formats/core/format.h"

namespace shardpack {

extern const Format kWebDatasetFormat;

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_WEBDATASET_WEBDATASET_FORMAT_H_
