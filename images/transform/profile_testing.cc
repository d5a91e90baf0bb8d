#include "images/transform/profile_testing.h"

#include <lcms2.h>

#include <algorithm>

namespace shardpack {
namespace {

Image Saved(cmsHPROFILE profile) {
  cmsUInt32Number size_bytes = 0;
  cmsSaveProfileToMem(profile, nullptr, &size_bytes);
  Image bytes(size_bytes);
  cmsSaveProfileToMem(profile, bytes.data(), &size_bytes);
  cmsCloseProfile(profile);
  // The date of creation (ICC.1 7.2): a profile made a second later is to be the same.
  std::fill_n(bytes.begin() + 24, 12, decltype(bytes)::value_type{});
  return bytes;
}

void Describe(cmsHPROFILE profile, const char* words) {
  cmsMLU* text = cmsMLUalloc(nullptr, 1);
  cmsMLUsetASCII(text, "en", "US", words);
  cmsWriteTag(profile, cmsSigProfileDescriptionTag, text);
  cmsMLUfree(text);
}

Image RgbProfile(const cmsCIExyYTRIPLE& primaries, double exponent, const char* words) {
  cmsCIExyY white;
  cmsWhitePointFromTemp(&white, 6504);
  cmsToneCurve* gamma = cmsBuildGamma(nullptr, exponent);
  cmsToneCurve* curves[3] = {gamma, gamma, gamma};
  cmsHPROFILE profile = cmsCreateRGBProfile(&white, &primaries, curves);
  cmsFreeToneCurve(gamma);
  Describe(profile, words);
  return Saved(profile);
}

// A plain model of ink that absorbs light, with a tint that no other code path produces.
cmsInt32Number InkToLab(const cmsUInt16Number in[], cmsUInt16Number out[], void* to_lab) {
  const double key = 1 - in[3] / 65535.0;
  const double rgb[3] = {(1 - in[0] / 65535.0) * key, (1 - in[1] / 65535.0) * key * 0.9,
                         (1 - in[2] / 65535.0) * key * 0.8};
  cmsUInt16Number pixel[3];
  for (int c = 0; c < 3; ++c) pixel[c] = static_cast<cmsUInt16Number>(rgb[c] * 65535);
  cmsDoTransform(to_lab, pixel, out, 1);
  return TRUE;
}

}  // namespace

Image SrgbProfile() { return Saved(cmsCreate_sRGBProfile()); }

Image LinearSrgbProfile() {
  return RgbProfile({{0.64, 0.33, 1}, {0.30, 0.60, 1}, {0.15, 0.06, 1}}, 1, "Linear sRGB");
}

Image WideRgbProfile() {
  return RgbProfile({{0.64, 0.33, 1}, {0.21, 0.71, 1}, {0.15, 0.06, 1}}, 2.2, "wide");
}

Image GrayProfile() {
  cmsToneCurve* gamma = cmsBuildGamma(nullptr, 1.4);
  cmsHPROFILE profile = cmsCreateGrayProfile(cmsD50_xyY(), gamma);
  cmsFreeToneCurve(gamma);
  Describe(profile, "dots");
  return Saved(profile);
}

Image InkProfile() {
  cmsHPROFILE srgb = cmsCreate_sRGBProfile(), lab = cmsCreateLab4Profile(nullptr);
  cmsHTRANSFORM to_lab =
      cmsCreateTransform(srgb, TYPE_RGB_16, lab, TYPE_Lab_16, INTENT_PERCEPTUAL, 0);
  cmsHPROFILE profile = cmsCreateProfilePlaceholder(nullptr);
  cmsSetProfileVersion(profile, 4.2);
  cmsSetDeviceClass(profile, cmsSigOutputClass);
  cmsSetColorSpace(profile, cmsSigCmykData);
  cmsSetPCS(profile, cmsSigLabData);
  cmsPipeline* pipeline = cmsPipelineAlloc(nullptr, 4, 3);
  cmsStage* table = cmsStageAllocCLut16bit(nullptr, 5, 4, 3, nullptr);
  cmsStageSampleCLut16bit(table, InkToLab, to_lab, 0);
  cmsPipelineInsertStage(pipeline, cmsAT_BEGIN, cmsStageAllocToneCurves(nullptr, 4, nullptr));
  cmsPipelineInsertStage(pipeline, cmsAT_END, table);
  cmsPipelineInsertStage(pipeline, cmsAT_END, cmsStageAllocToneCurves(nullptr, 3, nullptr));
  cmsWriteTag(profile, cmsSigAToB0Tag, pipeline);
  Describe(profile, "ink");
  const Image bytes = Saved(profile);
  cmsPipelineFree(pipeline);
  cmsDeleteTransform(to_lab);
  cmsCloseProfile(srgb);
  cmsCloseProfile(lab);
  return bytes;
}

Image WithProfile(const Image& jpeg, const Image& profile) {
  constexpr size_t kPartBytes = 19'200;
  const size_t parts = (profile.size() + kPartBytes - 1) / kPartBytes;
  Image segments;
  for (size_t i = 0; i < parts; ++i) {
    Image body;
    PutText(&body, "ICC_PROFILE");
    body.insert(body.end(), {0, static_cast<uint8_t>(i + 1), static_cast<uint8_t>(parts)});
    const size_t first = i * kPartBytes, end = std::min(first + kPartBytes, profile.size());
    body.insert(body.end(), profile.begin() + static_cast<ptrdiff_t>(first),
                profile.begin() + static_cast<ptrdiff_t>(end));
    PutSegment(&segments, 0xE2, body);
  }
  Image file = jpeg;
  Insert(&file, 2, segments);
  return file;
}

}  // namespace shardpack
