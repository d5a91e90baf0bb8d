// ManifestsBeside: finds the dataset that a shard named by its path belongs to.
//
//   ManifestsBeside manifests;
//   const ManifestsBeside::Found& found = manifests.Find("OUT/train-000000.tar");
//   if (found.shard != nullptr) ...   // its row in the manifest of found.folder
//
// Lifetime: what Find returns points into this object.
// Thread-safety: one caller at a time.
// Errors: in Found::status: a manifest of pack's beside the shard that cannot be read.
#ifndef SHARDPACK_FORMATS_CORE_MANIFESTS_BESIDE_H_
#define SHARDPACK_FORMATS_CORE_MANIFESTS_BESIDE_H_

#include <filesystem>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "formats/core/manifest.h"

namespace shardpack {

// Reads each manifest once.
class ManifestsBeside {
 public:
  struct Found {
    absl::Status status;
    std::string folder;                  // of the manifest, if one was found or is damaged
    const Manifest* manifest = nullptr;  // nullptr: no manifest lists the shard
    const ManifestShard* shard = nullptr;
  };

  // A shard that is a folder may be given by the file in it.
  Found Find(const std::string& shard);

 private:
  struct Beside {
    absl::Status status;
    Manifest manifest;
    std::map<std::filesystem::path, size_t> shards;  // absolute; empty without a manifest
  };
  static Beside Read(const std::filesystem::path& folder);

  std::map<std::filesystem::path, Beside> read_;
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_CORE_MANIFESTS_BESIDE_H_
