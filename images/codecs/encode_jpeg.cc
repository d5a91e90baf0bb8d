#include <setjmp.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
// Requires <cstdio> before it.
#include <jerror.h>
#include <jpeglib.h>

#include "absl/strings/str_cat.h"
#include "images/codecs/encode_internal.h"

namespace shardpack::encode_internal {
namespace {

constexpr size_t kFirstBytes = size_t{64} << 10, kKeptBytes = size_t{1} << 20;

// The state shared with libjpeg's callbacks. Nothing in it has a destructor, since longjmp skips
// those.
struct Session {
  jpeg_compress_struct jpeg;
  jpeg_error_mgr error;
  jpeg_destination_mgr destination;
  jmp_buf jump;
  std::vector<std::byte>* file;
  char message[JMSG_LENGTH_MAX];
};

Session* SessionOf(j_common_ptr jpeg) { return static_cast<Session*>(jpeg->client_data); }
Session* SessionOf(j_compress_ptr jpeg) { return static_cast<Session*>(jpeg->client_data); }

[[noreturn]] void Fail(j_common_ptr jpeg) {
  Session* session = SessionOf(jpeg);
  jpeg->err->format_message(jpeg, session->message);
  longjmp(session->jump, 1);
}

void PrintNothing(j_common_ptr) {}

void PointAt(Session* session, size_t used_bytes) {
  session->destination.next_output_byte =
      reinterpret_cast<JOCTET*>(session->file->data()) + used_bytes;
  session->destination.free_in_buffer = session->file->size() - used_bytes;
}

void InitDestination(j_compress_ptr jpeg) {
  Session* session = SessionOf(jpeg);
  session->file->resize(std::clamp(session->file->capacity(), kFirstBytes, kKeptBytes));
  PointAt(session, 0);
}

// Called when the buffer is completely full.
boolean GrowDestination(j_compress_ptr jpeg) {
  Session* session = SessionOf(jpeg);
  const size_t used_bytes = session->file->size();
  session->file->resize(used_bytes * 2);
  PointAt(session, used_bytes);
  return TRUE;
}

void TermDestination(j_compress_ptr jpeg) {
  Session* session = SessionOf(jpeg);
  session->file->resize(session->file->size() - session->destination.free_in_buffer);
}

void SetParameters(const PixelView& view, const EncodeOptions& options,
                   jpeg_compress_struct* jpeg) {
  jpeg->image_width = view.width;
  jpeg->image_height = view.height;
  jpeg->input_components = static_cast<int>(view.channels);
  jpeg->in_color_space = view.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(jpeg);
  jpeg_set_quality(jpeg, options.quality, /*force_baseline=*/TRUE);
  // Set explicitly, although these are the library's defaults, because they determine the bytes.
  jpeg->dct_method = JDCT_ISLOW;
  jpeg->optimize_coding = FALSE;
  jpeg->arith_code = FALSE;
  jpeg->smoothing_factor = 0;
  jpeg->restart_interval = 0;
  jpeg->write_JFIF_header = TRUE;
  jpeg->density_unit = 0;
  jpeg->X_density = jpeg->Y_density = 1;
  if (view.channels == 3) {
    jpeg->comp_info[0].h_samp_factor = jpeg->comp_info[0].v_samp_factor = 2;
    for (int c = 1; c < 3; ++c) {
      jpeg->comp_info[c].h_samp_factor = jpeg->comp_info[c].v_samp_factor = 1;
    }
  }
}

void WriteMetadata(const EncodeOptions& options, jpeg_compress_struct* jpeg) {
  if (options.orientation > 1) {
    uint8_t exif[6 + 26] = {'E', 'x', 'i', 'f', 0, 0};
    const auto directory = OrientationExif(options.orientation);
    std::memcpy(exif + 6, directory.data(), directory.size());
    jpeg_write_marker(jpeg, JPEG_APP0 + 1, exif, sizeof(exif));
  }
  if (!options.profile.empty()) {
    jpeg_write_icc_profile(jpeg, reinterpret_cast<const JOCTET*>(options.profile.data()),
                           static_cast<unsigned>(options.profile.size()));
  }
}

void WriteRows(const PixelView& view, jpeg_compress_struct* jpeg) {
  constexpr uint32_t kMost = 16;
  for (uint32_t y = 0; y < view.height;) {
    JSAMPROW rows[kMost];
    const uint32_t count = std::min(kMost, view.height - y);
    for (uint32_t i = 0; i < count; ++i) rows[i] = const_cast<JSAMPROW>(view.Row(y + i));
    y += jpeg_write_scanlines(jpeg, rows, count);
  }
}

bool Compress(Session* session, const PixelView& view, const EncodeOptions& options) {
  if (setjmp(session->jump) != 0) return false;
  jpeg_compress_struct* jpeg = &session->jpeg;
  jpeg_create_compress(jpeg);
  jpeg->client_data = session;
  jpeg->dest = &session->destination;
  SetParameters(view, options, jpeg);
  jpeg_start_compress(jpeg, TRUE);
  WriteMetadata(options, jpeg);
  WriteRows(view, jpeg);
  jpeg_finish_compress(jpeg);
  return true;
}

}  // namespace

absl::Status EncodeJpeg(const PixelView& view, const EncodeOptions& options,
                        std::vector<std::byte>* file) {
  if (view.channels != 1 && view.channels != 3) {
    return absl::InvalidArgumentError("JPEG: an image has 1 or 3 channels, and no alpha");
  }
  Session session = {};
  session.jpeg.err = jpeg_std_error(&session.error);
  session.jpeg.client_data = &session;
  session.error.error_exit = Fail;
  session.error.output_message = PrintNothing;
  session.destination.init_destination = InitDestination;
  session.destination.empty_output_buffer = GrowDestination;
  session.destination.term_destination = TermDestination;
  session.file = file;
  const bool done = Compress(&session, view, options);
  jpeg_destroy_compress(&session.jpeg);
  if (!done) return absl::InvalidArgumentError(absl::StrCat("JPEG: ", session.message));
  return absl::OkStatus();
}

}  // namespace shardpack::encode_internal
