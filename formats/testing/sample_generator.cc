#include "formats/testing/sample_generator.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace shardpack::testing {
namespace {

void AppendBig(std::string& out, uint64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
    out.push_back(static_cast<char>(value >> shift));
}

// CRC-32 as in PNG annex D.
uint32_t Crc32(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int i = 0; i < 8; ++i) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320u : 0);
  }
  return ~crc;
}

// As in RFC 1950.
uint32_t Adler32(std::string_view bytes) {
  uint32_t a = 1, b = 0;
  for (const char c : bytes) {
    a = (a + static_cast<unsigned char>(c)) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

void AppendPngChunk(std::string& png, std::string_view type, std::string_view data) {
  AppendBig(png, data.size(), 4);
  std::string body(type);
  body.append(data);
  png += body;
  AppendBig(png, Crc32(body), 4);
}

void AppendJpegSegment(std::string& jpeg, unsigned marker, std::string_view data) {
  AppendBig(jpeg, 0xFF00 | marker, 2);
  AppendBig(jpeg, data.size() + 2, 2);
  jpeg.append(data);
}

// Entropy-coded bits, with the stuffing that ITU T.81 F.1.2.3 requires.
class JpegBits {
 public:
  void Put(unsigned value, int bits) {
    for (int i = bits - 1; i >= 0; --i) {
      current_ = current_ << 1 | (value >> i & 1);
      if (++filled_ == 8) Flush();
    }
  }
  std::string Finish() {
    while (filled_ != 0) Put(1, 1);
    return out_;
  }

 private:
  void Flush() {
    out_.push_back(static_cast<char>(current_));
    if (current_ == 0xFF) out_.push_back('\0');
    current_ = 0;
    filled_ = 0;
  }
  std::string out_;
  unsigned current_ = 0;
  int filled_ = 0;
};

std::string ExtraField(std::string_view name, size_t sample, Random& random) {
  if (name == "json")
    return absl::StrCat("{\"sample\": ", sample, ", \"x\": ", random.Below(1000), "}");
  if (name == "cls") return absl::StrCat(random.Below(10));
  std::string text = absl::StrCat("sample ", sample, " of ", std::string(name));
  text.append(random.Below(700), 'a');
  return text;
}

}  // namespace

std::string Random::Bytes(size_t count) {
  std::string bytes;
  bytes.reserve(count + 8);
  while (bytes.size() < count) {
    const uint64_t word = Next();
    bytes.append(reinterpret_cast<const char*>(&word), sizeof(word));
  }
  bytes.resize(count);
  return bytes;
}

BorrowedSample OwnedSample::Borrow() const {
  BorrowedSample borrowed;
  for (const auto& [name, bytes] : fields) borrowed.fields.push_back({name, AsBytes(bytes)});
  borrowed.view = {.number = number,
                   .key = key,
                   .source_path = source_path,
                   .label = label,
                   .class_name = class_name,
                   .image = image,
                   .fields = borrowed.fields};
  return borrowed;
}

std::string MakeTinyJpeg(uint32_t width, uint32_t height, Random& random) {
  std::string jpeg("\xFF\xD8", 2);
  AppendJpegSegment(jpeg, 0xE0, std::string_view("JFIF\0\1\1\0\0\1\0\1\0\0", 14));
  AppendJpegSegment(jpeg, 0xDB, std::string(1, '\0') + std::string(64, '\x08'));
  std::string frame("\x08", 1);
  AppendBig(frame, height, 2);
  AppendBig(frame, width, 2);
  frame.append("\x01\x01\x11\x00", 4);
  AppendJpegSegment(jpeg, 0xC0, frame);
  // Two DC codes: 0 = no difference, 10 = a difference of four bits. One AC code: 0 = end of block.
  AppendJpegSegment(jpeg, 0xC4,
                    std::string_view("\x00\1\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x00\x04", 19));
  AppendJpegSegment(jpeg, 0xC4, std::string_view("\x10\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x00", 18));
  AppendJpegSegment(jpeg, 0xDA, std::string_view("\1\1\0\0\x3F\0", 6));
  JpegBits bits;
  const uint32_t blocks = (width + 7) / 8 * ((height + 7) / 8);
  for (uint32_t i = 0; i < blocks; ++i) {
    if (random.Below(2) == 0) {
      bits.Put(0, 1);
    } else {
      bits.Put(0b10, 2);
      bits.Put(static_cast<unsigned>(random.Below(16)), 4);
    }
    bits.Put(0, 1);
  }
  jpeg += bits.Finish();
  return jpeg.append("\xFF\xD9", 2);
}

std::string MakeTinyPng(uint32_t width, uint32_t height, Random& random) {
  std::string png("\x89PNG\r\n\x1A\n", 8);
  std::string header;
  AppendBig(header, width, 4);
  AppendBig(header, height, 4);
  header.append("\x08\0\0\0\0", 5);  // 8 bits, gray
  AppendPngChunk(png, "IHDR", header);
  std::string rows;
  for (uint32_t y = 0; y < height; ++y) rows += std::string(1, '\0') + random.Bytes(width);
  // One stored block (RFC 1951 3.2.4); 64 x 65 bytes fit it.
  const auto size = static_cast<unsigned>(rows.size());
  std::string zlib("\x78\x01\x01", 3);
  for (const unsigned word : {size, ~size}) {
    zlib.push_back(static_cast<char>(word));
    zlib.push_back(static_cast<char>(word >> 8));
  }
  zlib += rows;
  AppendBig(zlib, Adler32(rows), 4);
  AppendPngChunk(png, "IDAT", zlib);
  AppendPngChunk(png, "IEND", "");
  return png;
}

std::string MakeRandomPayload(uint64_t bytes, Random& random) {
  static constexpr std::string_view kStart("\xFF\xD8\xFF\xE0\0\x10JFIF\0", 11);
  std::string payload = random.Bytes(bytes);
  std::copy_n(kStart.begin(), std::min<size_t>(payload.size(), kStart.size()), payload.begin());
  return payload;
}

std::string MakeLongKey(size_t bytes, Random& random) {
  static constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+=@,-_";
  std::string key(bytes, 'k');
  for (size_t i = 0; i < bytes; ++i) {
    // A component must not be empty or begin with "__".
    const bool component_ends = i > 0 && i % 40 == 39 && i + 1 < bytes;
    const size_t letters = kAlphabet.size() - (i % 40 == 0 ? 1 : 0);
    key[i] = component_ends ? '/' : kAlphabet[random.Below(letters)];
  }
  return key;
}

std::vector<OwnedSample> GenerateSamples(const GeneratorOptions& options) {
  Random random(options.seed);
  std::vector<OwnedSample> samples(options.count);
  for (size_t i = 0; i < options.count; ++i) {
    OwnedSample& sample = samples[i];
    sample.number = i;
    if (options.classes > 0) {
      sample.label = static_cast<int64_t>(random.Below(static_cast<uint64_t>(options.classes)));
      sample.class_name = absl::StrCat("class_", sample.label);
    }
    char name[32];
    std::snprintf(name, sizeof(name), "%07zu", i);
    sample.key = absl::StrCat(name, "/", options.seed, "_", random.Below(100));
    const uint64_t kind = options.payloads == Payloads::kRandom   ? 2
                          : options.payloads == Payloads::kImages ? random.Below(2)
                                                                  : random.Below(3);
    const auto width = static_cast<uint32_t>(1 + random.Below(64));
    const auto height = static_cast<uint32_t>(1 + random.Below(64));
    sample.image = {.width = width,
                    .height = height,
                    .format = kind == 1 ? ImageFormat::kPng : ImageFormat::kJpeg,
                    .color_space = ColorSpace::kGray,
                    .channels = 1,
                    .bits_per_channel = 8};
    std::string payload =
        kind == 0   ? MakeTinyJpeg(width, height, random)
        : kind == 1 ? MakeTinyPng(width, height, random)
                    : MakeRandomPayload(options.min_bytes +
                                            random.Below(options.max_bytes - options.min_bytes + 1),
                                        random);
    sample.source_path = absl::StrCat(sample.class_name.empty() ? "none" : sample.class_name, "/",
                                      name, kind == 1 ? ".png" : ".JPEG");
    if (options.raw_image.format == ImageFormat::kRaw) {
      sample.image = options.raw_image;
      payload = random.Bytes(RawImageBytes(options.raw_image));
    }
    sample.fields.emplace_back(std::string(kImageField), std::move(payload));
    for (const std::string& field : options.extra_fields) {
      sample.fields.emplace_back(field, ExtraField(field, i, random));
    }
  }
  return samples;
}

}  // namespace shardpack::testing
