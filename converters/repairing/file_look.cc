#include "converters/repairing/file_look.h"

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <cstdint>
#include <mutex>

#include "absl/status/statusor.h"
#include "converters/repairing/repair_work.h"

namespace shardpack {

absl::Status LookAtFiles(std::span<FileLook> files, Unreadable unreadable, int jobs,
                         RepairProgress& progress, const std::atomic<int>& stop) {
  std::mutex mutex;
  absl::Status failed;
  tbb::task_arena arena(jobs > 0 ? jobs : tbb::task_arena::automatic);
  const auto on_block = [&](uint64_t bytes) {
    progress.done_bytes += bytes;
    return stop.load() == 0 ? absl::OkStatus() : absl::CancelledError("stopped");
  };
  arena.execute([&] {
    tbb::parallel_for(size_t{0}, files.size(), [&](size_t i) {
      FileLook& look = files[i];
      const absl::StatusOr<std::string> damage =
          DamageOf(look.path, look.file, look.full, on_block, unreadable);
      ++progress.done_files;
      const std::lock_guard lock(mutex);
      // Failing to check a file says nothing about it.
      if (!damage.ok() && !IsOfOneFile(damage.status())) {
        failed.Update(damage.status());
      } else {
        look.damage = damage.ok() ? *damage : std::string(damage.status().message());
        if (!look.damage.empty()) ++progress.damaged;
      }
    });
  });
  return failed;
}

}  // namespace shardpack
