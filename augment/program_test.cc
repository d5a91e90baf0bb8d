#include "augment/program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "augment/pixel_operations.h"

namespace shardpack {
namespace {

struct TestImage {
  uint32_t width, height, channels;
  std::vector<uint8_t> bytes;

  TestImage(uint32_t w, uint32_t h, uint32_t n = 3)
      : width(w), height(h), channels(n), bytes(size_t{w} * h * n) {
    // As in operations_with_torchvision.py.
    for (uint32_t y = 0; y < h; ++y) {
      for (uint32_t x = 0; x < w; ++x) {
        for (uint32_t c = 0; c < n; ++c)
          At(x, y)[c] = static_cast<uint8_t>(x * 11 + y * 7 * (c + 1) +
                                             ((x * y * (c + 3)) ^ (x + y * 5)) % 61);
      }
    }
  }
  uint8_t* At(uint32_t x, uint32_t y) { return &bytes[(size_t{y} * width + x) * channels]; }
  EditablePixels edit() {
    return {bytes.data(), width, height, channels, size_t{width} * channels};
  }
};

std::vector<uint8_t> Applied(const std::string& text, TestImage image) {
  const auto program = SampleProgram::Parse(text);
  EXPECT_TRUE(program.ok()) << program.status();
  ProgramRunner runner;
  EXPECT_TRUE(runner.Apply(*program, image.edit()).ok());
  return image.bytes;
}

std::vector<uint8_t> FromHex(const std::string& hex) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

// What torchvision computes with fused multiplication may differ by one level here and there.
TEST(ProgramTest, MakesWhatTorchvisionMakes) {
  std::ifstream file("augment/testdata/operations_torchvision.txt");
  size_t lines = 0;
  for (std::string text, hex; std::getline(file, text, '\t') && std::getline(file, hex); ++lines) {
    const std::vector<uint8_t> wanted = FromHex(hex), made = Applied(text, TestImage(13, 11));
    ASSERT_EQ(made.size(), wanted.size()) << text;
    int worst = 0;
    size_t different = 0;
    for (size_t i = 0; i < made.size(); ++i) {
      const int off = std::abs(made[i] - wanted[i]);
      worst = std::max(worst, off);
      different += off != 0 ? 1 : 0;
    }
    // Bilinear weights have 8 bits here, and borders are blended once (augment/README.md).
    const bool bilinear = text.ends_with(", 1)");
    EXPECT_LE(worst, 1) << text;
    EXPECT_LE(different, bilinear ? made.size() / 10 : made.size() / 30) << text;
  }
  EXPECT_GE(lines, 60u);
}

TEST(ProgramTest, TextIsReadBack) {
  for (const char* text :
       {"", "identity", "rotate(-9) equalize", "gamma(0.8, 1.2)", "rotate(9, 1)", "rotate(9, 0, 7)",
        "erase(3, 2, 5, 4, 10, 20, 30)", "erase(0, 0, 1, 1, 0, 0, 0, 9007199254740991)",
        "affine(3, 1, 2, 1.5)", "hue(-0.1) posterize(3) translate_x(-12)"}) {
    const auto program = SampleProgram::Parse(text);
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_EQ(program->ToText(), text);
  }
  EXPECT_EQ(SampleProgram::Parse(" rotate( 9 ,0,0 )\tinvert() ")->ToText(), "rotate(9) invert");
}

TEST(ProgramTest, BadTextNamesColumnAndReason) {
  const std::pair<const char*, const char*> cases[] = {
      {"rotat(3)", "column 1: no operation is called rotat; the nearest is rotate"},
      {"invert rotate", "column 8: rotate needs degrees"},
      {"hue(0.7)", "column 1: hue: turn is 0.7; it is a number from -0.5 to 0.5"},
      {"posterize(2.5)", "column 1: posterize: bits is 2.5; it is a whole number from 0 to 8"},
      {"invert(1)", "column 1: invert has 0 parameters, not 1"},
      {"rotate(1", "column 9: the text ends where ',' or ')' is expected"},
      {"rotate(x)", "column 8: a program's parameters are plain numbers"},
      {"rotate(1..2)", "column 8: a program's parameters are plain numbers"},
      {"rotate(nan)", "column 8: a program's parameters are plain numbers"},
      {"3", "column 1: '3' stands where a name is expected"},
      {"rotate(1e999)", "column 8: '1' stands where a number is expected"},
  };
  for (const auto& [text, message] : cases)
    EXPECT_EQ(SampleProgram::Parse(text).status().message(), message) << text;
  std::string many;
  for (size_t i = 0; i <= SampleProgram::kMaxOperations; ++i) many += "invert ";
  EXPECT_EQ(SampleProgram::Parse(many).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(ProgramTest, IdentityParametersChangeNothing) {
  for (const uint32_t channels : {1u, 3u}) {
    const TestImage image(70, 33, channels);
    for (const char* text : {"identity",
                             "brightness(1)",
                             "contrast(1)",
                             "saturation(1)",
                             "sharpness(1)",
                             "posterize(8)",
                             "solarize(256)",
                             "rotate(0)",
                             "rotate(360)",
                             "rotate(0, 1)",
                             "shear_x(0)",
                             "shear_y(0, 1)",
                             "translate_x(0)",
                             "affine(0)",
                             "affine(0, 0, 0, 1, 0, 0, 1)",
                             "invert invert",
                             "flip_vertical flip_vertical",
                             "flip_horizontal flip_horizontal",
                             "rotate(180) rotate(180)",
                             "rotate(180) flip_vertical flip_horizontal",
                             "translate_x(0) invert identity invert"}) {
      EXPECT_EQ(Applied(text, image), image.bytes) << text << ", channels " << channels;
    }
  }
}

TEST(ProgramTest, JoinedTablesEqualSingleSteps) {
  const TestImage image(40, 30);
  const char* const steps[] = {"brightness(1.3)", "contrast(0.6)", "posterize(5)", "equalize",
                               "solarize(100)",   "autocontrast",  "gamma(1.4)",   "invert"};
  std::string all;
  TestImage one = image;
  for (const char* step : steps) {
    all += std::string(step) + " ";
    one.bytes = Applied(step, one);
  }
  EXPECT_EQ(Applied(all, image), one.bytes);
}

// A marked pixel ends where the inverse of SourceOf says.
TEST(ProgramTest, AMarkedPixelIsWhereTheWarpSays) {
  TestImage image(64, 48, 1);
  for (const char* text : {"rotate(23)", "shear_x(0.4)", "shear_y(-0.3)", "translate_x(-9)",
                           "translate_y(5)", "affine(12, 3, -4, 1.4, 8, -3)"}) {
    std::fill(image.bytes.begin(), image.bytes.end(), uint8_t{0});
    for (uint32_t y = 19; y < 22; ++y) std::fill_n(image.At(29, y), 3, uint8_t{255});
    const std::vector<uint8_t> made = Applied(text, image);
    const std::array<double, 6> m =
        SourceOf(SampleProgram::Parse(text)->operations[0], image.width, image.height);
    size_t marked = 0;
    for (uint32_t y = 0; y < image.height; ++y) {
      for (uint32_t x = 0; x < image.width; ++x) {
        const double sx = m[0] * (x + 0.5) + m[1] * (y + 0.5) + m[2];
        const double sy = m[3] * (x + 0.5) + m[4] * (y + 0.5) + m[5];
        const bool inside = sx >= 29 && sx < 32 && sy >= 19 && sy < 22;
        EXPECT_EQ(made[y * image.width + x] == 255, inside) << text << " at " << x << ", " << y;
        marked += inside ? 1 : 0;
      }
    }
    EXPECT_GE(marked, 4u) << text;
  }
}

TEST(ProgramTest, BilinearBlendsWithTheFillOutside) {
  TestImage image(8, 8, 1);
  std::fill(image.bytes.begin(), image.bytes.end(), uint8_t{200});
  const std::vector<uint8_t> made = Applied("translate_x(2.5, 1, 100)", image);
  const std::vector<uint8_t> row(made.begin(), made.begin() + 8);
  EXPECT_EQ(row, (std::vector<uint8_t>{100, 100, 150, 200, 200, 200, 200, 200}));
}

// A label map takes the pixels that its image takes.
TEST(ProgramTest, LabelsAreWarpedLikePixels) {
  const TestImage image(61, 47, 1);
  for (const char* text : {"rotate(-29.5", "shear_x(0.3", "shear_y(0.25", "translate_x(-9",
                           "affine(30, 3, -4, 1.25, 10, -5", "affine(0, 0, 0, 0.01, 80, 80"}) {
    const std::string nearest = std::string(text) + ", 0, 255)";
    const auto program = SampleProgram::Parse(nearest);
    ASSERT_TRUE(program.ok()) << program.status();
    const std::vector<uint8_t> wanted = Applied(nearest, image);
    std::vector<uint8_t> labels(wanted.size());
    WarpLabels<uint8_t>(program->operations[0], image.bytes.data(), 61, 47, 255, labels.data());
    EXPECT_EQ(labels, wanted) << text;
    const std::vector<uint16_t> wide(image.bytes.begin(), image.bytes.end());
    std::vector<uint16_t> warped(wide.size());
    WarpLabels<uint16_t>(program->operations[0], wide.data(), 61, 47, 255, warped.data());
    EXPECT_TRUE(std::equal(warped.begin(), warped.end(), wanted.begin())) << text;
  }
}

TEST(ProgramTest, GrayImagesKeepTheirColours) {
  const TestImage image(20, 20, 1);
  EXPECT_EQ(Applied("saturation(0.2) hue(0.3) grayscale", image), image.bytes);
}

TEST(ProgramTest, SmallImagesAreNotSharpened) {
  for (const auto& [w, h] : {std::pair(2u, 9u), std::pair(9u, 2u), std::pair(1u, 1u)}) {
    const TestImage image(w, h);
    EXPECT_EQ(Applied("sharpness(1.9)", image), image.bytes);
  }
}

TEST(ProgramTest, ErasesWithinTheImageAlone) {
  const TestImage image(10, 6);
  TestImage wanted = image;
  for (uint32_t y = 4; y < 6; ++y) std::fill_n(wanted.At(7, y), 9, uint8_t{5});
  EXPECT_EQ(Applied("erase(7, 4, 100, 100, 5, 5, 5)", image), wanted.bytes);
  EXPECT_EQ(Applied("erase(100, 100, 3, 3, 5, 5, 5)", image), image.bytes);
  const std::vector<uint8_t> noise = Applied("erase(0, 0, 10, 6, 0, 0, 0, 17)", image);
  EXPECT_EQ(noise, Applied("erase(0, 0, 10, 6, 0, 0, 0, 17)", TestImage(10, 6)));
  EXPECT_NE(noise, Applied("erase(0, 0, 10, 6, 0, 0, 0, 18)", image));
}

// Rows of a batch may have bytes between them that belong to others.
TEST(ProgramTest, BytesBetweenRowsStay) {
  constexpr uint32_t kWidth = 70, kHeight = 9;
  constexpr size_t kStride = kWidth * 3 + 5;
  std::vector<uint8_t> bytes(kStride * kHeight, 77);
  ProgramRunner runner;
  const auto program = SampleProgram::Parse(
      "saturation(1.5) hue(0.2) grayscale equalize sharpness(2) rotate(20) rotate(5, 1) "
      "flip_vertical flip_horizontal erase(1, 1, 99, 99)");
  ASSERT_TRUE(runner.Apply(*program, {bytes.data(), kWidth, kHeight, 3, kStride}).ok());
  for (uint32_t y = 0; y < kHeight; ++y) {
    for (size_t i = kWidth * 3; i < kStride; ++i) EXPECT_EQ(bytes[y * kStride + i], 77);
  }
}

}  // namespace
}  // namespace shardpack
