// ReadLinks: reads the names in a group of an HDF5 file and their targets.
//
//   absl::StatusOr<std::vector<GroupLink>> links = ReadLinks(reader, *root);
//   const GroupLink* images = FindLink(*links, "images");
//
// It reads symbol tables (a version 1 B-tree and a local heap) and link messages (HDF5 File Format
// Specification 3.0, III.A to III.D, IV.A.2.g). Groups with their links in a fractal heap are not
// supported: the library only makes them for more than 8 links, in the newest file versions.
//
// Lifetime: the result owns the names.
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
  uint64_t address = 0;  // hard link: address of the object's header
};

// True if the object is a group and not a dataset.
bool IsGroup(const ObjectHeader& object);
// In the file's order.
absl::StatusOr<std::vector<GroupLink>> ReadLinks(Hdf5Reader& reader, const ObjectHeader& group);
// nullptr if there is none.
const GroupLink* FindLink(std::span<const GroupLink> links, std::string_view name);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_HDF5_READING_GROUP_LINKS_H_
