#include "cuda/testing/loader_fixture.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "formats/io/file.h"
#include "formats/testing/datasets/toy_format.h"
#include "images/codecs/decode_testing.h"

namespace shardpack {
namespace {

template <typename T>
T Must(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
  std::abort();
}

// With an EXIF orientation (CIPA DC-008 4.5, 4.6.4).
Image Turned(Image jpeg, uint8_t orientation) {
  Image exif;
  PutText(&exif, std::string_view("Exif\0\0MM\0*\0\0\0\x08", 14));
  PutBig(&exif, 1, 2);       // entries
  PutBig(&exif, 0x0112, 2);  // Orientation
  PutBig(&exif, 3, 2);       // SHORT
  PutBig(&exif, 1, 4);
  PutBig(&exif, orientation, 2);
  PutBig(&exif, 0, 2 + 4);  // padding, no further directory
  Image segment;
  PutSegment(&segment, 0xE1, exif);
  Insert(&jpeg, 2, segment);
  return jpeg;
}

Image MakeJpeg(uint32_t number, const LoaderFixtureOptions& options) {
  const uint32_t width = options.min_side + number % options.spread;
  const uint32_t height = options.min_side + 6 - number % 5;
  const uint32_t kind = options.turned ? 4 : options.cmyk ? 3 : options.kinds ? number % 6 : 0;
  const uint32_t channels = kind == 3 ? 4 : kind == 5 ? 1 : 3;
  const JpegKind how = {.sampling = {channels == 3 ? 2 : 1, channels == 3 ? 2 : 1},
                        .progressive = kind == 2};
  Image jpeg = EncodeJpeg(MakePattern(width, height, channels, number), how);
  return kind == 4 ? Turned(std::move(jpeg), static_cast<uint8_t>(2 + number / 6 % 7)) : jpeg;
}

// In the middle of what a file of the folder holds.
void FlipByte(const std::string& folder, const std::string& held) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const size_t at = text.find(held);
    if (at == std::string::npos) continue;
    const size_t middle = at + held.size() / 2;
    file.clear();
    file.seekp(static_cast<std::streamoff>(middle));
    file.put(static_cast<char>(~text[middle]));
    return;
  }
  std::abort();
}

}  // namespace

int LargestDifference(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return 256;
  int largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<uint8_t>(a[i]) - static_cast<uint8_t>(b[i])));
  }
  return largest;
}

LoaderFixture::LoaderFixture(const std::string& name, const LoaderFixtureOptions& options)
    : folder_(testing::MakeTestFolder(name)), options_(options) {
  testing::TestDatasetOptions made{.shards = 2, .records_per_shard = options.samples / 2};
  made.samples = testing::MakeTestSamples(made);
  for (uint32_t i = 0; options.jpegs && i < made.samples.size(); ++i) {
    Image jpeg = MakeJpeg(i, options);
    if (i == 0 && !options.first.empty()) jpeg.assign(options.first.begin(), options.first.end());
    made.samples[i].info = Probe(jpeg).info;
    const bool ended = std::count(options.ended.begin(), options.ended.end(), i) > 0;
    if (ended || std::count(options.cut.begin(), options.cut.end(), i) > 0) {
      jpeg.resize(jpeg.size() / 2);
      if (ended || options.cut_with_end) jpeg.insert(jpeg.end(), {0xFF, 0xD9});
    }
    made.samples[i].image.assign(jpeg.begin(), jpeg.end());
  }
  for (testing::TestSample& sample : made.samples) {
    if (options.objects) sample.more_fields.emplace_back("json", "[]");
  }
  samples_ = made.samples;
  testing::WriteTestDataset(folder_, testing::ToyFormat(), made);
  for (const size_t number : options.flipped) FlipByte(folder_, samples_[number].image);
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
