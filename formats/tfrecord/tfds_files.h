// The files that TensorFlow Datasets requires next to the shards of an external dataset, and the
// names of the shards.
//
//   std::string name = TfdsShardName("train", 0, 12);   // dataset-train.tfrecord-00000-of-00012
//   absl::StatusOr<std::vector<NamedBytes>> files = MakeTfdsFiles(input);
//   // dataset_info.json   name, version, and the samples of each shard
//   // features.json       image, image/filename, and with classes label
//   // label.labels.txt    with classes: their names, one a line
//
//   tfds.builder_from_directory(OUT).as_dataset(split="train")
//
// TensorFlow Datasets sees the name "dataset" and the version 1.0.0. numBytes of a split is the
// size of its Examples. TensorFlow Datasets splits label.labels.txt at newlines and strips each
// line, so nonprintable bytes, backslashes, and whitespace at either end of a name are escaped as
// \xNN.
//
// Units: bytes, samples.
// Source: tensorflow/datasets: docs/external_tfrecord.md, tensorflow_datasets/core/naming.py,
// core/proto/{dataset_info,feature}.proto, core/features/{image_feature,class_label_feature}.py.
#ifndef SHARDPACK_FORMATS_TFRECORD_TFDS_FILES_H_
#define SHARDPACK_FORMATS_TFRECORD_TFDS_FILES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/core/format.h"

namespace shardpack {

// "" for a split that is not allowed in such a name: it may have letters, digits, _ and - only.
std::string TfdsShardName(std::string_view split, uint32_t number, uint32_t total);

// The `files` of the layout tfds.
absl::StatusOr<std::vector<NamedBytes>> MakeTfdsFiles(const SidecarInput& input);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_TFRECORD_TFDS_FILES_H_
