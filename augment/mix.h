// Mix: MixUp and CutMix of neighbouring samples, with labels of several classes.
//
//   const MixOptions options{.mixup_alpha = 0.2, .cutmix_alpha = 1, .group = 2, .classes = 1000};
//   const MixDraw draw = DrawMix(options, seed, epoch, group_number, 224, 224);
//   MixPixels(draw, own, partner, result);      // result = own where the draw says so
//   SoftLabels(options, draw, label, partner_label, row);
//
// torchvision's MixUp and CutMix (v2), but a sample's partner is the next one in its group of
// neighbouring slots of the global batch, not of a whole batch: pixels do not depend on the number
// of ranks. A weight is the partner's share, a multiple of 2^-16.
//
// Thread-safety: pure functions.
// Errors: InvalidArgument (CheckMixOptions).
// Units: pixels; weights of 0 to 1.
#ifndef SHARDPACK_AUGMENT_MIX_H_
#define SHARDPACK_AUGMENT_MIX_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "images/pixels/pixels.h"

namespace shardpack {

struct MixOptions {
  double mixup_alpha = 0, cutmix_alpha = 0;  // of Beta(alpha, alpha); 0: not used
  double probability = 1;                    // that a group is mixed
  // If both are used: the share of CutMix.
  double cutmix_share = 0.5;
  uint32_t group = 2;  // slots; each sample's partner is the next, the last one's is the first
  uint32_t classes = 0;
  double smoothing = 0;  // label smoothing: this much is spread over all classes

  // Of all that decides what is drawn and mixed, for digests.
  std::string ToText() const;
  bool mixes() const { return mixup_alpha > 0 || cutmix_alpha > 0; }
  friend bool operator==(const MixOptions&, const MixOptions&) = default;
};

// `global_batch` must be divisible by the group.
absl::Status CheckMixOptions(const MixOptions& options, uint32_t global_batch);

// Of one group.
struct MixDraw {
  double weight = 0;     // of the partner in the label, and in each pixel unless `box` is not empty
  PixelRegion box = {};  // CutMix: comes from the partner
  bool mixed() const { return weight > 0; }
};

MixDraw DrawMix(const MixOptions& options, uint64_t seed, uint64_t epoch, uint64_t group_number,
                uint32_t width, uint32_t height);

// All of the same size, contiguous 8-bit pixels. `out` may be `own`.
void MixPixels(const MixDraw& draw, const PixelView& own, const uint8_t* partner, uint8_t* out);

// One row of options.classes numbers. A negative label, of a sample that has none, adds nothing;
// others are below options.classes.
void SoftLabels(const MixOptions& options, double partner_weight, int64_t label,
                int64_t partner_label, std::span<float> row);

}  // namespace shardpack

#endif  // SHARDPACK_AUGMENT_MIX_H_
