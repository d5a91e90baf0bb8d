#include "augment/geometry/object_labels.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "augment/geometry/run_lengths.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr uint32_t kNobody = 0, kSeveral = UINT32_MAX;
// Of one ring; that of an outline drawn by hand has some thousands.
constexpr size_t kMaxBorders = size_t{1} << 22;
// pycocotools draws outlines on a grid of fifths of a pixel (maskApi.c, rleFrPoly).
constexpr int64_t kGrid = 5;
// A pixel's centre lies between this line of its grid and the next one.
constexpr int64_t kCenter = 2;

int64_t OnGrid(double coordinate) { return static_cast<int64_t>(kGrid * coordinate + 0.5); }

// A line on the grid, point by point along its longer direction, in which it ascends.
class GridEdge {
 public:
  GridEdge(const Point& from, const Point& to)
      : x_(OnGrid(from.x)), y_(OnGrid(from.y)), end_x_(OnGrid(to.x)), end_y_(OnGrid(to.y)) {
    const int64_t wide = std::abs(end_x_ - x_), high = std::abs(end_y_ - y_);
    flat_ = wide >= high;
    if (flat_ ? x_ > end_x_ : y_ > end_y_) {
      std::swap(x_, end_x_);
      std::swap(y_, end_y_);
    }
    const auto rise = static_cast<double>(flat_ ? end_y_ - y_ : end_x_ - x_);
    slope_ = rise == 0 ? 0 : rise / static_cast<double>(flat_ ? wide : high);
  }

  int64_t left() const { return std::min(x_, end_x_); }
  int64_t right() const { return std::max(x_, end_x_); }

  // The upper of the two points where it goes from column x of the grid to the next one, or back.
  // Both are columns of the line.
  int64_t UpperAt(int64_t x) const {
    if (flat_) return std::min(Other(y_, x - x_), Other(y_, x + 1 - x_));
    // An estimate that is too early, and then on to the first point beyond.
    const double about = (static_cast<double>(x - x_) + 0.5) / slope_;
    int64_t step = std::max<int64_t>(1, static_cast<int64_t>(about) - 1);
    const auto beyond = [&](int64_t at) { return slope_ > 0 ? at > x : at <= x; };
    while (step < end_y_ - y_ && !beyond(Other(x_, step))) ++step;
    return y_ + step - 1;
  }

 private:
  // The coordinate in the shorter direction, so many steps from the start.
  int64_t Other(int64_t start, int64_t steps) const {
    return static_cast<int64_t>(static_cast<double>(start) + slope_ * static_cast<double>(steps) +
                                0.5);
  }

  int64_t x_, y_, end_x_, end_y_;
  bool flat_;
  double slope_;
};

// The row of pixels from which on a line at this height of the grid is above the centres.
uint64_t RowBelow(int64_t y, uint32_t height) {
  const double row = (static_cast<double>(y) + 0.5) / kGrid - 0.5;
  return static_cast<uint64_t>(std::ceil(std::clamp(row, 0.0, double(height))));
}

// counts[i]: how many of the ascending numbers are below i.
void CountBelow(const std::vector<uint32_t>& numbers, uint32_t end, std::vector<uint32_t>& counts) {
  counts.resize(size_t{end} + 1);
  size_t below = 0;
  for (uint32_t i = 0; i <= end; ++i) {
    while (below < numbers.size() && numbers[below] < i) ++below;
    counts[i] = static_cast<uint32_t>(below);
  }
}

absl::Status WrongLabel(size_t object, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("object ", object, " ", what));
}

}  // namespace

absl::StatusOr<ObjectLabels> ObjectLabels::Create(const PixelPipelineOptions& pixels,
                                                  const LabelMapOptions& options, Overlap overlap) {
  if (!options.colors.empty()) {
    return absl::InvalidArgumentError(
        "labels of objects are those of their classes; colours are for stored maps");
  }
  RETURN_IF_ERROR(LabelPipeline::Create(pixels, options).status());
  return ObjectLabels(pixels, options, overlap);
}

size_t ObjectLabels::output_bytes() const {
  return size_t{crop_.width} * crop_.height * (options_.wide ? 2 : 1);
}

