#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "images/codecs/decode_internal.h"

namespace shardpack::decode_internal {
namespace {

// The state shared with libtiff's callbacks.
struct Session {
  Bytes file;
  uint64_t at = 0;
  char message[300] = "";  // the first one
  DecodeWarnings* warnings = nullptr;
};

Session* SessionOf(thandle_t handle) { return static_cast<Session*>(handle); }

tmsize_t ReadBytes(thandle_t handle, void* to, tmsize_t size_bytes) {
  Session* session = SessionOf(handle);
  if (session->at >= session->file.size() || size_bytes <= 0) return 0;
  const uint64_t got =
      std::min<uint64_t>(static_cast<uint64_t>(size_bytes), session->file.size() - session->at);
  std::memcpy(to, session->file.data() + session->at, got);
  session->at += got;
  return static_cast<tmsize_t>(got);
}

tmsize_t WriteNothing(thandle_t, void*, tmsize_t) { return 0; }

toff_t Seek(thandle_t handle, toff_t offset, int whence) {
  Session* session = SessionOf(handle);
  if (whence == SEEK_CUR) offset += session->at;
  if (whence == SEEK_END) offset += session->file.size();
  return session->at = offset;
}

int Close(thandle_t) { return 0; }
toff_t Size(thandle_t handle) { return SessionOf(handle)->file.size(); }

// Lets libtiff read strips in place.
int Map(thandle_t handle, void** base, toff_t* size_bytes) {
  const Bytes file = SessionOf(handle)->file;
  *base = const_cast<std::byte*>(file.data());
  *size_bytes = file.size();
  return 1;
}
void Unmap(thandle_t, void*, toff_t) {}

int KeepError(TIFF*, void* user, const char*, const char* format, va_list arguments) {
  Session* session = static_cast<Session*>(user);
  if (session->message[0] == '\0') {
    std::vsnprintf(session->message, sizeof(session->message), format, arguments);
  }
  return 1;
}

int KeepWarning(TIFF*, void* user, const char*, const char* format, va_list arguments) {
  Session* session = static_cast<Session*>(user);
  if (session->warnings == nullptr) return 1;
  char words[200];
  std::vsnprintf(words, sizeof(words), format, arguments);
  session->warnings->Add("TIFF", words);
  return 1;
}

absl::Status Failure(const Session& session) {
  return Damaged("TIFF", session.message[0] == '\0' ? "not decodable" : session.message);
}

// libtiff premultiplies colours unless it believes that they already are. Alpha is dropped here, so
// tell it so, which leaves the colours unchanged. Returns true if they were not premultiplied.
bool KeepColors(TIFF* tiff) {
  uint16_t count = 0, *kinds = nullptr;
  if (!TIFFGetField(tiff, TIFFTAG_EXTRASAMPLES, &count, &kinds) || count == 0) return false;
  if (kinds[0] != EXTRASAMPLE_UNASSALPHA) return false;
  uint16_t associated[16] = {EXTRASAMPLE_ASSOCALPHA};
  if (count <= 16) TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, count, associated);
  return true;
}

// Converts to RGBA in place; divides premultiplied colours by their alpha.
void Unmultiply(bool multiplied, const uint32_t* rgba, size_t pixels, uint8_t* to) {
  for (size_t i = 0; i < pixels; ++i, to += 4) {
    const uint32_t pixel = rgba[i], alpha = TIFFGetA(pixel);
    const uint32_t colors[3] = {TIFFGetR(pixel), TIFFGetG(pixel), TIFFGetB(pixel)};
    for (int c = 0; c < 3; ++c) {
      const uint32_t whole =
          multiplied && alpha > 0 ? (colors[c] * 255 + alpha / 2) / alpha : colors[c];
      to[c] = static_cast<uint8_t>(std::min<uint32_t>(whole, 255));
    }
    to[3] = static_cast<uint8_t>(alpha);
  }
}

// Strips and tiles may share bytes; the same few bytes must not be decoded again and again.
bool StripsFit(TIFF* tiff, uint64_t file_bytes) {
  const uint32_t count = TIFFIsTiled(tiff) ? TIFFNumberOfTiles(tiff) : TIFFNumberOfStrips(tiff);
  uint64_t left_bytes = file_bytes;
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t size_bytes = TIFFGetStrileByteCount(tiff, i);
    if (size_bytes > left_bytes) return false;
    left_bytes -= size_bytes;
  }
  return true;
}

