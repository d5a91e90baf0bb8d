// kWebDatasetReading: the part of kWebDatasetFormat that opens shards, for programs that write
// none: without the libraries that other tools' index files need.
//
//   absl::StatusOr<Dataset> dataset = Dataset::OpenShards(paths, {&kWebDatasetReading, 1});
//
// Thread-safety: any thread.
// Errors: see Format. It has no layouts, no writer and no sidecars.
#ifndef SHARDPACK_FORMATS_WEBDATASET_WEBDATASET_READING_H_
#define SHARDPACK_FORMATS_WEBDATASET_WEBDATASET_READING_H_

#include "formats/core/format.h"

namespace shardpack {

extern const Format kWebDatasetReading;

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_WEBDATASET_WEBDATASET_READING_H_
