#include "cuda/jpeg_decoder.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cuda/nvjpeg_backends.h"
#include "images/decode.h"

namespace shardpack {
namespace {

// A JPEG of three components that are red, green and blue themselves, by libjpeg's rules (its
// default_decompress_parms): nvJPEG would take them for YCbCr.
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

// Whether the file ends as a JPEG does, but for a few bytes: of a file that was cut, the engines
// make an image with a gray rest and say nothing.
bool HasEnd(std::span<const std::byte> file) {
  constexpr size_t kLooseBytes = 32;
  const auto tail = file.last(std::min(file.size(), kLooseBytes));
  constexpr std::array kEnd = {std::byte{0xFF}, std::byte{0xD9}};
  return std::search(tail.begin(), tail.end(), kEnd.begin(), kEnd.end()) != tail.end();
}

bool IsForNvjpeg(const JpegImage& image) {
  const ImageInfo& info = image.info;
  return info.format == ImageFormat::kJpeg && info.bits_per_channel == 8 && !info.truncated() &&
         (info.color_space == ColorSpace::kGray || info.color_space == ColorSpace::kRgb) &&
         HasEnd(image.file) && !IsRgbCoded(image.file);
}

// Page-locked memory that copies to the device read from.
class Staging {
 public:
  explicit Staging(const DeviceApi* device) : device_(device), pages_{Page(device), Page(device)} {}
  ~Staging() {
    for (Page& page : pages_) {
      page.done.Wait().IgnoreError();
      if (page.memory != nullptr) device_->host_free(device_->self, page.memory);
    }
  }

  // Memory that no copy reads any more, until the next call after Close.
  absl::StatusOr<uint8_t*> Open(size_t bytes) {
    Page& page = pages_[next_];
    if (!page.created) {
      if (auto status = page.done.Create(); !status.ok()) return status;
      page.created = true;
    }
    if (auto status = page.done.Wait(); !status.ok()) return status;
    if (page.bytes < bytes) {
      if (page.memory != nullptr) device_->host_free(device_->self, page.memory);
      page.memory = nullptr;
      page.bytes = 0;
      void* memory = nullptr;
      const int error = device_->host_alloc(device_->self, &memory, bytes).code;
      if (error != 0) return DeviceFailure("page-locked memory for decoded images", error);
      page.memory = memory;
      page.bytes = bytes;
    }
    return static_cast<uint8_t*>(page.memory);
  }
  absl::Status Close(Stream stream) {
    Page& page = pages_[next_];
    next_ = (next_ + 1) % pages_.size();
    return page.done.Record(stream);
  }

 private:
  struct Page {
    explicit Page(const DeviceApi* device) : done(device) {}
    void* memory = nullptr;
    size_t bytes = 0;
    bool created = false;
    JpegEvent done;
  };

  const DeviceApi* device_;
  std::array<Page, 2> pages_;
  size_t next_ = 0;
};

// What a copy of the whole image is; a multiple of 64 in the staging memory.
size_t CopyBytes(const JpegImage& image, uint8_t channels) {
  return image.pitch_bytes * (image.info.height - 1) + size_t{image.info.width} * channels;
}
size_t StagedBytes(const JpegImage& image, uint8_t channels) {
  return (CopyBytes(image, channels) + 63) / 64 * 64;
}

}  // namespace

class JpegDecoder::Impl {
 public:
  Impl(const NvjpegFunctions* functions, const DeviceApi& device, const JpegDecoderOptions& options)
      : device_(device), options_(options), staging_(&device_) {
    hardware_reason_ = hybrid_reason_ = functions == nullptr ? "no nvJPEG" : "not asked for";
    if (functions == nullptr) return;
    if (options.use_hardware) {
      auto made = NvjpegHardware::Create(*functions, device_, options.channels,
                                         std::max(options.hardware_batches, 1u));
      if (made.ok()) {
        hardware_.emplace(*std::move(made));
      } else {
        hardware_reason_ = std::string(made.status().message());
      }
    }
    if (options.use_hybrid) {
      auto made = NvjpegHybrid::Create(*functions, device_, options.channels,
                                       std::max(options.hybrid_pages, 1u));
      if (made.ok()) {
        hybrid_.emplace(*std::move(made));
      } else {
        hybrid_reason_ = std::string(made.status().message());
      }
    }
  }

