#include "cuda/jpeg/jpeg_decoder.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cuda/jpeg/jpeg_worker.h"
#include "cuda/jpeg/nvjpeg_backends.h"
#include "cuda/kernels/run_on_threads.h"
#include "formats/io/status_macros.h"
#include "images/pixels/orientation.h"
#include "images/probe/marker_scan.h"

namespace shardpack {
namespace {

// Whether the three components of a JPEG are red, green and blue themselves, by libjpeg's rules
// (its default_decompress_parms): nvJPEG would take them for YCbCr.
bool IsRgbCoded(std::span<const std::byte> file) {
  const auto at = [&](size_t i) { return static_cast<uint32_t>(file[i]); };
  std::optional<bool> by_adobe;
  bool by_names = false;
  for (size_t i = 2; i + 4 <= file.size() && at(i) == 0xFF;) {
    const uint32_t marker = at(i + 1);
    if (marker == 0xFF) {  // fill
      ++i;
      continue;
    }
    const size_t length = at(i + 2) << 8 | at(i + 3);
    if (marker == 0xDA || length < 2 || length > file.size() - i - 2) break;
    const auto begins = [&](const char* text, size_t size) {
      return length >= 2 + size && std::memcmp(file.data() + i + 4, text, size) == 0;
    };
    if (marker == 0xE0 && begins("JFIF", 5)) return false;
    if (marker == 0xEE && length >= 14 && begins("Adobe", 5)) by_adobe = at(i + 15) == 0;
    const bool frame = marker >= 0xC0 && marker <= 0xCF && marker % 4 != 0;
    if ((frame || marker == 0xC0) && length >= 17 && at(i + 9) == 3) {
      by_names = at(i + 10) == 'R' && at(i + 13) == 'G' && at(i + 16) == 'B';
    }
    i += 2 + length;
  }
  return by_adobe.value_or(by_names);
}

// Whether the file ends as a JPEG does, up to a few more bytes: the engines decode a truncated file
// to an image whose rest is gray, and report no error.
bool HasEnd(std::span<const std::byte> file) {
  constexpr size_t kLooseBytes = 32;
  const auto tail = file.last(std::min(file.size(), kLooseBytes));
  constexpr std::array kEnd = {std::byte{0xFF}, std::byte{0xD9}};
  return std::search(tail.begin(), tail.end(), kEnd.begin(), kEnd.end()) != tail.end();
}

// A progressive JPEG may have thousands of scans, each a pass over all its coefficients; the CPU's
// decoder refuses those. Anything that looks like a scan is counted.
bool HasManyScans(const JpegImage& image, uint32_t max_scans) {
  if (!image.info.progressive()) return false;
  const std::span<const std::byte> file = image.file;
  uint32_t scans = 0;
  for (size_t at = FindJpegMarker(file, 2); at + 1 < file.size() && scans <= max_scans;
       at = FindJpegMarker(file, at + 2)) {
    scans += file[at + 1] == std::byte{0xDA};
  }
  return scans > max_scans;
}

bool IsForNvjpeg(const JpegImage& image, const JpegDecoderOptions& options) {
  const ImageInfo& info = image.info;
  return info.format == ImageFormat::kJpeg && info.bits_per_channel == 8 && !info.truncated() &&
         (info.color_space == ColorSpace::kGray || info.color_space == ColorSpace::kRgb) &&
         !(options.orient && info.orientation != 1) && HasEnd(image.file) &&
         !IsRgbCoded(image.file) && !HasManyScans(image, options.max_scans);
}

}  // namespace

absl::StatusOr<ImageInfo> CheckImage(std::span<const std::byte> file, const ImageInfo& info,
                                     uint64_t max_pixels) {
  absl::StatusOr<ImageInfo> known = KnownImageInfo(file, info, max_pixels);
  if (!known.ok()) return known;
  if (known->width == 0 || known->height == 0) {
    return absl::InvalidArgumentError("an image without pixels");
  }
  if (uint64_t{known->width} * known->height > max_pixels) {
    return absl::ResourceExhaustedError(
        absl::StrCat(known->width, "x", known->height, " is more than ", max_pixels, " pixels"));
  }
  return known;
}

JpegSize SizeOf(const ImageInfo& info, bool orient) {
  const bool turned = orient && OrientationOf(info.orientation).transpose;
  return turned ? JpegSize{info.height, info.width} : JpegSize{info.width, info.height};
}

class JpegDecoder::Impl {
 public:
  Impl(const NvjpegFunctions* functions, Device& device, const JpegDecoderOptions& options)
      : device_(device), options_(options) {
    hardware_reason_ = functions == nullptr ? "no nvJPEG" : "not asked for";
    if (functions != nullptr && options.use_hardware) {
      auto made = NvjpegHardware::Create(*functions, device_, options);
      if (made.ok()) {
        hardware_.emplace(*std::move(made));
      } else {
        hardware_reason_ = std::string(made.status().message());
      }
    }
    for (int i = 0; i < std::max(options.threads, 1); ++i) {
      workers_.push_back(std::make_unique<JpegWorker>(functions, device_, options_));
    }
    workers_.front()->MakeHybrid();  // says for all whether there is one
  }

