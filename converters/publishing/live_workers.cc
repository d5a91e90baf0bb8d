#include "converters/publishing/live_workers.h"

#include <chrono>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "converters/publishing/beats.h"
#include "converters/publishing/owned_folder.h"
#include "converters/publishing/pack_names.h"
#include "converters/publishing/run_stage.h"
#include "formats/io/escape.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

using Clock = std::chrono::steady_clock;

// As long as workers wait before they take a shard over; a beat comes every ten seconds.
constexpr std::chrono::seconds kStale{60};
constexpr std::chrono::milliseconds kPoll{500};

absl::Status Alive(const std::string& dataset, const std::string& worker) {
  return absl::FailedPreconditionError(absl::StrCat(
      EscapeForTerminal(dataset), " is being built by the worker ", EscapeForTerminal(worker),
      ", whose work --overwrite would remove. Wait until the workers are done, or "
      "stop them, and run again"));
}

}  // namespace

absl::Status CheckNoLiveWorkers(const std::string& dataset, const std::atomic<int>* stop) {
  ASSIGN_OR_RETURN(const OwnedFolder folder, OwnedFolder::Open(dataset));
  const absl::StatusOr<std::vector<std::string>> names = folder.List(kOwnersFolder);
  if (absl::IsNotFound(names.status())) return absl::OkStatus();
  if (!names.ok()) return names.status();
  // "" if there is none; an error says nothing of the worker.
  const auto beat_of = [&](const std::string& worker) {
    const absl::StatusOr<std::string> text = folder.Read(OwnerName(worker), kMaxBeatBytes);
    return absl::IsNotFound(text.status()) ? std::string() : text;
  };
  const auto has_ended = [&](const std::string& worker, const std::string& beat) {
    const std::optional<BeatFacts> facts = ParseBeatText(beat);
    return (facts && facts->ended) || RunStage::IsDeadHere(folder, worker);
  };
  std::map<std::string, std::string> watched;  // worker -> beat
  for (const std::string& name : *names) {
    if (!IsRunName(name)) continue;
    ASSIGN_OR_RETURN(std::string beat, beat_of(name));
    if (has_ended(name, beat)) continue;
    if (RunStage::IsOfThisMachine(name)) return Alive(dataset, name);
    watched[name] = std::move(beat);
  }
  for (const Clock::time_point begin = Clock::now();
       !watched.empty() && Clock::now() - begin < kStale;) {
    if (stop != nullptr && stop->load() != 0) return absl::CancelledError("stopped by a signal");
    std::this_thread::sleep_for(kPoll);
    for (auto at = watched.begin(); at != watched.end();) {
      ASSIGN_OR_RETURN(const std::string beat, beat_of(at->first));
      const bool ended = has_ended(at->first, beat);
      if (!ended && beat != at->second) return Alive(dataset, at->first);
      at = ended ? watched.erase(at) : std::next(at);
    }
  }
  return absl::OkStatus();
}

}  // namespace shardpack
