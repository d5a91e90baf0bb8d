// LabelText: the label of a record, spelled as it is in the shard.
//
//   absl::StatusOr<std::optional<std::string>> label = LabelText(file, record.offset, record.length);
//
// Thread-safety: pure except for the file.
// Errors: read errors.
// Units: bytes from the start of the shard.
#ifndef SHARDPACK_FORMATS_WEBDATASET_LABEL_TEXT_H_
#define SHARDPACK_FORMATS_WEBDATASET_LABEL_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "formats/io/file.h"

namespace shardpack {

// The text of the label member of the record at [offset, offset + length): "007", "+3", "5\n".
// nullopt if the record has none.
absl::StatusOr<std::optional<std::string>> LabelText(const File& file, uint64_t offset,
                                                     uint64_t length);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_WEBDATASET_LABEL_TEXT_H_