  absl::Status Decode(std::span<const JpegImage> images, Stream stream,
                      std::span<JpegResult> results) {
    if (images.size() != results.size()) {
      return absl::InvalidArgumentError("as many results as images");
    }
    known_.assign(images.begin(), images.end());
    hardware_batch_.clear();
    worker_batch_.clear();
    for (size_t i = 0; i < known_.size(); ++i) {
      // The result if the device fails before this image is decoded.
      results[i] = {absl::UnknownError("not decoded"), JpegWay::kNone};
      if (auto status = Know(&known_[i]); !status.ok()) {
        ++stats_.failed;
        results[i] = {std::move(status), JpegWay::kNone};
        continue;
      }
      const bool for_nvjpeg = IsForNvjpeg(known_[i], options_);
      if (for_nvjpeg && hardware_.has_value() && hardware_->Takes(known_[i])) {
        hardware_batch_.push_back(i);
      } else {
        worker_batch_.push_back({i, for_nvjpeg});
      }
    }
    // The engines first: the CPU works while they do.
    if (auto status = ByHardware(stream, results); !status.ok()) return status;
    return ByWorkers(stream, results);
  }

  bool has_hardware() const { return hardware_.has_value(); }
  bool has_hybrid() const { return workers_.front()->has_hybrid(); }
  std::string backends() const {
    const std::string engines = !hardware_.has_value() ? hardware_reason_
                                : hardware_->engines() == 0
                                    ? "yes"
                                    : absl::StrCat(hardware_->engines(), " engines");
    return absl::StrCat("hardware: ", engines,
                        "; hybrid: ", has_hybrid() ? "yes" : workers_.front()->why_no_hybrid());
  }
  JpegDecoderStats stats() const {
    JpegDecoderStats sum = stats_;
    for (const auto& worker : workers_) {
      const JpegDecoderStats& one = worker->stats();
      sum.hybrid += one.hybrid;
      sum.cpu += one.cpu;
      sum.failed += one.failed;
      sum.refused += one.refused;
      sum.without_nvjpeg += one.without_nvjpeg;
      sum.pageable += one.pageable;
      if (sum.first_refusal.empty()) sum.first_refusal = one.first_refusal;
    }
    return sum;
  }

 private:
  static constexpr int kMaxFailures = 3;

  struct WorkerItem {
    size_t image;
    bool for_nvjpeg;
  };

