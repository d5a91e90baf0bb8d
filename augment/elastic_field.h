// ElasticField: how far each pixel of an elastic warp is from its place.
//
//   ElasticField field;
//   if (!field.Make(operation.values[0], operation.values[1], seed, 224, 224)) return out of memory
//   const float x = column + 0.5f + field.Dx(row)[column];
//
// torchvision's ElasticTransform for square images: noise from -1 to 1, blurred by a Gaussian of
// 8 sigma pixels, mirrored at the border, times alpha / 2. The noise is of SampleRandom, and sums
// are taken in one order, so that all processors agree.
//
// Lifetime: keeps its memory from call to call.
// Thread-safety: one caller at a time.
// Errors: false when out of memory.
// Units: pixels.
#ifndef SHARDPACK_AUGMENT_ELASTIC_FIELD_H_
#define SHARDPACK_AUGMENT_ELASTIC_FIELD_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardpack {

class ElasticField {
 public:
  [[nodiscard]] bool Make(double alpha, double sigma, uint64_t seed, uint32_t width,
                          uint32_t height);
  const float* Dx(uint32_t row) const { return of_[0].data() + size_t{row} * width_; }
  const float* Dy(uint32_t row) const { return of_[1].data() + size_t{row} * width_; }

 private:
  void MakeWeights(double sigma);
  void Blur(std::vector<float>& field);

  uint32_t width_ = 0, height_ = 0;
  std::vector<float> of_[2];
  std::vector<float> weights_, line_, across_;
};

}  // namespace shardpack

#endif  // SHARDPACK_AUGMENT_ELASTIC_FIELD_H_
