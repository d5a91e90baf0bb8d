#include <png.h>
#include <setjmp.h>

#include <bit>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "images/codecs/encode_internal.h"

namespace shardpack::encode_internal {
namespace {

constexpr int kZlibLevel = 6;

// The state shared with libpng's callbacks. Nothing in it has a destructor, since longjmp skips
// those.
struct Session {
  png_structp png;
  png_infop info;
  std::vector<std::byte>* file;
  jmp_buf jump;
  char message[200];
};

[[noreturn]] void Fail(png_structp png, png_const_charp message) {
  Session* session = static_cast<Session*>(png_get_error_ptr(png));
  std::snprintf(session->message, sizeof(session->message), "%s", message);
  longjmp(session->jump, 1);
}

void IgnoreWarning(png_structp, png_const_charp) {}

void PutBytes(png_structp png, png_bytep bytes, size_t size_bytes) {
  std::vector<std::byte>& file = *static_cast<Session*>(png_get_io_ptr(png))->file;
  const auto* from = reinterpret_cast<const std::byte*>(bytes);
  file.insert(file.end(), from, from + size_bytes);
}

void FlushNothing(png_structp) {}

int ColorType(uint32_t channels) {
  static constexpr int kTypes[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                                   PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
  return kTypes[channels - 1];
}

bool Write(Session* session, const PixelView& view, const EncodeOptions& options) {
  if (setjmp(session->jump) != 0) return false;
  png_structp png = session->png;
  png_infop info = session->info;
  png_set_write_fn(png, session, PutBytes, FlushNothing);
  // The library's limits are meant for untrusted images.
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_set_compression_level(png, kZlibLevel);
  png_set_IHDR(png, info, view.width, view.height, static_cast<int>(8 * view.sample_bytes),
               ColorType(view.channels), PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  if (!options.profile.empty()) {
    png_set_benign_errors(png, 1);  // omit a profile that libpng rejects
    png_set_iCCP(png, info, "icc", PNG_COMPRESSION_TYPE_BASE,
                 reinterpret_cast<png_const_bytep>(options.profile.data()),
                 static_cast<png_uint_32>(options.profile.size()));
  }
  if (options.orientation > 1) {
    auto exif = OrientationExif(options.orientation);
    png_set_eXIf_1(png, info, static_cast<png_uint_32>(exif.size()), exif.data());
  }
  png_write_info(png, info);
  if (view.sample_bytes == 2 && std::endian::native == std::endian::little) png_set_swap(png);
  for (uint32_t y = 0; y < view.height; ++y) png_write_row(png, view.Row(y));
  png_write_end(png, nullptr);
  return true;
}

}  // namespace

absl::Status EncodePng(const PixelView& view, const EncodeOptions& options,
                       std::vector<std::byte>* file) {
  file->clear();
  Session session = {};
  session.file = file;
  session.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &session, Fail, IgnoreWarning);
  if (session.png == nullptr) return absl::ResourceExhaustedError("PNG: no memory");
  session.info = png_create_info_struct(session.png);
  const bool done = session.info != nullptr && Write(&session, view, options);
  png_destroy_write_struct(&session.png, &session.info);
  if (!done) return absl::InvalidArgumentError(absl::StrCat("PNG: ", session.message));
  return absl::OkStatus();
}

}  // namespace shardpack::encode_internal
