#include "images/transform/transform_options.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/io/enum_words.h"
#include "images/codecs/codec_versions.h"
#include "images/transform/option_texts.h"

namespace shardpack {
namespace {

constexpr uint32_t kMaxSize = kMaxResize;

// One more than the largest size stands for all that are too large.
uint32_t Rounded(double size) {
  return static_cast<uint32_t>(std::clamp(std::floor(size + 0.5), 1.0, double{kMaxSize} + 1));
}

ResizeFilter FilterOf(Interpolation interpolation, bool enlarges) {
  switch (interpolation) {
    case Interpolation::kArea:
      return ResizeFilter::kBox;
    case Interpolation::kBilinear:
      return ResizeFilter::kBilinear;
    case Interpolation::kBicubic:
      return ResizeFilter::kBicubic;
    case Interpolation::kLanczos:
      return ResizeFilter::kLanczos;
    case Interpolation::kAuto:
      break;
  }
  return enlarges ? ResizeFilter::kBicubic : ResizeFilter::kBilinear;
}

// The image unchanged, in a frame of its own size or larger.
ResizePlan Unresized(uint32_t width, uint32_t height) {
  ResizePlan plan;
  plan.box = {0, 0, double(width), double(height)};
  plan.width = plan.out_width = width;
  plan.height = plan.out_height = height;
  plan.same = true;
  return plan;
}

// The largest centered box with that aspect ratio.
PixelBox CenteredBox(uint32_t width, uint32_t height, uint32_t ratio_width, uint32_t ratio_height) {
  PixelBox box{0, 0, double(width), double(height)};
  const double wide = double(width) * ratio_height, high = double(height) * ratio_width;
  if (wide > high) {
    const double kept = high / ratio_height;
    box.left = (width - kept) / 2;
    box.right = std::min<double>(box.left + kept, width);
  } else if (high > wide) {
    const double kept = wide / ratio_width;
    box.top = (height - kept) / 2;
    box.bottom = std::min<double>(box.top + kept, height);
  }
  return box;
}

}  // namespace

bool TransformOptions::identity() const {
  return resize == ResizeMode::kOff && encode == EncodeAs::kKeep && color == ColorChange::kKeep &&
         !depth8 && (alpha == AlphaChange::kAuto || alpha == AlphaChange::kKeep) &&
         orient != OrientChange::kBake && profile != ProfileChange::kSrgb;
}

std::map<std::string, std::string> TransformOptions::ToMap() const {
  std::map<std::string, std::string> map;
  if (identity()) return map;
  OptionTexts texts(map);
  VisitMembers(*this, texts);
  if (resize != ResizeMode::kOff) {
    const bool side = resize == ResizeMode::kShortest || resize == ResizeMode::kLongest;
    map["size"] = side ? absl::StrCat(width) : absl::StrCat(width, "x", height);
  }
  map["depth"] = depth8 ? "8" : "keep";
  map["alpha"] = alpha == AlphaChange::kBlend ? absl::StrFormat("#%06x", background) : Word(alpha);
  map["pixel-libraries"] = CodecVersionsText();
  return map;
}

absl::Status CheckTransformOptions(const TransformOptions& options) {
  const auto refuse = [](const char* why) { return absl::InvalidArgumentError(why); };
  if (options.resize != ResizeMode::kOff) {
    if (options.width == 0 || options.height == 0)
      return refuse("--resize needs --size, as in 256");
    if (options.width > kMaxSize || options.height > kMaxSize) {
      return refuse("--size: a side has at most 65535 pixels");
    }
    const bool side =
        options.resize == ResizeMode::kShortest || options.resize == ResizeMode::kLongest;
    if (side && options.width != options.height) {
      return refuse("--resize shortest and longest take one number for --size, as in 256");
    }
  } else if (options.width != 0 || options.only_if_bigger) {
    return refuse("--size and --only-if-bigger need --resize");
  }
  if (options.background > 0xFFFFFF) return refuse("--alpha: a color has 24 bits, as in #ffffff");
  if (options.quality < 1 || options.quality > 100) return refuse("--quality is 1 to 100");
  if (options.encode == EncodeAs::kJpeg && options.alpha == AlphaChange::kKeep) {
    return refuse("--alpha keep: a JPEG holds no alpha; --alpha drop or --alpha #ffffff remove it");
  }
  if (options.encode == EncodeAs::kRaw && options.orient == OrientChange::kKeep) {
    return refuse("--orient keep: raw pixels have no tag to keep it in; leave it out");
  }
  if (options.encode == EncodeAs::kRaw && options.profile == ProfileChange::kKeep) {
    return refuse("--icc keep: raw pixels have no place for a profile; leave it out");
  }
  if (options.profile == ProfileChange::kKeep && options.color != ColorChange::kKeep) {
    return refuse("--icc keep: a profile is of one color model, so --color must keep it too");
  }
  return absl::OkStatus();
}

std::optional<FixedShape> RawShape(const TransformOptions& options) {
  const bool one_size =
      options.resize == ResizeMode::kPad ||
      ((options.resize == ResizeMode::kExact || options.resize == ResizeMode::kCrop) &&
       !options.only_if_bigger);
  if (options.encode != EncodeAs::kRaw || !one_size || options.color == ColorChange::kKeep ||
      options.alpha == AlphaChange::kKeep) {
    return std::nullopt;
  }
  return FixedShape{options.width, options.height, options.color == ColorChange::kGray ? 1u : 3u};
}

ResizePlan PlanResize(const TransformOptions& options, uint32_t width, uint32_t height) {
  ResizePlan plan = Unresized(width, height);
  if (options.resize == ResizeMode::kOff) return plan;
  const double across = double(options.width) / width, down = double(options.height) / height;
  double scale_x = across, scale_y = down;
  uint32_t to_width = options.width, to_height = options.height;
  switch (options.resize) {
    case ResizeMode::kShortest:
    case ResizeMode::kLongest: {
      const bool by_width = (width <= height) == (options.resize == ResizeMode::kShortest);
      scale_x = scale_y = by_width ? across : down;
      if (by_width) to_height = Rounded(height * across);
      if (!by_width) to_width = Rounded(width * down);
      break;
    }
    case ResizeMode::kCrop:
      scale_x = scale_y = std::max(across, down);
      plan.box = CenteredBox(width, height, options.width, options.height);
      break;
    case ResizeMode::kPad:
      scale_x = scale_y = std::min(across, down);
      if (options.only_if_bigger) scale_x = scale_y = std::min(1.0, scale_x);
      to_width = std::min(Rounded(width * scale_x), options.width);
      to_height = std::min(Rounded(height * scale_y), options.height);
      plan.out_width = options.width;
      plan.out_height = options.height;
      plan.left = (options.width - to_width) / 2;
      plan.top = (options.height - to_height) / 2;
      break;
    default:
      break;
  }
  const bool enlarges = scale_x > 1 || scale_y > 1;
  if (enlarges && options.only_if_bigger) return Unresized(width, height);
  plan.width = to_width;
  plan.height = to_height;
  if (options.resize != ResizeMode::kPad) {
    plan.out_width = to_width;
    plan.out_height = to_height;
  }
  plan.filter = FilterOf(options.interpolation, enlarges);
  plan.same = plan.out_width == width && plan.out_height == height && plan.width == width &&
              plan.height == height;
  return plan;
}

}  // namespace shardpack