  // Fills in what is not known of the image and checks its output.
  absl::Status Know(JpegImage* image) {
    const uint32_t width = image->info.width, height = image->info.height;
    ASSIGN_OR_RETURN(const ImageInfo known,
                     CheckImage(image->file, image->info, options_.max_pixels));
    image->info = known;
    if (known.width != width || known.height != height) {
      return absl::DataLossError(absl::StrCat("the image is ", known.width, "x", known.height,
                                              ", expected ", width, "x", height));
    }
    const size_t row_bytes = size_t{SizeOf(known, options_.orient).width} * options_.channels;
    if (image->out == nullptr || image->pitch_bytes < row_bytes) {
      return absl::InvalidArgumentError("no room for the image");
    }
    return absl::OkStatus();
  }

  absl::Status ByHardware(Stream stream, std::span<JpegResult> results) {
    if (hardware_batch_.empty()) return absl::OkStatus();
    std::vector<const JpegImage*> images;
    for (const size_t i : hardware_batch_) images.push_back(&known_[i]);
    const absl::Status status = hardware_->Decode(images, stream);
    if (!status.ok() && !IsRefusal(status)) return status;
    if (!status.ok()) {
      // nvJPEG does not say which image it refused: each is tried by itself.
      if (stats_.first_refusal.empty()) stats_.first_refusal = std::string(status.message());
      ++stats_.failed_batches;
      for (const size_t i : hardware_batch_) worker_batch_.push_back({i, true});
      if (++failed_in_a_row_ >= kMaxFailures) {
        hardware_reason_ = absl::StrCat("given up: ", std::string(status.message()));
        hardware_.reset();
      }
      return absl::OkStatus();
    }
    failed_in_a_row_ = 0;
    ++stats_.batches;
    stats_.hardware += hardware_batch_.size();
    for (const size_t i : hardware_batch_) results[i] = {absl::OkStatus(), JpegWay::kHardware};
    return absl::OkStatus();
  }

  // Each worker takes the next image when it is done with one.
  absl::Status ByWorkers(Stream stream, std::span<JpegResult> results) {
    std::atomic<size_t> next{0};
    std::vector<absl::Status> ends(workers_.size());
    RunOnThreads(std::min(workers_.size(), worker_batch_.size()), [&](size_t worker) {
      absl::Status& end = ends[worker];
      if (worker > 0) end = device_.EnterThread();
      for (size_t k; end.ok() && (k = next.fetch_add(1)) < worker_batch_.size();) {
        const WorkerItem& item = worker_batch_[k];
        end = workers_[worker]->Decode(known_[item.image], item.for_nvjpeg, stream,
                                       &results[item.image]);
      }
      if (!end.ok()) next.store(worker_batch_.size());
    });
    for (const absl::Status& end : ends) {
      if (!end.ok()) return end;
    }
    return absl::OkStatus();
  }

  Device& device_;
  const JpegDecoderOptions options_;
  std::optional<NvjpegHardware> hardware_;
  std::string hardware_reason_;
  int failed_in_a_row_ = 0;                           // batches, by the engines
  std::vector<std::unique_ptr<JpegWorker>> workers_;  // at least one
  JpegDecoderStats stats_;                            // without those of the workers
  // For one call.
  std::vector<JpegImage> known_;
  std::vector<size_t> hardware_batch_;
  std::vector<WorkerItem> worker_batch_;
};

JpegDecoder::JpegDecoder(const NvjpegFunctions* functions, Device& device,
                         const JpegDecoderOptions& options)
    : impl_(std::make_unique<Impl>(functions, device, options)) {}
JpegDecoder::~JpegDecoder() = default;

absl::Status JpegDecoder::Decode(std::span<const JpegImage> images, Stream stream,
                                 std::span<JpegResult> results) {
  return impl_->Decode(images, stream, results);
}
bool JpegDecoder::has_hardware() const { return impl_->has_hardware(); }
bool JpegDecoder::has_hybrid() const { return impl_->has_hybrid(); }
std::string JpegDecoder::backends() const { return impl_->backends(); }
JpegDecoderStats JpegDecoder::stats() const { return impl_->stats(); }

}  // namespace shardpack
