// How WebDataset parses a tar member's name, and how the image is distinguished from other fields.
//
//   std::optional<MemberName> name = SplitMemberName("cat/1.seg.png");  // "cat/1", "seg.png"
//   bool skipped = IsHiddenName("__index__/a.json");                      // true: no reader sees it
//   ImageRank rank = RankAsImage("jpg", {});                            // the lower, the better
//
// Lifetime: a MemberName borrows the path.
// Units: bytes.
// Source: webdataset's src/webdataset/tariterators.py (base_plus_ext, and skip_meta of
// tar_file_iterator).
#ifndef SHARDPACK_FORMATS_WEBDATASET_WEBDATASET_LAYOUT_H_
#define SHARDPACK_FORMATS_WEBDATASET_WEBDATASET_LAYOUT_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "formats/core/format.h"
#include "formats/io/bytes.h"

namespace shardpack {

inline constexpr std::string_view kLabelExtension = "cls";
inline constexpr std::string_view kMetadataExtension = kMetadataField;

struct MemberName {
  std::string_view key, extension;  // before and after the first dot of the basename, as spelled
};

// nullopt if the name belongs to no sample: it has no dot, or nothing before the dot.
std::optional<MemberName> SplitMemberName(std::string_view path);

// True if the path's first component is __x__: webdataset skips such members.
bool IsMetaName(std::string_view path);
// True also if the basename begins with a dot: readers pass over such members on purpose.
bool IsHiddenName(std::string_view path);

// Parses the bytes like Python's int(), which webdataset's decoder uses, but rejects underscores.
// nullopt if the value does not fit.
std::optional<int64_t> ParseLabel(std::string_view text);
// Longer text is never a label.
inline constexpr size_t kMaxLabelBytes = 64;

// Ranks the fields of a sample: its image is the field of the lowest rank; of several, the first by
// name, wherever it stands.
enum class ImageRank : uint8_t {
  kImage,      // the field is called "image", so that no other field can have its name
  kImg,        // the field is called "img"
  kExtension,  // a common image file extension
  kContent,    // another extension without a dot, with bytes that begin like an image
  kBinary,     // "bin": an image in an unknown format
  kNone,
};

// `extension` is in lower case; `head` is the first bytes of the field (12 are enough).
ImageRank RankAsImage(std::string_view extension, Bytes head);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_WEBDATASET_WEBDATASET_LAYOUT_H_
