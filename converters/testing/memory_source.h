// MemorySource: a SampleSource of images in memory, for tests of what comes after the source.
//
//   MemorySource source(100);                       // 100 tiny JPEGs in 4 classes
//   source.Replace(7, "not an image");              // a bad input
//   Plan plan = *Plan::Make(*source.List(), PlanOptions{}, ToyFormat());
//
// Lifetime: what Load returns dies with the arena.
// Thread-safety: as SampleSource; Replace before loading only.
#ifndef SHARDPACK_CONVERTERS_TESTING_MEMORY_SOURCE_H_
#define SHARDPACK_CONVERTERS_TESTING_MEMORY_SOURCE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converters/listing/sample_source.h"

namespace shardpack::testing {

class MemorySource : public SampleSource {
 public:
  static constexpr int32_t kClasses = 4;

  explicit MemorySource(size_t images, uint64_t seed = 1);

  void Replace(uint64_t row, std::string bytes) { images_[row] = std::move(bytes); }
  // What each Load of that row answers.
  void FailToRead(uint64_t row, absl::Status why) { failing_[row] = std::move(why); }
  // Called before each Load, from the loading thread.
  void set_on_load(std::function<void(uint64_t row)> on_load) { on_load_ = std::move(on_load); }
  std::string_view bytes(uint64_t row) const { return images_[row]; }
  uint64_t loads() const { return loads_.load(); }

  absl::StatusOr<Listing> List() override;
  LoadResult Load(const Listing& listing, uint64_t row, Arena& arena) const override;

 private:
  std::vector<std::string> images_;
  std::map<uint64_t, absl::Status> failing_;
  std::function<void(uint64_t)> on_load_;
  mutable std::atomic<uint64_t> loads_{0};
};

}  // namespace shardpack::testing

#endif  // SHARDPACK_CONVERTERS_TESTING_MEMORY_SOURCE_H_
