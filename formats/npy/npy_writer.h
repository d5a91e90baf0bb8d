// NpyWriter: appends raw pixels of one shape to images.npy, an array (N, height, width, channels)
// of uint8.
//
//   absl::StatusOr<std::unique_ptr<ShardWriter>> writer = CreateNpyWriter(staged_file, spec);
//   absl::Status appended = (*writer)->Append(sample);
//   absl::Status finished = (*writer)->Finish();
//
// The header is written first, with the planned number of samples; if samples were left out, Finish
// overwrites it with one of the same size. Labels are not in this file: see NpyLabelFiles.
//
// Lifetime, thread-safety, errors: as ShardWriter; a sample that is not raw pixels of the spec's
// shape, or has further fields, is InvalidArgument.
// Memory: the staged file's buffer.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_NPY_NPY_WRITER_H_
#define SHARDPACK_FORMATS_NPY_NPY_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/core/format.h"
#include "formats/core/shard_writer.h"
#include "formats/io/staged_file.h"

namespace shardpack {

class NpyWriter : public ShardWriter {
 public:
  NpyWriter(StagedFile& file, const ShardSpec& spec) : file_(file), spec_(spec) {}

  absl::Status Append(const SampleView& sample) override;
  absl::Status Finish() override;

 private:
  std::string Header(uint64_t samples) const;

  StagedFile& file_;
  const ShardSpec& spec_;
  uint64_t samples_ = 0;
  bool begun_ = false, finished_ = false;
};

// InvalidArgument for a spec without a shape, or with something that the format cannot hold.
absl::StatusOr<std::unique_ptr<ShardWriter>> CreateNpyWriter(StagedFile& file,
                                                             const ShardSpec& spec);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_NPY_NPY_WRITER_H_
