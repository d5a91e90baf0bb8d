// What the leases in a folder say: who has claimed which shard.
//
//   ASSIGN_OR_RETURN(const Leases leases, Leases::Read(dataset, done));
//   for (const auto& [shard, owner] : leases.Newest()) ...     // of shards that are not in `done`
//   std::set<std::string> journals = leases.Journals();        // where their owners note results
//
// All leases of a worker are names of one file, which is read once.
//
// Lifetime: plain values.
// Thread-safety: pure except for the file system.
// Errors: I/O Status of a folder that cannot be listed. A lease that cannot be read is of
// "unknown".
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_LEASES_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_LEASES_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "converters/publishing/owned_folder.h"

namespace shardpack {

class Leases {
 public:
  static absl::StatusOr<Leases> Read(const OwnedFolder& dataset, const std::set<uint32_t>& done);

  // The owner of each shard's newest lease.
  std::map<uint32_t, std::string> Newest() const;
  // Names in `.pack` of the journals of all owners, also of those that were replaced. A listing of
  // `.pack` may lack some of them, where a network file system shows it as it was.
  std::set<std::string> Journals() const;

 private:
  struct Lease {
    uint32_t generation = 0;
    uint64_t inode = 0;
  };
  std::map<uint32_t, Lease> newest_;
  std::map<uint64_t, std::string> owners_;  // by inode, or a number of no inode
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_LEASES_H_
