#include "cuda/jpeg/decode_balance.h"

#include <algorithm>
#include <cmath>

namespace shardpack {

DecodeBalance::Chunk DecodeBalance::TakeChunk() {
  const std::lock_guard lock(mutex_);
  const auto left = static_cast<double>(end_ - begin_);
  double most = std::min(left, static_cast<double>(kMostInChunk));
  double share = left / 2, least = 8;  // of the engines
  if (lanes_ == 0) {
    share = 2 * most;
  } else if (rates_.engine_us > 0 && rates_.lane_us > 0) {
    const auto lanes = static_cast<double>(lanes_);
    const double engines_a_lane = rates_.lane_us / rates_.engine_us;  // while it does one
    share = left * engines_a_lane / (engines_a_lane + lanes);
    // Smaller chunks would not make the ends meet better.
    least = std::clamp(engines_a_lane / 2, 1.0, 8.0);
    // The last chunk is under way.
    const double until_lanes_end = std::ceil(left / lanes) * engines_a_lane;
    most = std::min(most, until_lanes_end - static_cast<double>(last_chunk_));
  }
  if (most < 1) engines_ended_ = true;
  if (engines_ended_) return {begin_, begin_};
  chunk_before_ = last_chunk_;
  // Half of the share, as two chunks are under way.
  last_chunk_ = static_cast<size_t>(std::min(std::max(share / 2, least), most));
  begin_ += last_chunk_;
  return {begin_ - last_chunk_, begin_};
}

std::optional<size_t> DecodeBalance::TakeOne() {
  const std::lock_guard lock(mutex_);
  const auto ahead = static_cast<double>(end_ - begin_ + last_chunk_ + chunk_before_);
  // What is not known about the engines does not count.
  const bool late =
      !engines_ended_ && rates_.engine_us > 0 && ahead * rates_.engine_us < rates_.lane_us;
  if (late && begin_ != end_ && probe_) {
    probe_ = false;
    probed_ = true;
    return --end_;
  }
  if (begin_ == end_ || late) {
    lanes_ -= lanes_ > 0 ? 1 : 0;
    return std::nullopt;
  }
  return --end_;
}

void DecodeBalance::NoteEngines(size_t images, double us) {
  if (images == 0) return;
  const std::lock_guard lock(mutex_);
  const double now = us / static_cast<double>(images);
  rates_.engine_us = rates_.engine_us == 0 ? now : (rates_.engine_us + now) / 2;
}

void DecodeBalance::NoteLane(double us) {
  const std::lock_guard lock(mutex_);
  // Probes are few.
  const double weight = rates_.lane_us == 0 ? 1 : (probed_ ? 0.5 : 0.125);
  rates_.lane_us += (us - rates_.lane_us) * weight;
}

void DecodeBalance::EndEngines() {
  const std::lock_guard lock(mutex_);
  engines_ended_ = true;
}

DecodeRates DecodeBalance::rates() const {
  const std::lock_guard lock(mutex_);
  return rates_;
}

}  // namespace shardpack
