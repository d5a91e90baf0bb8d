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

std::string ParseError(const std::string& text) {
  return std::string(SampleProgram::Parse(text).status().message());
}

// Each chain begins with the image as it was; the sum is rounded down.
TEST(ProgramTest, ChainsAreBlended) {
  const TestImage image(13, 11);
  const auto before = Applied("gamma(1.5)", image);
  const auto first = Applied("gamma(1.5) rotate(20, 1) equalize", image);
  const auto second = Applied("gamma(1.5) flip_vertical sharpness(3)", image);
  auto expected = before;
  for (size_t i = 0; i < before.size(); ++i)
    expected[i] = static_cast<uint8_t>(before[i] * 0.25 + first[i] * 0.5 + second[i] * 0.25);
  EXPECT_EQ(Applied("gamma(1.5) chain(0.5) rotate(20, 1) equalize chain(0.25) flip_vertical "
                    "sharpness(3) blend(0.25)",
                    image),
            expected);
  EXPECT_EQ(Applied("chain(1) invert blend(0) invert", image), image.bytes);
  EXPECT_EQ(Applied("chain(0) invert blend(1)", image), image.bytes);
  EXPECT_EQ(Applied("chain(0.25) chain(0.125) blend(0.625)", image), image.bytes);
  // Rows with gaps between them.
  TestImage wide(13, 11);
  EditablePixels part = wide.edit();
  part.width = 5;
  TestImage narrow(5, 11);
  ProgramRunner runner;
  const auto program = SampleProgram::Parse("chain(0.5) rotate(45) blend(0.5)");
  ASSERT_TRUE(runner.Apply(*program, part).ok());
  ASSERT_TRUE(runner.Apply(*program, narrow.edit()).ok());
  for (uint32_t y = 0; y < 11; ++y) {
    EXPECT_TRUE(std::equal(narrow.At(0, y), narrow.At(0, y) + 15, wide.At(0, y)));
    EXPECT_EQ(*wide.At(5, y), *TestImage(13, 11).At(5, y));
  }
}

