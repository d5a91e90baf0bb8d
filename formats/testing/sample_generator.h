// GenerateSamples: test samples, identical for the same options on every machine.
//
//   std::vector<OwnedSample> samples = GenerateSamples({.count = 20, .extra_fields = {"txt"}});
//   BorrowedSample borrowed = samples[0].Borrow();
//   absl::Status appended = writer->Append(borrowed.view);
//
// Keys are portable and ascend bytewise, so formats with ordered keys can take them as they are.
//
// Lifetime: an OwnedSample owns its bytes; a BorrowedSample borrows from it and from itself.
// Units: bytes, pixels.
#ifndef SHARDPACK_FORMATS_TESTING_SAMPLE_GENERATOR_H_
#define SHARDPACK_FORMATS_TESTING_SAMPLE_GENERATOR_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/core/image_info.h"
#include "formats/core/sample.h"

namespace shardpack::testing {

// splitmix64: unlike the distributions of <random>, identical in every standard library.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  // In [0, n); n > 0.
  uint64_t Below(uint64_t n) { return Next() % n; }
  std::string Bytes(size_t count);

 private:
  uint64_t state_;
};

struct BorrowedSample {
  std::vector<FieldView> fields;
  SampleView view;  // into `fields` and the owner
};

struct OwnedSample {
  uint64_t number = 0;
  std::string key, source_path, class_name;
  int64_t label = kNoLabel;
  ImageInfo image;
  std::vector<std::pair<std::string, std::string>> fields;  // name, bytes; [0] = image

  BorrowedSample Borrow() const;
};

enum class Payloads : uint8_t {
  kRandom,  // a JPEG's first bytes, then random ones: any size
  kImages,  // tiny valid JPEGs and PNGs
  kMixed,
};

struct GeneratorOptions {
  uint64_t seed = 1;
  size_t count = 20;
  Payloads payloads = Payloads::kMixed;
  uint64_t min_bytes = 4, max_bytes = 3000;    // for kRandom payloads
  int64_t classes = 5;                         // 0: no labels
  std::vector<std::string> extra_fields = {};  // names; each sample has all of them
  ImageInfo raw_image = {};  // if kRaw: raw pixels of this shape instead of payloads of any size
};

std::vector<OwnedSample> GenerateSamples(const GeneratorOptions& options = {});

// Complete images that any decoder accepts; grayscale, 8 bits; width and height in 1..64.
std::string MakeTinyJpeg(uint32_t width, uint32_t height, Random& random);
std::string MakeTinyPng(uint32_t width, uint32_t height, Random& random);
// Begins like a JPEG, as far as `bytes` allows.
std::string MakeRandomPayload(uint64_t bytes, Random& random);

// A portable key of exactly `bytes` (1 or more) bytes.
std::string MakeLongKey(size_t bytes, Random& random);

}  // namespace shardpack::testing

#endif  // SHARDPACK_FORMATS_TESTING_SAMPLE_GENERATOR_H_
