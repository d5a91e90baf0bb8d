#include "formats/hdf5/hdf5_format.h"

#include <algorithm>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/hdf5/hdf5_layout.h"
#include "formats/hdf5/reading/hdf5_scanner.h"
#include "formats/hdf5/writing/decoded_writer.h"
#include "formats/hdf5/writing/hdf5_output.h"
#include "formats/hdf5/writing/packed_writer.h"
#include "formats/hdf5/writing/vlen_writer.h"

namespace shardpack {
namespace {

constexpr LayoutSpec kLayouts[] = {
    {.name = kPackedLayout,
     .doc = "/images/data and /images/offsets: one contiguous run of bytes",
     .max_key_bytes = kMaxHdf5KeyBytes,
     .needs_totals = true},
    {.name = kVlenLayout,
     .doc = "/images: f['images'][i] is the image file",
     .max_key_bytes = kMaxHdf5KeyBytes},
    {.name = kDecodedLayout,
     .doc = "/images: uint8 (N, height, width, channels), contiguous",
     .max_key_bytes = kMaxHdf5KeyBytes,
     .extra_fields = false,
     .fixed_shape = true},
};

// Superblock, groups and object headers, attributes with some thousand class names, the last chunk,
// and the alignment of several fields.
constexpr uint64_t kShardOverheadBytes = 256 << 10;
// The library lets a collection of the global heap grow to this size before it begins another.
constexpr uint64_t kMaxSharedCollection = 64 << 10;

std::string ShardName(std::string_view split, uint32_t number, uint32_t total) {
  return absl::StrFormat("%s-%05d-of-%05d.h5", std::string(split), number, total);
}

// An element of the vlen layout: reference, object header and padding, and the space left empty in
// a collection because the element did not fit.
uint64_t VlenBound(uint64_t bytes) {
  const uint64_t object = 16 + (bytes + 7) / 8 * 8;
  return 2 * 16 + object + std::min(object + 16, kMaxSharedCollection);
}

uint64_t RecordBound(const ShardSpec& spec, const RecordShape& shape) {
  const bool vlen = spec.layout == kVlenLayout;
  uint64_t bound = sizeof(int64_t) + std::max(spec.longest_key_bytes, shape.key_bytes) + 1;
  for (const uint64_t bytes : shape.field_bytes) {
    bound += vlen ? VlenBound(bytes) : bytes + sizeof(uint64_t);
  }
  return bound;
}

// Looks at the start and after the smallest user blocks; a larger user block hides the signature.
bool Sniff(Bytes head, std::string_view file_name) {
  const std::string_view text = AsText(head);
  for (const size_t at : {0, 512}) {
    if (text.size() > at && text.substr(at).starts_with(kHdf5Signature)) return true;
  }
  return file_name.ends_with(".h5") || file_name.ends_with(".hdf5") || file_name.ends_with(".he5");
}

absl::StatusOr<std::unique_ptr<ShardWriter>> CreateWriter(StagedFile& file, const ShardSpec& spec) {
  if (!spec.image_field.empty()) {
    return absl::InvalidArgumentError(
        "hdf5 stores the image as images always; an image field name cannot be chosen");
  }
  if (spec.layout.empty() || spec.layout == kPackedLayout) return PackedWriter::Create(file, spec);
  if (spec.layout == kVlenLayout) return VlenWriter::Create(file, spec);
  if (spec.layout == kDecodedLayout) return DecodedWriter::Create(file, spec);
  return absl::InvalidArgumentError(absl::StrCat("hdf5 has no layout ", std::string(spec.layout),
                                                 "; it has packed, vlen and decoded"));
}

}  // namespace

constinit const Format kHdf5Format = {
    .name = "hdf5",
    .doc = "HDF5 files, for h5py, PyTables, MATLAB and numpy.memmap",
    .layouts = kLayouts,
    .traits = {.concurrent_writers = true,
               .max_record_bytes = kMaxVlenBytes,
               .shard_overhead_bytes = kShardOverheadBytes,
               .data_file = ""},
    .shard_name = &ShardName,
    .record_bound = &RecordBound,
    .sniff = &Sniff,
    .create = &CreateWriter,
    .scanner = &kHdf5Scanner,
    .sidecars = {},
    .library = &Hdf5LibraryVersion,
};

}  // namespace shardpack