  absl::Status Decode(std::span<const JpegImage> images, Stream stream,
                      std::span<JpegResult> results) {
    if (images.size() != results.size()) {
      return absl::InvalidArgumentError("as many results as images");
    }
    known_.assign(images.begin(), images.end());
    hardware_batch_.clear();
    hybrid_batch_.clear();
    cpu_batch_.clear();
    for (size_t i = 0; i < known_.size(); ++i) {
      // What stays so if the device fails before its turn.
      results[i] = {absl::UnknownError("not decoded"), JpegWay::kNone};
      if (auto status = Know(&known_[i]); !status.ok()) {
        Finish(&results[i], status, JpegWay::kNone);
      } else if (!IsForNvjpeg(known_[i])) {
        cpu_batch_.push_back(i);
      } else if (hardware_.has_value() && hardware_->Takes(known_[i])) {
        hardware_batch_.push_back(i);
      } else {
        hybrid_batch_.push_back(i);
      }
    }
    // What runs by itself first: the CPU works while the engines do.
    if (auto status = ByHardware(stream, results); !status.ok()) return status;
    if (auto status = ByHybrid(stream, results); !status.ok()) return status;
    return ByCpu(stream, results);
  }

  bool has_hardware() const { return hardware_.has_value(); }
  bool has_hybrid() const { return hybrid_.has_value(); }
  std::string backends() const {
    const std::string engines = !hardware_.has_value() ? hardware_reason_
                                : hardware_->engines() == 0
                                    ? "yes"
                                    : absl::StrCat(hardware_->engines(), " engines");
    return absl::StrCat("hardware: ", engines,
                        "; hybrid: ", hybrid_.has_value() ? "yes" : hybrid_reason_);
  }
  const JpegDecoderStats& stats() const { return stats_; }

 private:
  // Fills in what is not known of the image and checks its place.
  absl::Status Know(JpegImage* image) {
    const uint32_t width = image->info.width, height = image->info.height;
    const auto known = KnownImageInfo(image->file, image->info, options_.max_pixels);
    if (!known.ok()) return known.status();
    image->info = *known;
    if (width == 0 || height == 0) return absl::InvalidArgumentError("an image without a size");
    if (known->width != width || known->height != height) {
      return absl::DataLossError(absl::StrCat("the image is ", known->width, "x", known->height,
                                              ", expected ", width, "x", height));
    }
    if (image->out == nullptr || image->pitch_bytes < size_t{width} * options_.channels) {
      return absl::InvalidArgumentError("no room for the image");
    }
    if (uint64_t{width} * height > options_.max_pixels) {
      return absl::ResourceExhaustedError(
          absl::StrCat(width, "x", height, " is more than ", options_.max_pixels, " pixels"));
    }
    return absl::OkStatus();
  }

  void Finish(JpegResult* result, absl::Status status, JpegWay way) {
    uint64_t& count = !status.ok()                ? stats_.failed
                      : way == JpegWay::kHardware ? stats_.hardware
                      : way == JpegWay::kHybrid   ? stats_.hybrid
                                                  : stats_.cpu;
    ++count;
    *result = {std::move(status), way};
  }

  absl::Status ByHardware(Stream stream, std::span<JpegResult> results) {
    if (hardware_batch_.empty()) return absl::OkStatus();
    std::vector<const JpegImage*> images;
    for (const size_t i : hardware_batch_) images.push_back(&known_[i]);
    const absl::Status status = hardware_->Decode(images, stream);
    if (status.code() == absl::StatusCode::kInternal) return status;
    if (!status.ok()) {
      // Which of them it was is not said: each gets its own answer.
      Refused(status);
      hybrid_batch_.insert(hybrid_batch_.end(), hardware_batch_.begin(), hardware_batch_.end());
      return absl::OkStatus();
    }
    ++stats_.batches;
    for (const size_t i : hardware_batch_) {
      Finish(&results[i], absl::OkStatus(), JpegWay::kHardware);
    }
    return absl::OkStatus();
  }

