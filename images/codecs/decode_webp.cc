#include <webp/decode.h>
#include <webp/demux.h>

#include <cstring>

#include "images/codecs/decode_internal.h"

namespace shardpack::decode_internal {
namespace {

const char* Words(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY:
      return "out of memory";
    case VP8_STATUS_BITSTREAM_ERROR:
      return "bitstream error";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return "unsupported feature";
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA:
      return "the data ends early";
    default:
      return "not decodable";
  }
}

absl::Status DecodeFrame(const uint8_t* data, size_t size_bytes, const CodecRequest& request,
                         uint8_t* pixels, size_t stride_bytes, uint32_t height) {
  WebPDecoderConfig config;
  if (!WebPInitDecoderConfig(&config)) return absl::InternalError("WebP: another libwebp");
  config.options.no_fancy_upsampling = request.fast ? 1 : 0;
  config.output.colorspace = request.alpha ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = pixels;
  config.output.u.RGBA.stride = static_cast<int>(stride_bytes);
  config.output.u.RGBA.size = stride_bytes * height;
  const VP8StatusCode status = WebPDecode(data, size_bytes, &config);
  return status == VP8_STATUS_OK ? absl::OkStatus() : Damaged("WebP", Words(status));
}

// The first frame on a canvas that is black, or transparent with alpha.
absl::Status DecodeAnimation(Bytes file, const CodecRequest& request, PixelBuffer* buffer) {
  const WebPData data{reinterpret_cast<const uint8_t*>(file.data()), file.size()};
  WebPDemuxer* demuxer = WebPDemux(&data);
  if (demuxer == nullptr) return Damaged("WebP", "no frames can be found");
  WebPIterator frame = {};
  absl::Status status = Damaged("WebP", "no first frame");
  const uint32_t width = WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_WIDTH);
  const uint32_t height = WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_HEIGHT);
  if (width != request.width || height != request.height) {
    status = OtherSize(width, height, request);
  } else if (!buffer->Reserve(WholeImageBytes(request))) {
    status = NoMemory();
  } else if (WebPDemuxGetFrame(demuxer, 1, &frame)) {
    std::memset(buffer->data(), 0, WholeImageBytes(request));
    const bool inside = frame.x_offset >= 0 && frame.y_offset >= 0 && frame.width > 0 &&
                        frame.height > 0 && int64_t{frame.x_offset} + frame.width <= width &&
                        int64_t{frame.y_offset} + frame.height <= height;
    const size_t stride_bytes = width * PixelBytes(request);
    uint8_t* corner = inside ? buffer->data() + frame.y_offset * stride_bytes +
                                   frame.x_offset * PixelBytes(request)
                             : nullptr;
    int frame_width = 0, frame_height = 0;
    // The frame's own header determines how much is written.
    if (!inside ||
        !WebPGetInfo(frame.fragment.bytes, frame.fragment.size, &frame_width, &frame_height) ||
        frame_width != frame.width || frame_height != frame.height) {
      status = Damaged("WebP", "the first frame is not inside the image");
    } else {
      status = DecodeFrame(frame.fragment.bytes, frame.fragment.size, request, corner, stride_bytes,
                           frame.height);
    }
  }
  WebPDemuxReleaseIterator(&frame);
  WebPDemuxDelete(demuxer);
  return status;
}

}  // namespace

absl::Status DecodeWebp(Bytes file, const CodecRequest& request, PixelBuffer* buffer) {
  const auto* data = reinterpret_cast<const uint8_t*>(file.data());
  WebPBitstreamFeatures features;
  const VP8StatusCode known = WebPGetFeatures(data, file.size(), &features);
  if (known != VP8_STATUS_OK) return Damaged("WebP", Words(known));
  if (features.has_animation) return DecodeAnimation(file, request, buffer);
  const auto width = static_cast<uint32_t>(features.width);
  const auto height = static_cast<uint32_t>(features.height);
  if (width != request.width || height != request.height) return OtherSize(width, height, request);
  if (!buffer->Reserve(WholeImageBytes(request))) return NoMemory();
  return DecodeFrame(data, file.size(), request, buffer->data(), width * PixelBytes(request),
                     height);
}

}  // namespace shardpack::decode_internal
