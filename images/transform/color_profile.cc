#include "images/transform/color_profile.h"

#include <lcms2.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

namespace shardpack {
namespace {

// Creating a transform costs as much as decoding an image, and a dataset has few profiles.
constexpr size_t kKeptTables = 8;

// A separate context, so that no state is shared with other code in the process.
struct Context {
  cmsContext id = cmsCreateContext(nullptr, nullptr);
  ~Context() { cmsDeleteContext(id); }
};

struct Profile {
  cmsHPROFILE handle = nullptr;
  explicit Profile(cmsHPROFILE opened) : handle(opened) {}
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;
  ~Profile() {
    if (handle != nullptr) cmsCloseProfile(handle);
  }
};

cmsHPROFILE Open(cmsContext context, std::span<const std::byte> profile) {
  return cmsOpenProfileFromMemTHR(context, profile.data(),
                                  static_cast<cmsUInt32Number>(profile.size()));
}

bool IsNear(double value, double wanted, double most) { return std::abs(value - wanted) <= most; }

// The curve of sRGB (IEC 61966-2-1) at three places. A profile without curves has tables instead.
bool HasSrgbCurve(cmsHPROFILE profile, cmsTagSignature tag) {
  const auto* curve = static_cast<const cmsToneCurve*>(cmsReadTag(profile, tag));
  if (curve == nullptr) return true;
  constexpr std::pair<float, double> kCurve[] = {{0.25F, 0.0509}, {0.5F, 0.2140}, {0.75F, 0.5225}};
  return std::ranges::all_of(kCurve, [&](const auto& at) {
    return IsNear(cmsEvalToneCurveFloat(curve, at.first), at.second, 0.01);
  });
}

// The primary of sRGB, adapted to D50 as ICC profiles have it.
bool HasPrimary(cmsHPROFILE profile, cmsTagSignature tag, const cmsCIEXYZ& wanted) {
  const auto* primary = static_cast<const cmsCIEXYZ*>(cmsReadTag(profile, tag));
  constexpr double kMost = 0.02;
  return primary == nullptr ||
         (IsNear(primary->X, wanted.X, kMost) && IsNear(primary->Y, wanted.Y, kMost) &&
          IsNear(primary->Z, wanted.Z, kMost));
}

// Linear profiles and those of other primaries have "sRGB" in their names as well.
bool IsLikeSrgb(cmsHPROFILE profile) {
  return HasSrgbCurve(profile, cmsSigGrayTRCTag) && HasSrgbCurve(profile, cmsSigRedTRCTag) &&
         HasSrgbCurve(profile, cmsSigGreenTRCTag) && HasSrgbCurve(profile, cmsSigBlueTRCTag) &&
         HasPrimary(profile, cmsSigRedColorantTag, {0.4361, 0.2225, 0.0139}) &&
         HasPrimary(profile, cmsSigGreenColorantTag, {0.3851, 0.7169, 0.0971}) &&
         HasPrimary(profile, cmsSigBlueColorantTag, {0.1431, 0.0606, 0.7141});
}

bool IsNamedSrgb(cmsHPROFILE profile) {
  char words[128] = "";
  cmsGetProfileInfoASCII(profile, cmsInfoDescription, "en", "US", words, sizeof(words));
  std::string name(words);
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name.find("srgb") != std::string::npos;
}

// IEC 61966-2-1, equations 5 to 7, as a parametric curve of ICC type 3.
cmsHPROFILE GraySrgb(cmsContext context) {
  const cmsFloat64Number parameters[5] = {2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045};
  cmsToneCurve* curve = cmsBuildParametricToneCurve(context, 4, parameters);
  cmsHPROFILE profile = cmsCreateGrayProfileTHR(context, cmsD50_xyY(), curve);
  cmsFreeToneCurve(curve);
  return profile;
}

cmsUInt32Number CmsFormatOf(ProfileModel model, bool alpha, uint32_t sample_bytes) {
  const uint32_t type = model == ProfileModel::kGray  ? PT_GRAY
                        : model == ProfileModel::kRgb ? PT_RGB
                                                      : PT_CMYK;
  const uint32_t channels = model == ProfileModel::kGray ? 1 : model == ProfileModel::kRgb ? 3 : 4;
  return COLORSPACE_SH(type) | CHANNELS_SH(channels) | BYTES_SH(sample_bytes) |
         EXTRA_SH(alpha ? 1u : 0u) | FLAVOR_SH(model == ProfileModel::kCmyk ? 1u : 0u);
}

}  // namespace

ProfileModel ProfileModelOf(std::span<const std::byte> profile) {
  if (profile.empty()) return ProfileModel::kNone;
  const Context context;
  const Profile opened(Open(context.id, profile));
  if (opened.handle == nullptr) return ProfileModel::kUnusable;
  // For these two classes, the color space is that of the input, but they do not describe pixels.
  const cmsProfileClassSignature kind = cmsGetDeviceClass(opened.handle);
  if (kind == cmsSigLinkClass || kind == cmsSigNamedColorClass) return ProfileModel::kUnusable;
  if (IsNamedSrgb(opened.handle) && IsLikeSrgb(opened.handle)) return ProfileModel::kNone;
  switch (cmsGetColorSpace(opened.handle)) {
    case cmsSigGrayData:
      return ProfileModel::kGray;
    case cmsSigRgbData:
      return ProfileModel::kRgb;
    case cmsSigCmykData:
      return ProfileModel::kCmyk;
    default:
      return ProfileModel::kUnusable;
  }
}

struct ColorConverter::Tables {
  std::vector<std::byte> profile;
  cmsUInt32Number from = 0, to = 0;
  Context context;
  cmsHTRANSFORM transform = nullptr;