  absl::Status ByHybrid(Stream stream, std::span<JpegResult> results) {
    for (const size_t i : hybrid_batch_) {
      if (!hybrid_.has_value()) {
        cpu_batch_.push_back(i);
        continue;
      }
      const absl::Status status = hybrid_->Decode(known_[i], stream);
      if (status.code() == absl::StatusCode::kInternal) return status;
      if (status.ok()) {
        Finish(&results[i], status, JpegWay::kHybrid);
      } else {
        ++stats_.refused;
        Refused(status);
        cpu_batch_.push_back(i);
      }
    }
    return absl::OkStatus();
  }

  void Refused(const absl::Status& status) {
    if (stats_.first_refusal.empty()) stats_.first_refusal = std::string(status.message());
  }

  // In groups that fit the staging memory.
  absl::Status ByCpu(Stream stream, std::span<JpegResult> results) {
    for (size_t first = 0; first < cpu_batch_.size();) {
      size_t bytes = 0, last = first;
      while (last < cpu_batch_.size()) {
        const size_t more = StagedBytes(known_[cpu_batch_[last]], options_.channels);
        if (last > first && bytes + more > options_.staging_bytes) break;
        bytes += more;
        ++last;
      }
      const auto memory = staging_.Open(std::max(bytes, options_.staging_bytes));
      if (!memory.ok()) return memory.status();
      uint8_t* to = *memory;
      for (; first < last; ++first) {
        const JpegImage& image = known_[cpu_batch_[first]];
        JpegResult* const result = &results[cpu_batch_[first]];
        const absl::Status status = DecodeOnCpu(image, to);
        Finish(result, status, JpegWay::kCpu);
        if (!status.ok()) continue;
        const int error = device_
                              .copy_to_device(device_.self, image.out, to,
                                              CopyBytes(image, options_.channels), stream)
                              .code;
        if (error != 0) {
          // What was enqueued before may still read the page.
          staging_.Close(stream).IgnoreError();
          return DeviceFailure("copying a decoded image to the device", error);
        }
        to += StagedBytes(image, options_.channels);
      }
      if (auto status = staging_.Close(stream); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status DecodeOnCpu(const JpegImage& image, uint8_t* to) {
    DecodeOptions decode;
    decode.channels = options_.channels;
    decode.orient = false;
    decode.max_pixels = options_.max_pixels;
    const auto decoded = decoder_.Decode(image.file, image.info, decode);
    if (!decoded.ok()) return decoded.status();
    const size_t row_bytes = size_t{image.info.width} * options_.channels;
    for (uint32_t y = 0; y < image.info.height; ++y, to += image.pitch_bytes) {
      std::memcpy(to, decoded->view.Row(y), row_bytes);
      if (y + 1 < image.info.height) std::memset(to + row_bytes, 0, image.pitch_bytes - row_bytes);
    }
    return absl::OkStatus();
  }

  const DeviceApi& device_;
  const JpegDecoderOptions options_;
  std::optional<NvjpegHardware> hardware_;
  std::optional<NvjpegHybrid> hybrid_;
  std::string hardware_reason_, hybrid_reason_;
  ImageDecoder decoder_;
  Staging staging_;
  JpegDecoderStats stats_;
  // Of one call.
  std::vector<JpegImage> known_;
  std::vector<size_t> hardware_batch_, hybrid_batch_, cpu_batch_;
};

JpegDecoder::JpegDecoder(const NvjpegFunctions* functions, const DeviceApi& device,
                         const JpegDecoderOptions& options)
    : impl_(std::make_unique<Impl>(functions, device, options)) {}
JpegDecoder::JpegDecoder(JpegDecoder&&) noexcept = default;
JpegDecoder& JpegDecoder::operator=(JpegDecoder&&) noexcept = default;
JpegDecoder::~JpegDecoder() = default;

absl::Status JpegDecoder::Decode(std::span<const JpegImage> images, Stream stream,
                                 std::span<JpegResult> results) {
  return impl_->Decode(images, stream, results);
}
bool JpegDecoder::has_hardware() const { return impl_->has_hardware(); }
bool JpegDecoder::has_hybrid() const { return impl_->has_hybrid(); }
std::string JpegDecoder::backends() const { return impl_->backends(); }
const JpegDecoderStats& JpegDecoder::stats() const { return impl_->stats(); }

}  // namespace shardpack
