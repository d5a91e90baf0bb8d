// IsManifestText: whether a manifest.json was written by pack, whole or what damage has left of it.
// Other programs write files of this name, which are never replaced.
//
//   ASSIGN_OR_RETURN(const std::string text, ReadWholeFile("out/manifest.json", kMaxManifestBytes));
//   if (!IsManifestText(text)) ...   // somebody else's
//
// Thread-safety: pure.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_MANIFEST_TEXT_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_MANIFEST_TEXT_H_

#include <string_view>

namespace shardpack {

bool IsManifestText(std::string_view text);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_MANIFEST_TEXT_H_
