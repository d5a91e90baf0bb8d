#include "augment/mix.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "augment/gamma_numbers.h"
#include "augment/operation.h"
#include "images/augment/random_numbers.h"

namespace shardpack {
namespace {

class GroupRandom {
 public:
  GroupRandom(uint64_t seed, uint64_t epoch, uint64_t group)
      : identity_{seed, epoch, group, kGroups} {}
  uint64_t Next() { return SampleRandom(identity_, drawn_++); }
  double Unit() { return RandomUnit(Next()); }

 private:
  static constexpr uint16_t kGroups = 0xFFFF;  // no sample has so many views
  const SampleIdentity identity_;
  uint64_t drawn_ = 0;
};

// Rounded to a multiple of 2^-16, so that the last bits of a library's logarithm do not matter.
double Beta(double alpha, GroupRandom& random) {
  const double a = LogGamma(alpha, random), b = LogGamma(alpha, random);
  const double share = 1 / (1 + std::exp(b - a));
  return std::floor(share * 0x1p16 + 0.5) * 0x1p-16;
}

// torchvision/transforms/v2/_augment.py, CutMix.make_params.
PixelRegion CutBox(double lambda, uint32_t width, uint32_t height, GroupRandom& random) {
  const int64_t x = RandomBelow(random.Next(), width), y = RandomBelow(random.Next(), height);
  const double half = 0.5 * std::sqrt(1 - lambda);
  const auto half_width = static_cast<int64_t>(half * width);
  const auto half_height = static_cast<int64_t>(half * height);
  const auto edge = [](int64_t at, uint32_t size) {
    return static_cast<uint32_t>(std::clamp<int64_t>(at, 0, size));
  };
  const uint32_t left = edge(x - half_width, width), right = edge(x + half_width, width);
  const uint32_t top = edge(y - half_height, height), bottom = edge(y + half_height, height);
  return {left, top, right - left, bottom - top};
}

}  // namespace

std::string MixOptions::ToText() const {
  return absl::StrCat("mix/1 mixup=", NumberText(mixup_alpha), " cutmix=", NumberText(cutmix_alpha),
                      " p=", NumberText(probability), " share=", NumberText(cutmix_share),
                      " group=", group, " classes=", classes, " smoothing=", NumberText(smoothing));
}

absl::Status CheckMixOptions(const MixOptions& options, uint32_t global_batch) {
  const auto refuse = [](std::string_view what, double value, std::string_view wanted) {
    return absl::InvalidArgumentError(absl::StrCat(
        "mix: ", std::string(what), " is ", NumberText(value), "; it is ", std::string(wanted)));
  };
  for (const double alpha : {options.mixup_alpha, options.cutmix_alpha}) {
    if (!(alpha == 0 || (alpha >= 1e-3 && alpha <= 1e3)))
      return refuse("alpha", alpha, "0 or from 0.001 to 1000");
  }
  const auto is_share = [](double x) { return x >= 0 && x <= 1; };
  if (!is_share(options.probability)) return refuse("probability", options.probability, "0 to 1");
  if (!is_share(options.cutmix_share))
    return refuse("cutmix_share", options.cutmix_share, "0 to 1");
  if (!(options.smoothing >= 0 && options.smoothing < 1))
    return refuse("smoothing", options.smoothing, "at least 0 and below 1");
  if (!options.mixes() && options.smoothing == 0) {
    return absl::InvalidArgumentError(
        "mix: neither mixup nor cutmix nor smoothing is above 0, so nothing would be done");
  }
  if (options.cutmix_share != MixOptions().cutmix_share &&
      (options.mixup_alpha == 0 || options.cutmix_alpha == 0)) {
    return absl::InvalidArgumentError(
        "mix: cutmix_share is for mixup and cutmix together, of which one is 0");
  }
  if (options.classes == 0 || options.classes > 1'000'000)
    return refuse("classes", options.classes, "the number of classes, 1 to 1000000");
  if (options.group < 2) return refuse("group", options.group, "at least 2");
  if (global_batch % options.group != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("mix: groups of ", options.group, " do not divide a batch of ", global_batch));
  }
  return absl::OkStatus();
}

MixDraw DrawMix(const MixOptions& options, uint64_t seed, uint64_t epoch, uint64_t group_number,
                uint32_t width, uint32_t height) {
  MixDraw draw;
  GroupRandom random(seed, epoch, group_number);
  const double whether = random.Unit(), which = random.Unit();
  if (!options.mixes() || whether >= options.probability) return draw;
  const bool cut =
      options.mixup_alpha == 0 || (options.cutmix_alpha > 0 && which < options.cutmix_share);
  const double lambda = Beta(cut ? options.cutmix_alpha : options.mixup_alpha, random);
  if (!cut) {
    draw.weight = 1 - lambda;
    return draw;
  }
  draw.box = CutBox(lambda, width, height, random);
  draw.weight = static_cast<double>(uint64_t{draw.box.width} * draw.box.height) /
                static_cast<double>(uint64_t{width} * height);
  return draw;
}

void MixPixels(const MixDraw& draw, const PixelView& own, const uint8_t* partner, uint8_t* out) {
  const size_t row_bytes = size_t{own.width} * own.channels;
  const size_t bytes = row_bytes * own.height;
  if (!draw.box.empty()) {
    if (out != own.pixels) std::memcpy(out, own.pixels, bytes);
    for (uint32_t y = 0; y < draw.box.height; ++y) {
      const size_t at = (draw.box.top + y) * row_bytes + size_t{draw.box.left} * own.channels;
      std::memcpy(out + at, partner + at, size_t{draw.box.width} * own.channels);
    }
    return;
  }
  // Weights of 16 bits; rounded half up.
  const auto theirs = static_cast<uint32_t>(draw.weight * 0x1p16), ours = 0x10000 - theirs;
  for (size_t i = 0; i < bytes; ++i) {
    out[i] = static_cast<uint8_t>((own.pixels[i] * ours + partner[i] * theirs + 0x8000) >> 16);
  }
}

void SoftLabels(const MixOptions& options, double partner_weight, int64_t label,
                int64_t partner_label, std::span<float> row) {
  const double spread = options.smoothing / options.classes, rest = 1 - options.smoothing;
  std::fill(row.begin(), row.end(), 0.0f);
  const auto add = [&](int64_t of, double weight) {
    if (of < 0 || of >= static_cast<int64_t>(row.size()) || weight == 0) return;
    if (spread > 0) {
      for (float& share : row) share += static_cast<float>(weight * spread);
    }
    row[static_cast<size_t>(of)] += static_cast<float>(weight * rest);
  };
  add(label, 1 - partner_weight);
  add(partner_label, partner_weight);
}

}  // namespace shardpack
