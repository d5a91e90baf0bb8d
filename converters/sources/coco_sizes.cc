#include "converters/sources/coco_sizes.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "converters/sources/folder_access.h"
#include "formats/io/file.h"
#include "images/probe/probe.h"

namespace shardpack {
namespace {

constexpr uint64_t kChunk = 64;           // rows per task
constexpr size_t kHeadBytes = 256 << 10;  // of a file; reaches past EXIF data and its thumbnail
constexpr double kSlackPixels = 1;        // boxes are rounded

struct Size {
  double width = 0, height = 0;

  friend bool operator==(const Size&, const Size&) = default;
};

// As displayed, which boxes refer to, and as stored, before the EXIF orientation; 0 = unknown.
struct PictureSize {
  Size shown, stored;
};

PictureSize ReadSize(int root, const std::string& path) {
  static constexpr uint8_t kFirstTurned = 5;  // first EXIF orientation that swaps width and height
  thread_local const std::unique_ptr<std::byte[]> head(new std::byte[kHeadBytes]);
  const Descriptor file(OpenBelow(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  if (!file.ok()) return {};
  const ssize_t got = ::pread(file.get(), head.get(), kHeadBytes, 0);
  if (got <= 0) return {};
  const ProbeResult probe = ProbeImage(std::span(head.get(), static_cast<size_t>(got)),
                                       {.level = ProbeLevel::kHeader, .allow_truncated = true});
  if (probe.verdict != ProbeVerdict::kOk) return {};
  const Size stored = {static_cast<double>(probe.info.width),
                       static_cast<double>(probe.info.height)};
  const bool turned = probe.info.orientation >= kFirstTurned;
  return {turned ? Size{stored.height, stored.width} : stored, stored};
}

bool LiesOutside(const CocoObject& object, const Size& size) {
  const auto [x, y, width, height] = object.box;
  return width < 0 || height < 0 || x < -kSlackPixels || y < -kSlackPixels ||
         x + width > size.width + kSlackPixels || y + height > size.height + kSlackPixels;
}

std::string SizeText(const Size& size) { return absl::StrCat(size.width, "x", size.height); }

}  // namespace

void WarnAboutSizes(int root, const CocoFile& coco, std::span<const size_t> image_of_row,
                    IoPool& pool, Listing& listing) {
  const uint64_t rows = image_of_row.size();
  std::vector<PictureSize> sizes(rows);
  std::vector<bool> skipped(rows, false);
  for (const Skip& skip : listing.skips) skipped[skip.row] = true;
  pool.ForEach((rows + kChunk - 1) / kChunk, [&](size_t chunk) {
    for (uint64_t row = chunk * kChunk; row < std::min(rows, (chunk + 1) * kChunk); ++row) {
      if (skipped[row] || coco.images[image_of_row[row]].width == 0) continue;
      sizes[row] = ReadSize(root, listing.Path(row));
    }
  });
  uint64_t others = 0, turned = 0, outside = 0;
  std::string first_other, first_turned, first_outside;
  for (uint64_t row = 0; row < rows; ++row) {
    const CocoImage& image = coco.images[image_of_row[row]];
    const Size said = {image.width, image.height};
    const auto& [shown, stored] = sizes[row];
    const bool known = shown.width > 0;
    if (known && said != shown) {
      const bool before_turn = said == stored;
      if ((before_turn ? turned : others)++ == 0) {
        (before_turn ? first_turned : first_other) =
            absl::StrCat(EscapeForTerminal(listing.Path(row)), " is ", SizeText(shown), ", and ",
                         SizeText(said), " there");
      }
    }
    if (said.width == 0 || said.height == 0) continue;
    const Size& real = known ? shown : said;
    for (const CocoObject& object : coco.ObjectsOf(image)) {
      if (!LiesOutside(object, real) || outside++ > 0) continue;
      first_outside = absl::StrCat("[", object.box[0], ", ", object.box[1], ", ", object.box[2],
                                   ", ", object.box[3], "] of ",
                                   EscapeForTerminal(listing.Path(row)), ", ", SizeText(real));
    }
  }
  if (others > 0) {
    listing.warnings.push_back(absl::StrCat(
        others, others == 1 ? " image has" : " images have",
        " another size than the annotations say: ", first_other,
        "; boxes are packed as they are, and loaders scale them from the size that the annotations "
        "say, so that must be the size that they were drawn on"));
  }
  if (turned > 0) {
    listing.warnings.push_back(absl::StrCat(
        turned, turned == 1 ? " image has" : " images have",
        " the size that the annotations say only before an EXIF orientation is applied: ",
        first_turned,
        "; boxes refer to images as displayed: those that were drawn on what is stored are wrong "
        "by "
        "a turn"));
  }
  if (outside > 0) {
    listing.warnings.push_back(
        absl::StrCat(outside, outside == 1 ? " box lies" : " boxes lie",
                     " outside of the image, or with a negative side: the first is ", first_outside,
                     "; they are packed as they are"));
  }
}

}  // namespace shardpack
