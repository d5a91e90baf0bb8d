// ListShared: lists a folder together with other processes, each some of its parts, into a folder
// of lists that all of them share. A plan is then made of it as of the source itself.
//
//   absl::Status listed_all = ListShared(request, pool, listed, stop, report);   // each process
//   RETURN_IF_ERROR(UseSharedList("lists", pack_request));      // pack plan --from lists
//
// Who lists which part is agreed like who builds which shard of a plan: by leases in `lists/.pack`
// (shard_claims.h). A part appears whole, once; of two processes that have listed the same one, the
// first counts. What changes in the source meanwhile is listed as it was when its part was.
//
// Lifetime: plain values.
// Thread-safety: one caller; uses all threads of the pool.
// Errors: InvalidArgument for an unsuitable source or folder; FailedPrecondition if the folder
// holds something else, or a list of another source or with other options, or if the source holds
// nothing, or nothing that it held when the list was begun; Aborted if parts are not
// listed yet; Cancelled when `stop` is set; DataLoss for a damaged list; I/O Status.
#ifndef SHARDPACK_JOBS_SHARED_LIST_H_
#define SHARDPACK_JOBS_SHARED_LIST_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/listing/skip.h"
#include "converters/sources/folder_source.h"
#include "converters/threads/io_pool.h"
#include "jobs/pack_request.h"

namespace shardpack {

struct SharedListRequest {
  std::string source, lists;  // folders
  FolderSourceOptions options = {};
  bool join = false;  // go on with a list that was begun
  double stale_seconds = 60;
};

struct SharedListReport {
  std::string root;  // of the source, absolute
  uint64_t parts = 0, my_parts = 0;
  struct Unread {
    std::string path;  // relative to the root
    SkipReason reason = SkipReason::kPermission;
    std::string part;  // the file that lacks what is below it
  };
  std::vector<Unread> unread = {};  // in my parts: see UnreadFolder
};

// Whether a list was begun there.
absl::StatusOr<bool> HoldsList(const std::string& lists);

// `report` has what this process did, also where that ends with an error.
absl::Status ListShared(const SharedListRequest& request, IoPool& pool,
                        std::atomic<uint64_t>& listed, const std::atomic<int>& stop,
                        SharedListReport& report);

// The request becomes one for the listed source, as it was listed.
absl::Status UseSharedList(const std::string& lists, PackRequest& request);

}  // namespace shardpack

#endif  // SHARDPACK_JOBS_SHARED_LIST_H_
