#include "images/transform/transform.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/status_macros.h"
#include "images/pixels/blend.h"
#include "images/pixels/orientation.h"
#include "images/probe/probe.h"
#include "images/resize/resize_wide.h"
#include "images/transform/transform_target.h"

namespace shardpack {
namespace {

using transform_internal::Target;

// A scaled decode leaves at least this many times the result's pixels in each direction, so that
// the resize filter determines how the result looks.
constexpr double kScaledMargin = 2;

// The size at which the whole image must be decoded so that the box in it is large enough.
uint32_t LeastSize(uint32_t whole, double box, uint32_t out) {
  return static_cast<uint32_t>(
      std::ceil(std::min<double>(whole * (kScaledMargin * out / box), UINT32_MAX)));
}

absl::Status NoMemory() { return absl::ResourceExhaustedError("no memory for the pixels"); }

}  // namespace

void TransformScratch::Trim() { *this = TransformScratch(); }

// One run: the state that its steps share.
class TransformRun {
 public:
  TransformRun(const ImageTransform& transform, std::span<const std::byte> file,
               const ImageInfo& info, const Target& target, TransformScratch& scratch)
      : options_(transform.options_),
        limits_(transform.limits_),
        file_(file),
        info_(info),
        target_(target),
        scratch_(scratch) {}

  absl::StatusOr<std::span<const std::byte>> Run() {
    absl::StatusOr<PixelView> pixels =
        target_.wide || target_.alpha ? MakeWithAlphaOrWide() : MakePlain();
    if (pixels.ok()) pixels = InSrgb(*pixels);
    if (pixels.ok()) pixels = InColors(*pixels);
    if (pixels.ok()) pixels = AddBars(*pixels);
    if (!pixels.ok()) return pixels.status();
    EncodeOptions encode;
    encode.format = target_.format;
    encode.quality = options_.quality;
    encode.lossless = target_.lossless;
    encode.orientation = target_.orientation;
    if (target_.embed) encode.profile = target_.profile;
    return scratch_.encoder_.Encode(*pixels, encode);
  }
  // Run failed only because of the profile.
  bool profile_failed() const { return profile_failed_; }

 private:
  absl::Status ToSrgb(const PixelView& view, uint8_t* out) {
    absl::Status status = scratch_.converter_.ToSrgb(target_.profile, target_.model, view, out);
    profile_failed_ = !status.ok();
    return status;
  }

  DecodeOptions Decoding() const {
    DecodeOptions decode;
    // A profile applies to the colours stored in the file.
    decode.channels = target_.model == ProfileModel::kGray   ? 1
                      : target_.model != ProfileModel::kNone ? 3
                                                             : static_cast<uint8_t>(target_.colors);
    decode.ink = target_.model == ProfileModel::kCmyk;
    decode.max_pixels = limits_.max_pixels;
    decode.max_scans = limits_.max_scans;
    return decode;
  }

  // Converts CMYK, and blends alpha if requested.
  absl::StatusOr<PixelView> Opaque(const PixelView& view) {
    const bool ink = target_.model == ProfileModel::kCmyk;
    if (!ink && !target_.blend) return view;
    const size_t pixel_bytes = size_t{view.channels - 1} * view.sample_bytes;
    if (!scratch_.opaque_.Reserve(size_t{view.width} * view.height * pixel_bytes))
      return NoMemory();
    uint8_t* const out = scratch_.opaque_.data();
    if (!ink) return BlendAlpha(view, options_.background, out);
    RETURN_IF_ERROR(ToSrgb(view, out));
    return PixelView{out, view.width, view.height, 3, view.width * pixel_bytes};
  }

  absl::StatusOr<PixelView> InSrgb(const PixelView& view) {
    if (target_.model != ProfileModel::kGray && target_.model != ProfileModel::kRgb) return view;
    PixelView converted = view;
    converted.stride_bytes = size_t{view.width} * view.channels * view.sample_bytes;
    if (!scratch_.converted_.Reserve(converted.stride_bytes * view.height)) return NoMemory();
    converted.pixels = scratch_.converted_.data();
    RETURN_IF_ERROR(ToSrgb(view, scratch_.converted_.data()));
    return converted;
  }

