// Affine: a map of points of one image to another: crop, flip, and every warp after them.
//
//   Affine affine = AffineOf(ChooseCrop(options, 640, 480, sample), 224, 224);
//   affine = Then(affine, RotationAbout({112, 112}, 15));
//   const Point seen = affine({x + 0.5, y + 0.5});  // the centre of the pixel (x, y)
//
// Lifetime: plain values.
// Thread-safety: pure functions.
// Errors: Inverse is nullopt for a map onto a line or point, or of numbers that are not finite.
// Units: edge coordinates: pixel x covers x to x + 1, of the image as displayed (after the EXIF
// orientation).
#ifndef SHARDPACK_AUGMENT_GEOMETRY_AFFINE_H_
#define SHARDPACK_AUGMENT_GEOMETRY_AFFINE_H_

#include <optional>

#include "images/augment/crop.h"
#include "images/pixels/pixels.h"

namespace shardpack {

struct Point {
  double x = 0, y = 0;

  friend bool operator==(const Point&, const Point&) = default;
};

// x' = xx x + xy y + x0, y' = yx x + yy y + y0: the rows of a 2 x 3 matrix, one after the other.
struct Affine {
  double xx = 1, xy = 0, x0 = 0;
  double yx = 0, yy = 1, y0 = 0;

  Point operator()(Point p) const { return {xx * p.x + xy * p.y + x0, yx * p.x + yy * p.y + y0}; }
  // Whether upright boxes stay upright.
  bool upright() const { return xy == 0 && yx == 0; }
  friend bool operator==(const Affine&, const Affine&) = default;
};

// The box becomes the whole of an image of this size.
Affine AffineOfCrop(const PixelBox& box, double width, double height);
// Left to right, of an image of this width.
Affine AffineOfFlip(double width);
// What a decoder does with a crop: crop, resize, flip.
Affine AffineOf(const Crop& crop, double width, double height);
// As torchvision's rotate: counter-clockwise, as seen.
Affine RotationAbout(Point center, double degrees);

Affine Then(const Affine& first, const Affine& second);
std::optional<Affine> Inverse(const Affine& affine);

}  // namespace shardpack

#endif  // SHARDPACK_AUGMENT_GEOMETRY_AFFINE_H_
