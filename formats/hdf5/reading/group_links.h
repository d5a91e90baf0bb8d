// ReadLinks: the names in a group of an HDF5 file and what they point at.
//
//   absl::StatusOr<std::vector<GroupLink>> links = ReadLinks(reader, *root);
//   const GroupLink* images = FindLink(*links, "images");
//
// Symbol tables (a B-tree of version 1 and a local heap) and link messages (HDF5 File Format
// Specification 3.0, III.A to III.D, IV.A.2.g). Groups whose links lie in a fractal heap are not
// read: the library makes one for more than 8 links in the newest file versions only.
//
// Lifetime: owns the names.
// Errors: as Hdf5Reader.
// Units: addresses as Hdf5Reader.
#ifndef SHARDPACK_FORMATS_HDF5_READING_GROUP_LINKS_H_
#define SHARDPACK_FORMATS_HDF5_READING_GROUP_LINKS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/hdf5/reading/hdf5_reader.h"
#include "formats/hdf5/reading/object_header.h"

namespace shardpack {

enum class LinkKind : uint8_t { kHard, kSoft, kExternal };

struct GroupLink {
  std::string name;
  LinkKind kind = LinkKind::kHard;
  uint64_t address = 0;  // of the object's header, of a hard link
};

// True when the object is a group and not a dataset.
bool IsGroup(const ObjectHeader& object);
// In the file's order.
absl::StatusOr<std::vector<GroupLink>> ReadLinks(Hdf5Reader& reader, const ObjectHeader& group);
// nullptr when there is none.
const GroupLink* FindLink(std::span<const GroupLink> links, std::string_view name);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_HDF5_READING_GROUP_LINKS_H_