  // Converts to the result's number of colours, if a profile required another one.
  absl::StatusOr<PixelView> InColors(const PixelView& view) {
    const uint32_t alpha = target_.alpha ? 1 : 0, channels = target_.colors + alpha;
    if (view.channels == channels) return view;
    PixelView changed = view;
    changed.channels = channels;
    changed.stride_bytes = size_t{view.width} * channels * view.sample_bytes;
    if (!scratch_.recolored_.Reserve(changed.stride_bytes * view.height)) return NoMemory();
    changed.pixels = scratch_.recolored_.data();
    ChangeColors(view, target_.colors, scratch_.recolored_.data());
    return changed;
  }

  // Turns the image upright first, since such images are rare.
  absl::StatusOr<PixelView> MakeWithAlphaOrWide() {
    DecodeOptions decode = Decoding();
    decode.orient = target_.bake;
    decode.alpha = target_.alpha || target_.blend;
    decode.wide = target_.wide;
    ASSIGN_OR_RETURN(DecodedImage image, scratch_.decoder_.Decode(file_, info_, decode));
    ASSIGN_OR_RETURN(PixelView opaque, Opaque(image.view));
    const PixelView& view = opaque;
    const ResizePlan& plan = target_.resize;
    if (plan.width == view.width && plan.height == view.height) return view;
    const size_t row_bytes = size_t{plan.width} * view.channels * view.sample_bytes;
    if (!scratch_.resized_.Reserve(row_bytes * plan.height)) {
      return NoMemory();
    }
    RETURN_IF_ERROR(
        ResizeWide(view, plan.box, plan.width, plan.height, plan.filter, scratch_.resized_.data()));
    return PixelView{scratch_.resized_.data(), plan.width, plan.height, view.channels, row_bytes,
                     view.sample_bytes};
  }

  // Turned by the resize, or by the decoder if there is no resize.
  absl::StatusOr<PixelView> MakePlain() {
    const ResizePlan& plan = target_.resize;
    const Orientation turn = target_.bake ? OrientationOf(info_.orientation) : Orientation();
    const uint32_t shown_width = turn.transpose ? info_.height : info_.width;
    const uint32_t shown_height = turn.transpose ? info_.width : info_.height;
    const bool resizes = plan.width != shown_width || plan.height != shown_height;
    const PixelBox box = ToStored(turn, plan.box, info_.width, info_.height);
    DecodeOptions decode = Decoding();
    decode.orient = target_.bake && !resizes;
    decode.alpha = target_.blend;
    // With a box filter (area), the whole-pixel boxes would cover different pixels.
    if (resizes && !options_.exact && plan.filter != ResizeFilter::kBox) {
      const uint32_t width = turn.transpose ? plan.height : plan.width;
      const uint32_t height = turn.transpose ? plan.width : plan.height;
      decode.min_width = LeastSize(info_.width, box.right - box.left, width);
      decode.min_height = LeastSize(info_.height, box.bottom - box.top, height);
    }
    ASSIGN_OR_RETURN(DecodedImage image, scratch_.decoder_.Decode(file_, info_, decode));
    ASSIGN_OR_RETURN(PixelView opaque, Opaque(image.view));
    const PixelView& view = opaque;
    if (!resizes) return view;
    return Resized(view, box, image.scale, turn);
  }

