// LmdbWriter: appends samples to one LMDB shard in the caffe or raw layout.
//
//   auto writer = CreateLmdbWriter(staged_file, ShardSpec{.layout = "caffe"});
//   absl::Status appended = (*writer)->Append(sample);
//   absl::Status finished = (*writer)->Finish();
//
// Samples must come in ascending order: of their numbers (caffe) or of their keys (raw).
//
// Lifetime, thread-safety, errors: as ShardWriter. Only the layout and the totals of the ShardSpec
// are used; an image_field is refused, and with_metadata changes nothing.
// Memory: one batch of pages.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_LMDB_WRITING_LMDB_WRITER_H_
#define SHARDPACK_FORMATS_LMDB_WRITING_LMDB_WRITER_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/core/format.h"
#include "formats/core/shard_writer.h"
#include "formats/io/staged_file.h"
#include "formats/lmdb/lmdb_layout.h"
#include "formats/lmdb/writing/lmdb_environment.h"

namespace shardpack {

class LmdbWriter : public ShardWriter {
 public:
  LmdbWriter(LmdbLayout layout, std::unique_ptr<LmdbEnvironment> environment)
      : layout_(layout), environment_(std::move(environment)) {}

  absl::Status Append(const SampleView& sample) override;
  absl::Status Finish() override;

 private:
  const LmdbLayout layout_;
  std::unique_ptr<LmdbEnvironment> environment_;
  std::string key_;
};

// InvalidArgument if this layout cannot hold the sample.
absl::Status CheckLmdbSample(LmdbLayout layout, const SampleView& sample);

// InvalidArgument for a layout that this format does not have, and for a spec with an image_field.
absl::StatusOr<std::unique_ptr<ShardWriter>> CreateLmdbWriter(StagedFile& file,
                                                              const ShardSpec& spec);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_LMDB_WRITING_LMDB_WRITER_H_
