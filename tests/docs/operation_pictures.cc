// Makes docs/operations.md and its pictures: what every operation of the table, and every step that
// draws operations, makes of the scene of docs/pixels.md.
//
//   operation_pictures SCENE.png FOLDER      // writes FOLDER/operations.md, FOLDER/NAME.png
//
// A test makes them again and compares the bytes; docs/update_operation_pictures.sh replaces them.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "augment/mix.h"
#include "augment/operation.h"
#include "augment/plan.h"
#include "augment/program.h"
#include "formats/core/image_info.h"
#include "formats/io/bytes.h"
#include "formats/io/file.h"
#include "images/codecs/decode.h"
#include "images/codecs/encode.h"

namespace shardpack {
namespace {

using absl::StrCat;

// The parameters of an operation that needs some; of another one, where its defaults show nothing.
const std::map<std::string_view, std::string_view> kExamples = {
    {"brightness", "brightness(1.4)"},
    {"posterize", "posterize(2)"},
    {"solarize", "solarize(160)"},
    {"gamma", "gamma(2)"},
    {"contrast", "contrast(0.4)"},
    {"saturation", "saturation(0.3)"},
    {"hue", "hue(0.3)"},
    {"sharpness", "sharpness(8)"},
    {"gaussian_blur", "gaussian_blur(11, 3)"},
    {"median", "median(9)"},
    {"clahe", "clahe(4)"},
    {"shear_x", "shear_x(0.3)"},
    {"shear_y", "shear_y(0.3)"},
    {"translate_x", "translate_x(30)"},
    {"translate_y", "translate_y(30)"},
    {"rotate", "rotate(20)"},
    {"affine", "affine(10, 8, 0, 0.7, 15)"},
    {"perspective", "perspective(20, 10, 140, 0, 120, 90, 0, 99)"},
    {"elastic", "elastic(150, 6, 1)"},
    {"erase", "erase(90, 30, 40, 40, 128, 128, 128)"},
};
// Each for the first samples of a seed.
// Their names and texts.
constexpr std::pair<std::string_view, std::string_view> kSteps[] = {
    {"rotate", "rotate(-20..20)"},
    {"color-jitter", "color_jitter(0.4, 0.4, 0.4, 0.1)"},
    {"rand-augment", "rand_augment(2, 9)"},
    {"trivial-augment-wide", "trivial_augment_wide"},
    {"auto-augment-imagenet", "auto_augment(imagenet)"},
    {"auto-augment-cifar10", "auto_augment(cifar10)"},
    {"auto-augment-svhn", "auto_augment(svhn)"},
    {"aug-mix", "aug_mix(severity=10)"},
    {"perspective", "perspective(p=1)"},
    {"elastic", "elastic(alpha=100..200)"},
    {"erase", "erase(p=1, value=random)"},
};
constexpr uint64_t kSeed = 1, kShownSamples = 4;
constexpr char kIntroduction[] =
    "# Operations in pictures\n\n"
    "Every operation and every step of [augmentation](augment.md), on the scene of "
    "[the page on pixels](pixels.md). `tests/docs/operation_pictures.cc` makes this page\n"
    "and its pictures from the table of operations; a test makes them again and compares the "
    "bytes.\n\n![scene](pictures/scene.png)\n\n"
    "## Operations\n\n"
    "Parameters with `=` may be left out.\n\n"
    "| operation | example | |\n|---|---|---|\n";

template <typename Value>
Value OrDie(absl::StatusOr<Value> value, std::string_view what) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "%s\n", StrCat(std::string(what), ": ", value.status().ToString()).c_str());
  std::exit(1);
}

struct Picture {
  uint32_t width = 0, height = 0;
  std::vector<uint8_t> pixels;  // RGB

  EditablePixels edit() { return {pixels.data(), width, height, 3, width * size_t{3}}; }
};

Picture ReadScene(const std::string& path) {
  const std::string file = OrDie(ReadWholeFile(path, 1 << 20), path);
  ImageDecoder decoder;
  const PixelView view = OrDie(decoder.Decode(AsBytes(file), {}, {}), path).view;
  Picture picture{view.width, view.height, {}};
  for (uint32_t y = 0; y < view.height; ++y)
    picture.pixels.insert(picture.pixels.end(), view.Row(y), view.Row(y) + view.width * size_t{3});
  return picture;
}

void WriteFile(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  if (!file.flush()) std::exit((std::perror(path.c_str()), 1));
}

void WritePng(const std::string& path, Picture picture) {
  ImageEncoder encoder;
  const auto file =
      OrDie(encoder.Encode(picture.edit().view(), {.format = ImageFormat::kPng}), path);
  WriteFile(path, {reinterpret_cast<const char*>(file.data()), file.size()});
}

Picture Changed(const Picture& scene, const SampleProgram& program) {
  Picture changed = scene;
  ProgramRunner runner;
  const absl::Status done = runner.Apply(program, changed.edit());
  if (!done.ok()) OrDie(absl::StatusOr<int>(done), program.ToText());
  return changed;
}

