// WebdatasetScanner: finds the samples of a WebDataset shard, grouped as the webdataset library
// groups them, with extents and hashes.
//
//   SequentialReader in(file, size);
//   absl::Status walked = WebdatasetScanner().Scan(in, {.shard_name = name}, records, findings);
//   absl::StatusOr<Digest> digest = in.Finish();
//
// A record extends from the first block of its first member (extension records included) to the end
// of the padding of its last one. A sample next to damage may have lost a field: it is left out
// unless it has the same fields as the first sample that is not next to damage.
//
// Lifetime, thread-safety, errors: see ShardScanner.
// Units: bytes from the start of the shard.
#ifndef SHARDPACK_FORMATS_WEBDATASET_WEBDATASET_SCANNER_H_
#define SHARDPACK_FORMATS_WEBDATASET_WEBDATASET_SCANNER_H_

#include "absl/status/status.h"
#include "formats/core/shard_scanner.h"

namespace shardpack {

class WebdatasetScanner : public ShardScanner {
 public:
  constexpr WebdatasetScanner() = default;
  absl::Status Scan(SequentialReader& in, const ScanOptions& options, RecordSink& records,
                    FindingSink& findings) const override;
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_WEBDATASET_WEBDATASET_SCANNER_H_
