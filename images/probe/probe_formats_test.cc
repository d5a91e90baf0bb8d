// Synthetic files of all formats except JPEG: unusual but complete ones, and damage of each kind.
#include <gtest/gtest.h>

#include <string>

#include "formats/testing/cpu_budget.h"
#include "images/probe/probe.h"
#include "images/probe/probe_testing.h"

namespace shardpack {
namespace {

using namespace std::string_literals;

constexpr ProbeOptions kHeaderOnly{.level = ProbeLevel::kHeader};

// ---- PNG

Image PngHeader(uint32_t width, uint32_t height, uint8_t depth = 8, uint8_t color_type = 2) {
  Image image, data;
  PutText(&image, "\x89PNG\r\n\x1A\n");
  PutBig(&data, width, 4);
  PutBig(&data, height, 4);
  data.insert(data.end(), {depth, color_type, 0, 0, 0});
  PutChunk(&image, "IHDR", data);
  return image;
}

TEST(ProbePngTest, BadCrcIsPlaced) {
  Image image = LoadTestImage("rgb.png");
  const size_t data = Find(image, "IDAT");
  image[data + 9] ^= 0x10;
  const ProbeResult result = Probe(image);
  EXPECT_EQ(result.verdict, ProbeVerdict::kBadCrc);
  EXPECT_EQ(result.offset, data - 4);
  EXPECT_EQ(result.info.width, 20u);
  EXPECT_EQ(Probe(image, kHeaderOnly).verdict, ProbeVerdict::kOk);
  EXPECT_EQ(Probe(image, {.allow_truncated = true}).verdict, ProbeVerdict::kBadCrc);
}

TEST(ProbeTest, KindsThatAreNotTakenAreNamed) {
  for (const auto& [head, kind] :
       {std::pair(std::string("\0\0\0\x20"
                              "ftypavif",
                              12),
                  "AVIF"),
        std::pair(std::string("\0\0\0\x20"
                              "ftypheic",
                              12),
                  "HEIC"),
        std::pair(std::string("\xFF\x0A"
                              "1234567890"),
                  "JPEG XL"),
        std::pair(std::string("\0\0\0\x0CJXL \r\n\x87\n", 12), "JPEG XL")}) {
    Image image;
    PutText(&image, head);
    image.resize(100);
    ExpectVerdict(image, ProbeVerdict::kNotAnImage,
                  (std::string(kind) + " is not taken: its signature is").c_str());
  }
  Image array;
  PutText(&array, "\x93NUMPY\x01");
  array.resize(100);
  ExpectVerdict(array, ProbeVerdict::kNotAnImage, "a NumPy array (.npy), not an image");
}

TEST(ProbePngTest, SixtyMegabytesOfText) {
  Image image = LoadTestImage("rgb.png");
  Image chunk;
  PutChunk(&chunk, "tEXt", Image(60'000'000, 'x'));
  Insert(&image, Find(image, "IDAT") - 4, chunk);
  ExpectOk(image);
  image[30'000'000] = 'y';
  EXPECT_EQ(Probe(image).verdict, ProbeVerdict::kBadCrc);
}

TEST(ProbePngTest, BombIsOverTheLimit) {
  EXPECT_EQ(Probe(PngHeader(30000, 30000)).verdict, ProbeVerdict::kPixelLimit);
  EXPECT_EQ(Probe(PngHeader(0x7FFFFFFF, 0x7FFFFFFF)).verdict, ProbeVerdict::kPixelLimit);
  EXPECT_EQ(Probe(PngHeader(8000, 8000)).verdict, ProbeVerdict::kTruncated);
  EXPECT_EQ(Probe(PngHeader(8000, 8001)).verdict, ProbeVerdict::kPixelLimit);
}

TEST(ProbePngTest, HeadersThatNoDecoderTakes) {
  for (const Image& image : {PngHeader(0, 5), PngHeader(5, 0), PngHeader(0x80000000, 1),
                             PngHeader(5, 5, 3), PngHeader(5, 5, 16, 3), PngHeader(5, 5, 4, 2),
                             PngHeader(5, 5, 8, 1), PngHeader(5, 5, 8, 7)}) {
    ExpectVerdict(image, ProbeVerdict::kNotAnImage, "bad IHDR chunk");
  }
  Image image;
  PutText(&image, "\x89PNG\r\n\x1A\n");
  PutChunk(&image, "IEND", {});
  ExpectVerdict(image, ProbeVerdict::kNotAnImage, "no IHDR chunk");
}

TEST(ProbePngTest, MissingChunks) {
  Image image = PngHeader(5, 5);
  PutChunk(&image, "IEND", {});
  ExpectVerdict(image, ProbeVerdict::kTruncated, "no IDAT chunk");
  image = PngHeader(5, 5, 8, 3);
  PutChunk(&image, "IDAT", {1, 2, 3});
  ExpectVerdict(image, ProbeVerdict::kNotAnImage, "no PLTE chunk before IDAT");
  image = PngHeader(5, 5);
  PutChunk(&image, "IDAT", {1, 2, 3});
  ExpectVerdict(image, ProbeVerdict::kTruncated, "no IEND chunk");
  EXPECT_EQ(Probe(image).offset, image.size());
}

TEST(ProbePngTest, OneFrameIsNoAnimation) {
  for (const uint8_t frames : {1, 2}) {
    Image image = PngHeader(5, 5);
    PutChunk(&image, "acTL", {0, 0, 0, frames, 0, 0, 0, 0});
    PutChunk(&image, "IDAT", {1, 2, 3});
    PutChunk(&image, "IEND", {});
    ExpectOk(image);
    EXPECT_EQ(Probe(image).info.animated(), frames == 2);
  }
}

// ---- WebP

TEST(ProbeWebpTest, SizeOfRiffAgainstTheFile) {
  Image image = LoadTestImage("lossy.webp");
  Image larger = image;
  larger[4] += 2;
  EXPECT_EQ(Probe(larger).verdict, ProbeVerdict::kTruncated);
  Image tiny = image;
  Store(&tiny, 4, "\x0B\0\0\0"s);
  ExpectVerdict(tiny, ProbeVerdict::kNotAnImage, "RIFF size below one chunk");
  // The RIFF ends inside its only chunk.
  Image inside = image;
  inside[4] -= 10;
  EXPECT_EQ(Probe(inside).verdict, ProbeVerdict::kTruncated);
}

TEST(ProbeWebpTest, OddChunkWithAndWithoutPadByte) {
  Image vp8l;
  PutText(&vp8l, "\x2F\x04\xC0\x01\0\xAA\xBB"s);  // 5 x 8, no alpha
  for (const bool padded : {true, false}) {
    for (const bool more : {true, false}) {
      Image image;
      PutText(&image, "RIFF");
      PutLittle(&image, 4 + 8 + 7 + (padded || more) + (more ? 10 : 0), 4);
      PutText(&image, "WEBPVP8L\x07\0\0\0"s);
      Insert(&image, image.size(), vp8l);
      if (padded || more) image.push_back(0);
      if (more) PutText(&image, "XMP \x02\0\0\0ab"s);
      ExpectOk(image);
      EXPECT_EQ(Probe(image).info.width, 5u);
      EXPECT_EQ(Probe(image).info.height, 8u);
      EXPECT_FALSE(Probe(image).info.alpha());
    }
  }
}

TEST(ProbeWebpTest, BadFrameHeaders) {
  Image image = LoadTestImage("lossy.webp");
  ASSERT_EQ(Find(image, "VP8 "), 12u);
  Image inter = image;
  inter[20] |= 1;
  ExpectVerdict(inter, ProbeVerdict::kNotAnImage, "bad VP8 frame header");
  Image code = image;
  code[23] ^= 1;
  ExpectVerdict(code, ProbeVerdict::kNotAnImage, "bad VP8 frame header");
  Image partition = image;
  partition[22] = 0xFF;
  ExpectVerdict(partition, ProbeVerdict::kTruncated, "VP8 partition runs past its chunk");
  Image first = image;
  Store(&first, 12, "ICCP");
  ExpectVerdict(first, ProbeVerdict::kNotAnImage, "first chunk is not VP8, VP8L or VP8X");
}

TEST(ProbeWebpTest, CanvasAlone) {
  Image image;
  PutText(&image, "RIFF\x16\0\0\0WEBPVP8X\x0A\0\0\0\0\0\0\0\x04\0\0\x05\0\0"s);
  ExpectVerdict(image, ProbeVerdict::kTruncated, "no image data chunk");
  Store(&image, 24, "\xFF\xFF\xFF\xFF\xFF\xFF"s);
  EXPECT_EQ(Probe(image).verdict, ProbeVerdict::kPixelLimit);
}

// ---- GIF

// Screen 4 x 3 without colour table, then one 4 x 3 image; without trailer.
Image SmallGif() {
  Image image;
  PutText(&image, "GIF89a\x04\0\x03\0\0\0\0"s + ",\0\0\0\0\x04\0\x03\0\0"s + "\x02\x02\x44\x51\0"s);
  return image;
}

TEST(ProbeGifTest, TrailerIsNeeded) {
  Image image = SmallGif();
  ExpectVerdict(image, ProbeVerdict::kTruncated, "no trailer");
  image.push_back(0x99);
  ExpectVerdict(image, ProbeVerdict::kTruncated, "unknown block instead of the trailer");
  EXPECT_EQ(Probe(image).offset, image.size() - 1);
  image.back() = 0x3B;
  ExpectOk(image);
  Image none;
  PutText(&none, "GIF89a\x04\0\x03\0\0\0\0;"s);
  ExpectVerdict(none, ProbeVerdict::kTruncated, "no image before the trailer");
}

TEST(ProbeGifTest, StrayZerosCommentsAndTables) {
  Image image = SmallGif();
  PutText(&image, "\0\0!\xFE\x05hello\0!\xF9\x04\x01\0\0\0\0"s);
  PutText(&image, ",\0\0\0\0\x01\0\x01\0\x80"s + "abcdef"s + "\x02\x01\x44\0;"s);
  ExpectOk(image);
  EXPECT_TRUE(Probe(image).info.animated());
  EXPECT_TRUE(Probe(image).info.alpha());
  EXPECT_EQ(Probe(image).info.channels, 4);
}

TEST(ProbeGifTest, EmptyScreenTakesTheFirstImage) {
  Image image = SmallGif();
  image.push_back(0x3B);
  Store(&image, 6, "\0\0\0\0"s);
  for (const ProbeOptions& options : {ProbeOptions{}, kHeaderOnly}) {
    const ProbeResult result = Probe(image, options);
    EXPECT_EQ(result.verdict, ProbeVerdict::kOk);
    EXPECT_EQ(result.info.width, 4u);
    EXPECT_EQ(result.info.height, 3u);
  }
  Store(&image, 18, "\0\0"s);
  ExpectVerdict(image, ProbeVerdict::kNotAnImage, "image without pixels");
}

TEST(ProbeGifTest, FrameOverTheLimitOnASmallScreen) {
  Image image = SmallGif();
  Store(&image, 18, "\xFF\xFF\xFF\xFF"s);
  EXPECT_EQ(Probe(image).verdict, ProbeVerdict::kPixelLimit);
}

TEST(ProbeGifTest, ScreenOverTheLimitCutRightAfterItsSize) {
  Image image;
  PutText(&image, "GIF89a\xFE\xD8\xFF\x9D\xF7"s);
  EXPECT_EQ(Probe(image, {.allow_truncated = true}).verdict, ProbeVerdict::kPixelLimit);
  EXPECT_EQ(Probe(image, kHeaderOnly).verdict, ProbeVerdict::kPixelLimit);
}

// ---- BMP

TEST(ProbeBmpTest, HeadersThatNoDecoderTakes) {
  const Image image = LoadTestImage("rgb24.bmp");
  const auto with = [&](size_t at, std::string bytes) {
    Image changed = image;
    Store(&changed, at, bytes);
    return Probe(changed);
  };
  EXPECT_STREQ(with(18, "\0\0\0\0"s).detail, "no pixels");
  EXPECT_STREQ(with(18, "\xFF\xFF\xFF\xFF"s).detail, "no pixels");
  EXPECT_STREQ(with(22, "\0\0\0\0"s).detail, "no pixels");
  EXPECT_STREQ(with(26, "\x02"s).detail, "planes is not 1");
  EXPECT_STREQ(with(28, "\x05"s).detail, "bad bit count");
  EXPECT_STREQ(with(28, "\0"s).detail, "bad bit count");
  EXPECT_STREQ(with(30, "\x07"s).detail, "unknown compression");
  EXPECT_STREQ(with(30, "\x01"s).detail, "RLE8 with a bit count other than 8");
  EXPECT_EQ(with(30, "\x03"s).verdict, ProbeVerdict::kNotAnImage);
  EXPECT_EQ(with(22, "\0\0\0\x80"s).verdict, ProbeVerdict::kPixelLimit);
  EXPECT_EQ(with(10, "\xFF\xFF\xFF\xFF"s).verdict, ProbeVerdict::kTruncated);
  EXPECT_EQ(with(14, "\x29"s).verdict, ProbeVerdict::kNotAnImage);
}

TEST(ProbeBmpTest, RleWithoutItsEnd) {
  Image image = LoadTestImage("rle8-no-size.bmp");
  image[image.size() - 1] = 0;  // end of bitmap becomes end of line
  ExpectVerdict(image, ProbeVerdict::kTruncated, "no end of bitmap in the RLE data");
  EXPECT_EQ(Probe(image, kHeaderOnly).verdict, ProbeVerdict::kOk);
}

TEST(ProbeBmpTest, EmbeddedProfileIsInsideTheFile) {
  Image image = LoadTestImage("rgba-v5.bmp");
  Store(&image, 70, "DEBM");  // bV5CSType PROFILE_EMBEDDED, little-endian
  Image offset_and_size;
  PutLittle(&offset_and_size, image.size() - 14, 4);
  PutLittle(&offset_and_size, 50, 4);
  std::copy(offset_and_size.begin(), offset_and_size.end(), image.begin() + 14 + 112);
  ExpectVerdict(image, ProbeVerdict::kTruncated, "colour profile runs past the end");
  image.insert(image.end(), 50, 0);
  ExpectOk(image);
}

// ---- TIFF

void PutEntry(Image* image, uint16_t tag, uint16_t type, uint32_t count, uint32_t value) {
  PutLittle(image, tag, 2);
  PutLittle(image, type, 2);
  PutLittle(image, count, 4);
  PutLittle(image, value, 4);
}

// A directory of a gray 4 x 2 image whose only strip is the file's first 8 bytes.
void PutDirectory(Image* image, uint32_t next, uint32_t strip_offset = 0, uint32_t strip_size = 8,
                  uint32_t strips = 1) {
  PutLittle(image, 6, 2);
  PutEntry(image, 256, 3, 1, 4);
  PutEntry(image, 257, 3, 1, 2);
  PutEntry(image, 258, 3, 1, 8);
  PutEntry(image, 262, 3, 1, 1);
  PutEntry(image, 273, 4, strips, strip_offset);
  PutEntry(image, 279, 4, strips, strip_size);
  PutLittle(image, next, 4);
}

constexpr uint32_t kDirectorySize = 2 + 6 * 12 + 4;

Image TiffHeader() {
  Image image;
  PutText(&image, "II*\0\x08\0\0\0"s);
  return image;
}

TEST(ProbeTiffTest, LoopsEndTheChain) {
  Image self = TiffHeader();
  PutDirectory(&self, 8);
  ExpectOk(self);
  EXPECT_FALSE(Probe(self).info.animated());
  // Three pages; the third points back to the second.
  Image image = TiffHeader();
  PutDirectory(&image, 8 + kDirectorySize);
  PutDirectory(&image, 8 + 2 * kDirectorySize);
  PutDirectory(&image, 8 + kDirectorySize);
  ExpectOk(image);
  EXPECT_TRUE(Probe(image).info.animated());
}

TEST(ProbeTiffTest, EveryPageIsChecked) {
  for (const auto& [offset, size] : {std::pair<uint32_t, uint32_t>{0, 1000},
                                     {100000, 1},
                                     {0xFFFFFFFF, 0xFFFFFFFF},
                                     {8, 0xFFFFFFFF}}) {
    Image image = TiffHeader();
    PutDirectory(&image, 8 + kDirectorySize);
    PutDirectory(&image, 0, offset, size);
    ExpectVerdict(image, ProbeVerdict::kTruncated, "strip or tile runs past the end of the file");
    EXPECT_EQ(Probe(image, kHeaderOnly).verdict, ProbeVerdict::kOk);
  }
  Image image = TiffHeader();
  PutDirectory(&image, 5000);
  ExpectVerdict(image, ProbeVerdict::kTruncated, "directory runs past the end of the file");
}

TEST(ProbeTiffTest, EmptyStripsOfSparseFiles) {
  Image image = TiffHeader();
  PutDirectory(&image, 0, 0, 0);
  ExpectOk(image);
}

TEST(ProbeTiffTest, CountsThatOverflow) {
  Image image = TiffHeader();
  PutDirectory(&image, 0, 16, 16, 0xFFFFFFFF);
  ExpectVerdict(image, ProbeVerdict::kTruncated, "values of an entry run past the end of the file");
  Image many = TiffHeader();
  PutLittle(&many, 0xFFFF, 2);
  ExpectVerdict(many, ProbeVerdict::kTruncated, "directory runs past the end of the file");
}

// Thousands of directories that share one large table would cost the square of the file's size.
TEST(ProbeTiffTest, SharedTablesEndSoon) {
  Image image = TiffHeader();
  const uint32_t pages = 20000, strips = 100000;
  const uint32_t table = 8 + pages * kDirectorySize;
  for (uint32_t i = 0; i < pages; ++i) {
    PutDirectory(&image, i + 1 < pages ? 8 + (i + 1) * kDirectorySize : 0, table, table, strips);
  }
  image.resize(table + 4 * strips, 0);
  const testing::CpuBudget budget(2.0);
  ExpectVerdict(image, ProbeVerdict::kNotAnImage, "directories share their tables");
  EXPECT_LT(budget.used(), budget.seconds());
}

TEST(ProbeTiffTest, NoSizeAndNoData) {
  Image image = TiffHeader();
  PutLittle(&image, 1, 2);
  PutEntry(&image, 256, 3, 1, 4);
  PutLittle(&image, 0, 4);
  ExpectVerdict(image, ProbeVerdict::kNotAnImage, "no width or height");
  image = TiffHeader();
  PutLittle(&image, 2, 2);
  PutEntry(&image, 256, 4, 1, 0xFFFFFFFF);
  PutEntry(&image, 257, 4, 1, 0xFFFFFFFF);
  PutLittle(&image, 0, 4);
  EXPECT_EQ(Probe(image).verdict, ProbeVerdict::kPixelLimit);
  Store(&image, 18, "\x04\0\0\0"s);
  Store(&image, 30, "\x04\0\0\0"s);
  ExpectVerdict(image, ProbeVerdict::kTruncated, "no strips or tiles");
}

TEST(ProbeTiffTest, BigTiffOffsetSize) {
  Image image = LoadTestImage("big-ii.tif");
  image[4] = 4;
  ExpectVerdict(image, ProbeVerdict::kNotAnImage, "BigTIFF offsets are not 8 bytes");
}

}  // namespace
}  // namespace shardpack
