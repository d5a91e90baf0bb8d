// The members of a manifest's text, listed once for both writing and reading. Internal to the
// manifest.
//
//   for (const Member& member : MembersOf(manifest, envelope)) Write(member.name, member.target);
//
// Lifetime: targets point into the struct.
#ifndef SHARDPACK_FORMATS_CORE_MANIFEST_MEMBERS_H_
#define SHARDPACK_FORMATS_CORE_MANIFEST_MEMBERS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "formats/core/manifest.h"
#include "formats/io/hash.h"

namespace shardpack::manifest_internal {

struct Member;
using Object = std::vector<Member>;
using TextMap = std::map<std::string, std::string>;
using CountMap = std::map<std::string, uint64_t>;
using Target = std::variant<std::string*, uint64_t*, uint32_t*, int64_t*, Digest*, TextMap*,
                            CountMap*, std::vector<std::string>*, std::vector<ManifestShard>*,
                            std::vector<FileEntry>*, Object>;
struct Member {
  std::string_view name;
  Target target;
  bool optional = false;  // omitted when empty
};

// Values that are in the text but not in the struct.
struct Envelope {
  uint64_t schema = Manifest::kSchema;
  Digest self;
};

Object MembersOf(FileEntry& file);
Object MembersOf(ManifestShard& shard);
Object MembersOf(Manifest& manifest, Envelope& envelope);

}  // namespace shardpack::manifest_internal

#endif  // SHARDPACK_FORMATS_CORE_MANIFEST_MEMBERS_H_
