#include <png.h>
#include <setjmp.h>

#include <bit>
#include <cstdio>
#include <cstring>

#include "images/codecs/decode_internal.h"

namespace shardpack::decode_internal {
namespace {

// The state shared with libpng's callbacks. Plain data, since longjmp skips destructors.
struct Session {
  png_structp png;
  png_infop info;
  Bytes file;
  size_t at;
  jmp_buf jump;
  char message[200];
  DecodeWarnings* warnings;
};

[[noreturn]] void Fail(png_structp png, png_const_charp message) {
  Session* session = static_cast<Session*>(png_get_error_ptr(png));
  std::snprintf(session->message, sizeof(session->message), "%s", message);
  longjmp(session->jump, 1);
}

// Oddities of chunks that do not concern the pixels.
void KeepWarning(png_structp png, png_const_charp words) {
  Session* session = static_cast<Session*>(png_get_error_ptr(png));
  if (session->warnings != nullptr) session->warnings->Add("PNG", words);
}

void ReadBytes(png_structp png, png_bytep to, size_t size_bytes) {
  Session* session = static_cast<Session*>(png_get_io_ptr(png));
  if (size_bytes > session->file.size() - session->at) png_error(png, "the file ends early");
  std::memcpy(to, session->file.data() + session->at, size_bytes);
  session->at += size_bytes;
}

// Runs a step that may end by longjmp; `step` must not hold anything that needs a destructor.
template <typename Step>
bool Guarded(Session* session, const Step& step) {
  if (setjmp(session->jump) != 0) return false;
  step();
  return true;
}

void ReadHeader(Session* session) {
  png_set_read_fn(session->png, session, ReadBytes);
  // The caller limits the number of pixels; libpng's own limit is a million per side.
  png_set_user_limits(session->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  // Text and profiles of any size are skipped, as unknown chunks.
  png_set_keep_unknown_chunks(session->png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_set_chunk_cache_max(session->png, 16);
  // The limit also applies to skipped chunks, which take no memory.
  png_set_chunk_malloc_max(session->png, PNG_UINT_31_MAX);
  png_read_info(session->png, session->info);
}

int SetTransforms(Session* session, const CodecRequest& request) {
  png_structp png = session->png;
  if (request.stored) {
    png_set_packing(png);
    if constexpr (std::endian::native == std::endian::little) png_set_swap(png);
    const int passes = png_set_interlace_handling(png);
    png_read_update_info(png, session->info);
    return passes;
  }
  if (request.wide) {
    png_set_expand_16(png);
    if constexpr (std::endian::native == std::endian::little) png_set_swap(png);
  } else {
    png_set_expand(png);
    png_set_scale_16(png);
  }
  if (request.alpha) {
    png_set_add_alpha(png, 0xFFFF, PNG_FILLER_AFTER);
  } else {
    png_set_strip_alpha(png);
  }
  png_set_gray_to_rgb(png);
  const int passes = png_set_interlace_handling(png);
  png_read_update_info(png, session->info);
  return passes;
}

absl::Status DecodeSession(Session* session, const CodecRequest& request, PixelBuffer* buffer) {
  if (!Guarded(session, [session] { ReadHeader(session); })) {
    return Damaged("PNG", session->message);
  }
  const uint32_t width = png_get_image_width(session->png, session->info);
  const uint32_t height = png_get_image_height(session->png, session->info);
  if (width != request.width || height != request.height) return OtherSize(width, height, request);
  if (!buffer->Reserve(WholeImageBytes(request))) return NoMemory();
  uint8_t* const pixels = buffer->data();
  const size_t stride_bytes = width * PixelBytes(request);
  const bool read = Guarded(session, [&] {
    const int passes = SetTransforms(session, request);
    if (png_get_rowbytes(session->png, session->info) != stride_bytes) {
      png_error(session->png, "rows of an unexpected size");
    }
    // An interlaced image needs all rows, others none below the region.
    const uint32_t rows = passes > 1 ? height : request.region.top + request.region.height;
    for (int pass = 0; pass < passes; ++pass) {
      for (uint32_t y = 0; y < rows; ++y) {
        png_read_row(session->png, pixels + y * stride_bytes, nullptr);
      }
    }
    if (rows == height) png_read_end(session->png, nullptr);
  });
  if (!read) return Damaged("PNG", session->message);
  return absl::OkStatus();
}

}  // namespace

absl::Status DecodePng(Bytes file, const CodecRequest& request, PixelBuffer* buffer) {
  Session session = {};
  session.file = file;
  session.warnings = request.warnings;
  session.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &session, Fail, KeepWarning);
  if (session.png == nullptr) return NoMemory();
  session.info = png_create_info_struct(session.png);
  const absl::Status status =
      session.info == nullptr ? NoMemory() : DecodeSession(&session, request, buffer);
  png_destroy_read_struct(&session.png, &session.info, nullptr);
  return status;
}

}  // namespace shardpack::decode_internal
