#include "images/probe/extras.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

#include "images/probe/probe_testing.h"

namespace shardpack {
namespace {

ImageExtras Measure(const Image& image, ImageFormat format) {
  return MeasureExtras(std::as_bytes(std::span(image)), format);
}

void ExpectLargest(const ImageExtras& extras, const std::string& name, uint64_t bytes,
                   uint64_t offset) {
  EXPECT_EQ(std::string(extras.max_name.data()), name);
  EXPECT_EQ(extras.max_bytes, bytes);
  EXPECT_EQ(extras.max_offset, offset);
}

TEST(Extras, Jpeg) {
  Image jpeg = {0xFF, 0xD8};
  PutSegment(&jpeg, 0xE0, Image(14));
  PutSegment(&jpeg, 0xFE, Image(100));
  PutSegment(&jpeg, 0xED, Image(50));
  PutSegment(&jpeg, 0xDB, Image(65));
  for (int scan = 0; scan < 3; ++scan) {
    PutSegment(&jpeg, 0xDA, Image(6));
    PutText(&jpeg, std::string("\x01\xFF\0\xFF\xD0\x02", 6));  // stuffing and a restart marker
  }
  PutText(&jpeg, "\xFF\xD9");
  ImageExtras extras = Measure(jpeg, ImageFormat::kJpeg);
  EXPECT_EQ(extras.scans, 3u);
  EXPECT_EQ(extras.ancillary_bytes, 18u + 104 + 54);
  ExpectLargest(extras, "COM", 104, 20);
  const uint64_t end = jpeg.size();
  jpeg.resize(end + 500);
  extras = Measure(jpeg, ImageFormat::kJpeg);
  EXPECT_EQ(extras.ancillary_bytes, 18u + 104 + 54 + 500);
  ExpectLargest(extras, "trailing", 500, end);
}

TEST(Extras, Png) {
  Image png = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  for (const char* type : {"IHDR", "tRNS", "fcTL", "IDAT", "fdAT"}) PutChunk(&png, type, Image(9));
  const uint64_t text = png.size();
  PutChunk(&png, "zTXt", Image(30));
  PutChunk(&png, "iCCP", Image(20));
  PutChunk(&png, "IEND", {});
  png.push_back(0);
  const ImageExtras extras = Measure(png, ImageFormat::kPng);
  EXPECT_EQ(extras.ancillary_bytes, 42u + 32 + 1);
  ExpectLargest(extras, "zTXt", 42, text);
}

// A zlib stream of this many equal letters.
Image Deflated(size_t bytes) {
  uLongf size = compressBound(bytes);
  const Image text(bytes, 'a');
  Image made(size);
  EXPECT_EQ(compress2(made.data(), &size, text.data(), bytes, 9), Z_OK);
  made.resize(size);
  return made;
}

TEST(Extras, CompressedTextCountsAsItIsInflated) {
  const auto of = [](const char* type, const std::string& head, const Image& stream) {
    Image png = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'}, chunk;
    PutText(&chunk, head);
    Insert(&chunk, chunk.size(), stream);
    PutChunk(&png, type, chunk);
    PutChunk(&png, "IEND", {});
    return Measure(png, ImageFormat::kPng).ancillary_bytes;
  };
  const Image stream = Deflated(30'000'000);
  ASSERT_LT(stream.size(), 100'000u);
  EXPECT_EQ(of("zTXt", std::string("k\0\0", 3), stream), 30'000'012u);
  EXPECT_EQ(of("iCCP", std::string("k\0\0", 3), stream), 30'000'012u);
  EXPECT_EQ(of("iTXt", std::string("k\0\1\0en\0x\0", 9), stream), 30'000'012u);
  EXPECT_LT(of("iTXt", std::string("k\0\0\0en\0x\0", 9), stream), 100'000u) << "not compressed";
  EXPECT_LT(of("tEXt", std::string("k\0\0", 3), stream), 100'000u);
  EXPECT_EQ(of("zTXt", "no zero", {}), 7u + 12);
  EXPECT_LT(of("zTXt", std::string("k\0\0damaged", 10), {}), 100u);
  // No more work than the limit: 64 MiB and a buffer.
  EXPECT_LE(of("zTXt", std::string("k\0\0", 3), Deflated(100'000'000)), (65u << 20));
}

TEST(Extras, Webp) {
  Image body;
  PutText(&body, "WEBP");
  for (const char* name : {"VP8X", "ICCP", "VP8 ", "EXIF"}) {
    PutText(&body, name);
    PutLittle(&body, name[0] == 'E' ? 33 : 10, 4);
    body.resize(body.size() + (name[0] == 'E' ? 34 : 10));
  }
  Image webp;
  PutText(&webp, "RIFF");
  PutLittle(&webp, body.size(), 4);
  Insert(&webp, webp.size(), body);
  ImageExtras extras = Measure(webp, ImageFormat::kWebp);
  EXPECT_EQ(extras.ancillary_bytes, 18u + 41);
  ExpectLargest(extras, "EXIF", 41, webp.size() - 42);
  webp.resize(webp.size() + 7);
  EXPECT_EQ(Measure(webp, ImageFormat::kWebp).ancillary_bytes, 18u + 41 + 7);
}

TEST(Extras, Gif) {
  Image gif;
  PutText(&gif, "GIF89a");
  PutLittle(&gif, 1, 2);
  PutLittle(&gif, 1, 2);
  PutText(&gif, std::string("\x80\0\0", 3));  // a table of two colours
  gif.resize(gif.size() + 6);
  PutText(&gif, std::string("\x21\xF9\x04\0\0\0\0\0", 8));
  PutText(&gif, std::string("\x21\xFE\x03"
                            "abc\0",
                            7));
  PutText(&gif, std::string("\x2C\0\0\0\0\1\0\1\0\0\2\2\x4C\1\0", 15));
  EXPECT_EQ(Measure(gif, ImageFormat::kGif).ancillary_bytes, 7u);
  PutText(&gif, ";rest");
  const ImageExtras extras = Measure(gif, ImageFormat::kGif);
  EXPECT_EQ(extras.ancillary_bytes, 7u + 4);
  ExpectLargest(extras, "comment", 7, 27);
}

TEST(Extras, CutAnywhereIsNoTrouble) {
  for (const TestImage& image : LoadTestImages()) {
    EXPECT_LT(Measure(image.bytes, image.expected.format).ancillary_bytes, image.bytes.size());
    for (size_t size = 0; size < image.bytes.size(); size += 3) {
      const Image cut(image.bytes.begin(), image.bytes.begin() + static_cast<ptrdiff_t>(size));
      const Image copy = cut;  // a buffer of exactly this size
      EXPECT_LE(Measure(copy, image.expected.format).ancillary_bytes, size) << image.name;
    }
  }
}

}  // namespace
}  // namespace shardpack
