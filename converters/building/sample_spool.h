// SampleSpool: the samples of a shard in a file of their own, for layouts that must know the total
// size of each field before the first sample is written.
//
//   SampleSpool spool(std::move(staged_file));
//   RETURN_IF_ERROR(spool.Add(sample, hashes));        // in the order of the shard
//   spec.fields = spool.Totals();
//   RETURN_IF_ERROR(spool.ForEach([&](const PreparedSample& sample, std::span<const uint64_t> hashes) {
//     return Append(sample, hashes);
//   }));
//
// All samples have the same fields: layouts that want totals refuse any others when planning.
//
// Lifetime: owns the file, which the destructor removes. A sample that ForEach passes on lives
// until the next one.
// Thread-safety: one caller at a time.
// Errors: I/O Status.
// Units: bytes; one sample is in memory at a time.
#ifndef SHARDPACK_CONVERTERS_BUILDING_SAMPLE_SPOOL_H_
#define SHARDPACK_CONVERTERS_BUILDING_SAMPLE_SPOOL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "converters/building/sample_chunk.h"
#include "formats/core/format.h"
#include "formats/io/staged_file.h"

namespace shardpack {

class SampleSpool {
 public:
  explicit SampleSpool(std::unique_ptr<StagedFile> file) : file_(std::move(file)) {}

  // `hashes` has one for each field.
  absl::Status Add(const PreparedSample& sample, std::span<const uint64_t> hashes);
  // The bytes of each field, added up; nothing without samples.
  std::vector<FieldTotal> Totals() const;
  // Calls `append` for each sample in the order of Add, until it fails.
  absl::Status ForEach(
      const std::function<absl::Status(const PreparedSample&, std::span<const uint64_t>)>& append);

 private:
  std::unique_ptr<StagedFile> file_;
  std::vector<std::string> names_;        // of the fields
  std::vector<PreparedSample> samples_;   // without their fields
  std::vector<uint64_t> sizes_, hashes_;  // one for each field of each sample
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_BUILDING_SAMPLE_SPOOL_H_