// Side by side, with a white gap.
Picture Joined(const std::vector<Picture>& parts) {
  constexpr uint32_t kGap = 4;
  Picture joined{0, parts[0].height, {}};
  joined.width = static_cast<uint32_t>(parts.size()) * (parts[0].width + kGap) - kGap;
  joined.pixels.assign(size_t{3} * joined.width * joined.height, 255);
  for (size_t i = 0; i < parts.size(); ++i) {
    const size_t row = size_t{3} * parts[i].width, left = i * (row + 3 * kGap);
    for (uint32_t y = 0; y < joined.height; ++y) {
      std::copy_n(
          parts[i].pixels.begin() + static_cast<ptrdiff_t>(y * row), row,
          joined.pixels.begin() + static_cast<ptrdiff_t>(y * size_t{3} * joined.width + left));
    }
  }
  return joined;
}

// "rotate(degrees, bilinear=0, fill=0)"
std::string Signature(const OperationFacts& facts) {
  std::string text(facts.name);
  for (size_t i = 0; i < facts.count(); ++i) {
    const OperationParameter& parameter = facts.parameters[i];
    absl::StrAppend(&text, i == 0 ? "(" : ", ", std::string(parameter.name));
    if (parameter.fallback) absl::StrAppend(&text, "=", NumberText(*parameter.fallback));
  }
  return facts.count() == 0 ? text : text + ")";
}

void WriteOperations(const Picture& scene, const std::string& folder, std::string& page) {
  for (size_t kind = 0; kind < kOperationKinds; ++kind) {
    // A user's, and what only aug_mix has, among the steps.
    if (static_cast<OperationKind>(kind) == OperationKind::kOwn) continue;
    if (IsOfAugMix(static_cast<OperationKind>(kind))) continue;
    const OperationFacts& facts = FactsOf(static_cast<OperationKind>(kind));
    const std::string name(facts.name);
    const auto example = kExamples.find(facts.name);
    const std::string_view text = example == kExamples.end() ? facts.name : example->second;
    const SampleProgram program =
        OrDie(SampleProgram::Parse(text), StrCat("kExamples of operation_pictures.cc, ", name));
    WritePng(StrCat(folder, "/", name, ".png"), Changed(scene, program));
    absl::StrAppend(&page, "| `", Signature(facts), "` | `", program.ToText(), "` | ![", name,
                    "](pictures/operations/", name, ".png) |\n");
  }
}

void WriteSteps(const Picture& scene, const std::string& folder, std::string& page) {
  absl::StrAppend(&page, "\n## Steps\n\nWhat the samples 0 to ", kShownSamples - 1,
                  " get with the seed ", kSeed, ", in the first epoch.\n");
  for (const auto& [called, step] : kSteps) {
    const AugmentPlan plan = OrDie(AugmentPlan::Parse(step), step);
    std::vector<Picture> parts;
    std::string programs;
    for (uint64_t id = 0; id < kShownSamples; ++id) {
      SampleProgram program;
      plan.Draw({.seed = kSeed, .epoch = 0, .id = id}, scene.width, scene.height, program);
      parts.push_back(Changed(scene, program));
      const std::string text = program.ToText();
      absl::StrAppend(&programs, id, ". `", text.empty() ? "identity" : text, "`\n");
    }
    const std::string name = StrCat("step-", std::string(called));
    WritePng(StrCat(folder, "/", name, ".png"), Joined(parts));
    absl::StrAppend(&page, "\n### `", std::string(step), "`\n\n![", name, "](pictures/operations/",
                    name, ".png)\n\n", programs);
  }
}

void WriteMixes(const Picture& scene, const std::string& folder, std::string& page) {
  absl::StrAppend(&page,
                  "\n## Mixing\n\nThe scene and a partner, here its negative, mixed by "
                  "`Mix(mixup=1)` and by `Mix(cutmix=1)`.\n\n");
  const Picture partner = Changed(scene, OrDie(SampleProgram::Parse("invert"), "invert"));
  for (const bool cut : {false, true}) {
    MixOptions options{.classes = 2};
    (cut ? options.cutmix_alpha : options.mixup_alpha) = 1;
    Picture mixed = scene;
    const MixDraw draw = DrawMix(options, kSeed, 0, 0, scene.width, scene.height);
    MixPixels(draw, mixed.edit().view(), partner.pixels.data(), mixed.pixels.data());
    const std::string name = cut ? "mix-cutmix" : "mix-mixup";
    WritePng(StrCat(folder, "/", name, ".png"), std::move(mixed));
    absl::StrAppend(&page, "![", name, "](pictures/operations/", name, ".png)\n");
  }
}

}  // namespace
}  // namespace shardpack

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: operation_pictures SCENE.png FOLDER\n");
    return 2;
  }
  const std::string folder = argv[2];
  const shardpack::Picture scene = shardpack::ReadScene(argv[1]);
  std::string page = shardpack::kIntroduction;
  shardpack::WriteOperations(scene, folder, page);
  shardpack::WriteSteps(scene, folder, page);
  shardpack::WriteMixes(scene, folder, page);
  shardpack::WriteFile(folder + "/operations.md", page);
}
