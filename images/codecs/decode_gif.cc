#include <gif_lib.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "formats/io/status_macros.h"
#include "images/codecs/decode_internal.h"

namespace shardpack::decode_internal {
namespace {

struct Source {
  Bytes file;
  size_t at = 0;
};

int ReadBytes(GifFileType* gif, GifByteType* to, int size_bytes) {
  Source* source = static_cast<Source*>(gif->UserData);
  const size_t got = std::min<size_t>(static_cast<size_t>(std::max(size_bytes, 0)),
                                      source->file.size() - source->at);
  std::memcpy(to, source->file.data() + source->at, got);
  source->at += got;
  return static_cast<int>(got);
}

absl::Status Failure(int code) {
  const char* words = GifErrorString(code);
  return Damaged("GIF", words == nullptr ? "not decodable" : words);
}

// Reads up to the first frame. `transparent` becomes the index of transparent pixels, if any.
absl::Status FindFrame(GifFileType* gif, int* transparent) {
  for (;;) {
    GifRecordType type;
    if (DGifGetRecordType(gif, &type) == GIF_ERROR) return Failure(gif->Error);
    if (type == IMAGE_DESC_RECORD_TYPE) break;
    if (type == TERMINATE_RECORD_TYPE) return Damaged("GIF", "no frame");
    if (type != EXTENSION_RECORD_TYPE) continue;
    int code = 0;
    GifByteType* block = nullptr;
    if (DGifGetExtension(gif, &code, &block) == GIF_ERROR) return Failure(gif->Error);
    GraphicsControlBlock control;
    if (code == GRAPHICS_EXT_FUNC_CODE && block != nullptr &&
        DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK) {
      *transparent = control.TransparentColor;
    }
    while (block != nullptr) {
      if (DGifGetExtensionNext(gif, &block) == GIF_ERROR) return Failure(gif->Error);
    }
  }
  return DGifGetImageDesc(gif) == GIF_ERROR ? Failure(gif->Error) : absl::OkStatus();
}

void PutRow(const std::vector<GifPixelType>& indexes, const ColorMapObject& colors, int transparent,
            uint32_t count, size_t pixel_bytes, uint8_t* to) {
  if (pixel_bytes == 1) {
    std::copy_n(indexes.data(), count, to);
    return;
  }
  for (uint32_t x = 0; x < count; ++x, to += pixel_bytes) {
    if (pixel_bytes == 4) to[3] = indexes[x] == transparent ? 0 : 255;
    // An index outside the table is black, as in browsers.
    const GifColorType color =
        indexes[x] < colors.ColorCount ? colors.Colors[indexes[x]] : GifColorType{0, 0, 0};
    to[0] = color.Red;
    to[1] = color.Green;
    to[2] = color.Blue;
  }
}

// Pixels outside all frames have the background's colour, or are transparent with alpha, as in
// browsers.
void PutBackground(const GifFileType& gif, size_t pixels, size_t pixel_bytes, uint8_t* to) {
  if (pixel_bytes == 1) {
    std::fill_n(to, pixels, static_cast<uint8_t>(gif.SBackGroundColor));
    return;
  }
  GifColorType color{0, 0, 0};
  if (gif.SColorMap != nullptr && gif.SBackGroundColor < gif.SColorMap->ColorCount) {
    color = gif.SColorMap->Colors[gif.SBackGroundColor];
  }
  for (size_t i = 0; i < pixels; ++i, to += pixel_bytes) {
    if (pixel_bytes == 4) to[3] = 0;
    to[0] = color.Red;
    to[1] = color.Green;
    to[2] = color.Blue;
  }
}

// Interlaced rows come in four passes (GIF89a, appendix E).
absl::Status PutFrame(GifFileType* gif, int transparent, const CodecRequest& request,
                      uint8_t* pixels) {
  const GifImageDesc& frame = gif->Image;
  const ColorMapObject* colors = frame.ColorMap != nullptr ? frame.ColorMap : gif->SColorMap;
  if (colors == nullptr) return Damaged("GIF", "no colour table");
  if (frame.Width <= 0 || frame.Height <= 0) return Damaged("GIF", "an empty frame");
  const auto left = static_cast<uint32_t>(frame.Left), top = static_cast<uint32_t>(frame.Top);
  const auto width = static_cast<uint32_t>(frame.Width);
  const auto height = static_cast<uint32_t>(frame.Height);
  // A frame may be larger than the screen, and decoding all of its pixels takes time.
  if (uint64_t{width} * height > request.max_pixels) {
    return TooManyPixels(width, height, request.max_pixels);
  }
  const uint32_t bottom = request.region.top + request.region.height;
  // The part of the frame that is on the screen.
  const uint32_t shown = left < request.width ? std::min(width, request.width - left) : 0;
  std::vector<GifPixelType> indexes(width);
  static constexpr uint32_t kStart[] = {0, 4, 2, 1}, kStep[] = {8, 8, 4, 2};
  const bool interlaced = frame.Interlace;
  for (int pass = 0; pass < (interlaced ? 4 : 1); ++pass) {
    const uint32_t start = interlaced ? kStart[pass] : 0, step = interlaced ? kStep[pass] : 1;
    for (uint32_t y = start; y < height; y += step) {
      if (!interlaced && top + y >= bottom) break;
      if (DGifGetLine(gif, indexes.data(), frame.Width) == GIF_ERROR) return Failure(gif->Error);
      if (top + y >= request.height || shown == 0) continue;
      const size_t first = size_t{top + y} * request.width + left;
      PutRow(indexes, *colors, transparent, shown, PixelBytes(request),
             pixels + first * PixelBytes(request));
    }
  }
  return absl::OkStatus();
}

absl::Status DecodeOpened(GifFileType* gif, const CodecRequest& request, PixelBuffer* buffer) {
  const auto width = static_cast<uint32_t>(gif->SWidth);
  const auto height = static_cast<uint32_t>(gif->SHeight);
  if (width != request.width || height != request.height) return OtherSize(width, height, request);
  int transparent = NO_TRANSPARENT_COLOR;
  RETURN_IF_ERROR(FindFrame(gif, &transparent));
  if (!buffer->Reserve(WholeImageBytes(request))) return NoMemory();
  PutBackground(*gif, size_t{width} * height, PixelBytes(request), buffer->data());
  return PutFrame(gif, transparent, request, buffer->data());
}

}  // namespace

absl::Status DecodeGif(Bytes file, const CodecRequest& request, PixelBuffer* buffer) {
  Source source{file};
  int error = 0;
  GifFileType* gif = DGifOpen(&source, ReadBytes, &error);
  if (gif == nullptr) return Failure(error);
  const absl::Status status = DecodeOpened(gif, request, buffer);
  DGifCloseFile(gif, &error);
  return status;
}

}  // namespace shardpack::decode_internal
