#include "cuda/loader_fixture.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "formats/io/file.h"
#include "formats/testing/datasets/toy_format.h"
#include "images/decode_testing.h"

namespace shardpack {
namespace {

template <typename T>
T Must(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
  std::abort();
}

}  // namespace

LoaderFixture::LoaderFixture(const std::string& name, const LoaderFixtureOptions& options)
    : folder_(testing::MakeTestFolder(name)), options_(options) {
  testing::TestDatasetOptions made{.shards = 2, .records_per_shard = options.samples / 2};
  made.samples = testing::MakeTestSamples(made);
  for (uint32_t i = 0; options.jpegs && i < made.samples.size(); ++i) {
    const uint32_t width = 24 + i % 7, height = 30 - i % 5;
    const Image jpeg = EncodeJpeg(MakePattern(width, height, 3, i), {.sampling = {2, 2}});
    made.samples[i].image.assign(jpeg.begin(), jpeg.end());
    made.samples[i].info = {.width = width, .height = height, .format = ImageFormat::kJpeg};
  }
  samples_ = made.samples;
  testing::WriteTestDataset(folder_, testing::ToyFormat(), made);
  dataset_ = Must(Dataset::Open(folder_));
  order_ = Must(Order::Make(
      {.samples = dataset_->size(), .seed = 5, .global_batch = options.batch, .tail = Tail::kPad}));
}

LoaderFixture::~LoaderFixture() { (void)RemoveTree(folder_); }

LoaderOptions LoaderFixture::Options(uint64_t epochs) const {
  LoaderOptions options{.threads = 1, .epochs = epochs};
  if (!options_.jpegs) return options;
  options.decode.emplace();
  options.decode->crop = {.width = kWidth, .height = kHeight, .flip_probability = 0.5};
  options.augment_seed = 9;
  return options;
}

absl::StatusOr<Loader> LoaderFixture::TryOpen(HostMemory& memory, const LoaderOptions& options,
                                              std::optional<Cursor> cursor) const {
  return Loader::Open(*dataset_, *order_, {}, options, memory, cursor);
}

Loader LoaderFixture::Open(HostMemory& memory, const LoaderOptions& options,
                           std::optional<Cursor> cursor) const {
  return Must(TryOpen(memory, options, cursor));
}

std::vector<HostCopy> LoaderFixture::Expected(const LoaderOptions& options) const {
  PageableMemory memory;
  Loader loader = Open(memory, options);
  std::vector<HostCopy> copies;
  for (uint64_t epoch = 0; epoch < options.epochs;) {
    const std::optional<HostBatch> batch = Must(loader.Next());
    HostCopy copy;
    if (!batch) {
      ++epoch;
    } else {
      copy = {.epoch = batch->epoch(),
              .step = batch->step(),
              .ids = {batch->ids().begin(), batch->ids().end()},
              .labels = {batch->labels().begin(), batch->labels().end()},
              .pixels = {},
              .images = {}};
      if (batch->pixels() != nullptr) copy.pixels = AsText(batch->pixels()->bytes);
      for (size_t i = 0; i < batch->size(); ++i)
        copy.images.emplace_back(AsText(batch->bytes(0, i)));
    }
    copies.push_back(std::move(copy));
  }
  return copies;
}

}  // namespace shardpack
