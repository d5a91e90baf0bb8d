// kTfrecordFormat: the entry for TFRecord files of tf.train.Example in the table of formats
// (FORMAT.md).
//
//   auto writer = kTfrecordFormat.create(staged_file, ShardSpec{});
//   auto name = kTfrecordFormat.shard_name("train", 0, 12);  // train-00000-of-00012.tfrecord
//   uint64_t most = kTfrecordFormat.record_bound(ShardSpec{}, shape);
//
// Keys are not stored (the index has them); image/filename holds the source path. The layouts
// always hold filename, label, class and size, so ShardSpec::with_metadata changes nothing;
// ShardSpec::image_field is refused.
//
// Lifetime: static storage, constant-initialised.
// Thread-safety: any thread.
// Errors: as Format.
#ifndef SHARDPACK_FORMATS_TFRECORD_TFRECORD_FORMAT_H_
#define SHARDPACK_FORMATS_TFRECORD_TFRECORD_FORMAT_H_

#include "formats/core/format.h"

namespace shardpack {

extern const Format kTfrecordFormat;

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_TFRECORD_TFRECORD_FORMAT_H_
