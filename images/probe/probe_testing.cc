#include "images/probe/probe_testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>

namespace shardpack {
namespace {

// CRC-32 of PNG (section 5.5, annex D), bit by bit, so that tests do not share the code under test.
uint32_t Crc32(const Image& bytes) {
  static const std::vector<uint32_t> table = [] {
    std::vector<uint32_t> made(256);
    for (uint32_t n = 0; n < 256; ++n) {
      made[n] = n;
      for (int k = 0; k < 8; ++k) made[n] = made[n] & 1 ? 0xEDB88320u ^ made[n] >> 1 : made[n] >> 1;
    }
    return made;
  }();
  uint32_t crc = ~0u;
  for (const uint8_t byte : bytes) crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8;
  return ~crc;
}

std::vector<std::string> Split(const std::string& line, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(line);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

ImageInfo ParseFacts(const std::vector<std::string>& row) {
  static const std::map<std::string, ImageFormat> formats = {
      {"jpeg", ImageFormat::kJpeg}, {"png", ImageFormat::kPng}, {"webp", ImageFormat::kWebp},
      {"gif", ImageFormat::kGif},   {"bmp", ImageFormat::kBmp}, {"tiff", ImageFormat::kTiff}};
  static const std::map<std::string, ColorSpace> colors = {
      {"gray", ColorSpace::kGray},      {"gray-alpha", ColorSpace::kGrayAlpha},
      {"rgb", ColorSpace::kRgb},        {"rgba", ColorSpace::kRgba},
      {"cmyk", ColorSpace::kCmyk},      {"ycck", ColorSpace::kYcck},
      {"palette", ColorSpace::kPalette}};
  static const std::map<std::string, uint8_t> flags = {{"-", 0},
                                                       {"progressive", ImageInfo::kProgressive},
                                                       {"animated", ImageInfo::kAnimated},
                                                       {"alpha", ImageInfo::kAlpha}};
  ImageInfo info;
  info.format = formats.at(row.at(1));
  info.width = std::stoul(row.at(2));
  info.height = std::stoul(row.at(3));
  info.color_space = colors.at(row.at(4));
  info.channels = static_cast<uint8_t>(std::stoi(row.at(5)));
  info.bits_per_channel = static_cast<uint8_t>(std::stoi(row.at(6)));
  info.orientation = static_cast<uint8_t>(std::stoi(row.at(7)));
  for (const std::string& flag : Split(row.at(8), ',')) info.flags |= flags.at(flag);
  return info;
}

}  // namespace

Image LoadTestImage(std::string_view name) {
  const std::string path = "testdata/images/" + std::string(name);
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + path);
  return Image(std::istreambuf_iterator<char>(file), {});
}

std::vector<TestImage> LoadTestImages() {
  std::ifstream table("testdata/images.tsv");
  if (!table) throw std::runtime_error("cannot open testdata/images.tsv");
  std::vector<TestImage> images;
  for (std::string line; std::getline(table, line);) {
    if (line.starts_with('#')) continue;
    const std::vector<std::string> row = Split(line, '\t');
    images.push_back({row.at(0), LoadTestImage(row.at(0)), ParseFacts(row)});
  }
  return images;
}

ProbeResult Probe(const Image& image, const ProbeOptions& options) {
  const std::unique_ptr<std::byte[]> copy(new std::byte[image.size()]);
  if (!image.empty()) std::memcpy(copy.get(), image.data(), image.size());
  return ProbeImage({copy.get(), image.size()}, options);
}

const char* ProbeVerdictName(ProbeVerdict verdict) {
  switch (verdict) {
    case ProbeVerdict::kOk:
      return "ok";
    case ProbeVerdict::kEmpty:
      return "empty";
    case ProbeVerdict::kNotAnImage:
      return "not-an-image";
    case ProbeVerdict::kTruncated:
      return "truncated";
    case ProbeVerdict::kBadCrc:
      return "bad-crc";
    case ProbeVerdict::kPixelLimit:
      return "pixel-limit";
  }
  return "unknown";
}

void ExpectVerdict(const Image& image, ProbeVerdict verdict, std::string_view detail) {
  const ProbeResult result = Probe(image);
  EXPECT_STREQ(ProbeVerdictName(result.verdict), ProbeVerdictName(verdict));
  EXPECT_EQ(result.detail, detail);
}

void ExpectOk(const Image& image) { ExpectVerdict(image, ProbeVerdict::kOk, ""); }

void Store(Image* image, size_t at, std::string_view bytes) {
  std::memcpy(image->data() + at, bytes.data(), bytes.size());
}

void Insert(Image* image, size_t at, const Image& bytes) {
  image->insert(image->begin() + static_cast<ptrdiff_t>(at), bytes.begin(), bytes.end());
}

size_t Find(const Image& image, std::string_view text, size_t from) {
  const auto at =
      std::search(image.begin() + static_cast<ptrdiff_t>(from), image.end(), text.begin(),
                  text.end(), [](uint8_t byte, char c) { return byte == static_cast<uint8_t>(c); });
  if (at == image.end()) throw std::runtime_error("not found: " + std::string(text));
  return static_cast<size_t>(at - image.begin());
}

void PutBig(Image* image, uint64_t value, int size) {
  for (int i = size - 1; i >= 0; --i) image->push_back(static_cast<uint8_t>(value >> (8 * i)));
}

void PutLittle(Image* image, uint64_t value, int size) {
  for (int i = 0; i < size; ++i) image->push_back(static_cast<uint8_t>(value >> (8 * i)));
}

void PutText(Image* image, std::string_view text) {
  image->insert(image->end(), text.begin(), text.end());
}

void PutSegment(Image* image, uint8_t code, const Image& body) {
  image->push_back(0xFF);
  image->push_back(code);
  PutBig(image, body.size() + 2, 2);
  image->insert(image->end(), body.begin(), body.end());
}

void PutChunk(Image* image, std::string_view type, const Image& data) {
  PutBig(image, data.size(), 4);
  Image checked(type.begin(), type.end());
  checked.insert(checked.end(), data.begin(), data.end());
  image->insert(image->end(), checked.begin(), checked.end());
  PutBig(image, Crc32(checked), 4);
}

}  // namespace shardpack
