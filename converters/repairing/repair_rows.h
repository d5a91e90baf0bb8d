// The records of one lost shard, in order and without their bytes, and the two files
// made from them: the shard and its index.
//
//   rows.push_back(*RowOf(*index, record, /*without_json=*/false));   // each
//   DescribeRows(rows, layout.fixed_shape, spec);
//   absl::Status written = WriteShard(format, spec, rows, classes, finder, pool, path, stop, from);
//   absl::StatusOr<std::string> index = MakeIndex(format, layout, path, bytes, rows, stop);
//
// Lifetime: plain values; calls borrow.
// Thread-safety: one call per path at a time.
// Errors: NotFound for bytes that were not found or cannot be read, with their location; DataLoss
// for a shard that does not consist of these rows; Cancelled; I/O.
// Memory: 64 MiB of samples, or one sample if larger.
// Units: bytes.
#ifndef SHARDPACK_CONVERTERS_REPAIRING_REPAIR_ROWS_H_
#define SHARDPACK_CONVERTERS_REPAIRING_REPAIR_ROWS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "converters/repairing/dataset_copy.h"
#include "converters/threads/io_pool.h"
#include "formats/core/format.h"

namespace shardpack {

struct RepairField {
  std::string name;
  uint64_t hash = 0, length = 0;
};

struct RepairRow {
  uint64_t number = 0;  // SampleView::number
  std::string key, source_path;
  int64_t label = kNoLabel;
  ImageInfo image;
  std::vector<RepairField> fields = {};  // [0] = image
};

// An index record as a row; nullopt if it has no image. `without_json` leaves out the field that
// the format's writer makes itself.
std::optional<RepairRow> RowOf(const ShardIndex& index, uint64_t record, bool without_json);

// Completes the shard's spec with what `rows` show: the totals, and the shape of raw pixels.
void DescribeRows(std::span<const RepairRow> rows, bool fixed_shape, ShardSpec& spec);

// Writes the shard to `path`, which must not exist; with an empty path only checks that all bytes
// can be found. Adds the names of the sources used to `from`.
absl::Status WriteShard(const Format& format, const ShardSpec& spec,
                        std::span<const RepairRow> rows, const std::vector<std::string>& classes,
                        const FieldFinder& finder, IoPool& pool, const std::string& path,
                        const std::atomic<int>& stop, std::set<std::string>& from);

// Scans the shard at `path`. If damaged files beside it prevent that, scans it again without them.
// `begin` is called before each scan.
absl::Status ScanAlone(const Format& format, const LayoutSpec& layout, const std::string& path,
                       uint64_t bytes, const std::atomic<int>& stop,
                       const std::function<RecordSink&()>& begin);

// The index of the shard at `path`, whose size is `bytes`.
absl::StatusOr<std::string> MakeIndex(const Format& format, const LayoutSpec& layout,
                                      const std::string& path, uint64_t bytes,
                                      std::span<const RepairRow> rows,
                                      const std::atomic<int>& stop);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_REPAIRING_REPAIR_ROWS_H_
