// PartWriter: the samples of one worker, in parts that are read again and compared before they
// count.
//
//   auto writer = PartWriter::Open("OUT.parts", 0);
//   absl::Status added = (*writer)->Add("a/1", "cat", fields);
//   added = (*writer)->Flush();                     // now they are safe
//
// Each field is hashed when it is added. Flush ends the part, scans it, and compares what it finds
// with these hashes, which are then in the part's index: `pack` compares with them again.
//
// Lifetime: holds the lock of its worker. What was not flushed is lost with it.
// Thread-safety: one thread at a time; Has from any while no other function runs.
// Errors: AlreadyExists for a key; InvalidArgument for samples that cannot be held; DataLoss if a
// part is read as another than was written; FailedPrecondition if the worker is another one's.
// After an error of Add or Flush what was added since the last Flush is gone, and they fail on.
#ifndef SHARDPACK_API_WRITING_PART_WRITER_H_
#define SHARDPACK_API_WRITING_PART_WRITER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/writing/parts_folder.h"
#include "formats/core/sample.h"
#include "formats/core/shard_writer.h"
#include "formats/io/staged_file.h"

namespace shardpack {

inline constexpr size_t kMostLabelBytes = 255;

class PartWriter {
 public:
  // Parts end by themselves at so many bytes.
  static constexpr uint64_t kPartBytes = uint64_t{256} << 20;

  static absl::StatusOr<std::unique_ptr<PartWriter>> Open(const std::string& folder,
                                                          uint32_t worker);

  PartWriter(const PartWriter&) = delete;
  PartWriter& operator=(const PartWriter&) = delete;

  // fields[0] is the image. Without a label: nullopt.
  absl::Status Add(std::string_view key, std::optional<std::string_view> label,
                   std::span<const FieldView> fields);
  bool Has(std::string_view key) const;  // safe on disk
  absl::Status Flush();

 private:
  struct Row {
    std::string key;
    int64_t label;
    std::vector<std::pair<std::string, uint64_t>> hashes;  // of each field, by its name
  };
  class Compare;

  PartWriter(std::string folder, uint32_t worker, HeldLock lock)
      : folder_(std::move(folder)), worker_(worker), lock_(std::move(lock)) {}
  absl::Status Begin();
  absl::Status Append(std::string_view key, std::optional<std::string_view> label,
                      std::span<const FieldView> fields);
  absl::Status End();
  int64_t LabelOf(std::optional<std::string_view> label);

  const std::string folder_;
  const uint32_t worker_;
  const HeldLock lock_;
  uint32_t next_part_ = 0;
  // With 1 more than the number of their part; 0: that of an earlier writer. Those of the part that
  // is written are not yet safe.
  std::unordered_map<std::string, uint32_t> keys_;
  std::unique_ptr<StagedFile> file_;    // of the part that is written; else nullptr
  std::unique_ptr<ShardWriter> shard_;  // before file_, which it uses, is gone
  std::vector<Row> rows_;
  std::vector<std::string> classes_;
  std::map<std::string, int64_t, std::less<>> labels_;
  absl::Status failed_;
};

}  // namespace shardpack

#endif  // SHARDPACK_API_WRITING_PART_WRITER_H_
