#include "formats/npy/npy_scanner.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/core/image_info.h"
#include "formats/core/sample.h"
#include "formats/io/status_macros.h"
#include "formats/npy/npy_labels.h"
#include "formats/npy/npy_layout.h"

namespace shardpack {
namespace {

constexpr uint64_t kMaxSide = 1 << 20;  // larger widths and heights are not images

// kUnknown if the array does not hold images.
ImageInfo ImageOf(const NpyHeader& header) {
  const std::vector<uint64_t>& shape = header.shape;
  const bool bytes = header.descr == "|u1" || header.descr == "<u1" || header.descr == ">u1" ||
                     header.descr == "=u1";
  if (!bytes || header.fortran_order || shape.size() < 3 || shape.size() > 4) return {};
  const uint64_t channels = shape.size() == 4 ? shape[3] : 1;
  if (shape[1] < 1 || shape[1] > kMaxSide || shape[2] < 1 || shape[2] > kMaxSide) return {};
  if (channels < 1 || channels > 4 || shape[1] * shape[2] * channels < kMinRawImageBytes) return {};
  return RawImageInfo(static_cast<uint32_t>(shape[1]), static_cast<uint32_t>(shape[2]),
                      static_cast<uint8_t>(channels));
}

// Leaves out the arrays beside images.npy that hold something else of the same samples.
void NameOthers(const std::string& images_path, RecordSink& records) {
  const std::filesystem::path path(images_path);
  if (path.filename() != kImagesFile) return;
  std::error_code failed;  // a folder that cannot be listed can be read all the same
  for (std::filesystem::directory_iterator entry(path.parent_path(), failed), end;
       !failed && entry != end; entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    if (name.ends_with(".npy") && name != kImagesFile && name != kLabelsFile)
      records.OnLeftOut(name);
  }
}

}  // namespace

constinit const NpyScanner kNpyScanner;

absl::Status NpyScanner::Scan(SequentialReader& in, const ScanOptions& options, RecordSink& records,
                              FindingSink& findings) const {
  const auto make = [&](FindingId id, uint64_t offset) {
    Finding finding = MakeFinding(id, options.shard_name);
    finding.offset = offset;
    return finding;
  };
  ASSIGN_OR_RETURN(const Bytes head, in.Peek(kMaxNpyPrefixBytes + kMaxNpyHeaderBytes));
  NpyHeader header;
  if (std::string why = ParseNpyHeader(head, &header); !why.empty()) {
    Finding finding = make(FindingId::kNpyHeader, 0);
    finding.detail = std::move(why);
    findings.Report(std::move(finding));
    return absl::OkStatus();
  }
  const ImageInfo image = ImageOf(header);
  if (image.format != ImageFormat::kRaw) {
    Finding finding = make(FindingId::kNpyLayout, 0);
    finding.expected = absl::StrCat(
        "uint8 in C order, (samples, height, width) or with 1 to 4 channels after them, at least ",
        kMinRawImageBytes, " bytes per image");
    finding.actual = absl::StrCat(header.descr.empty() ? "a structure" : header.descr,
                                  header.fortran_order ? " in Fortran order, " : ", ",
                                  NpyShapeText(header.shape));
    findings.Report(std::move(finding));
    return absl::OkStatus();
  }
  NameOthers(in.file().path(), records);
  RETURN_IF_ERROR(in.Skip(header.data_offset));
  const uint64_t image_bytes = RawImageBytes(image);
  const uint64_t claimed = header.shape[0], there = in.remaining() / image_bytes;
  const uint64_t samples = std::min(claimed, there);
  // The labels of a truncated file match nothing.
  std::vector<int64_t> labels;
  if (samples == claimed) {
    ASSIGN_OR_RETURN(labels,
                     ReadNpyLabels(in.file().path(), samples, options.shard_name, findings));
  }
  for (uint64_t i = 0; i < samples; ++i) {
    ScannedField field{.name = kImageField, .offset = in.position(), .length = image_bytes};
    ASSIGN_OR_RETURN(uint64_t hash, in.HashNext(image_bytes));
    field.hash = hash;
    records.OnRecord({.label = labels.empty() ? kNoLabel : labels[i],
                      .offset = field.offset,
                      .length = image_bytes,
                      .fields = {&field, 1},
                      .image = image});
  }
  if (samples < claimed) {
    Finding finding = make(FindingId::kContainerTruncated, in.position());
    finding.expected = absl::StrCat(claimed, " images of ", image_bytes, " bytes");
    finding.actual = absl::StrCat(samples, " images");
    findings.Report(std::move(finding));
  } else if (in.remaining() > 0) {
    Finding finding = make(FindingId::kTrailingData, in.position());
    finding.length = in.remaining();
    findings.Report(std::move(finding));
  }
  return absl::OkStatus();
}

}  // namespace shardpack
