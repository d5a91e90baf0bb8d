// Format: one row of the table of formats: everything that the rest of Shardpack knows about a byte
// layout.
//
//   const Format* format = FindFormat("webdataset");                  // formats/formats.h
//   std::string name = ShardName(*format, "ustar", "train", 0, 12);   // train-000000.tar
//   auto writer = format->create(staged_file, spec);
//
// Lifetime: rows are constexpr, static storage.
// Thread-safety: every function here is pure or thread-safe.
// Errors: stated at each member.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_CORE_FORMAT_H_
#define SHARDPACK_FORMATS_CORE_FORMAT_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/core/image_info.h"
#include "formats/core/manifest.h"
#include "formats/core/shard_index.h"
#include "formats/core/shard_scanner.h"
#include "formats/core/shard_writer.h"
#include "formats/io/staged_file.h"

namespace shardpack {

struct NamedBytes {
  std::string name;  // relative to the dataset folder
  std::string bytes;
};

// The input of a FileMaker: a dataset whose shards are final and whose manifest is about to be
// published.
struct SidecarInput {
  std::string_view root;  // the dataset folder
  const Manifest& manifest;
  std::span<const ShardIndex> indexes;  // one per shard, in the manifest's order
  // A folder for temporary files, which the FileMaker removes.
  std::string_view scratch = {};
};

using FileMaker = absl::StatusOr<std::vector<NamedBytes>> (*)(const SidecarInput& input);

// A named variant of a format's bytes. A format's first layout is its default.
struct LayoutSpec {
  std::string_view name, doc;
  bool key_ordered = false;  // samples must come in ascending order of key
  size_t max_key_bytes = 0;  // 0: no limit, or keys are not stored
  bool extra_fields = true;  // can hold fields besides the image
  // The writer must know the total size of each field before the first sample.
  bool needs_totals = false;
  // False: labels are not in the shard but in the index, and possibly in a file next to the shard.
  bool keeps_labels = true;
  bool fixed_shape = false;  // holds raw pixels of one shape: ShardSpec::raw_image
  // The value stored for class 0; everywhere else labels count from 0.
  int64_t label_base = 0;
  // The names of its shards, as in Format::shard_name; nullptr: the format's own.
  std::string (*shard_name)(std::string_view split, uint32_t number, uint32_t total) = nullptr;
  // Makes the files that every dataset of this layout has besides the shards; nullptr: none.
  FileMaker files = nullptr;
};

// Totals of one field over all samples of a shard; [0] is the image.
struct FieldTotal {
  std::string name;
  uint64_t max_bytes = 0;  // upper limit of that field's bytes over all samples
};

// The field that ShardSpec::with_metadata adds.
inline constexpr std::string_view kMetadataField = "json";

// What a writer must know besides the samples. Every member can change the shard's bytes and is
// part of the plan.
struct ShardSpec {
  std::string_view layout = {};  // one of the format's layouts
  // A fixed name for the image member; empty: the extension that matches its content.
  std::string_view image_field = {};
  // Adds a json field with filename, label, class, width and height, if the format supports that.
  bool with_metadata = false;
  std::string_view split = {};
  std::span<const std::string> classes = {};  // indexed by label
  size_t longest_key_bytes = 0;               // over the whole dataset
  // Every image is raw pixels (kRaw) of this width, height and number of channels; otherwise
  // kUnknown.
  ImageInfo raw_image = {};
  // The number of records planned for this shard; samples that later turn out to be bad are
  // missing.
  uint64_t max_records = 0;
  std::vector<FieldTotal> fields = {};
};

// The sizes of one sample, known before its bytes are read.
struct RecordShape {
  uint64_t number = 0;  // SampleView::number
  size_t key_bytes = 0;
  size_t source_path_bytes = 0;
  size_t class_name_bytes = 0;
  bool has_label = false;
  std::span<const uint64_t> field_bytes = {};  // [0] = image
};

// An index file in a third-party format, made on request.
struct SidecarSpec {
  std::string_view name, doc;  // "dali"
  FileMaker make;
};

struct Format {
  struct Traits {
    bool concurrent_writers = true;  // several shards can be written at once
    uint64_t max_record_bytes = 0;
    uint64_t shard_overhead_bytes = 0;  // of an empty shard
    // Empty: a shard is a file; otherwise a folder that holds this file.
    std::string_view data_file = {};
    // A file that programs of this format leave in such a folder and that is not part of the data.
    std::string_view lock_file = {};
    // The image's field is named after its content (jpg, png), so samples with images of different
    // formats have different fields, unless ShardSpec::image_field sets one name for all.
    bool image_field_follows_content = false;
  };

  std::string_view name, doc;
  std::span<const LayoutSpec> layouts;
  Traits traits;
  // The shard's file name; "" for a split that cannot be part of one. `split` is portable; number <
  // total. Callers use ShardName, which asks the layout first.
  std::string (*shard_name)(std::string_view split, uint32_t number, uint32_t total);
  // An upper bound of the bytes that one sample adds to a shard; exact if the format allows it. The
  // shard's totals in `spec` are not yet known.
  uint64_t (*record_bound)(const ShardSpec& spec, const RecordShape& shape);
  // Whether a file with these first bytes (up to 1024) and this name may be in this format.
  bool (*sniff)(Bytes head, std::string_view file_name);
  // InvalidArgument for a layout or option that the format does not have. Both arguments must
  // outlive the writer.
  absl::StatusOr<std::unique_ptr<ShardWriter>> (*create)(StagedFile& file, const ShardSpec& spec);
  const ShardScanner* scanner;
  std::span<const SidecarSpec> sidecars;
  // Name and version of the library that determines the bytes, "hdf5 1.10.8"; nullptr: our own
  // code.
  std::string (*library)() = nullptr;
};

// The layout of that name, the default one for "", nullptr for an unknown name.
inline const LayoutSpec* FindLayout(const Format& format, std::string_view name) {
  for (const LayoutSpec& layout : format.layouts) {
    if (name.empty() || layout.name == name) return &layout;
  }
  return nullptr;
}

// The file name of a shard in that layout of the format ("": the default one).
inline std::string ShardName(const Format& format, std::string_view layout, std::string_view split,
                             uint32_t number, uint32_t total) {
  const LayoutSpec* spec = FindLayout(format, layout);
  const bool own = spec != nullptr && spec->shard_name != nullptr;
  return (own ? spec->shard_name : format.shard_name)(split, number, total);
}

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_CORE_FORMAT_H_
