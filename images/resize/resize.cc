#include "images/resize/resize.h"

#include <algorithm>
#include <cstring>

namespace shardpack {
namespace {

constexpr uint32_t kAtOnce = ResizeKernels::kRowsAtOnce;

absl::Status CheckArguments(const PixelView& view, const PixelBox& box,
                            const ResizeOptions& options, const PixelOutput& output) {
  if (view.channels != output.channels() || (view.channels != 1 && view.channels != 3)) {
    return absl::InvalidArgumentError("resize: pixels and output have not the same channels");
  }
  if (options.width == 0 || options.height == 0 || options.width > kMaxResize ||
      options.height > kMaxResize) {
    return absl::InvalidArgumentError("resize: width and height are 1 to 65535");
  }
  if (box.IsInside(view.width, view.height)) return absl::OkStatus();
  return absl::InvalidArgumentError("resize: the box is not inside the pixels");
}

// The narrowed rows that one result row needs, plus those that are computed together with the last
// of them.
uint32_t RingRows(const ResizeAxis& rows) {
  return (std::min(MostTaps(rows), rows.in_size) + 2 * (kAtOnce - 1)) / kAtOnce * kAtOnce;
}

absl::Status NoMemory() { return absl::ResourceExhaustedError("resize: no memory"); }

}  // namespace

absl::Status Resizer::Resize(const PixelView& view, const PixelBox& box,
                             const ResizeOptions& options, const PixelOutput& output, void* out) {
  if (auto status = CheckArguments(view, box, options, output); !status.ok()) return status;
  const bool transpose = options.transpose;
  const uint32_t width = transpose ? options.height : options.width;
  const uint32_t height = transpose ? options.width : options.height;
  const auto columns = MakeResizeAxis(options.filter, box.left, box.right, view.width, width);
  const auto rows = MakeResizeAxis(options.filter, box.top, box.bottom, view.height, height);
  narrow_rows_ = RingRows(rows);
  narrow_stride_bytes_ = size_t{width} * view.channels + ResizeKernels::kRowSlackBytes;
  const size_t narrow_bytes = narrow_stride_bytes_ * narrow_rows_;
  // The approximate size of rows and the taps past their ends.
  const uint64_t edge_bytes = uint64_t{view.width} * view.channels * 2 * kAtOnce;
  if (narrow_bytes + edge_bytes + ResizeTable::Bytes(columns, width) +
          ResizeTable::Bytes(rows, height) >
      kMaxResizeBytes) {
    return absl::ResourceExhaustedError("resize: more than 1 GiB would be needed");
  }
  rows_mirrored_ = transpose ? options.mirror_x : options.mirror_y;
  const bool columns_mirrored = transpose ? options.mirror_y : options.mirror_x;
  columns_ = &column_tables_.Get(columns, width, columns_mirrored);
  rows_ = &row_tables_.Get(rows, height, rows_mirrored_);
  if (!narrow_.Reserve(narrow_bytes) || !edge_.Reserve(EdgeRowBytes(view) * kAtOnce)) {
    return NoMemory();
  }
  next_row_ = rows_->begin();
  return transpose ? PutTransposed(view, output, out) : PutRows(view, output, out);
}

// Zero-weight taps may read past the end of a row, so rows are padded with readable bytes.
size_t Resizer::EdgeRowBytes(const PixelView& view) const {
  return (size_t{view.width} + columns_->taps()) * view.channels + ResizeKernels::kRowSlackBytes;
}

void Resizer::NarrowRows(const PixelView& view, uint32_t end) {
  const size_t row_bytes = size_t{view.width} * view.channels;
  const size_t read_bytes = EdgeRowBytes(view);
  const uint8_t* const view_end = view.Row(view.height - 1) + row_bytes;
  for (; next_row_ < end; next_row_ += kAtOnce) {
    const size_t slot = (next_row_ - rows_->begin()) % narrow_rows_;
    const uint8_t* rows[kAtOnce];
    uint8_t* outs[kAtOnce];
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      rows[i] = view.Row(std::min(next_row_ + i, rows_->end() - 1));
      if (static_cast<size_t>(view_end - rows[i]) < read_bytes) {
        uint8_t* const copy = edge_.data() + i * read_bytes;
        std::memcpy(copy, rows[i], row_bytes);
        std::memset(copy + row_bytes, 0, read_bytes - row_bytes);
        rows[i] = copy;
      }
      outs[i] = narrow_.data() + narrow_stride_bytes_ * (slot + i);
    }
    kernels_->columns(rows, view.channels, *columns_, outs);
  }
}

void Resizer::MakeRow(const PixelView& view, uint32_t y, size_t size_bytes, uint8_t* to) {
  const uint32_t taps = rows_->taps();
  taps_.resize(taps);
  const uint32_t inside = rows_->inside(y);
  NarrowRows(view, rows_->first(y) + inside);
  uint32_t slot = (rows_->first(y) - rows_->begin()) % narrow_rows_;
  for (uint32_t k = 0; k < taps; ++k) {
    taps_[k] = narrow_.data() + narrow_stride_bytes_ * slot;
    // A zero-weight tap needs any row that can be read.
    if (k + 1 < inside && ++slot == narrow_rows_) slot = 0;
  }
  kernels_->rows(taps_.data(), *rows_, y, size_bytes, to);
}

absl::Status Resizer::PutRows(const PixelView& view, const PixelOutput& output, void* out) {
  const size_t row_bytes = size_t{columns_->size()} * view.channels;
  if (output.plain()) {
    auto* to = static_cast<uint8_t*>(out);
    for (uint32_t i = 0; i < rows_->size(); ++i) {
      MakeRow(view, RowAt(i), row_bytes, to + RowAt(i) * row_bytes);
    }
    return absl::OkStatus();
  }
  if (!row_.Reserve(row_bytes)) return NoMemory();
  for (uint32_t i = 0; i < rows_->size(); ++i) {
    const uint32_t y = RowAt(i);
    MakeRow(view, y, row_bytes, row_.data());
    output.PutRow(row_.data(), y, columns_->size(), rows_->size(), out);
  }
  return absl::OkStatus();
}

absl::Status Resizer::PutTransposed(const PixelView& view, const PixelOutput& output, void* out) {
  const uint32_t channels = view.channels;
  const size_t row_bytes = size_t{columns_->size()} * channels;
  const size_t out_row_bytes = size_t{rows_->size()} * channels;
  if (!row_.Reserve(row_bytes) || !turned_.Reserve(row_bytes * rows_->size())) return NoMemory();
  for (uint32_t i = 0; i < rows_->size(); ++i) {
    const uint32_t y = RowAt(i);
    MakeRow(view, y, row_bytes, row_.data());
    uint8_t* to = turned_.data() + size_t{y} * channels;
    for (uint32_t x = 0; x < columns_->size(); ++x, to += out_row_bytes) {
      std::memcpy(to, row_.data() + size_t{x} * channels, channels);
    }
  }
  for (uint32_t y = 0; y < columns_->size(); ++y) {
    output.PutRow(turned_.data() + y * out_row_bytes, y, rows_->size(), columns_->size(), out);
  }
  return absl::OkStatus();
}

}  // namespace shardpack
