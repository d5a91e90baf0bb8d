// LoaderFixture: a small packed dataset, loaders over it, and what they must deliver, for the tests
// of what brings batches to a device.
//
//   LoaderFixture data("name", {.jpegs = true});
//   Loader loader = data.Open(memory, options);
//   std::vector<HostCopy> expected = data.Expected(options);    // by the Loader alone
//
// Lifetime: removes its folder.
// Thread-safety: const calls from any thread.
// Errors: aborts.
#ifndef SHARDPACK_CUDA_TESTING_LOADER_FIXTURE_H_
#define SHARDPACK_CUDA_TESTING_LOADER_FIXTURE_H_

#include <optional>
#include <string>
#include <vector>

#include "formats/testing/datasets/test_dataset.h"
#include "readers/loading/loader.h"

namespace shardpack {

struct LoaderFixtureOptions {
  bool jpegs = true;  // else random bytes of sizes that differ
  size_t samples = 40;
  uint32_t batch = 8;
  bool kinds = false;                 // progressive, CMYK, gray and turned ones among the JPEGs
  bool turned = false, cmyk = false;  // all of them
  uint32_t min_side = 24;             // of JPEGs; the engines of GPUs take 64 and more
  uint32_t spread = 7;                // the widths of JPEGs differ by less
  std::vector<size_t> cut = {};       // numbers of JPEGs that end in the middle
  bool cut_with_end = false;          // as if nothing was missing
  std::vector<size_t> ended = {};     // numbers of JPEGs cut so, beside `cut`
  std::vector<size_t> flipped = {};   // numbers of samples with another byte than was hashed
  std::string first = "";             // a file in the place of the first JPEG
  bool objects = false;               // a field "json" of each: COCO's, no objects
};

// A batch as the host has it; an end of an epoch has no ids.
struct HostCopy {
  uint64_t epoch = 0, step = 0;
  std::vector<uint64_t> ids;
  std::vector<int64_t> labels;
  std::string pixels;
  std::vector<std::string> images;  // encoded, a slot each
};

// The largest one of two images' levels; 256 if they differ in size.
int LargestDifference(const std::string& a, const std::string& b);

class LoaderFixture {
 public:
  static constexpr uint32_t kWidth = 20, kHeight = 16;

  LoaderFixture(const std::string& name, const LoaderFixtureOptions& options);
  ~LoaderFixture();

  const std::string& folder() const { return folder_; }
  const Dataset& dataset() const { return *dataset_; }
  const Order& order() const { return *order_; }
  // Decoding to kWidth x kHeight where the samples are images; one epoch; one thread.
  LoaderOptions Options(uint64_t epochs = 1) const;
  absl::StatusOr<Loader> TryOpen(HostMemory& memory, const LoaderOptions& options,
                                 std::optional<Cursor> cursor = std::nullopt) const;
  Loader Open(HostMemory& memory, const LoaderOptions& options,
              std::optional<Cursor> cursor = std::nullopt) const;
  std::vector<HostCopy> Expected(const LoaderOptions& options) const;
  const std::string& image(uint64_t id) const { return samples_[id].image; }

 private:
  std::string folder_;
  LoaderFixtureOptions options_;
  std::vector<testing::TestSample> samples_;
  std::optional<Dataset> dataset_;
  std::optional<Order> order_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_TESTING_LOADER_FIXTURE_H_
