// The files that TensorFlow Datasets wants beside the shards of a dataset that it did not make, and
// the shards' names.
//
//   std::string name = TfdsShardName("train", 0, 12);   // dataset-train.tfrecord-00000-of-00012
//   absl::StatusOr<std::vector<NamedBytes>> files = MakeTfdsFiles(input);
//   // dataset_info.json   name, version, and the samples of each shard
//   // features.json       image, image/filename, and with classes label
//   // label.labels.txt    with classes: their names, one a line
//
//   tfds.builder_from_directory(OUT).as_dataset(split="train")
//
// The dataset's name there is "dataset", its version 1.0.0. numBytes of a split counts its
// Examples. In label.labels.txt what is not printable, a backslash, and white space at either end,
// is escaped as \xNN: TensorFlow Datasets splits at newlines and strips.
//
// Units: bytes, samples. Source: tensorflow/datasets: docs/external_tfrecord.md,
// tensorflow_datasets/core/naming.py, core/proto/{dataset_info,feature}.proto,
// core/features/{image_feature,class_label_feature}.py.
#ifndef SHARDPACK_FORMATS_TFRECORD_TFDS_FILES_H_
#define SHARDPACK_FORMATS_TFRECORD_TFDS_FILES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/core/format.h"

namespace shardpack {

// "" for a split that cannot stand in such a name: letters, digits, _ and - can.
std::string TfdsShardName(std::string_view split, uint32_t number, uint32_t total);

// The `files` of the layout tfds.
absl::StatusOr<std::vector<NamedBytes>> MakeTfdsFiles(const SidecarInput& input);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_TFRECORD_TFDS_FILES_H_
