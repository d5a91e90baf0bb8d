// Synthetic JPEG files and EXIF blocks: unusual but complete ones, and damage of each kind.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "images/probe/probe.h"
#include "images/probe/probe_testing.h"

namespace shardpack {
namespace {

using namespace std::string_literals;

constexpr ProbeOptions kHeaderOnly{.level = ProbeLevel::kHeader};

Image FrameBody(uint16_t width, uint16_t height, uint8_t precision = 8, uint8_t components = 1) {
  Image body = {precision};
  PutBig(&body, height, 2);
  PutBig(&body, width, 2);
  body.push_back(components);
  for (uint8_t i = 0; i < components; ++i) PutBig(&body, (i + 1) << 16 | 0x1100, 3);
  return body;
}

const Image kScanBody = {1, 1, 0, 0, 63, 0};
const Image kScanData = {0x12, 0xFF, 0x00, 0xFF, 0xD0, 0x34, 0xFF, 0x00};

// SOI, SOF0 and one scan; without EOI.
Image SmallJpeg(uint16_t width, uint16_t height, uint8_t sof = 0xC0, uint8_t precision = 8) {
  Image image = {0xFF, 0xD8};
  PutSegment(&image, sof, FrameBody(width, height, precision));
  PutSegment(&image, 0xDA, kScanBody);
  Insert(&image, image.size(), kScanData);
  return image;
}

Image Ended(Image image) {
  PutText(&image, "\xFF\xD9");
  return image;
}

TEST(ProbeJpegTest, EveryKindOfFrame) {
  for (const int sof : {0xC0, 0xC1, 0xC2, 0xC3, 0xC9, 0xCA, 0xCB}) {
    const ProbeResult result = Probe(Ended(SmallJpeg(5, 6, static_cast<uint8_t>(sof), 12)));
    EXPECT_EQ(result.verdict, ProbeVerdict::kOk) << result.detail;
    EXPECT_EQ(result.info.progressive(), sof == 0xC2 || sof == 0xCA) << sof;
    EXPECT_EQ(result.info.bits_per_channel, 12);
    EXPECT_EQ(result.info.width, 5u);
    EXPECT_EQ(result.info.height, 6u);
  }
}

TEST(ProbeJpegTest, ThumbnailEndsNothing) {
  Image image = LoadTestImage("thumbnail.jpg");
  const size_t thumbnail = Find(image, "\xFF\xD8\xFF", 2);
  const size_t thumbnail_end = Find(image, "\xFF\xD9", thumbnail) + 2;
  ASSERT_LT(thumbnail_end + 300, image.size());
  image.resize(thumbnail_end + 200);
  const ProbeResult result = Probe(image);
  EXPECT_EQ(result.verdict, ProbeVerdict::kTruncated);
  image = LoadTestImage("thumbnail.jpg");
  image.resize(image.size() - 2);
  ExpectVerdict(image, ProbeVerdict::kTruncated, "no EOI marker");
  EXPECT_EQ(Probe(image).offset, image.size());
}

TEST(ProbeJpegTest, AnotherImageAfterTheEnd) {
  const Image one = LoadTestImage("baseline.jpg");
  Image two = one;
  Insert(&two, two.size(), LoadTestImage("cmyk.jpg"));
  ExpectOk(two);
  EXPECT_EQ(Probe(two).info, Probe(one).info);
}

TEST(ProbeJpegTest, CutImageWithAnotherBehindIt) {
  Image two = LoadTestImage("baseline.jpg");
  two.resize(two.size() - 40);
  Insert(&two, two.size(), LoadTestImage("baseline.jpg"));
  ExpectVerdict(two, ProbeVerdict::kTruncated, "second SOI before the EOI marker");
}

TEST(ProbeJpegTest, FillBytesAndTemAndJunkBetweenSegments) {
  Image image = {0xFF, 0xD8, 0xFF, 0xFF, 0xFF, 0x01, 0x00, 0x13, 0xFF, 0x00};
  PutText(&image, "\xFF\xFF");
  const Image rest = Ended(SmallJpeg(3, 4));
  image.insert(image.end(), rest.begin() + 2, rest.end());
  ExpectOk(image);
}

TEST(ProbeJpegTest, EverySegmentLengthIsChecked) {
  for (const int code : {0xC0, 0xC4, 0xDA, 0xDB, 0xDD, 0xE1, 0xFE}) {
    Image image = {0xFF, 0xD8, 0xFF, static_cast<uint8_t>(code), 0x00, 0x01, 0x00, 0x00};
    EXPECT_EQ(Probe(image).verdict, ProbeVerdict::kNotAnImage) << code;
    image[5] = 0x09;
    EXPECT_EQ(Probe(image).verdict, ProbeVerdict::kTruncated) << code;
  }
}

TEST(ProbeJpegTest, BadFrames) {
  for (const auto& [width, height, components, precision] :
       {std::array{0, 5, 1, 8}, std::array{5, 5, 0, 8}, std::array{5, 5, 1, 1},
        std::array{5, 5, 1, 17}}) {
    Image image = {0xFF, 0xD8};
    PutSegment(&image, 0xC0,
               FrameBody(static_cast<uint16_t>(width), static_cast<uint16_t>(height),
                         static_cast<uint8_t>(precision), static_cast<uint8_t>(components)));
    EXPECT_EQ(Probe(image).verdict, ProbeVerdict::kNotAnImage);
  }
  Image longer = {0xFF, 0xD8};
  Image body = FrameBody(5, 5);
  body.push_back(0);
  PutSegment(&longer, 0xC0, body);
  ExpectVerdict(longer, ProbeVerdict::kNotAnImage, "bad frame header length");
}

TEST(ProbeJpegTest, OrderOfMarkers) {
  ExpectVerdict({0xFF, 0xD8, 0xFF, 0xD9}, ProbeVerdict::kNotAnImage, "no frame header");
  Image no_scan = {0xFF, 0xD8};
  PutSegment(&no_scan, 0xC0, FrameBody(5, 5));
  ExpectVerdict(Ended(no_scan), ProbeVerdict::kTruncated, "no scan before the EOI marker");
  Image no_frame = {0xFF, 0xD8};
  PutSegment(&no_frame, 0xDA, kScanBody);
  ExpectVerdict(no_frame, ProbeVerdict::kNotAnImage, "scan before the frame header");
  Image empty_scan = no_scan;
  PutSegment(&empty_scan, 0xDA, kScanBody);
  ExpectVerdict(Ended(empty_scan), ProbeVerdict::kTruncated, "scan without data");
  Image reserved = SmallJpeg(5, 5);
  PutText(&reserved, "\xFF\x7F\x11\x22");
  ExpectVerdict(Ended(reserved), ProbeVerdict::kTruncated, "reserved marker");
}

TEST(ProbeJpegTest, LineCountAfterTheFirstScan) {
  Image image = SmallJpeg(7, 0);
  ExpectVerdict(Ended(image), ProbeVerdict::kNotAnImage, "height 0 and no DNL marker");
  ExpectVerdict(image, ProbeVerdict::kTruncated, "no EOI marker");
  PutSegment(&image, 0xDC, {0x01, 0x02});
  for (const ProbeOptions& options : {ProbeOptions{}, kHeaderOnly}) {
    const ProbeResult result = Probe(Ended(image), options);
    EXPECT_EQ(result.verdict, ProbeVerdict::kOk) << result.detail;
    EXPECT_EQ(result.info.height, 0x102u);
    EXPECT_EQ(Probe(Ended(image), {.level = options.level, .max_pixels = 7 * 0x102 - 1}).verdict,
              ProbeVerdict::kPixelLimit);
  }
}

TEST(ProbeJpegTest, FiveThousandScans) {
  Image image = SmallJpeg(5, 5, 0xC2);
  for (int i = 0; i < 5000; ++i) {
    PutSegment(&image, 0xDA, kScanBody);
    Insert(&image, image.size(), kScanData);
  }
  ExpectVerdict(image, ProbeVerdict::kTruncated, "no EOI marker");
  ExpectOk(Ended(image));
}

TEST(ProbeJpegTest, HugeHeaderIsOverTheLimitBeforeAnyScan) {
  Image image = {0xFF, 0xD8};
  PutSegment(&image, 0xC0, FrameBody(65500, 65500, 8, 3));
  ExpectVerdict(image, ProbeVerdict::kPixelLimit, "more pixels than the limit");
  EXPECT_EQ(Probe(image).offset, 2u);
  EXPECT_EQ(Probe(image).info.width, 65500u);
}

TEST(ProbeJpegTest, FourComponentsWithoutAdobeAreCmyk) {
  Image image = {0xFF, 0xD8};
  PutSegment(&image, 0xC0, FrameBody(5, 5, 8, 4));
  Image adobe = {'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0, 0, 2};
  Image ycck = image;
  PutSegment(&ycck, 0xEE, adobe);  // also allowed after the frame header
  for (Image* each : {&image, &ycck}) {
    PutSegment(each, 0xDA, {4, 1, 0, 2, 0, 3, 0, 4, 0, 0, 63, 0});
    Insert(each, each->size(), kScanData);
  }
  EXPECT_EQ(Probe(Ended(image)).info.color_space, ColorSpace::kCmyk);
  EXPECT_EQ(Probe(Ended(ycck)).info.color_space, ColorSpace::kYcck);
}

// A JPEG whose EXIF block is `tiff`.
uint8_t OrientationOf(const std::string& tiff) {
  Image image = {0xFF, 0xD8};
  Image body;
  PutText(&body, "Exif\0\0"s + tiff);
  PutSegment(&image, 0xE1, body);
  const Image rest = Ended(SmallJpeg(5, 5));
  image.insert(image.end(), rest.begin() + 2, rest.end());
  const ProbeResult result = Probe(image);
  EXPECT_EQ(result.verdict, ProbeVerdict::kOk) << result.detail;
  return result.info.orientation;
}

TEST(ProbeExifTest, OddBlocksAreIgnored) {
  const std::string tag = "\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"s;
  EXPECT_EQ(OrientationOf("II*\0\x08\0\0\0\x01\0"s + tag + "\0\0\0\0"s), 6);
  // The next directory is this one, or is far outside.
  EXPECT_EQ(OrientationOf("II*\0\x08\0\0\0\x01\0"s + tag + "\x08\0\0\0"s), 6);
  EXPECT_EQ(OrientationOf("II*\0\x08\0\0\0\x01\0"s + tag + "\xFF\xFF\xFF\xFF"s), 6);
  // 65535 entries announced, one present.
  EXPECT_EQ(OrientationOf("II*\0\x08\0\0\0\xFF\xFF"s + tag), 6);
  EXPECT_EQ(OrientationOf("II*\0\x08\0\0\0\xFF\xFF"s), 1);
  // Directory inside its own header, past the end, at 2^32 - 1.
  EXPECT_EQ(OrientationOf("II*\0\0\0\0\0\x01\0"s + tag), 1);
  EXPECT_EQ(OrientationOf("II*\0\x80\0\0\0\x01\0"s + tag), 1);
  EXPECT_EQ(OrientationOf("II*\0\xFF\xFF\xFF\xFF\x01\0"s + tag), 1);
  // Values 0 and 9, count 2, type LONG, wrong byte order mark, nothing at all.
  EXPECT_EQ(OrientationOf("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\0\0\0\0"s), 1);
  EXPECT_EQ(OrientationOf("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x09\0\0\0"s), 1);
  EXPECT_EQ(OrientationOf("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x02\0\0\0\x06\0\0\0"s), 1);
  EXPECT_EQ(OrientationOf("II*\0\x08\0\0\0\x01\0\x12\x01\x04\0\x01\0\0\0\x06\0\0\0"s), 1);
  EXPECT_EQ(OrientationOf("IM*\0\x08\0\0\0\x01\0"s + tag), 1);
  EXPECT_EQ(OrientationOf(""), 1);
}

}  // namespace
}  // namespace shardpack