  ~Tables() {
    if (transform != nullptr) cmsDeleteTransform(transform);
  }
};

ColorConverter::ColorConverter() = default;
ColorConverter::~ColorConverter() = default;
ColorConverter::ColorConverter(ColorConverter&&) noexcept = default;
ColorConverter& ColorConverter::operator=(ColorConverter&&) noexcept = default;

absl::Status ColorConverter::ToSrgb(std::span<const std::byte> profile, ProfileModel model,
                                    const PixelView& view, uint8_t* out) {
  const bool gray = model == ProfileModel::kGray, ink = model == ProfileModel::kCmyk;
  const uint32_t colors = gray ? 1 : ink ? 4 : 3;
  const bool alpha = !ink && view.channels == colors + 1;
  const bool usable = model != ProfileModel::kNone && model != ProfileModel::kUnusable;
  if (!usable || (view.channels != colors && !alpha)) {
    return absl::InvalidArgumentError("ICC profile: pixels of another color model");
  }
  const cmsUInt32Number from = CmsFormatOf(model, alpha, view.sample_bytes);
  const cmsUInt32Number to =
      CmsFormatOf(gray ? ProfileModel::kGray : ProfileModel::kRgb, alpha, view.sample_bytes);
  const auto known = std::ranges::find_if(tables_, [&](const std::unique_ptr<Tables>& each) {
    return each->from == from && each->to == to && std::ranges::equal(each->profile, profile);
  });
  if (known == tables_.end()) {
    auto made = std::make_unique<Tables>();
    const Profile source(Open(made->context.id, profile));
    const Profile srgb(gray ? GraySrgb(made->context.id)
                            : cmsCreate_sRGBProfileTHR(made->context.id));
    if (source.handle != nullptr && srgb.handle != nullptr) {
      made->transform =
          cmsCreateTransformTHR(made->context.id, source.handle, from, srgb.handle, to,
                                INTENT_PERCEPTUAL, alpha ? cmsFLAGS_COPY_ALPHA : 0);
    }
    if (made->transform == nullptr) {
      return absl::InvalidArgumentError("ICC profile: not one that can be converted");
    }
    made->profile.assign(profile.begin(), profile.end());
    made->from = from;
    made->to = to;
    if (tables_.size() == kKeptTables) tables_.pop_back();
    tables_.insert(tables_.begin(), std::move(made));
  } else {
    std::rotate(tables_.begin(), known, known + 1);  // the most recently used one comes first
  }
  const size_t pixel_bytes = size_t{(ink ? 3 : colors) + (alpha ? 1 : 0)} * view.sample_bytes;
  for (uint32_t y = 0; y < view.height; ++y) {
    cmsDoTransform(tables_[0]->transform, view.Row(y), out + y * (view.width * pixel_bytes),
                   view.width);
  }
  return absl::OkStatus();
}

}  // namespace shardpack
