#include "images/codecs/inspect.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "images/probe/extras.h"
#include "images/probe/probe.h"

namespace shardpack {
namespace {

using Bytes = std::span<const std::byte>;

ImageTrouble TroubleOf(ProbeVerdict verdict) {
  switch (verdict) {
    case ProbeVerdict::kTruncated:
    case ProbeVerdict::kBadCrc:
      return ImageTrouble::kDamaged;
    case ProbeVerdict::kPixelLimit:
      return ImageTrouble::kPixelLimit;
    default:
      return ImageTrouble::kNotAnImage;
  }
}

// False if the image must not be decoded.
bool WithinLimits(const ImageExtras& extras, const ImageLimits& limits, ImageReport* report) {
  if (extras.ancillary_bytes > limits.max_ancillary_bytes) {
    report->notes.push_back(
        {.trouble = ImageTrouble::kAncillaryLimit,
         .offset = extras.max_offset,
         .detail = absl::StrCat("the largest piece is ", extras.max_name.data(), " of ",
                                extras.max_bytes, " bytes"),
         .expected = absl::StrCat("at most ", limits.max_ancillary_bytes, " bytes"),
         .actual = absl::StrCat(extras.ancillary_bytes, " bytes")});
  }
  if (extras.scans <= limits.max_scans) return true;
  report->notes.push_back({.trouble = ImageTrouble::kScanLimit,
                           .expected = absl::StrCat("at most ", limits.max_scans, " scans"),
                           .actual = absl::StrCat(extras.scans, " scans")});
  return false;
}

}  // namespace

uint64_t DecodeMemoryBytes(const ImageInfo& info, uint32_t scans) {
  const uint64_t pixels = uint64_t{info.width} * info.height;
  switch (info.format) {
    case ImageFormat::kJpeg: {
      // For an image with several scans, libjpeg keeps the coefficients, 16 bits each.
      const bool kept = info.progressive() || scans > 1;
      const uint64_t channels = info.channels == 0 ? 3 : info.channels;
      return pixels * (channels == 4 ? 4 : 3) + (kept ? pixels * 2 * channels : 0);
    }
    case ImageFormat::kWebp:
      return pixels * 7;  // lossless: plus 4 in the codec
    case ImageFormat::kTiff:
      return pixels * 8;  // RGBA, and a strip that may be the whole image
    default:
      return pixels * 3;
  }
}

void ImageInspector::Decode(Bytes file, const ImageLimits& limits, ImageReport* report) {
  DecodeWarnings warnings;
  const auto image = decoder_.Decode(file, report->info,
                                     {.orient = false,
                                      .max_pixels = limits.max_pixels,
                                      .max_scans = limits.max_scans,
                                      .warnings = &warnings});
  report->decoded = image.ok();
  if (warnings.count > 0) {
    report->notes.push_back(
        {.trouble = ImageTrouble::kWarning,
         .detail = warnings.count == 1
                       ? std::string(warnings.first)
                       : absl::StrCat(warnings.first, ", and ", warnings.count - 1, " more")});
  }
  if (image.ok()) return;
  const absl::Status& status = image.status();
  // The probe accepted it, so the only remaining limit is a frame larger than its GIF's screen.
  ImageTrouble trouble = ImageTrouble::kDamaged;
  if (absl::IsUnimplemented(status)) trouble = ImageTrouble::kUnsupported;
  if (absl::IsResourceExhausted(status)) trouble = ImageTrouble::kPixelLimit;
  report->notes.push_back({.trouble = trouble, .detail = std::string(status.message())});
}

ImageReport ImageInspector::Inspect(Bytes file, const ImageLimits& limits, Gate* gate) {
  ImageReport report;
  const ProbeResult probe =
      ProbeImage(file, {.level = ProbeLevel::kStructure, .max_pixels = limits.max_pixels});
  report.info = probe.info;
  if (probe.verdict != ProbeVerdict::kOk) {
    ImageNote note{.trouble = TroubleOf(probe.verdict), .offset = probe.offset};
    note.detail = probe.verdict == ProbeVerdict::kEmpty ? "no bytes" : probe.detail;
    if (probe.verdict == ProbeVerdict::kPixelLimit) {
      note.expected = absl::StrCat("at most ", limits.max_pixels, " pixels");
      note.actual = absl::StrCat(probe.info.width, " x ", probe.info.height);
    }
    report.notes.push_back(std::move(note));
    return report;
  }
  const ImageExtras extras = MeasureExtras(file, report.info.format);
  if (!WithinLimits(extras, limits, &report)) return report;
  const uint64_t bytes = DecodeMemoryBytes(report.info, extras.scans);
  if (gate != nullptr) gate->Enter(bytes);
  Decode(file, limits, &report);
  constexpr uint64_t kKeptBytes = 16 << 20;
  if (bytes > kKeptBytes) decoder_ = ImageDecoder();  // its buffers would not be accounted for
  if (gate != nullptr) gate->Leave(bytes);
  return report;
}

}  // namespace shardpack
