#include "formats/lmdb/lmdb_format.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_format.h"
#include "formats/lmdb/lmdb_layout.h"
#include "formats/lmdb/map_size_bound.h"
#include "formats/lmdb/reading/lmdb_pages.h"
#include "formats/lmdb/reading/lmdb_scanner.h"
#include "formats/lmdb/writing/lmdb_environment.h"
#include "formats/lmdb/writing/lmdb_writer.h"

namespace shardpack {
namespace {

constexpr LayoutSpec kLayouts[] = {
    {.name = kCaffeLayout,
     .doc = "key 00000000_path, value Datum (encoded image, label), for Caffe and DALI",
     .extra_fields = false,
     .needs_totals = true},
    {.name = kRawLayout,
     .doc = "key as it is, value the image file, for MMEngine, BasicSR and LSUN; no labels",
     .key_ordered = true,
     .max_key_bytes = kMaxLmdbKeyBytes,
     .extra_fields = false,
     .needs_totals = true,
     .keeps_labels = false},
    {.name = kPickleLayout,
     .doc = "key 0, 1, ..., value the pickled pair (bytes, label), for ImageFolderLMDB",
     .extra_fields = false,
     .needs_totals = true},
};

std::string ShardName(std::string_view split, uint32_t number, uint32_t total) {
  return absl::StrFormat("%s-%05d-of-%05d.lmdb", std::string(split), number, total);
}

uint64_t RecordBound(const ShardSpec& spec, const RecordShape& shape) {
  const LmdbLayout layout = FindLmdbLayout(spec.layout).value_or(LmdbLayout::kCaffe);
  const uint64_t image_bytes = shape.field_bytes.empty() ? 0 : shape.field_bytes[0];
  const uint64_t page_bytes = LmdbPageBytes();
  switch (layout) {
    case LmdbLayout::kCaffe:
      return EntryBound(std::min<uint64_t>(9 + shape.source_path_bytes, kMaxLmdbKeyBytes),
                        image_bytes + kMaxDatumFrameBytes, page_bytes);
    case LmdbLayout::kRaw:
      return EntryBound(shape.key_bytes, image_bytes, page_bytes);
    case LmdbLayout::kPickle:
      break;
  }
  const size_t digits = absl::StrFormat("%d", shape.number).size();  // of the whole dataset
  return EntryBound(digits, image_bytes + kMaxPickleFrameBytes, page_bytes) + kMaxPickleListBytes +
         digits;
}

bool Sniff(Bytes head, std::string_view file_name) {
  return HasMetaMagic(head) || file_name.ends_with(".mdb") || file_name.ends_with(".lmdb");
}

}  // namespace

constinit const Format kLmdbFormat = {
    .name = "lmdb",
    .doc = "LMDB environments, for Caffe, DALI, MMEngine and others",
    .layouts = kLayouts,
    .traits = {.concurrent_writers = true,
               .max_record_bytes = kMaxValueBytes,
               .shard_overhead_bytes = kEnvironmentOverheadBytes,
               .data_file = "data.mdb",
               .lock_file = "lock.mdb"},
    .shard_name = &ShardName,
    .record_bound = &RecordBound,
    .sniff = &Sniff,
    .create = &CreateLmdbWriter,
    .scanner = &kLmdbScanner,
    .sidecars = {},
    .library = &LmdbLibrary,
};

}  // namespace shardpack
