#include "validators/checks/image_check.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/core/image_info.h"

namespace shardpack {
namespace {

// Images that are decoded together: enough for all threads, few enough to keep in memory.
constexpr size_t kBlockImages = 512;
// The memory that a thread keeps between images without asking a gate.
constexpr size_t kKeptBytes = 4 << 20;

FindingId FindingOf(ImageTrouble trouble) {
  switch (trouble) {
    case ImageTrouble::kNotAnImage:
      return FindingId::kNotAnImage;
    case ImageTrouble::kDamaged:
      return FindingId::kImageDamaged;
    case ImageTrouble::kUnsupported:
      return FindingId::kImageUnsupported;
    case ImageTrouble::kWarning:
      return FindingId::kImageWarning;
    case ImageTrouble::kPixelLimit:
      return FindingId::kImagePixelLimit;
    case ImageTrouble::kAncillaryLimit:
      return FindingId::kImageAncillaryLimit;
    case ImageTrouble::kScanLimit:
      break;
  }
  return FindingId::kImageScanLimit;
}

// Without the flags: for some formats they require the whole file, and not every index has them.
std::string FactsText(const ImageInfo& info) {
  const std::string_view format = ImageExtension(info.format);
  return absl::StrCat(absl::string_view(format.data(), format.size()), " ", info.width, " x ",
                      info.height, ", ", info.channels, " channels of ", info.bits_per_channel,
                      " bits, orientation ", info.orientation);
}

}  // namespace

bool ImageCheck::IsImageField(std::string_view name) {
  static constexpr std::string_view kExtensions[] = {"jpg", "jpeg", "png",  "webp",
                                                     "gif", "bmp",  "tiff", "tif"};
  const size_t dot = name.rfind('.');
  const std::string_view extension = dot == name.npos ? name : name.substr(dot + 1);
  return std::ranges::find(kExtensions, extension) != std::end(kExtensions);
}

Finding ImageCheck::Make(FindingId id, const ImageToCheck& image) const {
  Finding finding = MakeFinding(id, shard_);
  finding.record = image.record;
  finding.key = image.key;
  finding.field = image.field;
  finding.offset = image.extent.offset;
  finding.length = image.extent.length;
  return finding;
}

void ImageCheck::Add(ImageToCheck image) {
  waiting_.push_back(std::move(image));
  if (waiting_.size() >= kBlockImages) Flush();
}

void ImageCheck::CheckEncoded(const ImageToCheck& image, Worker& worker, Result& result) const {
  worker.bytes.resize(image.extent.length);
  const absl::Status read = file_.ReadExactlyAt(image.extent.offset, worker.bytes);
  if (!read.ok()) {
    if (absl::IsOutOfRange(read)) return;
    result.findings.push_back(Make(FindingId::kReadError, image));
    result.findings.back().detail = std::string(read.message());
    return;
  }
  result.looked = true;
  result.report = worker.inspector.Inspect(worker.bytes, run_.image_limits, &run_.gates.pixels);
  const bool by_request = image.indexed && image.indexed->truncated();
  for (ImageNote& note : result.report.notes) {
    Finding finding = Make(FindingOf(note.trouble), image);
    if (by_request && note.trouble == ImageTrouble::kDamaged) {
      finding.severity = Severity::kWarning;
      absl::StrAppend(&note.detail, "; it was packed so by request");
    }
    if (note.offset) *finding.offset += *note.offset, finding.length.reset();
    finding.detail = std::move(note.detail);
    finding.expected = std::move(note.expected);
    finding.actual = std::move(note.actual);
    result.findings.push_back(std::move(finding));
  }
  if (!result.report.decoded || !image.indexed) return;
  if (image.indexed->format == ImageFormat::kUnknown) return;
  const std::string expected = FactsText(*image.indexed), actual = FactsText(result.report.info);
  if (expected == actual) return;
  Finding finding = Make(FindingId::kImageFacts, image);
  finding.expected = expected;
  finding.actual = actual;
  result.findings.push_back(std::move(finding));
}

void ImageCheck::Check(const ImageToCheck& image, Worker& worker, Result& result) const {
  if (image.extent.length > kMaxImageFileBytes) {
    result.findings.push_back(Make(FindingId::kImageFileLimit, image));
    result.findings.back().expected = absl::StrCat("at most ", kMaxImageFileBytes, " bytes");
    return;
  }
  const uint64_t bytes = image.extent.length;
  if (image.indexed && image.indexed->format == ImageFormat::kRaw) {
    result.looked = true;
    result.report.decoded = bytes == RawImageBytes(*image.indexed);
    if (result.report.decoded) return;
    result.findings.push_back(Make(FindingId::kImageDamaged, image));
    result.findings.back().detail = "raw pixels of another size than width, height and channels";
    result.findings.back().expected = absl::StrCat(RawImageBytes(*image.indexed), " bytes");
    result.findings.back().actual = absl::StrCat(bytes, " bytes");
    return;
  }
  const bool large = bytes > kKeptBytes;
  if (large) run_.gates.files.Enter(bytes);
  CheckEncoded(image, worker, result);
  if (!large) return;
  std::vector<std::byte>().swap(worker.bytes);
  run_.gates.files.Leave(bytes);
}

void ImageCheck::Flush() {
  std::vector<Result> results(waiting_.size());
  tbb::parallel_for(tbb::blocked_range<size_t>(0, waiting_.size(), 8), [&](const auto& range) {
    Worker worker;
    for (size_t i = range.begin(); i < range.end() && !run_.Stopped(); ++i) {
      Check(waiting_[i], worker, results[i]);
    }
  });
  for (Result& result : results) {
    out_.images_checked += result.looked ? 1 : 0;
    out_.images_decoded += result.report.decoded ? 1 : 0;
    out_.animated += result.report.info.animated() ? 1 : 0;
    for (Finding& finding : result.findings) out_.findings.Report(std::move(finding));
  }
  waiting_.clear();
}

}  // namespace shardpack
