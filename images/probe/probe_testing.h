// Test files for probing: those of //testdata with their facts, and synthetic ones.
//
//   for (const TestImage& image : LoadTestImages()) Probe(image.bytes);
//   Image jpeg = LoadTestImage("baseline.jpg");
//   jpeg.resize(jpeg.size() - 2);
//
// Errors: a missing file throws std::runtime_error.
// Units: as images/probe/probe.h.
#ifndef SHARDPACK_IMAGES_PROBE_PROBE_TESTING_H_
#define SHARDPACK_IMAGES_PROBE_PROBE_TESTING_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/image_info.h"
#include "images/probe/probe.h"

namespace shardpack {

using Image = std::vector<uint8_t>;

struct TestImage {
  std::string name;
  Image bytes;
  ImageInfo expected;
};

// All rows of testdata/images.tsv.
std::vector<TestImage> LoadTestImages();
// One file of testdata/images.
Image LoadTestImage(std::string_view name);

// Probes a copy of exactly the image's size, so that ASan detects reads past its end.
ProbeResult Probe(const Image& image, const ProbeOptions& options = {});

// For messages of tests. Static storage.
const char* ProbeVerdictName(ProbeVerdict verdict);

// Probes with default options and expects this result.
void ExpectVerdict(const Image& image, ProbeVerdict verdict, std::string_view detail);
void ExpectOk(const Image& image);

// Offset of the first `text` at or after `from`; throws if there is none.
size_t Find(const Image& image, std::string_view text, size_t from = 0);

// Store overwrites; the next function inserts before `at`.
void Store(Image* image, size_t at, std::string_view bytes);
void Insert(Image* image, size_t at, const Image& bytes);

// Appends an integer of `size` bytes.
void PutBig(Image* image, uint64_t value, int size);
void PutLittle(Image* image, uint64_t value, int size);
void PutText(Image* image, std::string_view text);
// A marker segment with its length; a PNG chunk with its CRC.
void PutSegment(Image* image, uint8_t code, const Image& body);
void PutChunk(Image* image, std::string_view type, const Image& data);

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_PROBE_PROBE_TESTING_H_
