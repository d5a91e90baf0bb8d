#include "converters/publishing/beats.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "converters/publishing/pack_names.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr double kBeatSeconds = 10;
// Beats within the time after which others take a standing one for that of a dead run.
constexpr double kBeatsBeforeStale = 6;
// Looks within that time: so many are needed before a run is called dead.
constexpr double kLooksBeforeStale = 4;
// Between two looks at one owner; for a short time after which it is stale, so many looks in that.
constexpr double kLeastStepSeconds = 0.2, kMostLooks = 20;
constexpr std::string_view kStaged = "beat";

double Rounded(double seconds) { return std::round(seconds * 1000) / 1000; }

std::chrono::duration<double> Period(double stale_seconds) {
  return std::chrono::duration<double>(std::min(kBeatSeconds, stale_seconds / kBeatsBeforeStale));
}

}  // namespace

std::string ToBeatText(const BeatFacts& facts) {
  nlohmann::json building = nlohmann::json::array();
  for (const BeatFacts::Building& each : facts.building)
    building.push_back({each.shard, Rounded(each.seconds)});
  const nlohmann::json json = {{"beat", facts.beat},
                               {"seconds", Rounded(facts.seconds)},
                               {"shards", facts.shards},
                               {"rows", facts.rows},
                               {"shard_seconds", Rounded(facts.shard_seconds)},
                               {"ended", facts.ended},
                               {"building", std::move(building)}};
  return json.dump() + "\n";
}

std::optional<BeatFacts> ParseBeatText(std::string_view text) {
  try {
    const nlohmann::json json = nlohmann::json::parse(std::string(text));
    BeatFacts facts;
    facts.beat = json.at("beat").get<uint64_t>();
    facts.seconds = json.at("seconds").get<double>();
    facts.shards = json.at("shards").get<uint64_t>();
    facts.rows = json.at("rows").get<uint64_t>();
    facts.shard_seconds = json.at("shard_seconds").get<double>();
    facts.ended = json.at("ended").get<bool>();
    for (const nlohmann::json& each : json.at("building"))
      facts.building.push_back({each.at(0).get<uint32_t>(), each.at(1).get<double>()});
    return facts;
  } catch (const std::bad_alloc&) {  // says nothing about the text
    throw;
  } catch (const std::exception&) {  // nlohmann's exceptions stop here
    return std::nullopt;
  }
}

absl::StatusOr<std::unique_ptr<Beats>> Beats::Start(const std::string& dataset,
                                                    const RunStage& stage, double stale_seconds,
                                                    std::function<BeatFacts()> facts) {
  ASSIGN_OR_RETURN(OwnedFolder folder, OwnedFolder::Open(dataset));
  auto beats =
      std::unique_ptr<Beats>(new Beats(std::move(folder), stage, stale_seconds, std::move(facts)));
  RETURN_IF_ERROR(beats->Write(/*ended=*/false));
  beats->thread_ = std::thread([each = beats.get()] { each->Run(); });
  return beats;
}

Beats::Beats(OwnedFolder folder, const RunStage& stage, double stale_seconds,
             std::function<BeatFacts()> facts)
    : folder_(std::move(folder)),
      stage_(stage),
      stale_seconds_(stale_seconds),
      facts_(std::move(facts)) {}

Beats::~Beats() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
  try {
    (void)Write(/*ended=*/true);
  } catch (const std::exception&) {  // no memory: the others wait a little longer
  }
}

// Renamed over the last one, so that nobody reads half of it. Not flushed: after a power failure
// nobody is alive.
absl::Status Beats::Write(bool ended) {
  BeatFacts facts = facts_();
  facts.beat = ++beat_;
  facts.seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
  facts.ended = ended;
  const std::string text = ToBeatText(facts), staged = stage_.NameOf(kStaged);
  RETURN_IF_ERROR(folder_.RemoveFile(staged));
  {
    ASSIGN_OR_RETURN(File file, File::CreateExclusive(folder_.PathOf(staged)));
    RETURN_IF_ERROR(file.Write(std::array{AsBytes(text)}));
    RETURN_IF_ERROR(file.Close());
  }
  return folder_.Replace(staged, OwnerName(stage_.owner()));
}

void Beats::Run() {
  const auto period = std::chrono::duration_cast<Clock::duration>(Period(stale_seconds_));
  Clock::time_point next = Clock::now() + period;
  std::unique_lock lock(mutex_);
  while (!ending_) {
    changed_.wait_until(lock, next);
    if (ending_ || Clock::now() < next) continue;
    next = Clock::now() + period;
    for (auto& [owner, watched] : watched_) Look(owner, watched);
    lock.unlock();
    try {
      (void)Write(/*ended=*/false);
    } catch (const std::exception&) {  // no memory: the next beat may have some
    }
    lock.lock();
  }
}

void Beats::Look(const std::string& owner, Watched& watched) const {
  if (watched.dead || owner == stage_.owner()) return;
  const Clock::time_point now = Clock::now();
  const double step = std::chrono::duration<double>(now - watched.seen).count();
  if (step < std::min(kLeastStepSeconds, stale_seconds_ / kMostLooks) && watched.looked) return;
  watched.looked = true;
  // After a pause of this process, what the others did in it is unknown.
  const double counted = std::min(step, stale_seconds_ / kLooksBeforeStale);
  // Opened again each time: a network file system may keep showing an open file as it was.
  const absl::StatusOr<std::string> text = folder_.Read(OwnerName(owner), kMaxBeatBytes);
  const std::string now_there = text.ok() ? *text : std::string();
  const std::optional<BeatFacts> facts = ParseBeatText(now_there);
  if (stage_.IsDeadHere(owner) || (facts && facts->ended)) {
    watched.dead = true;
  } else if (now_there != watched.text) {
    watched = {.text = now_there, .unchanged_seconds = 0, .seen = now, .looked = true};
  } else {
    watched.seen = now;
    watched.unchanged_seconds += counted;
  }
}

bool Beats::IsDead(const std::string& owner) {
  if (owner == stage_.owner()) return false;
  const std::lock_guard lock(mutex_);
  const auto [found, first] = watched_.try_emplace(owner);
  if (first) found->second.seen = Clock::now();
  Look(owner, found->second);
  return found->second.dead || found->second.unchanged_seconds >= stale_seconds_;
}

}  // namespace shardpack
