// Beats: says that this run is alive, and watches whether others are, without comparing clocks.
//
//   auto beats = Beats::Start("OUT", stage, 60, [] { return BeatFacts{.rows = rows}; });
//   if (beats->IsDead("node7-0a1b2c3d-4711-9f3a00c2d4e5f607")) ...   // its shards are free again
//
// A thread writes `.pack/owners/OWNER` every few seconds, with a number that grows. An owner is
// dead when it says that it has ended, when it ran on this machine and its lock is free, or when
// its file stands still for `stale_seconds` while this process watches it. Time in which this
// process itself was stopped does not count.
//
// Lifetime: borrows the stage. The destructor writes the last beat, which says that the run has
// ended.
// Thread-safety: any thread.
// Errors: Start returns those of the first beat. Later ones are ignored: a run that cannot write a
// beat finds out when it publishes.
// Units: seconds, of the monotonic clock.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_BEATS_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_BEATS_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "converters/publishing/owned_folder.h"
#include "converters/publishing/run_stage.h"

namespace shardpack {

struct BeatFacts {
  struct Building {
    uint32_t shard = 0;
    double seconds = 0;  // since it was begun
  };

  uint64_t beat = 0;
  double seconds = 0;        // since the run began
  uint64_t shards = 0;       // built and published by this run
  uint64_t rows = 0;         // read by this run
  double shard_seconds = 0;  // all that its finished shards took
  bool ended = false;
  std::vector<Building> building = {};
};

std::string ToBeatText(const BeatFacts& facts);
// nullopt for text that ToBeatText has not written.
std::optional<BeatFacts> ParseBeatText(std::string_view text);
inline constexpr uint64_t kMaxBeatBytes = uint64_t{1} << 20;

class Beats {
 public:
  // `facts`: called on the thread of the beats; number, seconds and end are filled in here.
  static absl::StatusOr<std::unique_ptr<Beats>> Start(const std::string& dataset,
                                                      const RunStage& stage, double stale_seconds,
                                                      std::function<BeatFacts()> facts);
  ~Beats();
  Beats(const Beats&) = delete;
  Beats& operator=(const Beats&) = delete;

  // From the first call for an owner on it is watched. One that has no beat is dead when it still
  // has none after `stale_seconds`.
  bool IsDead(const std::string& owner);

 private:
  using Clock = std::chrono::steady_clock;
  struct Watched {
    std::string text;
    double unchanged_seconds = 0;
    Clock::time_point seen;
    bool looked = false;
    bool dead = false;  // for good
  };

  Beats(OwnedFolder folder, const RunStage& stage, double stale_seconds,
        std::function<BeatFacts()> facts);
  absl::Status Write(bool ended);
  void Run();
  void Look(const std::string& owner, Watched& watched) const;  // under mutex_

  const OwnedFolder folder_;  // of the dataset
  const RunStage& stage_;
  const double stale_seconds_;
  const std::function<BeatFacts()> facts_;
  const Clock::time_point begin_ = Clock::now();
  uint64_t beat_ = 0;  // the thread's, then the destructor's

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::map<std::string, Watched> watched_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_BEATS_H_
