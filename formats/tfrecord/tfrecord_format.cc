#include "formats/tfrecord/tfrecord_format.h"

#include <string>

#include "absl/strings/str_format.h"
#include "formats/tfrecord/example_encoder.h"
#include "formats/tfrecord/record_framing.h"
#include "formats/tfrecord/tfds_files.h"
#include "formats/tfrecord/tfrecord_index.h"
#include "formats/tfrecord/tfrecord_layout.h"
#include "formats/tfrecord/tfrecord_scanner.h"
#include "formats/tfrecord/tfrecord_writer.h"

namespace shardpack {
namespace {

// The usual naming of TensorFlow's own datasets; vahidk/tfrecord and most globs look for the
// suffix.
std::string ShardName(std::string_view split, uint32_t number, uint32_t total) {
  return absl::StrFormat("%s-%05d-of-%05d.tfrecord", std::string(split), number, total);
}

// The naming of older programs in TensorFlow's models: train-00000-of-01024.
std::string ImagenetShardName(std::string_view split, uint32_t number, uint32_t total) {
  return absl::StrFormat("%s-%05d-of-%05d", std::string(split), number, total);
}

constexpr LayoutSpec kLayouts[] = {
    {.name = kClassificationLayout,
     .doc = "tf.train.Example with image/encoded, image/class/label (from 0), ..."},
    {.name = kImagenetLayout,
     .doc = "as the ImageNet program of TensorFlow's models: labels from 1, empty boxes, no suffix",
     .label_base = kImagenetLabelBase,
     .shard_name = &ImagenetShardName},
    {.name = kTfdsLayout,
     .doc = "a folder for tfds.builder_from_directory: image, label, and its json files",
     .shard_name = &TfdsShardName,
     .files = &MakeTfdsFiles},
};

constexpr SidecarSpec kSidecars[] = {
    {"dali", "<shard>.idx for DALI and vahidk/tfrecord: offset and size of each record",
     &MakeTfrecordDaliIndexes},
};

uint64_t RecordBound(const ShardSpec& spec, const RecordShape& shape) {
  const TfrecordLayout layout =
      ParseTfrecordLayout(spec.layout).value_or(TfrecordLayout::kClassification);
  return kRecordOverheadBytes + ExampleBound(layout, shape.source_path_bytes,
                                             shape.class_name_bytes, shape.has_label,
                                             shape.field_bytes);
}

// A correct checksum of the first length is sufficient. The names are ours and those of TFDS
// (tensorflow/datasets: tensorflow_datasets/core/naming.py, "x-train.tfrecord-00000-of-00001").
bool Sniff(Bytes head, std::string_view file_name) {
  if (head.size() >= kRecordHeaderBytes &&
      DecodeRecordHeader(head.first<kRecordHeaderBytes>()).valid()) {
    return true;
  }
  return file_name.ends_with(".tfrecord") || file_name.ends_with(".tfrecords") ||
         file_name.find(".tfrecord-") != std::string_view::npos;
}

}  // namespace

constinit const Format kTfrecordFormat = {
    .name = "tfrecord",
    .doc = "TFRecord files of tf.train.Example, for TensorFlow and DALI",
    .layouts = kLayouts,
    .traits = {.concurrent_writers = true,
               .max_record_bytes = kMaxExampleBytes + kRecordOverheadBytes,
               .shard_overhead_bytes = 0,
               .data_file = ""},
    .shard_name = &ShardName,
    .record_bound = &RecordBound,
    .sniff = &Sniff,
    .create = &CreateTfrecordWriter,
    .scanner = &kTfrecordScanner,
    .sidecars = kSidecars,
};

}  // namespace shardpack
