// The folder OUT.parts, where writers leave their samples until `pack` makes a dataset of them.
//
//   w00003.lock                        held by worker 3 while it writes
//   w00003-000000.tfrecord .pidx .json a part: a shard, its index, and further facts about it
//   w00003-000001.stage                a part that is being written
//   manifest.json order.u32 *.labels.pidx   by a finish: all parts as one dataset, in the order of keys
//   published                          that manifest, once its parts are published: they are being removed
//   options.json labels.json w00003.ended
//                                      of the Python package (python/shardpack/_parts.py)
//
// A part exists once its .json does. Labels in its .pidx count its own classes, which are in the
// .json: those of all parts are known at the finish alone.
//
// Thread-safety: pure functions of the folder; one finish at a time.
// Errors: I/O; DataLoss for damaged parts, naming them.
#ifndef SHARDPACK_API_WRITING_PARTS_FOLDER_H_
#define SHARDPACK_API_WRITING_PARTS_FOLDER_H_

#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/core/shard_index.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"

namespace shardpack {

struct Part {
  std::string name;  // "w00003-000000"
  uint64_t records = 0, bytes = 0;
  Digest digest;
  std::vector<std::string> classes;  // by the labels in its index
};

// Given back when this is destroyed, also where a forked process has the file open too.
class HeldLock {
 public:
  explicit HeldLock(File file) : file_(std::move(file)) {}
  HeldLock(HeldLock&&) = default;
  HeldLock& operator=(HeldLock&&) = delete;
  ~HeldLock();

 private:
  File file_;
  pid_t process_ = ::getpid();  // in a forked one it is not given back
};

std::string PartsFolderOf(const std::string& dataset);
std::string WorkerPrefix(uint32_t worker);  // "w00003"

// The numbers of all workers that ever were, in order.
absl::StatusOr<std::vector<uint32_t>> Workers(const std::string& folder);
// nullopt: another process, or handle, holds it.
absl::StatusOr<std::optional<HeldLock>> LockWorker(const std::string& folder, uint32_t worker);

// Writes a file that did not exist, safe on disk once the folder is synchronised.
absl::Status WriteNewFile(const std::string& path, std::string_view bytes);
absl::Status WritePart(const std::string& folder, const Part& part);     // its .json
absl::StatusOr<std::vector<Part>> ReadParts(const std::string& folder);  // by name
absl::StatusOr<ShardIndex> OpenIndex(const std::string& folder, const Part& part);

// Removes what an interrupted writer of this worker has left unfinished.
absl::Status RemoveUnfinished(const std::string& folder, uint32_t worker);
// Makes the parts one dataset, and says which they are. AlreadyExists for a key that is in two of
// them; Unimplemented for more samples than a dataset can have. `classes`, if there are any, are
// the names of its labels; InvalidArgument for a part that has others.
absl::StatusOr<std::vector<Part>> MakeDataset(const std::string& folder, const std::string& version,
                                              const std::vector<std::string>& classes);
// InvalidArgument for parts that have other classes than these, if there are any.
absl::Status CheckClasses(const std::string& folder, const std::vector<Part>& parts,
                          const std::vector<std::string>& classes);
// After these parts were published: removes them, the dataset that they are, and what these
// workers, whose locks the caller holds, have left; and the folder if nothing else is in it. In its
// first step all of them cease to be samples, so that one that is killed leaves no smaller dataset.
void RemoveParts(const std::string& folder, const std::vector<Part>& parts,
                 const std::vector<uint32_t>& workers);
// Goes on with a removal that was killed; false if there was none. Before a writer has parts of its
// own, for these may have the same names. FailedPrecondition while another process is at it.
absl::StatusOr<bool> EndRemoval(const std::string& folder);

}  // namespace shardpack

#endif  // SHARDPACK_API_WRITING_PARTS_FOLDER_H_
