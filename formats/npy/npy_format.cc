#include "formats/npy/npy_format.h"

#include <string>

#include "absl/strings/str_format.h"
#include "formats/npy/npy_labels.h"
#include "formats/npy/npy_layout.h"
#include "formats/npy/npy_scanner.h"
#include "formats/npy/npy_writer.h"

namespace shardpack {
namespace {

constexpr LayoutSpec kLayouts[] = {
    {.name = kDecodedLayout,
     .doc = "images.npy (N, height, width, channels) and labels.npy (N), for numpy.load",
     .extra_fields = false,
     .keeps_labels = false,
     .fixed_shape = true,
     .files = &NpyLabelFiles},
};

std::string ShardName(std::string_view split, uint32_t number, uint32_t total) {
  return absl::StrFormat("%s-%05d-of-%05d.npy", std::string(split), number, total);
}

// This bound is exact.
uint64_t RecordBound(const ShardSpec&, const RecordShape& shape) {
  return shape.field_bytes.empty() ? 0 : shape.field_bytes[0];
}

bool Sniff(Bytes head, std::string_view file_name) {
  return AsText(head).starts_with(kNpyMagic) || file_name.ends_with(".npy");
}

}  // namespace

constinit const Format kNpyFormat = {
    .name = "npy",
    .doc = "NumPy arrays of pixels of one shape, for numpy.load(mmap_mode='r')",
    .layouts = kLayouts,
    .traits = {.concurrent_writers = true,
               .max_record_bytes = uint64_t{1} << 32,
               .shard_overhead_bytes = kNpyHeaderBytes,
               .data_file = kImagesFile},
    .shard_name = &ShardName,
    .record_bound = &RecordBound,
    .sniff = &Sniff,
    .create = &CreateNpyWriter,
    .scanner = &kNpyScanner,
    .sidecars = {},
};

}  // namespace shardpack
