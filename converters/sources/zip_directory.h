// CheckZipDirectory: whether the central directory at a zip's end, by which most programs go, is
// there, names each member once, and calls it as the header beside its bytes does. libarchive goes
// by those headers, so that a damaged name would become another class, or no image, without a word.
//
//   RETURN_IF_ERROR(CheckZipDirectory(file, 60));
//
// Thread-safety: any thread.
// Errors: DataLoss, with the offset; Status of the reads.
// Memory: 8 bytes a member, and two blocks.
// Units: bytes. Internal to the archive source.
#ifndef SHARDPACK_CONVERTERS_SOURCES_ZIP_DIRECTORY_H_
#define SHARDPACK_CONVERTERS_SOURCES_ZIP_DIRECTORY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "formats/io/file.h"

namespace shardpack {

// `members`: how many were found by their headers.
absl::Status CheckZipDirectory(const File& zip, uint64_t members);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_ZIP_DIRECTORY_H_
