// CheckNoLiveWorkers: tells whether workers build in a folder that is about to be replaced.
//
//   absl::Status idle = CheckNoLiveWorkers("OUT", stop);   // FailedPrecondition names a worker
//
// Workers lock nothing that others could ask for. One of this machine is alive as long as its own
// lock is held; one of another machine is watched until its beat changes, or has stood still for a
// minute by this process's own clock.
//
// Thread-safety: any thread.
// Errors: FailedPrecondition (exit 5) for a live worker; Cancelled when `stop` is set meanwhile;
// I/O Status.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_LIVE_WORKERS_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_LIVE_WORKERS_H_

#include <atomic>
#include <string>

#include "absl/status/status.h"

namespace shardpack {

// `stop` may be null.
absl::Status CheckNoLiveWorkers(const std::string& dataset, const std::atomic<int>* stop);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_LIVE_WORKERS_H_
