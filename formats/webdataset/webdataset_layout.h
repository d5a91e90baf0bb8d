// How WebDataset reads a tar member's name, and how a sample's image is told from its other fields.
//
//   std::optional<MemberName> name = SplitMemberName("cat/1.seg.png");  // "cat/1", "seg.png"
//   bool skipped = IsMetaName("__index__/a.json");                      // true: no reader sees it
//   ImageRank rank = RankAsImage("jpg", {});                            // the lower, the better
//
// Lifetime: a MemberName borrows the path.
// Units: bytes. Source: webdataset's src/webdataset/tariterators.py (base_plus_ext, and skip_meta
// of tar_file_iterator).
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
  std::string_view key, extension;  // around the first dot of the basename, as spelt
};

// nullopt when the name belongs to no sample: no dot, or nothing before it.
std::optional<MemberName> SplitMemberName(std::string_view path);

// True when the path's first component is __x__: webdataset skips such members.
bool IsMetaName(std::string_view path);

// True for an absolute path, one with a ".." component or a NUL, and an empty one.
bool LeavesFolder(std::string_view path);

// What Python's int() makes of the bytes, as webdataset's decoder does, if it fits; underscores are
// not taken.
std::optional<int64_t> ParseLabel(std::string_view text);
// Longer text is never a label.
inline constexpr size_t kMaxLabelBytes = 64;

// What decides which field of a sample is its image: the first one of the lowest rank.
enum class ImageRank : uint8_t {
  kNamed,      // "image" or "img"
  kExtension,  // a usual file extension of images
  kContent,    // another extension without a dot, and bytes that begin like an image
  kBinary,     // "bin": an image in no format that is known here
  kNone,
};

// `extension` in lower case; `head` is the first bytes of the field (12 suffice).
ImageRank RankAsImage(std::string_view extension, Bytes head);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_WEBDATASET_WEBDATASET_LAYOUT_H_
