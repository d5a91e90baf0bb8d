#include "api/foreign_formats.h"

#include "formats/npy/npy_format.h"
#include "formats/tfrecord/tfrecord_format.h"
#include "formats/webdataset/webdataset_reading.h"

namespace shardpack::api {

std::span<const Format* const> ForeignFormats() {
  static constexpr const Format* kFormats[] = {&kWebDatasetReading, &kTfrecordFormat, &kNpyFormat};
  return kFormats;
}

}  // namespace shardpack::api
