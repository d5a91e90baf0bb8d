// How long each operation takes on one 224 x 224 image, and a whole plan.
//   usage: augment_bench [--benchmark_filter=REGEX]
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

#include "augment/plan.h"
#include "augment/program.h"

namespace {

constexpr uint32_t kSide = 224;

// Neither flat nor noise, like a photograph's smooth parts and edges.
std::vector<uint8_t> Picture() {
  std::vector<uint8_t> pixels(size_t{kSide} * kSide * 3);
  for (size_t i = 0; i < pixels.size(); ++i) {
    const size_t x = i / 3 % kSide, y = i / 3 / kSide;
    pixels[i] = static_cast<uint8_t>((x * 3 + y * (1 + i % 3) + ((x / 16) ^ (y / 16)) * 13) / 4);
  }
  return pixels;
}

void Apply(benchmark::State& state, const std::string& text) {
  const auto program = shardpack::SampleProgram::Parse(text);
  const std::vector<uint8_t> picture = Picture();
  std::vector<uint8_t> pixels = picture;
  shardpack::ProgramRunner runner;
  for (auto _ : state) {
    pixels = picture;
    if (!runner.Apply(*program, {pixels.data(), kSide, kSide, 3, size_t{kSide} * 3}).ok())
      state.SkipWithError("cannot be applied");
  }
}

void DrawAndApply(benchmark::State& state, const std::string& text) {
  const auto plan = shardpack::AugmentPlan::Parse(text);
  const std::vector<uint8_t> picture = Picture();
  std::vector<uint8_t> pixels = picture;
  shardpack::ProgramRunner runner;
  shardpack::SampleProgram program;
  uint64_t id = 0;
  for (auto _ : state) {
    pixels = picture;
    plan->Draw({1, 0, id++}, kSide, kSide, program);
    if (!runner.Apply(program, {pixels.data(), kSide, kSide, 3, size_t{kSide} * 3}).ok())
      state.SkipWithError("cannot be applied");
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (const char* text : {"identity",        "brightness(1.3)", "contrast(1.3)",
                           "saturation(1.3)", "hue(0.1)",        "posterize(4)",
                           "solarize(128)",   "invert",          "gamma(1.3)",
                           "autocontrast",    "equalize",        "sharpness(1.6)",
                           "grayscale",       "shear_x(0.2)",    "shear_y(0.2)",
                           "translate_x(20)", "rotate(12)",      "rotate(12, 1)",
                           "flip_horizontal", "flip_vertical",   "erase(20, 20, 90, 90)"}) {
    benchmark::RegisterBenchmark(text, [text](benchmark::State& state) { Apply(state, text); });
  }
  for (const char* text :
       {"color_jitter(b=.4,c=.4,s=.4,h=.1)", "rand_augment", "trivial_augment_wide", "auto_augment",
        "color_jitter(b=.4,c=.4,s=.4,h=.1) rand_augment erase(p=.25)"}) {
    benchmark::RegisterBenchmark(text,
                                 [text](benchmark::State& state) { DrawAndApply(state, text); });
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