// The numbers of an image with one sample a pixel, as they are stored: in rows, or in tiles that
// reach beyond the edges.
absl::Status ReadStored(TIFF* tiff, const Session& session, const CodecRequest& request,
                        PixelBuffer* buffer) {
  uint16_t bits = 1, samples = 1;
  TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &bits);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &samples);
  if (samples != 1 || bits > 8 || (bits & (bits - 1)) != 0) {
    return absl::UnimplementedError("TIFF: not one sample of 1, 2, 4 or 8 bits a pixel");
  }
  const bool tiled = TIFFIsTiled(tiff) != 0;
  uint32_t across = request.width, down = 1;
  if (tiled && (!TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &across) ||
                !TIFFGetField(tiff, TIFFTAG_TILELENGTH, &down) || across == 0 || down == 0)) {
    return Damaged("TIFF", "tiles without a size");
  }
  const tmsize_t row_bytes = tiled ? TIFFTileRowSize(tiff) : TIFFScanlineSize(tiff);
  const tmsize_t block_bytes = tiled ? TIFFTileSize(tiff) : row_bytes;
  if (row_bytes < static_cast<tmsize_t>((uint64_t{across} * bits + 7) / 8) ||
      block_bytes / row_bytes < static_cast<tmsize_t>(down)) {
    return Failure(session);
  }
  if (uint64_t{across} * down > request.max_pixels)
    return TooManyPixels(across, down, request.max_pixels);
  PixelBuffer block;
  if (!buffer->Reserve(WholeImageBytes(request)) ||
      !block.Reserve(static_cast<size_t>(block_bytes))) {
    return NoMemory();
  }
  for (uint32_t y = 0; y < request.height; y += std::min(down, request.height - y)) {
    for (uint32_t x = 0; x < request.width; x += std::min(across, request.width - x)) {
      const bool read = tiled ? TIFFReadTile(tiff, block.data(), x, y, 0, 0) >= 0
                              : TIFFReadScanline(tiff, block.data(), y, 0) >= 0;
      if (!read || session.message[0] != '\0') return Failure(session);
      const uint32_t columns = std::min(across, request.width - x);
      for (uint32_t row = 0; row < std::min(down, request.height - y); ++row) {
        UnpackRow(block.data() + row * static_cast<size_t>(row_bytes), bits, columns,
                  buffer->data() + (size_t{y} + row) * request.width + x);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status DecodePage(TIFF* tiff, const Session& session, const CodecRequest& request,
                        PixelBuffer* buffer) {
  uint32_t width = 0, height = 0;
  TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width);
  TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
  if (width != request.width || height != request.height) return OtherSize(width, height, request);
  if (!StripsFit(tiff, session.file.size())) {
    return Damaged("TIFF", "more bytes in strips than in the file");
  }
  if (request.stored) return ReadStored(tiff, session, request, buffer);
  char why[1024] = "";
  if (!TIFFRGBAImageOK(tiff, why)) {
    return absl::UnimplementedError(std::string("TIFF: ") + why);
  }
  const bool unassociated = KeepColors(tiff);
  TIFFRGBAImage image;
  if (!TIFFRGBAImageBegin(&image, tiff, /*stop=*/1, why)) return Damaged("TIFF", why);
  // Rows as stored: the caller applies the orientation.
  image.req_orientation = image.orientation;
  const size_t pixels = size_t{width} * height;
  const bool room = buffer->Reserve(pixels * sizeof(uint32_t));
  auto* rgba = reinterpret_cast<uint32_t*>(buffer->data());
  const bool read = room && TIFFRGBAImageGet(&image, rgba, width, height) != 0;
  TIFFRGBAImageEnd(&image);
  if (!room) return NoMemory();
  // Its reader continues after some errors and leaves rows empty.
  if (!read || session.message[0] != '\0') return Failure(session);
  uint8_t* to = buffer->data();
  if (request.alpha) {
    Unmultiply(image.alpha == EXTRASAMPLE_ASSOCALPHA && !unassociated, rgba, pixels, to);
    return absl::OkStatus();
  }
  for (size_t i = 0; i < pixels; ++i, to += 3) {
    const uint32_t pixel = rgba[i];
    to[0] = static_cast<uint8_t>(TIFFGetR(pixel));
    to[1] = static_cast<uint8_t>(TIFFGetG(pixel));
    to[2] = static_cast<uint8_t>(TIFFGetB(pixel));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status DecodeTiff(Bytes file, const CodecRequest& request, PixelBuffer* buffer) {
  Session session{.file = file, .warnings = request.warnings};
  TIFFOpenOptions* options = TIFFOpenOptionsAlloc();
  if (options == nullptr) return NoMemory();
  // A strip or tile is at most as large as the largest allowed pixels, and no table is larger than
  // the file.
  const uint64_t max_bytes =
      uint64_t{request.width} * request.height * 16 + file.size() + (1 << 20);
  TIFFOpenOptionsSetMaxSingleMemAlloc(options, static_cast<tmsize_t>(max_bytes));
  TIFFOpenOptionsSetErrorHandlerExtR(options, KeepError, &session);
  TIFFOpenOptionsSetWarningHandlerExtR(options, KeepWarning, &session);
  TIFF* tiff = TIFFClientOpenExt("memory", "r", &session, ReadBytes, WriteNothing, Seek, Close,
                                 Size, Map, Unmap, options);
  TIFFOpenOptionsFree(options);
  if (tiff == nullptr) return Failure(session);
  const absl::Status status = DecodePage(tiff, session, request, buffer);
  TIFFClose(tiff);
  return status;
}

}  // namespace shardpack::decode_internal
