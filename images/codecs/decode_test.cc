// All formats: sizes, orientation, regions and gray; compared with Pillow; truncated and damaged
// files.
#include "images/codecs/decode.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "formats/testing/scratch_folder.h"
#include "images/codecs/decode_testing.h"
#include "images/codecs/encode.h"
#include "images/probe/probe_testing.h"

namespace shardpack {
namespace {

// Run-length compression is rejected by name.
bool IsRefused(const std::string& name) { return name.starts_with("rle8"); }

TEST(Decode, EveryTestImageHasItsSize) {
  for (const TestImage& image : LoadTestImages()) {
    const auto decoded = Decode(image.bytes);
    if (IsRefused(image.name)) {
      EXPECT_EQ(decoded.status().code(), absl::StatusCode::kUnimplemented) << image.name;
      EXPECT_NE(decoded.status().message().find("BMP: "), absl::string_view::npos);
      continue;
    }
    ASSERT_TRUE(decoded.ok()) << image.name << ": " << decoded.status();
    const bool turned = image.expected.orientation > 4;
    EXPECT_EQ(decoded->width, turned ? image.expected.height : image.expected.width) << image.name;
    EXPECT_EQ(decoded->height, turned ? image.expected.width : image.expected.height) << image.name;
    const auto stored = Decode(image.bytes, {.orient = false});
    ASSERT_TRUE(stored.ok());
    EXPECT_EQ(stored->width, image.expected.width);
  }
}

TEST(Decode, ChunksOfAnySizeThatArePassedOver) {
  const Image png = LoadTestImage("rgb.png");
  const auto plain = Decode(png);
  ASSERT_TRUE(plain.ok());
  for (const char* type : {"tEXt", "zTXt", "iTXt", "iCCP", "eXIf", "prVt"}) {
    Image chunk, large = png;
    PutChunk(&chunk, type, Image(9'000'000, 'a'));
    Insert(&large, 33, chunk);
    const auto decoded = Decode(large);
    ASSERT_TRUE(decoded.ok()) << type << ": " << decoded.status();
    EXPECT_EQ(LargestDifference(decoded->view(), plain->view()), 0);
  }
}

// The test images as decoded by Pillow, by name.
std::map<std::string, TestPixels> DecodeWithPillow(const std::vector<std::string>& names) {
  const testing::ScratchFolder scratch;
  const std::string result = scratch.File("result");
  const std::string command =
      absl::StrCat("/usr/bin/python3 -B images/codecs/decode_with_pillow.py testdata/images ",
                   result, " ", absl::StrJoin(names, " "));
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  std::ifstream in(result, std::ios::binary);
  std::map<std::string, TestPixels> images;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name;
    TestPixels pixels;
    words >> name >> pixels.width >> pixels.height;
    pixels.bytes.resize(size_t{pixels.width} * pixels.height * 3);
    in.read(reinterpret_cast<char*>(pixels.bytes.data()),
            static_cast<std::streamsize>(pixels.bytes.size()));
    images[name] = std::move(pixels);
  }
  return images;
}

TEST(Decode, AsPillow) {
  std::vector<std::string> names;
  const std::vector<TestImage> images = LoadTestImages();
  for (const TestImage& image : images) {
    // Pillow does not support big-endian BigTIFF.
    if (!IsRefused(image.name) && image.name != "big-mm.tif") names.push_back(image.name);
  }
  const auto expected = DecodeWithPillow(names);
  EXPECT_EQ(expected.size(), names.size());
  for (const TestImage& image : images) {
    if (!expected.contains(image.name)) continue;
    const auto ours = Decode(image.bytes);
    ASSERT_TRUE(ours.ok()) << image.name;
    EXPECT_LE(LargestDifference(ours->view(), expected.at(image.name).view()), 1) << image.name;
  }
}

// Gray is the luma of the colours, except for JPEG, where it is the stored Y.
TEST(Decode, RegionsAndGrayOfAllFormats) {
  std::mt19937 random(5);
  for (const TestImage& image : LoadTestImages()) {
    if (IsRefused(image.name)) continue;
    const auto whole = Decode(image.bytes);
    ASSERT_TRUE(whole.ok());
    const auto gray = Decode(image.bytes, {.channels = 1});
    ASSERT_TRUE(gray.ok()) << gray.status();
    for (uint32_t i = 0; i < whole->width * whole->height; ++i) {
      const uint8_t* rgb = whole->bytes.data() + 3 * i;
      const double luma = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
      ASSERT_NEAR(gray->bytes[i], luma, image.name.ends_with(".jpg") ? 60 : 0.51) << image.name;
    }
    for (int i = 0; i < 50; ++i) {
      DecodeOptions options{.channels = static_cast<uint8_t>(i % 2 == 0 ? 1 : 3)};
      PixelRegion& region = options.region;
      region.left = random() % whole->width;
      region.top = random() % whole->height;
      region.width = 1 + random() % (whole->width - region.left);
      region.height = 1 + random() % (whole->height - region.top);
      const auto part = Decode(image.bytes, options);
      ASSERT_TRUE(part.ok()) << image.name << ": " << part.status();
      const TestPixels expected = CropPixels((i % 2 == 0 ? gray : whole)->view(), region);
      ASSERT_EQ(LargestDifference(part->view(), expected.view()), 0) << image.name;
    }
  }
}

TEST(Decode, RegionsMustBeInside) {
  const Image file = LoadTestImage("rgb.png");  // 20 x 12
  EXPECT_TRUE(Decode(file, {.region = {19, 11, 1, 1}}).ok());
  for (const PixelRegion& region :
       {PixelRegion{20, 0, 1, 1}, PixelRegion{0, 12, 1, 1}, PixelRegion{0, 0, 21, 1},
        PixelRegion{1, 0, 20, 1}, PixelRegion{1, 1, ~0u, 1}, PixelRegion{0, 0, 5, 0},
        PixelRegion{3, 0, 0, 0}}) {
    EXPECT_EQ(Decode(file, {.region = region}).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(Decode, PixelsAreLimited) {
  for (const TestImage& image : LoadTestImages()) {
    const uint64_t pixels = uint64_t{image.expected.width} * image.expected.height;
    const auto more = Decode(image.bytes, {.max_pixels = pixels - 1});
    EXPECT_EQ(more.status().code(), absl::StatusCode::kResourceExhausted) << image.name;
    ImageDecoder decoder;
    const auto known = decoder.Decode(std::as_bytes(std::span(image.bytes)), image.expected,
                                      {.max_pixels = pixels - 1});
    EXPECT_EQ(known.status().code(), absl::StatusCode::kResourceExhausted) << image.name;
  }
}

// Of this many the bytes cannot be counted: 2^31 * 2^31 * 4 is 0.
TEST(Decode, NoLimitIsStillOne) {
  ImageDecoder decoder;
  const auto image = decoder.Decode({}, RawImageInfo(1u << 31, 1u << 31, 4),
                                    {.region = {1u << 30, 1u << 30, 1, 1}, .max_pixels = ~0ull});
  EXPECT_EQ(image.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(Decode, OtherSizeThanTheInfoIsDamage) {
  for (const TestImage& image : LoadTestImages()) {
    if (IsRefused(image.name)) continue;
    ImageInfo info = image.expected;
    ++info.height;
    ImageDecoder decoder;
    const auto decoded = decoder.Decode(std::as_bytes(std::span(image.bytes)), info, {});
    EXPECT_EQ(decoded.status().code(), absl::StatusCode::kDataLoss) << image.name;
  }
}

TEST(Decode, NoImageIsInvalid) {
  EXPECT_EQ(Decode({}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Decode({'h', 'e', 'l', 'l', 'o'}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Decode(LoadTestImage("rgb.png"), {.channels = 2}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// Four 4-bit pixels, and two colours.
TEST(Decode, ColorsThatAPaletteLacksAreBlack) {
  Image file;
  PutText(&file, "BM");
  for (const uint32_t field : {66u, 0u, 62u, 40u, 4u, 1u}) PutLittle(&file, field, 4);
  PutLittle(&file, 1, 2);
  PutLittle(&file, 4, 2);
  for (int i = 0; i < 6; ++i) PutLittle(&file, 0, 4);
  PutBig(&file, 0x01020300, 4);  // blue, green, red
  PutBig(&file, 0x04050600, 4);
  PutBig(&file, 0x012F0000, 4);
  const auto image = Decode(file);
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ(image->bytes, (Image{3, 2, 1, 6, 5, 4, 0, 0, 0, 0, 0, 0}));
  file.pop_back();
  EXPECT_EQ(Decode(file).status().code(), absl::StatusCode::kDataLoss);
}

// A screen of 4 x 2 and a frame of another size that has `rows` rows.
Image GifOfFrame(uint32_t width, uint32_t height, uint32_t rows) {
  Image file;
  PutText(&file, "GIF89a");
  for (const uint32_t size : {4u, 2u}) PutLittle(&file, size, 2);
  PutBig(&file, 0x800000, 3);  // two colours: black, white
  PutBig(&file, 0x000000, 3);
  PutBig(&file, 0xFFFFFF, 3);
  PutText(&file, ",");
  for (const uint32_t field : {0u, 0u, width, height}) PutLittle(&file, field, 2);
  PutLittle(&file, 0x0200, 2);  // not interlaced; codes of two bits and one more
  // White pixels of three bits each, with a clear code before every second one, so that codes never
  // widen.
  std::vector<uint32_t> codes;
  for (uint32_t i = 0; i < width * rows; ++i) {
    if (i % 2 == 0) codes.push_back(4);
    codes.push_back(1);
  }
  Image data((codes.size() * 3 + 7) / 8, 0);
  for (size_t bit = 0; bit < codes.size() * 3; ++bit) {
    if (codes[bit / 3] >> bit % 3 & 1) data[bit / 8] |= static_cast<uint8_t>(1 << bit % 8);
  }
  for (size_t at = 0; at < data.size(); at += 255) {
    const size_t size = std::min<size_t>(255, data.size() - at);
    file.push_back(static_cast<uint8_t>(size));
    file.insert(file.end(), data.begin() + at, data.begin() + at + size);
  }
  PutLittle(&file, 0x3B00, 2);
  return file;
}

// bfOffBits, which some writers leave at 0: the pixels follow the headers.
TEST(Decode, BmpThatDoesNotSayWhereItsPixelsBegin) {
  int compared = 0;
  for (const TestImage& image : LoadTestImages()) {
    if (!image.name.ends_with(".bmp") || IsRefused(image.name)) continue;
    Image silent = image.bytes;
    std::fill_n(silent.begin() + 10, 4, Image::value_type{});
    const auto expected = Decode(image.bytes), decoded = Decode(silent);
    ASSERT_TRUE(decoded.ok()) << image.name << ": " << decoded.status();
    EXPECT_EQ(LargestDifference(decoded->view(), expected->view()), 0) << image.name;
    ++compared;
  }
  EXPECT_GE(compared, 6);
}

TEST(Decode, PngOfMoreThanAMillionRows) {
  const TestPixels tall = MakePattern(1, 1'000'001, 1);
  ImageEncoder encoder;
  const auto png = encoder.Encode(tall.view(), {.format = ImageFormat::kPng});
  ASSERT_TRUE(png.ok()) << png.status();
  const auto* data = reinterpret_cast<const uint8_t*>(png->data());
  const auto decoded = Decode(Image(data, data + png->size()));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->height, 1'000'001u);
}

TEST(Decode, GifFramesAreLimitedAsTheScreen) {
  const Image file = GifOfFrame(30, 40, 40);
  ImageInfo info;
  info.format = ImageFormat::kGif;
  info.width = 4;
  info.height = 2;
  for (const uint64_t most : {1200u, 1199u}) {
    ImageDecoder decoder;
    const auto image = decoder.Decode(std::as_bytes(std::span(file)), info, {.max_pixels = most});
    EXPECT_EQ(image.status().code(),
              most == 1200 ? absl::StatusCode::kOk : absl::StatusCode::kResourceExhausted);
  }
}

TEST(Decode, GifRowsBelowTheRegionAreNotDecoded) {
  const Image white(4 * 2 * 3, 255);
  const auto screen = Decode(GifOfFrame(30, 40, 2));
  ASSERT_TRUE(screen.ok()) << screen.status();
  EXPECT_EQ(screen->bytes, white);
  EXPECT_EQ(Decode(GifOfFrame(30, 40, 1)).status().code(), absl::StatusCode::kDataLoss);
  const auto row = Decode(GifOfFrame(30, 40, 1), {.region = {0, 0, 4, 1}});
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_EQ(row->bytes, Image(4 * 3, 255));
}

// 100 rows of four gray pixels, each in its own strip; all strips are the same bytes of the file:
// PackBits for one row, followed by unneeded bytes.
Image TiffOfSharedStrips(uint32_t strip_bytes) {
  constexpr uint32_t kRows = 100, kEntries = 9;
  const uint32_t offsets_at = 8 + 2 + 12 * kEntries + 4, counts_at = offsets_at + 4 * kRows;
  const uint32_t data_at = counts_at + 4 * kRows;
  Image file;
  PutText(&file, "II");
  PutLittle(&file, 42, 2);
  PutLittle(&file, 8, 4);
  PutLittle(&file, kEntries, 2);
  const auto put_entry = [&](uint32_t tag, uint32_t type, uint32_t count, uint32_t value) {
    PutLittle(&file, tag, 2);
    PutLittle(&file, type, 2);
    PutLittle(&file, count, 4);
    PutLittle(&file, value, 4);
  };
  put_entry(256, 3, 1, 4);               // width
  put_entry(257, 3, 1, kRows);           // height
  put_entry(258, 3, 1, 8);               // bits
  put_entry(259, 3, 1, 32773);           // PackBits
  put_entry(262, 3, 1, 1);               // black is zero
  put_entry(273, 4, kRows, offsets_at);  // offsets of the strips
  put_entry(277, 3, 1, 1);               // samples
  put_entry(278, 3, 1, 1);               // rows per strip
  put_entry(279, 4, kRows, counts_at);   // sizes of the strips
  PutLittle(&file, 0, 4);
  for (uint32_t i = 0; i < kRows; ++i) PutLittle(&file, data_at, 4);
  for (uint32_t i = 0; i < kRows; ++i) PutLittle(&file, strip_bytes, 4);
  PutLittle(&file, 0x09FD, 2);               // four times 9
  file.resize(data_at + strip_bytes, 0x80);  // no operation
  return file;
}

TEST(Decode, TiffStripsAreNotMoreThanTheFile) {
  const auto few = Decode(TiffOfSharedStrips(2));
  ASSERT_TRUE(few.ok()) << few.status();
  EXPECT_EQ(few->bytes, Image(4 * 100 * 3, 9));
  const auto many = Decode(TiffOfSharedStrips(1000));
  EXPECT_EQ(many.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(many.status().message(), "TIFF: more bytes in strips than in the file");
}

// A truncated file yields the same pixels or an error, never other pixels.
TEST(Decode, CutFilesGiveNoOtherPixels) {
  for (const TestImage& image : LoadTestImages()) {
    if (IsRefused(image.name)) continue;
    const auto whole = Decode(image.bytes, {.orient = false});
    ASSERT_TRUE(whole.ok());
    size_t errors = 0;
    for (size_t size = 1; size < image.bytes.size(); ++size) {
      const Image cut(image.bytes.begin(), image.bytes.begin() + static_cast<ptrdiff_t>(size));
      ImageDecoder decoder;
      const auto decoded =
          decoder.Decode(std::as_bytes(std::span(cut)), image.expected, {.orient = false});
      if (!decoded.ok()) {
        ++errors;
        continue;
      }
      ASSERT_EQ(LargestDifference(decoded->view, whole->view()), 0)
          << image.name << " cut to " << size << " of " << image.bytes.size();
    }
    EXPECT_GT(errors, image.bytes.size() / 3) << image.name;
  }
}

// Sanitizers check this.
TEST(Decode, DamagedFilesBreakNothing) {
  std::mt19937 random(9);
  for (const TestImage& image : LoadTestImages()) {
    for (int i = 0; i < 300; ++i) {
      Image damaged = image.bytes;
      for (int k = 0; k <= i % 3; ++k) {
        damaged[random() % damaged.size()] = static_cast<uint8_t>(random());
      }
      const auto decoded = Decode(damaged, {.max_pixels = 1 << 20});
      EXPECT_EQ(decoded.ok(), decoded.status().message().empty());
    }
  }
}

}  // namespace
}  // namespace shardpack