TEST(ProgramTest, ChainsThatCannotBeBlended) {
  EXPECT_EQ(ParseError("invert chain(0.5) invert"), "a chain without a blend after it");
  EXPECT_EQ(ParseError("blend(0.5)"), "a blend without a chain before it");
  EXPECT_EQ(ParseError("chain(0.5) blend(0.5) blend(0)"), "a blend without a chain before it");
  EXPECT_EQ(ParseError("chain(0.5) chain(0.4) blend(0.2)"),
            "the weights of chains and their blend are 1.1 together; they are at most 1");
  EXPECT_TRUE(SampleProgram::Parse("chain(1) blend(0) chain(1) blend(0)").ok());
  SampleProgram alone;  // not of text
  alone.operations.push_back({OperationKind::kChain, {0.5}});
  TestImage image(4, 4);
  EXPECT_FALSE(ProgramRunner().Apply(alone, image.edit()).ok());
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
        "affine(3, 1, 2, 1.5)", "hue(-0.1) posterize(3) translate_x(-12)",
        "perspective(0, 0, 9, 1, 9, 9, 0, 8)", "perspective(0, 0, 9, 1, 9, 9, 0, 8, 0, 7)",
        "elastic(50, 5, 77)", "gaussian_blur(23, 1.25) median(5) clahe(4) clahe(2, 4)"}) {
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
      {"gaussian_blur(4, 1)",
       "column 1: gaussian_blur: kernel is 4; it is an odd number from 1 to 255"},
      {"gaussian_blur(3, 0)",
       "column 1: gaussian_blur: sigma is 0; it is a number from 0.01 to 100"},
      {"median(2)", "column 1: median: kernel is 2; it is an odd number from 1 to 255"},
      {"invert(1)", "column 1: invert has 0 parameters, not 1"},
      {"rotate(1", "column 9: the text ends where ',' or ')' is expected"},
      {"rotate(x)", "column 8: a program's parameters are plain numbers, as in rotate(-9, 1)"},
      {"rotate(1..2)", "column 8: a program's parameters are plain numbers, as in rotate(-9, 1)"},
      {"rotate(nan)", "column 8: a program's parameters are plain numbers, as in rotate(-9, 1)"},
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
                             "perspective(0, 0, 69, 0, 69, 32, 0, 32)",
                             "perspective(0, 0, 69, 0, 69, 32, 0, 32, 0)",
                             "elastic(0, 5, 7)",
                             "elastic(0, 0, 7, 0)",
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
  for (const char* text :
       {"rotate(23)", "shear_x(0.4)", "shear_y(-0.3)", "translate_x(-9)", "translate_y(5)",
        "affine(12, 3, -4, 1.4, 8, -3)", "perspective(5, 3, 60, 9, 50, 40, 9, 47, 0)"}) {
    std::fill(image.bytes.begin(), image.bytes.end(), uint8_t{0});
    for (uint32_t y = 19; y < 22; ++y) std::fill_n(image.At(29, y), 3, uint8_t{255});
    const std::vector<uint8_t> made = Applied(text, image);
    const auto source =
        SourceOf(SampleProgram::Parse(text)->operations[0], image.width, image.height);
    ASSERT_TRUE(source.has_value()) << text;
    const WarpMatrix& m = *source;
    size_t marked = 0;
    for (uint32_t y = 0; y < image.height; ++y) {
      for (uint32_t x = 0; x < image.width; ++x) {
        const double scale = m[6] * (x + 0.5) + m[7] * (y + 0.5) + m[8];
        const double sx = (m[0] * (x + 0.5) + m[1] * (y + 0.5) + m[2]) / scale;
        const double sy = (m[3] * (x + 0.5) + m[4] * (y + 0.5) + m[5]) / scale;
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
                           "affine(30, 3, -4, 1.25, 10, -5", "affine(0, 0, 0, 0.01, 80, 80",
                           "perspective(5, 3, 60, 9, 50, 40, 9, 46", "elastic(60, 3, 9"}) {
    const std::string nearest = std::string(text) + ", 0, 255)";
    const auto program = SampleProgram::Parse(nearest);
    ASSERT_TRUE(program.ok()) << program.status();
    const std::vector<uint8_t> wanted = Applied(nearest, image);
    std::vector<uint8_t> labels(wanted.size());
    ElasticField field;
    ASSERT_TRUE(WarpLabels<uint8_t>(program->operations[0], image.bytes.data(), 61, 47, 255, field,
                                    labels.data())
                    .ok());
    EXPECT_EQ(labels, wanted) << text;
    const std::vector<uint16_t> wide(image.bytes.begin(), image.bytes.end());
    std::vector<uint16_t> warped(wide.size());
    ASSERT_TRUE(
        WarpLabels<uint16_t>(program->operations[0], wide.data(), 61, 47, 255, field, warped.data())
            .ok());
    EXPECT_TRUE(std::equal(warped.begin(), warped.end(), wanted.begin())) << text;
  }
}

// Every colour of which each channel is one of 52 levels; with rows that fill no block.
TEST(ProgramTest, EveryProcessorMakesTheSameColours) {
  constexpr uint32_t kLevels = 52;
  TestImage colors(kLevels * kLevels + 13, kLevels);
  for (uint32_t y = 0; y < kLevels; ++y) {
    for (uint32_t x = 0; x < kLevels * kLevels; ++x) {
      const uint32_t levels[] = {5 * y, 5 * (x / kLevels), 5 * (x % kLevels)};
      std::copy(levels, levels + 3, colors.At(x, y));
    }
  }
  const auto compare = [&](auto change) {
    TestImage best = colors, portable = colors;
    change(best.edit(), Instructions::kBest);
    change(portable.edit(), Instructions::kPortable);
    EXPECT_TRUE(best.bytes == portable.bytes);
    EXPECT_TRUE(best.bytes != colors.bytes);
  };
  for (const double factor : {0.0, 0.3, 0.97, 1.31, 1.9, 50.0})
    compare([&](const EditablePixels& image, Instructions with) { Saturate(factor, image, with); });
  for (const double turn : {-0.5, -0.27, -0.01, 0.08, 0.4999})
    compare([&](const EditablePixels& image, Instructions with) { TurnHue(turn, image, with); });
  compare([](const EditablePixels& image, Instructions with) { MakeGray(image, with); });
}

TEST(ProgramTest, GrayImagesKeepTheirColours) {
  const TestImage image(20, 20, 1);
  EXPECT_EQ(Applied("saturation(0.2) hue(0.3) grayscale", image), image.bytes);
}

// torchvision's _get_perspective_coeffs of these corners for 64 x 48, divided by the last number.
TEST(ProgramTest, ThePerspectiveIsThatOfTorchvision) {
  const auto program = SampleProgram::Parse("perspective(5, 3, 60, 9, 50, 40, 9, 47)");
  const auto made = SourceOf(program->operations[0], 64, 48);
  ASSERT_TRUE(made.has_value());
  const double corners[4][4] = {{5, 3, 0, 0}, {60, 9, 63, 0}, {50, 40, 63, 47}, {9, 47, 0, 47}};
  for (const auto& [x, y, wanted_x, wanted_y] : corners) {
    const WarpMatrix& m = *made;
    const double scale = m[6] * x + m[7] * y + m[8];
    EXPECT_GT(scale, 0);
    EXPECT_NEAR((m[0] * x + m[1] * y + m[2]) / scale, wanted_x, 1e-9);
    EXPECT_NEAR((m[3] * x + m[4] * y + m[5]) / scale, wanted_y, 1e-9);
  }
}

// Crossed, mirrored, in one line, with a horizon in the image.
TEST(ProgramTest, CornersThatAreNoQuadrilateralAreRefused) {
  TestImage image(64, 48);
  const TestImage before = image;
  ElasticField field;
  std::vector<uint8_t> labels(64 * 48);
  for (const char* text :
       {"perspective(63, 0, 0, 0, 63, 47, 0, 47)", "perspective(63, 0, 0, 0, 0, 47, 63, 47)",
        "perspective(0, 0, 10, 10, 20, 20, 0, 47)", "perspective(0, 0, 0, 0, 63, 47, 0, 47)",
        "perspective(31, 23, 32, 23, 70000, 47, -70000, 47)"}) {
    const auto program = SampleProgram::Parse(text);
    ASSERT_TRUE(program.ok()) << program.status();
    const absl::Status done = ProgramRunner().Apply(*program, image.edit());
    EXPECT_EQ(done.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(done.message(),
              std::string(text) + ": no image of 64 x 48 has these corners, clockwise");
    EXPECT_EQ(image.bytes, before.bytes) << text;
    EXPECT_FALSE(WarpLabels<uint8_t>(program->operations[0], image.bytes.data(), 64, 48, 255, field,
                                     labels.data())
                     .ok())
        << text;
  }
}

TEST(ProgramTest, AnElasticWarpDependsOnItsSeedAlone) {
  const TestImage image(40, 31);
  EXPECT_EQ(Applied("elastic(50, 5, 1)", image), Applied("elastic(50, 5, 1)", image));
  EXPECT_NE(Applied("elastic(50, 5, 1)", image), Applied("elastic(50, 5, 2)", image));
  // A field of one sigma after another of another size.
  ElasticField field, fresh;
  ASSERT_TRUE(field.Make(50, 9, 1, 64, 64) && field.Make(30, 4, 2, 20, 10));
  ASSERT_TRUE(fresh.Make(30, 4, 2, 20, 10));
  EXPECT_TRUE(std::equal(field.Dx(0), field.Dx(0) + 200, fresh.Dx(0)));
  EXPECT_TRUE(std::equal(field.Dy(0), field.Dy(0) + 200, fresh.Dy(0)));
}

// Saved runs depend on it, on every processor.
TEST(ProgramTest, TheElasticFieldIsThatOfTheVersion) {
  ElasticField field;
  ASSERT_TRUE(field.Make(50, 2, 7, 24, 16));
  EXPECT_EQ(field.Dx(3)[5], -0x1.e4aadap-4f);
  EXPECT_EQ(field.Dy(15)[23], 0x1.57003cp-2f);
}

TEST(ProgramTest, SmallImagesAreNotWarped) {
  for (const auto& [w, h] : {std::pair(2u, 9u), std::pair(9u, 2u), std::pair(1u, 1u)}) {
    const TestImage image(w, h);
    for (const char* text : {"perspective(1, 1, 2, 0, 2, 2, 0, 2)", "elastic(50, 1, 3)"})
      EXPECT_EQ(Applied(text, image), image.bytes) << text;
  }
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
      "perspective(5, 1, 60, 0, 69, 8, 2, 7) elastic(20, 1, 4) elastic(20, 1, 4, 0) "
      "flip_vertical flip_horizontal erase(1, 1, 99, 99)");
  ASSERT_TRUE(runner.Apply(*program, {bytes.data(), kWidth, kHeight, 3, kStride}).ok());
  for (uint32_t y = 0; y < kHeight; ++y) {
    for (size_t i = kWidth * 3; i < kStride; ++i) EXPECT_EQ(bytes[y * kStride + i], 77);
  }
}

}  // namespace
}  // namespace shardpack
