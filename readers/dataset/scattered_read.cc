#include "readers/dataset/scattered_read.h"

#include <vector>

namespace shardpack {
namespace {

std::byte* Scratch(size_t bytes) {
  thread_local std::vector<std::byte> scratch;
  if (scratch.size() < bytes) scratch.resize(bytes);
  return scratch.data();
}

}  // namespace

bool ScatteredRead::Add(uint64_t offset, std::span<std::byte> into) {
  if (count_ == 0) {
    offset_ = end_ = offset;
  } else if (count_ + 2 > parts_.size() || offset < end_ || offset - end_ > max_gap_bytes_ ||
             offset + into.size() - offset_ > kMaxBytes) {
    return false;
  }
  if (offset > end_) parts_[count_++] = {Scratch(max_gap_bytes_), offset - end_};
  parts_[count_++] = {into.data(), into.size()};
  end_ = offset + into.size();
  return true;
}

}  // namespace shardpack
