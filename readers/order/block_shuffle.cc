#include "readers/order/block_shuffle.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace shardpack {
namespace {

// Purposes of the keys derived from the given one.
constexpr uint64_t kOfBlocks = 0, kOfWindows = 1;

uint64_t Blocks(uint64_t size, uint64_t block) { return (size - 1) / block + 1; }

}  // namespace

BlockShuffle::BlockShuffle(uint64_t size, uint32_t block, uint32_t window, uint64_t key)
    : size_(size),
      block_(block),
      window_(std::min<uint64_t>(window, Blocks(size, block))),
      missing_(Blocks(size, block) * block - size),
      key_(MixKey(key, kOfWindows)),
      blocks_(Blocks(size, block), MixKey(key, kOfBlocks)),
      last_block_index_(blocks_.Inverse(blocks_.size() - 1)) {}

uint64_t BlockShuffle::WindowBegin(uint64_t window) const {
  const uint64_t begin = window * window_ * block_;
  return std::min(size_, window > last_block_index_ / window_ ? begin - missing_ : begin);
}

uint64_t BlockShuffle::WindowOf(uint64_t index) const {
  const bool before = index < WindowBegin(last_block_index_ / window_ + 1);
  return (before ? index : index + missing_) / (window_ * block_);
}

void BlockShuffle::Fill(uint64_t first_index, std::span<uint64_t> out) const {
  while (!out.empty()) {
    const uint64_t window = WindowOf(first_index);
    const uint64_t begin = WindowBegin(window), end = WindowBegin(window + 1);
    const Permutation mix(end - begin, MixKey(key_, window));
    const uint64_t run = std::min<uint64_t>(out.size(), end - first_index);
    FillFromWindow(window, mix, first_index - begin, out.first(run));
    first_index += run;
    out = out.subspan(run);
  }
}

void BlockShuffle::FillFromWindow(uint64_t window, const Permutation& mix, uint64_t first,
                                  std::span<uint64_t> out) const {
  // The position, counting the window's numbers through its blocks, at which to skip the numbers
  // that the last block lacks.
  uint64_t skip_from = ~uint64_t{0};
  if (window == last_block_index_ / window_) {
    skip_from = (last_block_index_ - window * window_ + 1) * block_ - missing_;
  }
  std::array<uint64_t, 256> in_block;
  while (!out.empty()) {
    const std::span<uint64_t> run = out.first(std::min(out.size(), in_block.size()));
    std::iota(run.begin(), run.end(), first);
    mix.MapAll(run);
    for (size_t i = 0; i < run.size(); ++i) {
      const uint64_t counted = run[i] >= skip_from ? run[i] + missing_ : run[i];
      const uint64_t block = counted / block_;
      in_block[i] = counted - block * block_;
      run[i] = window * window_ + block;
    }
    blocks_.MapAll(run);
    for (size_t i = 0; i < run.size(); ++i) run[i] = run[i] * block_ + in_block[i];
    first += run.size();
    out = out.subspan(run.size());
  }
}

}  // namespace shardpack
