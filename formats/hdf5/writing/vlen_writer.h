// VlenWriter: appends samples to one HDF5 shard of the vlen layout: a field is a dataset whose
// elements are the samples' bytes, f["images"][i].
//
//   auto writer = VlenWriter::Create(staged_file, spec);
//   absl::Status appended = (*writer)->Append(sample);
//   absl::Status finished = (*writer)->Finish();
//
// All bytes go through the library, a few hundred samples at a time.
//
// Lifetime, thread-safety, errors: as ShardWriter.
// Memory: up to 8 MiB of samples, or one larger sample, plus the SampleTable.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_HDF5_WRITING_VLEN_WRITER_H_
#define SHARDPACK_FORMATS_HDF5_WRITING_VLEN_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/core/format.h"
#include "formats/core/shard_writer.h"
#include "formats/hdf5/writing/hdf5_output.h"
#include "formats/hdf5/writing/positioned_output.h"
#include "formats/hdf5/writing/sample_table.h"
#include "formats/io/staged_file.h"

namespace shardpack {

class VlenWriter : public ShardWriter {
 public:
  static absl::StatusOr<std::unique_ptr<ShardWriter>> Create(StagedFile& file,
                                                             const ShardSpec& spec);

  absl::Status Append(const SampleView& sample) override;
  absl::Status Finish() override;

 private:
  VlenWriter(StagedFile& file, const ShardSpec& spec) : spec_(spec), out_(file), table_(spec) {}
  absl::Status WritePending();

  const ShardSpec& spec_;
  PositionedOutput out_;
  std::unique_ptr<Hdf5Output> output_;
  SampleTable table_;
  std::vector<std::string> names_;  // of the datasets, one per field
  // Samples of the table that are not yet in the file: the fields of each sample in turn.
  std::vector<std::byte> pending_;
  std::vector<uint64_t> pending_lengths_;
  uint64_t written_ = 0;  // samples
  bool finished_ = false;
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_HDF5_WRITING_VLEN_WRITER_H_