  absl::StatusOr<PixelView> Resized(const PixelView& view, const PixelBox& box, uint32_t scale,
                                    const Orientation& turn) {
    const ResizePlan& plan = target_.resize;
    const double unit = 1.0 / scale;
    PixelBox part;
    part.left = box.left * unit;
    part.top = box.top * unit;
    part.right = std::min<double>(box.right * unit, view.width);
    part.bottom = std::min<double>(box.bottom * unit, view.height);
    const PixelOutput output({}, view.channels);
    if (!scratch_.resized_.Reserve(output.Bytes(plan.width, plan.height))) {
      return NoMemory();
    }
    const ResizeOptions options{.width = plan.width,
                                .height = plan.height,
                                .filter = plan.filter,
                                .transpose = turn.transpose,
                                .mirror_x = turn.mirror_x,
                                .mirror_y = turn.mirror_y};
    RETURN_IF_ERROR(
        scratch_.resizer_.Resize(view, part, options, output, scratch_.resized_.data()));
    return PixelView{scratch_.resized_.data(), plan.width, plan.height, view.channels,
                     size_t{plan.width} * view.channels};
  }

  // Black, or transparent with alpha.
  absl::StatusOr<PixelView> AddBars(const PixelView& view) {
    const ResizePlan& plan = target_.resize;
    if (plan.out_width == view.width && plan.out_height == view.height) return view;
    const size_t pixel_bytes = size_t{view.channels} * view.sample_bytes;
    const size_t row_bytes = plan.out_width * pixel_bytes;
    if (!scratch_.padded_.Reserve(row_bytes * plan.out_height)) {
      return NoMemory();
    }
    uint8_t* to = scratch_.padded_.data();
    std::memset(to, 0, row_bytes * plan.out_height);
    for (uint32_t y = 0; y < view.height; ++y) {
      std::memcpy(to + (plan.top + y) * row_bytes + plan.left * pixel_bytes, view.Row(y),
                  view.width * pixel_bytes);
    }
    return PixelView{to,        plan.out_width,   plan.out_height, view.channels,
                     row_bytes, view.sample_bytes};
  }

  const TransformOptions& options_;
  const TransformLimits& limits_;
  const std::span<const std::byte> file_;
  const ImageInfo& info_;
  const Target& target_;
  TransformScratch& scratch_;
  bool profile_failed_ = false;
};

absl::StatusOr<ImageTransform> ImageTransform::Create(const TransformOptions& options,
                                                      const TransformLimits& limits) {
  if (auto status = CheckTransformOptions(options); !status.ok()) return status;
  return ImageTransform(options, limits);
}

TransformTarget ImageTransform::Decide(std::span<const std::byte> file,
                                       const ImageInfo& info) const {
  return transform_internal::DecideTarget(options_, file, info);
}

uint64_t ImageTransform::WorkingBytes(const ImageInfo& info, const TransformTarget& target) {
  return ChangesPixels(target.changes) ? transform_internal::WorkingBytes(info, target) : 0;
}

absl::StatusOr<TransformedImage> ImageTransform::Run(std::span<const std::byte> file,
                                                     const ImageInfo& info,
                                                     const TransformTarget& target,
                                                     TransformScratch& scratch) const {
  TransformedImage result{file, info, target.changes};
  if (!ChangesPixels(target.changes)) return result;
  if (target.resize.too_large()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "resized, a side would be longer than ", kMaxResize, " pixels, the largest that there is"));
  }
  TransformRun run(*this, file, info, target, scratch);
  const auto encoded = run.Run();
  if (!encoded.ok() && run.profile_failed()) {
    return Run(file, info, transform_internal::WithoutProfile(target), scratch);
  }
  if (!encoded.ok()) {
    scratch.Trim();
    return encoded.status();
  }
  result.bytes = *encoded;
  if (target.format == ImageFormat::kRaw) {
    result.info = transform_internal::RawInfo(target);
    return result;
  }
  // Probes the new bytes, as their readers will.
  const ProbeResult probe =
      ProbeImage(result.bytes, {.level = ProbeLevel::kHeader, .max_pixels = UINT64_MAX});
  if (probe.verdict != ProbeVerdict::kOk) return absl::InternalError(probe.detail);
  result.info = probe.info;
  return result;
}

}  // namespace shardpack
