#include "readers/dataset/sample_row.h"

#include <cstdint>

#include "formats/core/sample.h"
#include "formats/io/file.h"
#include "images/probe/probe.h"

namespace shardpack {

absl::StatusOr<ImageInfo> ImageOf(const Dataset& dataset, const SampleRow& row) {
  const ImageInfo known = row.index.image(row.record);
  if (known.format != ImageFormat::kUnknown) return known;
  const absl::StatusOr<OwnedSample> sample = dataset.Read(row.id);
  if (!sample.ok() && !IsAboutThePath(sample.status())) return sample.status();
  if (!sample.ok()) return known;  // a damaged sample
  for (const OwnedSample::Field& field : sample->fields) {
    if (field.name == kImageField) return ImageOf(row, AsBytes(field.bytes));
  }
  return known;
}

ImageInfo ImageOf(const SampleRow& row, Bytes image) {
  const ImageInfo known = row.index.image(row.record);
  if (known.format != ImageFormat::kUnknown) return known;
  ProbeOptions options;
  options.level = ProbeLevel::kHeader;
  options.max_pixels = UINT64_MAX;
  return ProbeImage(image, options).info;
}

}  // namespace shardpack
