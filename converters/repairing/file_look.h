// LookAtFiles: what is wrong with files of a dataset; several are read at once, each once from
// front to back.
//
//   std::vector<FileLook> looks = {{.path = "OUT/train-000000.tar", .file = entry, .full = true}};
//   RETURN_IF_ERROR(LookAtFiles(looks, Unreadable::kIsDamage, jobs, progress, stop));
//   if (looks[0].damage.empty()) ...   // it is as `entry` says
//
// For repair*.cc alone.
//
// Lifetime: borrows for the call.
// Thread-safety: one call for the same files.
// Errors: those of looking, which say nothing about a file; Cancelled.
// Units: bytes.
#ifndef SHARDPACK_CONVERTERS_REPAIRING_FILE_LOOK_H_
#define SHARDPACK_CONVERTERS_REPAIRING_FILE_LOOK_H_

#include <atomic>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "converters/publishing/file_damage.h"
#include "converters/repairing/repair.h"
#include "formats/core/manifest.h"

namespace shardpack {

struct FileLook {
  std::string path;
  FileEntry file;
  bool full = true;  // as for DamageOf
  std::string damage = {};
};

// `jobs`: how many at once; 0 = the cores this process may use.
absl::Status LookAtFiles(std::span<FileLook> files, Unreadable unreadable, int jobs,
                         RepairProgress& progress, const std::atomic<int>& stop);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_REPAIRING_FILE_LOOK_H_
