// TfrecordWriter: appends samples to one TFRecord shard, each as a tf.train.Example.
//
//   auto writer = CreateTfrecordWriter(staged_file, ShardSpec{});
//   absl::Status appended = (*writer)->Append(sample);
//   absl::Status finished = (*writer)->Finish();
//
// Lifetime, thread-safety, errors: as ShardWriter. Only `layout` and `image_field` of the ShardSpec
// are used: the layouts always hold filename, label, class and size, so with_metadata changes
// nothing, and each layout has its own name for the image.
// Memory: one record's metadata; fields are not copied.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_TFRECORD_TFRECORD_WRITER_H_
#define SHARDPACK_FORMATS_TFRECORD_TFRECORD_WRITER_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/core/format.h"
#include "formats/core/shard_writer.h"
#include "formats/io/staged_file.h"
#include "formats/tfrecord/example_encoder.h"

namespace shardpack {

class TfrecordWriter : public ShardWriter {
 public:
  explicit TfrecordWriter(StagedFile& file, TfrecordLayout layout = TfrecordLayout::kClassification)
      : file_(file), encoder_(layout) {}

  absl::Status Append(const SampleView& sample) override;
  absl::Status Finish() override;

 private:
  StagedFile& file_;
  ExampleEncoder encoder_;
  std::vector<Bytes> parts_;
  bool finished_ = false;
};

// InvalidArgument for an unknown layout, and for a spec with an image_field.
absl::StatusOr<std::unique_ptr<ShardWriter>> CreateTfrecordWriter(StagedFile& file,
                                                                  const ShardSpec& spec);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_TFRECORD_TFRECORD_WRITER_H_
