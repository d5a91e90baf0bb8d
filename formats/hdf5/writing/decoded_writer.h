// DecodedWriter: appends raw pixels of one shape to one HDF5 shard of the decoded layout: /images
// is a contiguous dataset (N, height, width, channels) of uint8.
//
//   auto writer = DecodedWriter::Create(staged_file, spec);
//   absl::Status appended = (*writer)->Append(sample);
//   absl::Status finished = (*writer)->Finish();
//
// The library lays out the file at the start, for the planned number of samples; the pixels are
// written directly to the file. A contiguous dataset cannot shrink, so if samples were left out,
// Finish lays the file out again for the actual number; the pixels are already in the right place.
//
// Lifetime, thread-safety, errors: as ShardWriter; a sample that is not raw pixels of the spec's
// shape is InvalidArgument.
// Memory: up to 1 MiB, plus the SampleTable.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_HDF5_WRITING_DECODED_WRITER_H_
#define SHARDPACK_FORMATS_HDF5_WRITING_DECODED_WRITER_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/core/format.h"
#include "formats/core/shard_writer.h"
#include "formats/hdf5/writing/hdf5_output.h"
#include "formats/hdf5/writing/positioned_output.h"
#include "formats/hdf5/writing/sample_table.h"
#include "formats/io/staged_file.h"

namespace shardpack {

class DecodedWriter : public ShardWriter {
 public:
  static absl::StatusOr<std::unique_ptr<ShardWriter>> Create(StagedFile& file,
                                                             const ShardSpec& spec);

  absl::Status Append(const SampleView& sample) override;
  absl::Status Finish() override;

 private:
  DecodedWriter(StagedFile& file, const ShardSpec& spec)
      : spec_(spec), image_bytes_(RawImageBytes(spec.raw_image)), out_(file), table_(spec) {}
  // Lays out the file for this many samples and returns the offset of their pixels.
  absl::StatusOr<uint64_t> LayOut(uint64_t samples);
  absl::Status LayOutAgain();

  const ShardSpec& spec_;
  const uint64_t image_bytes_;
  PositionedOutput out_;
  std::unique_ptr<Hdf5Output> output_;
  SampleTable table_;
  uint64_t offset_ = 0;
  std::optional<OutputRegion> pixels_;
  bool finished_ = false;
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_HDF5_WRITING_DECODED_WRITER_H_
