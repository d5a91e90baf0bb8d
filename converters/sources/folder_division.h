// FolderDivision: how the folders of a source are divided among processes that list it together.
//
//   FolderDivision division{.parts = {{""}, {"cat", "dog"}}};   // the root's files; two folders
//   if (!division.IsWhole()) return Damaged();
//
// A part is some folders, each with all below it but what is below a folder of the division. So
// whatever appears in the source later belongs to a part as well.
//
// Lifetime: a plain value.
// Thread-safety: const from any thread.
#ifndef SHARDPACK_CONVERTERS_SOURCES_FOLDER_DIVISION_H_
#define SHARDPACK_CONVERTERS_SOURCES_FOLDER_DIVISION_H_

#include <string>
#include <vector>

#include "formats/io/hash.h"

namespace shardpack {

using FolderPart = std::vector<std::string>;  // relative to the root, which is ""

struct FolderDivision {
  std::vector<FolderPart> parts;
  Digest mark = {};  // of the list that the parts are of; each part holds it

  // Whether the root, and above each folder those that it lies in, are in it once, and no path
  // leads out of the root.
  bool IsWhole() const;
};

// The parts of a division that processes have listed, in place of a walk over the source.
struct ListedParts {
  FolderDivision division;
  std::vector<std::string> files;  // one for each part
  std::string list_again;          // the command that lists what is missing
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_FOLDER_DIVISION_H_