absl::StatusOr<uint16_t> ObjectLabels::LabelOf(size_t number, const ImageObject& object) const {
  if (object.label < 0) return WrongLabel(number, "has no class");
  const int64_t label = object.label < INT32_MAX ? object.label + 1 : INT32_MAX;
  if (options_.classes > 0 && label >= options_.classes) {
    return WrongLabel(number, absl::StrCat("has the label ", label, " of ", options_.classes,
                                           " classes, the background among them"));
  }
  if (label > (options_.wide ? 65'535 : 255))
    return WrongLabel(number, absl::StrCat("has the label ", label, ", which needs 16 bits"));
  if (label == options_.ignore)
    return WrongLabel(number, absl::StrCat("has the label ", label, ", which is what to ignore"));
  return static_cast<uint16_t>(label);
}

void ObjectLabels::PaintRun(uint32_t owner, uint64_t begin, uint64_t end) {
  while (begin < end) {
    const uint64_t column = begin / height_, top = begin % height_;
    const uint64_t bottom = std::min<uint64_t>(height_, top + (end - begin));
    begin += bottom - top;
    for (uint32_t x = column_at_[column]; x < column_at_[column + 1]; ++x) {
      uint32_t* const owners = owners_.data() + size_t{x} * crop_.height;
      for (uint32_t y = row_at_[top]; y < row_at_[bottom]; ++y) {
        const bool shared = overlap_ == Overlap::kIgnore && owners[y] != kNobody;
        owners[y] = shared && owners[y] != owner ? kSeveral : owner;
      }
    }
  }
}

// Inside is what lies between the first and second crossing of a column, the third and fourth, and
// so on.
absl::Status ObjectLabels::PaintRing(uint32_t owner, const Ring& ring) {
  borders_.clear();
  const std::vector<uint32_t>& columns = nearest_.columns;
  for (size_t i = 0; i < ring.size(); ++i) {
    const GridEdge edge(ring[i], ring[(i + 1) % ring.size()]);
    // Lines of the grid left of the columns' centres.
    const auto line = [&](uint32_t column) { return kGrid * column + kCenter; };
    auto column = std::partition_point(columns.begin(), columns.end(),
                                       [&](uint32_t x) { return line(x) < edge.left(); });
    uint32_t last = UINT32_MAX;
    for (; column != columns.end() && line(*column) < edge.right(); ++column) {
      if (*column == last) continue;
      last = *column;
      borders_.push_back(uint64_t{last} * height_ + RowBelow(edge.UpperAt(line(last)), height_));
    }
    if (borders_.size() > kMaxBorders)
      return absl::InvalidArgumentError("has a polygon with too many edges");
  }
  std::sort(borders_.begin(), borders_.end());
  for (size_t i = 0; i + 1 < borders_.size(); i += 2) PaintRun(owner, borders_[i], borders_[i + 1]);
  return absl::OkStatus();
}

absl::Status ObjectLabels::PaintObject(size_t number, const ImageObject& object) {
  if (!object.outlined)
    return WrongLabel(number,
                      "has neither polygons nor run lengths: a label map would not show it");
  ASSIGN_OR_RETURN(const uint16_t label, LabelOf(number, object));
  labels_.push_back(label);
  const auto owner = static_cast<uint32_t>(number + 1);
  for (const Ring& ring : object.polygons) {
    const absl::Status painted = PaintRing(owner, ring);
    if (!painted.ok()) return WrongLabel(number, std::string(painted.message()));
  }
  if (!object.mask) return absl::OkStatus();
  if (object.mask->width != width_ || object.mask->height != height_) {
    return WrongLabel(
        number, absl::StrCat("has run lengths of ", object.mask->width, " x ", object.mask->height,
                             " pixels; its image has ", width_, " x ", height_));
  }
  ForEachRun(*object.mask, [&](uint64_t begin, uint64_t end) { PaintRun(owner, begin, end); });
  return absl::OkStatus();
}

template <typename Label>
void ObjectLabels::Write(bool flip, Label* out) const {
  for (uint32_t y = 0; y < crop_.height; ++y) {
    for (uint32_t x = 0; x < crop_.width; ++x) {
      const uint32_t column = flip ? crop_.width - 1 - x : x;
      const uint32_t owner = owners_[size_t{column} * crop_.height + y];
      *out++ = static_cast<Label>(owner == kSeveral ? options_.ignore : labels_[owner]);
    }
  }
}

absl::Status ObjectLabels::Run(std::span<const ImageObject> objects, uint32_t width,
                               uint32_t height, const Crop& crop, bool same_size, void* out) {
  width_ = width;
  height_ = height;
  ChooseNearest(crop_, width, height, crop, same_size, options_.legacy, nearest_);
  CountBelow(nearest_.columns, width, column_at_);
  CountBelow(nearest_.rows, height, row_at_);
  owners_.assign(size_t{crop_.width} * crop_.height, kNobody);
  labels_.assign(1, 0);
  for (size_t i = 0; i < objects.size(); ++i) RETURN_IF_ERROR(PaintObject(i, objects[i]));
  if (options_.wide) {
    Write(crop.flip, static_cast<uint16_t*>(out));
  } else {
    Write(crop.flip, static_cast<uint8_t*>(out));
  }
  return absl::OkStatus();
}

}  // namespace shardpack
