#include <setjmp.h>

#include <algorithm>
#include <cstdio>
// Requires <cstdio> before it.
#include <jerror.h>
#include <jpeglib.h>

#include "absl/strings/str_cat.h"
#include "images/codecs/decode_internal.h"

namespace shardpack::decode_internal {
namespace {

// The state shared with libjpeg's callbacks. Plain data, since longjmp skips destructors.
struct Session {
  jpeg_decompress_struct jpeg;
  jpeg_error_mgr error;
  jpeg_progress_mgr progress;
  jmp_buf jump;
  int max_scans;
  bool too_many_scans;
  bool all_rows;  // messages from now on do not concern the pixels
  DecodeWarnings* warnings;
  int message_code;
  char message[JMSG_LENGTH_MAX];
};

Session* SessionOf(j_common_ptr jpeg) { return static_cast<Session*>(jpeg->client_data); }

[[noreturn]] void Fail(j_common_ptr jpeg) {
  Session* session = SessionOf(jpeg);
  session->message_code = jpeg->err->msg_code;
  jpeg->err->format_message(jpeg, session->message);
  longjmp(session->jump, 1);
}

// Warnings that do not concern the pixels: oddities of headers. All others mean damage, from which
// libjpeg would recover by inventing pixels.
bool IsHarmless(int code) {
  switch (code) {
    case JWRN_ADOBE_XFORM:
    case JWRN_JFIF_MAJOR:
    case JWRN_NOT_SEQUENTIAL:
      return true;
    default:
      return false;
  }
}

void EmitMessage(j_common_ptr jpeg, int level) {
  if (level >= 0) return;
  Session* session = SessionOf(jpeg);
  if (!session->all_rows && !IsHarmless(jpeg->err->msg_code)) Fail(jpeg);
  if (session->warnings == nullptr) return;
  char words[JMSG_LENGTH_MAX];
  jpeg->err->format_message(jpeg, words);
  session->warnings->Add("JPEG", words);
}

void PrintNothing(j_common_ptr) {}

void CountScans(j_common_ptr common) {
  Session* session = SessionOf(common);
  if (session->jpeg.input_scan_number <= session->max_scans) return;
  session->too_many_scans = true;
  longjmp(session->jump, 1);
}

// Runs a step that may end by longjmp; `step` must not hold anything that needs a destructor.
template <typename Step>
bool Guarded(Session* session, const Step& step) {
  if (setjmp(session->jump) != 0) return false;
  step(&session->jpeg);
  return true;
}

absl::Status Failure(const Session& session) {
  if (session.too_many_scans) {
    return absl::ResourceExhaustedError(
        absl::StrCat("JPEG: more than ", session.max_scans, " scans"));
  }
  switch (session.message_code) {
    case JERR_ARITH_NOTIMPL:
    case JERR_BAD_PRECISION:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_SOF_UNSUPPORTED:
      return absl::UnimplementedError(absl::StrCat("JPEG: ", session.message));
    case JERR_OUT_OF_MEMORY:
      return NoMemory();
    default:
      return Damaged("JPEG", session.message);
  }
}

// The smallest scale at which the region is still as large as requested.
uint32_t ChooseScale(const CodecRequest& request) {
  const auto enough = [](uint32_t size, uint32_t least, uint32_t scale) {
    return least != 0 && size >= uint64_t{least} * scale;
  };
  for (uint32_t scale = 8; scale > 1; scale /= 2) {
    if (enough(request.region.width, request.min_width, scale) &&
        enough(request.region.height, request.min_height, scale)) {
      return scale;
    }
  }
  return 1;
}

// A range of pixels: of the scaled region, or of what must be decoded for it.
struct Span {
  uint32_t first, end;
};

Span Scaled(uint32_t first, uint32_t size, uint32_t scale) {
  return {first / scale, (first + size + scale - 1) / scale};
}

// Chroma upsampling uses the neighbour on each side and treats the end of the decoded columns as
// the edge of the image. It works differently for chroma rows of up to two samples, so never
// request so few columns.
Span WithEdges(Span span, uint32_t width) {
  constexpr uint32_t kNeighbours = 2, kLeast = 16;
  span.first = span.first > kNeighbours ? span.first - kNeighbours : 0;
  span.end = std::min(std::max(span.end + kNeighbours, span.first + kLeast), width);
  if (span.end < kLeast) return {0, span.end};
  span.first = std::min(span.first, span.end - kLeast);
  return span;
}

// Adobe stores CMYK as 255 minus the amount of ink. In place, from four samples to one or three.
void FromInvertedCmyk(uint8_t* row, uint32_t width, uint32_t channels) {
  const auto mul = [](uint32_t a, uint32_t b) {  // a * b / 255, rounded
    const uint32_t product = a * b + 128;
    return (product + (product >> 8)) >> 8;
  };
  uint8_t* to = row;
  for (uint32_t x = 0; x < width; ++x, row += 4, to += channels) {
    const uint32_t red = mul(row[0], row[3]);
    const uint32_t green = mul(row[1], row[3]);
    const uint32_t blue = mul(row[2], row[3]);
    if (channels == 1) {
      to[0] = Luma(red, green, blue);
    } else {
      to[0] = static_cast<uint8_t>(red);
      to[1] = static_cast<uint8_t>(green);
      to[2] = static_cast<uint8_t>(blue);
    }
  }
}

// Whether libjpeg-turbo (since at least 2.1.5) can crop columns: it computes the width of a
// component's rows without the component's own scale (for example 4:1:0 at 1/2), which is wrong if
// the component is still upsampled horizontally.
bool CanCropColumns(const jpeg_decompress_struct& jpeg) {
  for (int i = 0; i < jpeg.num_components; ++i) {
    const jpeg_component_info& component = jpeg.comp_info[i];
    if (component.DCT_scaled_size != jpeg.min_DCT_scaled_size &&
        component.h_samp_factor * component.DCT_scaled_size !=
            jpeg.max_h_samp_factor * jpeg.min_DCT_scaled_size) {
      return false;
    }
  }
  return true;
}

void Prepare(const CodecRequest& request, uint32_t scale, jpeg_decompress_struct* jpeg) {
  const bool cmyk = jpeg->jpeg_color_space == JCS_CMYK || jpeg->jpeg_color_space == JCS_YCCK;
  jpeg->out_color_space = cmyk ? JCS_CMYK : request.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg->scale_num = 8 / scale;
  jpeg->scale_denom = 8;
  jpeg->dct_method = request.fast ? JDCT_IFAST : JDCT_ISLOW;
  jpeg->do_fancy_upsampling = request.fast ? FALSE : TRUE;
  // It would blur the blocks of a progressive image that lacks its last scans.
  jpeg->do_block_smoothing = FALSE;
}

void ReadRows(jpeg_decompress_struct* jpeg, uint8_t* to, size_t stride_bytes, uint32_t rows) {
  while (rows > 0) {
    constexpr uint32_t kMost = 16;
    JSAMPROW pointers[kMost];
    const uint32_t count = std::min(rows, kMost);
    for (uint32_t i = 0; i < count; ++i) pointers[i] = to + i * stride_bytes;
    const uint32_t got = jpeg_read_scanlines(jpeg, pointers, count);
    if (got == 0) ERREXIT(jpeg, JERR_INPUT_EOF);
    to += got * stride_bytes;
    rows -= got;
  }
}

absl::Status DecodeRows(Session* session, const CodecRequest& request, PixelBuffer* buffer,
                        DecodedImage* image) {
  jpeg_decompress_struct* jpeg = &session->jpeg;
  const PixelRegion& region = request.region;
  const uint32_t scale = ChooseScale(request);
  Prepare(request, scale, jpeg);
  const Span rows = Scaled(region.top, region.height, scale);
  const Span columns = Scaled(region.left, region.width, scale);
  JDIMENSION first = 0, width = 0;
  const bool started = Guarded(session, [&](jpeg_decompress_struct* j) {
    jpeg_start_decompress(j);
    const Span wanted =
        CanCropColumns(*j) ? WithEdges(columns, j->output_width) : Span{0, j->output_width};
    first = wanted.first;
    width = wanted.end - wanted.first;
    // It moves `first` left to the edge of a block.
    if (width < j->output_width) jpeg_crop_scanline(j, &first, &width);
    if (rows.first > 0) jpeg_skip_scanlines(j, rows.first);
  });
  if (!started) return Failure(*session);
  const size_t stride_bytes = size_t{jpeg->output_width} * jpeg->output_components;
  const uint32_t height = rows.end - rows.first;
  if (!buffer->Reserve(stride_bytes * height)) return NoMemory();
  uint8_t* pixels = buffer->data();
  if (!Guarded(session,
               [&](jpeg_decompress_struct* j) { ReadRows(j, pixels, stride_bytes, height); })) {
    return Failure(*session);
  }
  if (request.warnings != nullptr && jpeg->output_scanline == jpeg->output_height) {
    session->all_rows = true;
    if (!Guarded(session, [](jpeg_decompress_struct* j) { jpeg_finish_decompress(j); })) {
      return Failure(*session);
    }
  }
  const bool ink = jpeg->out_color_space == JCS_CMYK && request.ink;
  const uint32_t channels = ink ? 4 : request.channels;
  if (jpeg->out_color_space == JCS_CMYK && !ink) {
    for (uint32_t y = 0; y < height; ++y) {
      FromInvertedCmyk(pixels + y * stride_bytes, jpeg->output_width, request.channels);
    }
  }
  image->view = {pixels + size_t{columns.first - first} * channels, columns.end - columns.first,
                 height, channels, stride_bytes};
  const double unit = 1.0 / scale;
  const double left = region.left * unit - columns.first, top = region.top * unit - rows.first;
  image->box = {left, top, left + region.width * unit, top + region.height * unit};
  image->scale = scale;
  return absl::OkStatus();
}

absl::Status DecodeSession(Session* session, Bytes file, const CodecRequest& request,
                           PixelBuffer* buffer, DecodedImage* image) {
  const bool read = Guarded(session, [&](jpeg_decompress_struct* jpeg) {
    jpeg_create_decompress(jpeg);
    jpeg->client_data = session;
    jpeg->progress = &session->progress;
    jpeg_mem_src(jpeg, reinterpret_cast<const unsigned char*>(file.data()), file.size());
    jpeg_read_header(jpeg, TRUE);
  });
  if (!read) return Failure(*session);
  const jpeg_decompress_struct& jpeg = session->jpeg;
  if (jpeg.image_width != request.width || jpeg.image_height != request.height) {
    return OtherSize(jpeg.image_width, jpeg.image_height, request);
  }
  return DecodeRows(session, request, buffer, image);
}

}  // namespace

absl::Status DecodeJpeg(Bytes file, const CodecRequest& request, PixelBuffer* buffer,
                        DecodedImage* image) {
  if (file.empty()) return Damaged("JPEG", "no bytes");
  // A new one for each image; otherwise tables of an earlier image would replace missing ones.
  Session session = {};
  session.jpeg.err = jpeg_std_error(&session.error);
  session.jpeg.client_data = &session;
  session.error.error_exit = Fail;
  session.error.emit_message = EmitMessage;
  session.error.output_message = PrintNothing;
  session.progress.progress_monitor = CountScans;
  session.warnings = request.warnings;
  session.max_scans = static_cast<int>(std::min<uint32_t>(request.max_scans, 1 << 20));
  const absl::Status status = DecodeSession(&session, file, request, buffer, image);
  jpeg_destroy_decompress(&session.jpeg);
  return status;
}

}  // namespace shardpack::decode_internal
