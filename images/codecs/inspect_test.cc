#include "images/codecs/inspect.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "formats/testing/cpu_budget.h"
#include "images/codecs/decode_testing.h"
#include "images/probe/probe_testing.h"

namespace shardpack {
namespace {

ImageReport Inspect(const Image& image, const ImageLimits& limits = {}) {
  const std::unique_ptr<std::byte[]> copy(new std::byte[image.size()]);
  if (!image.empty()) std::memcpy(copy.get(), image.data(), image.size());
  return ImageInspector().Inspect({copy.get(), image.size()}, limits);
}

// The only note in the report.
ImageNote Only(const ImageReport& report, ImageTrouble trouble) {
  EXPECT_EQ(report.notes.size(), 1u);
  if (report.notes.size() != 1) return {trouble};
  EXPECT_EQ(static_cast<int>(report.notes[0].trouble), static_cast<int>(trouble))
      << report.notes[0].detail;
  return report.notes[0];
}

Image Jpeg(uint32_t width = 60, uint32_t height = 40, bool progressive = false) {
  return EncodeJpeg(MakePattern(width, height, 3), {.progressive = progressive});
}

TEST(Inspect, SoundImagesHaveNoNotes) {
  for (const TestImage& image : LoadTestImages()) {
    const ImageReport report = Inspect(image.bytes);
    if (image.name.starts_with("rle8")) {
      Only(report, ImageTrouble::kUnsupported);
      continue;
    }
    EXPECT_TRUE(report.decoded) << image.name;
    EXPECT_EQ(report.info, image.expected) << image.name;
    for (const ImageNote& note : report.notes) {
      // The colours of a TIFF with associated alpha and the like: at most oddities.
      EXPECT_EQ(static_cast<int>(note.trouble), static_cast<int>(ImageTrouble::kWarning))
          << image.name << ": " << note.detail;
    }
  }
}

TEST(Inspect, NoImage) {
  EXPECT_EQ(Only(Inspect({}), ImageTrouble::kNotAnImage).detail, "no bytes");
  Only(Inspect({'<', 'h', 't', 'm', 'l', '>'}), ImageTrouble::kNotAnImage);
}

TEST(Inspect, EveryCutIsFound) {
  for (const char* name : {"baseline.jpg", "progressive.jpg", "rgb.png", "lossy.webp",
                           "lossless.webp", "static.gif", "rgb24.bmp", "ii.tif"}) {
    const Image image = LoadTestImage(name);
    for (size_t size = 0; size < image.size(); size += 1 + image.size() / 97) {
      const ImageReport report = Inspect(Image(image.begin(), image.begin() + long(size)));
      EXPECT_FALSE(report.decoded) << name << " cut to " << size;
      ASSERT_FALSE(report.notes.empty()) << name << " cut to " << size;
      EXPECT_LT(static_cast<int>(report.notes.back().trouble),
                static_cast<int>(ImageTrouble::kUnsupported));
    }
  }
}

TEST(Inspect, DamagedPixels) {
  // A marker in the middle of the scan: the structure is intact, the picture is not.
  Image jpeg = Jpeg();
  const size_t middle = jpeg.size() - 200;
  Store(&jpeg, middle, std::string("\xFF\xD7", 2));
  const ImageReport report = Inspect(jpeg);
  EXPECT_FALSE(report.decoded);
  EXPECT_NE(Only(report, ImageTrouble::kDamaged).detail.find("JPEG: "), std::string::npos);
  Image png = LoadTestImage("rgb.png");
  png[Find(png, "IDAT") + 20] ^= 1;
  EXPECT_TRUE(Only(Inspect(png), ImageTrouble::kDamaged).offset.has_value());
}

TEST(Inspect, WarningsOfTheCodecs) {
  // JFIF version 9 and extra bytes before the EOI: every decoder shows the picture.
  Image jpeg = Jpeg();
  const size_t jfif = Find(jpeg, "JFIF");
  jpeg[jfif + 5] = 9;
  ImageReport report = Inspect(jpeg);
  EXPECT_TRUE(report.decoded);
  EXPECT_NE(Only(report, ImageTrouble::kWarning).detail.find("JPEG: "), std::string::npos);
  Image padded = Jpeg();
  Insert(&padded, padded.size() - 2, Image(64, 0x55));
  report = Inspect(padded);
  EXPECT_TRUE(report.decoded);
  Only(report, ImageTrouble::kWarning);
  EXPECT_TRUE(Inspect(Jpeg()).notes.empty());
}

Image BombPng(uint32_t width, uint32_t height) {
  Image png = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'}, header;
  PutBig(&header, width, 4);
  PutBig(&header, height, 4);
  PutText(&header, std::string("\x08\x02\0\0\0", 5));
  PutChunk(&png, "IHDR", header);
  PutChunk(&png, "IDAT", Image(100, 0));
  PutChunk(&png, "IEND", {});
  return png;
}

TEST(Inspect, PixelLimit) {
  const ImageReport report = Inspect(BombPng(30000, 30000));
  EXPECT_FALSE(report.decoded);
  const ImageNote note = Only(report, ImageTrouble::kPixelLimit);
  EXPECT_EQ(note.actual, "30000 x 30000");
  EXPECT_EQ(note.expected, "at most 64000000 pixels");
  Only(Inspect(Jpeg(60, 40), {.max_pixels = 2399}), ImageTrouble::kPixelLimit);
  EXPECT_TRUE(Inspect(Jpeg(60, 40), {.max_pixels = 2400}).notes.empty());
}

TEST(Inspect, AncillaryLimit) {
  // A text chunk of 60 MB before the pixels: they are decoded anyway.
  Image png = LoadTestImage("rgb.png"), text;
  PutChunk(&text, "tEXt", Image(60'000'000, 'a'));
  const size_t header = 8 + 25;
  Insert(&png, header, text);
  const testing::CpuBudget budget(2.0);
  const ImageReport report = Inspect(png);
  EXPECT_LT(budget.used(), budget.seconds());
  EXPECT_TRUE(report.decoded);
  const ImageNote note = Only(report, ImageTrouble::kAncillaryLimit);
  EXPECT_EQ(note.offset, header);
  EXPECT_NE(note.detail.find("tEXt"), std::string::npos);
  EXPECT_EQ(note.expected, "at most 16777216 bytes");

  Image jpeg = Jpeg(), comments;
  for (int i = 0; i < 300; ++i) PutSegment(&comments, i % 2 == 0 ? 0xFE : 0xE2, Image(65000));
  Insert(&jpeg, 2, comments);
  EXPECT_TRUE(Inspect(jpeg).decoded);
  Only(Inspect(jpeg), ImageTrouble::kAncillaryLimit);
  EXPECT_TRUE(Inspect(jpeg, {.max_ancillary_bytes = 20 << 20}).notes.empty());
}

TEST(Inspect, ScanLimit) {
  const Image jpeg = Jpeg(300, 300, /*progressive=*/true);
  size_t last = 0;
  for (size_t at = 0; at + 1 < jpeg.size(); ++at) {
    if (jpeg[at] == 0xFF && jpeg[at + 1] == 0xDA) last = at;
  }
  const Image scan(jpeg.begin() + long(last), jpeg.end() - 2);
  Image many(jpeg.begin(), jpeg.end() - 2);
  for (int i = 0; i < 5000; ++i) Insert(&many, many.size(), scan);
  PutText(&many, "\xFF\xD9");
  const testing::CpuBudget budget(2.0);
  const ImageReport report = Inspect(many);
  EXPECT_LT(budget.used(), budget.seconds());
  EXPECT_FALSE(report.decoded);
  const ImageNote note = Only(report, ImageTrouble::kScanLimit);
  EXPECT_EQ(note.expected, "at most 100 scans");
  EXPECT_EQ(note.actual.substr(0, 2), "50");
  EXPECT_TRUE(Inspect(jpeg).notes.empty());
}

TEST(Inspect, ExifThatGoesInCircles) {
  // IFD 0 at offset 8 whose next IFD is itself, and one that claims 65535 entries.
  Image loop;
  PutText(&loop, std::string("Exif\0\0II*\0\x08\0\0\0", 14));
  PutLittle(&loop, 1, 2);
  PutText(&loop,
          std::string("\x69\x87\x04\0\x01\0\0\0\x08\0\0\0", 12));  // Exif IFD: the same IFD again
  PutLittle(&loop, 8, 4);
  Image huge;
  PutText(&huge, std::string("Exif\0\0MM\0*\0\0\0\x08\xFF\xFF", 16));
  for (const Image& exif : {loop, huge}) {
    Image jpeg = Jpeg(), segment;
    PutSegment(&segment, 0xE1, exif);
    Insert(&jpeg, 2, segment);
    const ImageReport report = Inspect(jpeg);
    EXPECT_TRUE(report.decoded);
    EXPECT_TRUE(report.notes.empty());
    EXPECT_EQ(report.info.orientation, 1);
  }
}

class CountingGate : public ImageInspector::Gate {
 public:
  void Enter(uint64_t bytes) override { entered.push_back(bytes); }
  void Leave(uint64_t bytes) override { left.push_back(bytes); }
  std::vector<uint64_t> entered, left;
};

TEST(Inspect, TheGateIsToldBeforePixelsAreMade) {
  CountingGate gate;
  ImageInspector inspector;
  const Image sound = Jpeg(), bomb = BombPng(30000, 30000), damaged = BombPng(100, 100);
  for (const Image* image : {&sound, &bomb, &damaged}) {
    inspector.Inspect(std::as_bytes(std::span(*image)), {}, &gate);
  }
  EXPECT_EQ(gate.entered, (std::vector<uint64_t>{60 * 40 * 3, 100 * 100 * 3}));
  EXPECT_EQ(gate.left, gate.entered);
}

TEST(Inspect, MemoryOfSeveralScansIsMore) {
  ImageInfo info{.width = 10, .height = 10, .format = ImageFormat::kJpeg, .channels = 3};
  EXPECT_EQ(DecodeMemoryBytes(info, 1), 300u);
  EXPECT_EQ(DecodeMemoryBytes(info, 3), 900u);
  info.flags = ImageInfo::kProgressive;
  EXPECT_EQ(DecodeMemoryBytes(info, 1), 900u);
}

}  // namespace
}  // namespace shardpack
