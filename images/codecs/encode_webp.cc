#include <webp/encode.h>
#include <webp/mux.h>

#include <array>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "images/codecs/encode_internal.h"

namespace shardpack::encode_internal {
namespace {

constexpr int kMethod = 4;

absl::Status Failure(const char* what, int code) {
  const absl::StatusCode kind = code == VP8_ENC_ERROR_OUT_OF_MEMORY
                                    ? absl::StatusCode::kResourceExhausted
                                    : absl::StatusCode::kInvalidArgument;
  return absl::Status(kind,
                      absl::StrCat("WebP: ", what, code == 0 ? "" : absl::StrCat(" (", code, ")")));
}

int PutBytes(const uint8_t* bytes, size_t size_bytes, const WebPPicture* picture) {
  auto* file = static_cast<std::vector<std::byte>*>(picture->custom_ptr);
  const auto* from = reinterpret_cast<const std::byte*>(bytes);
  file->insert(file->end(), from, from + size_bytes);
  return 1;
}

// WebP does not support gray.
std::vector<uint8_t> InColor(const PixelView& view, uint32_t channels) {
  std::vector<uint8_t> pixels(size_t{view.width} * view.height * channels);
  uint8_t* to = pixels.data();
  for (uint32_t y = 0; y < view.height; ++y) {
    const uint8_t* from = view.Row(y);
    for (uint32_t x = 0; x < view.width; ++x, from += view.channels, to += channels) {
      to[0] = to[1] = to[2] = from[0];
      if (channels == 4) to[3] = from[1];
    }
  }
  return pixels;
}

absl::Status EncodePicture(const PixelView& view, const WebPConfig& config,
                           std::vector<std::byte>* file) {
  WebPPicture picture;
  if (!WebPPictureInit(&picture)) return Failure("another libwebp", 0);
  picture.width = static_cast<int>(view.width);
  picture.height = static_cast<int>(view.height);
  picture.use_argb = config.lossless;
  picture.writer = PutBytes;
  picture.custom_ptr = file;
  const uint32_t channels = view.channels % 2 == 0 ? 4 : 3;
  const uint8_t* pixels = view.pixels;
  int stride_bytes = static_cast<int>(view.stride_bytes);
  std::vector<uint8_t> colored;
  if (view.channels <= 2) {
    colored = InColor(view, channels);
    pixels = colored.data();
    stride_bytes = static_cast<int>(view.width * channels);
  }
  const int imported = channels == 4 ? WebPPictureImportRGBA(&picture, pixels, stride_bytes)
                                     : WebPPictureImportRGB(&picture, pixels, stride_bytes);
  const bool done = imported && WebPEncode(&config, &picture);
  const absl::Status status =
      done ? absl::OkStatus() : Failure("cannot be encoded", picture.error_code);
  WebPPictureFree(&picture);
  return status;
}

// Wraps the pixels in a container with their metadata.
absl::Status AddMetadata(const EncodeOptions& options, std::vector<std::byte>* file) {
  WebPMux* mux = WebPMuxNew();
  if (mux == nullptr) return Failure("no memory", VP8_ENC_ERROR_OUT_OF_MEMORY);
  const auto data = [](const auto& bytes) {
    return WebPData{reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
  };
  const WebPData image = data(*file), profile = data(options.profile);
  const std::array<uint8_t, 26> directory = OrientationExif(options.orientation);
  const WebPData exif = data(directory);
  bool done = WebPMuxSetImage(mux, &image, /*copy_data=*/0) == WEBP_MUX_OK;
  if (done && !options.profile.empty()) {
    done = WebPMuxSetChunk(mux, "ICCP", &profile, 0) == WEBP_MUX_OK;
  }
  if (done && options.orientation > 1) {
    done = WebPMuxSetChunk(mux, "EXIF", &exif, 0) == WEBP_MUX_OK;
  }
  WebPData assembled = {};
  done = done && WebPMuxAssemble(mux, &assembled) == WEBP_MUX_OK;
  WebPMuxDelete(mux);
  if (done) {
    file->resize(assembled.size);
    std::memcpy(file->data(), assembled.bytes, assembled.size);
  }
  WebPDataClear(&assembled);
  return done ? absl::OkStatus() : Failure("its metadata cannot be written", 0);
}

}  // namespace

absl::Status EncodeWebp(const PixelView& view, const EncodeOptions& options,
                        std::vector<std::byte>* file) {
  file->clear();
  if (view.width > WEBP_MAX_DIMENSION || view.height > WEBP_MAX_DIMENSION) {
    return Failure("a side has at most 16383 pixels", 0);
  }
  WebPConfig config;
  if (!WebPConfigInit(&config)) return Failure("another libwebp", 0);
  config.quality = options.quality;
  config.method = kMethod;
  config.lossless = options.lossless ? 1 : 0;
  config.exact = options.lossless ? 1 : 0;
  config.thread_level = 0;
  absl::Status status = EncodePicture(view, config, file);
  if (status.ok() && (options.orientation > 1 || !options.profile.empty())) {
    status = AddMetadata(options, file);
  }
  return status;
}

}  // namespace shardpack::encode_internal
