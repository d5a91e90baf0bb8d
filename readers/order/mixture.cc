#include "readers/order/mixture.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace shardpack {
namespace {

using Wide = unsigned __int128;

}  // namespace

std::vector<uint64_t> Apportion(uint64_t total, std::span<const uint64_t> weights) {
  const uint64_t sum = std::accumulate(weights.begin(), weights.end(), uint64_t{0});
  std::vector<uint64_t> counts;
  std::vector<std::pair<uint64_t, size_t>> remainders;  // negated, so that the largest sorts first
  uint64_t left = total;
  for (size_t i = 0; i < weights.size(); ++i) {
    const Wide share = Wide{total} * weights[i];
    counts.push_back(static_cast<uint64_t>(share / sum));
    remainders.emplace_back(~static_cast<uint64_t>(share % sum), i);
    left -= counts.back();
  }
  std::sort(remainders.begin(), remainders.end());
  for (size_t i = 0; i < left; ++i) ++counts[remainders[i].second];
  return counts;
}

bool MixtureWalk::Later::operator()(const Seat& a, const Seat& b) const {
  const Wide left = (2 * Wide{a.index} + 1) * b.count, right = (2 * Wide{b.index} + 1) * a.count;
  return left != right ? left > right : a.part > b.part;
}

MixtureWalk::MixtureWalk(std::span<const uint64_t> counts, uint64_t first_slot) {
  // Rounding slot * count / total gives each part its entries with (2j + 1) / count <= 2 slot /
  // total, a prefix of the sequence, and at most half a slot per part too many. So start that much
  // earlier and walk the rest.
  const Wide total = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  const Wide from = first_slot > counts.size() ? first_slot - counts.size() : 0;
  std::vector<Seat> seats;
  uint64_t taken = 0;
  for (uint32_t part = 0; part < counts.size(); ++part) {
    const auto index = static_cast<uint64_t>((2 * from * counts[part] + total) / (2 * total));
    taken += index;
    if (index < counts[part]) seats.push_back({index, counts[part], part});
  }
  next_ = decltype(next_)(Later(), std::move(seats));
  while (taken < first_slot) {
    Next();
    ++taken;
  }
}

MixtureWalk::Slot MixtureWalk::Next() {
  Seat seat = next_.top();
  next_.pop();
  const Slot slot = {seat.part, seat.index};
  if (++seat.index < seat.count) next_.push(seat);
  return slot;
}

}  // namespace shardpack
