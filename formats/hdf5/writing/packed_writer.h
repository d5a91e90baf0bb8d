// PackedWriter: appends samples to one HDF5 shard of the packed layout: a contiguous dataset holds
// the concatenated bytes of a field, and another their offsets.
//
//   auto writer = PackedWriter::Create(staged_file, spec);
//   absl::Status appended = (*writer)->Append(sample);
//   absl::Status finished = (*writer)->Finish();
//
// The library lays out the file at the start, with the totals of the spec; the bytes are written
// directly to the file at the offsets that the library reports, so that shards do not wait for its
// lock. With fewer bytes than the spec says, the dataset ends in unused zeros.
//
// Lifetime, thread-safety, errors: as ShardWriter.
// Memory: up to 1 MiB per field, plus 8 bytes per field and sample, plus the SampleTable.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_HDF5_WRITING_PACKED_WRITER_H_
#define SHARDPACK_FORMATS_HDF5_WRITING_PACKED_WRITER_H_

#include <cstdint>
#include <memory>
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

class PackedWriter : public ShardWriter {
 public:
  static absl::StatusOr<std::unique_ptr<ShardWriter>> Create(StagedFile& file,
                                                             const ShardSpec& spec);

  absl::Status Append(const SampleView& sample) override;
  absl::Status Finish() override;

 private:
  PackedWriter(StagedFile& file, const ShardSpec& spec) : spec_(spec), out_(file), table_(spec) {}
  absl::Status MakeField(std::string_view name, uint64_t max_bytes);

  const ShardSpec& spec_;
  PositionedOutput out_;
  std::unique_ptr<Hdf5Output> output_;
  SampleTable table_;
  std::vector<OutputRegion> regions_;           // one per field
  std::vector<std::vector<uint64_t>> offsets_;  // one per field; the last entry is the total so far
  bool finished_ = false;
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_HDF5_WRITING_PACKED_WRITER_H_
