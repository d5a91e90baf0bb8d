#include "formats/webdataset/webdataset_format.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "absl/strings/str_format.h"
#include "formats/tar/tar_header.h"
#include "formats/webdataset/tool_indexes/dali_index.h"
#include "formats/webdataset/tool_indexes/energon_index.h"
#include "formats/webdataset/tool_indexes/openclip_sizes.h"
#include "formats/webdataset/tool_indexes/timm_info.h"
#include "formats/webdataset/tool_indexes/wids_index.h"
#include "formats/webdataset/webdataset_layout.h"
#include "formats/webdataset/webdataset_reading.h"
#include "formats/webdataset/webdataset_scanner.h"
#include "formats/webdataset/webdataset_writer.h"

namespace shardpack {
namespace {

constexpr LayoutSpec kLayouts[] = {
    {.name = kUstarLayout,
     .doc =
         "plain POSIX ustar, which every reader understands; names up to 100 bytes, or 255 around "
         "a slash",
     .max_key_bytes = kMaxWebdatasetKeyBytes},
    {.name = kPaxLayout,
     .doc = "ustar with a pax record before a member whose name does not fit",
     .max_key_bytes = kMaxWebdatasetKeyBytes},
};
constexpr SidecarSpec kSidecars[] = {
    {"dali", "<shard>.idx, the index that NVIDIA DALI's webdataset reader takes",
     &MakeWebdatasetDaliIndexes},
    {"energon", "<shard>.tar.idx and .nv-meta, what energon prepare makes", &MakeEnergonIndex},
    {"openclip", "sizes.json, samples of each shard for open_clip", &MakeOpenClipSizes},
    {"timm", "_info.json, shards and samples of each split for timm", &MakeTimmInfo},
    {"wids", "<split>.json, the index of wids, with the MD5 of each shard", &MakeWidsIndexes},
};
// "webp" and "json" are the longest extensions written here.
constexpr size_t kMaxExtensionBytes = 4;
// record_bound does not get the names of further fields; they are assumed to be at most this long.
constexpr size_t kMaxFieldNameBytes = 64;

std::string ShardName(std::string_view split, uint32_t number, uint32_t /*total*/) {
  return absl::StrFormat("%s-%06d.tar", std::string(split), number);
}

uint64_t RecordBound(const ShardSpec& spec, const RecordShape& shape) {
  const bool pax = spec.layout == kPaxLayout;
  const auto member = [&](size_t extension_bytes, uint64_t data_bytes) {
    return WebdatasetWriter::MemberBytes(pax, shape.key_bytes + 1 + extension_bytes, data_bytes);
  };
  const size_t image_bytes = std::max(spec.image_field.size(), kMaxExtensionBytes);
  uint64_t bound = 0;
  for (size_t i = 0; i < shape.field_bytes.size(); ++i) {
    // The length of a name only matters in the pax layout, where it may need a record.
    bound += member(i == 0 ? image_bytes : kMaxFieldNameBytes, shape.field_bytes[i]);
  }
  // A label has up to 19 digits: one block.
  if (shape.has_label) bound += member(kLabelExtension.size(), 1);
  if (spec.with_metadata) {
    bound +=
        member(kMetadataExtension.size(),
               WebdatasetWriter::MetadataBound(shape.source_path_bytes, shape.class_name_bytes));
  }
  return bound;
}

bool Sniff(Bytes head, std::string_view file_name) {
  return kWebDatasetReading.sniff(head, file_name);
}

constinit const WebdatasetScanner kScanner;

}  // namespace

constexpr Format kRow = {
    .name = "webdataset",
    .doc = "tar files of samples, streamed by webdataset, Hugging Face datasets, DALI, Energon",
    .layouts = kLayouts,
    .traits =
        {
            .concurrent_writers = true,
            .max_record_bytes = kTarMaxOctalSize,
            // The two zero blocks and the maximum padding after them.
            .shard_overhead_bytes = kTarEndBytes + kTarBlockingBytes - kTarBlockBytes,
            .data_file = {},
            .image_field_follows_content = true,
        },
    .shard_name = &ShardName,
    .record_bound = &RecordBound,
    .sniff = &Sniff,
    .create = &WebdatasetWriter::Create,
    .scanner = &kScanner,
    .sidecars = kSidecars,
};

constinit const Format kWebDatasetFormat = kRow;

}  // namespace shardpack
