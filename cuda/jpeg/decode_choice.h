// DecodeChoice: finds out with the first batches which of several ways to decode takes least here.
//
//   DecodeChoice choice({{JpegWay::kHardware, true}, {JpegWay::kHardware}, {JpegWay::kCpu}});
//   const DecodeWay way = choice.way();                   // by which the next batch is decoded
//   if (choice.measures()) choice.Note(images, us);       // what it took until all was decoded
//   choice.Describe();   // "hybrid: 20.0 us an image, after 9 batches; hardware 41.2, cpu 610.5"
//
// The ways take turns. Of each the first batch, which allocates, does not count; of the others the
// one that took least an image does, since whatever else runs on a machine only makes one slower.
// Of equal ways the one that was named first is chosen.
//
//
// Thread-safety: one thread at a time.
// Units: microseconds of wall time.
#ifndef SHARDPACK_CUDA_JPEG_DECODE_CHOICE_H_
#define SHARDPACK_CUDA_JPEG_DECODE_CHOICE_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cuda/jpeg/jpeg_decoder.h"

namespace shardpack {

struct DecodeWay {
  JpegWay way = JpegWay::kHardware;
  bool regions = false;  // only what is needed of an image

  friend auto operator<=>(const DecodeWay&, const DecodeWay&) = default;
};

class DecodeChoice {
 public:
  static constexpr uint32_t kTurns = 3;  // batches of each way

  // At least one way; a single one needs no batch.
  explicit DecodeChoice(const std::vector<DecodeWay>& ways);

  DecodeWay way() const { return ways_[now_].way; }
  bool measures() const { return !chosen_; }
  // Of a batch that `way` decoded; without images it does not count. Not after the choice.
  void Note(size_t images, double us);
  // Instead: `way`, which is not the only one, turned out not to work, and has no more turns.
  void Refuse();
  // Empty before the choice.
  std::string Describe() const;

 private:
  struct Tried {
    DecodeWay way;
    uint32_t batches = 0;
    double us_an_image = 0;
  };

  void EndTurn();

  std::vector<Tried> ways_;
  size_t now_ = 0;
  uint32_t noted_ = 0;  // batches
  bool chosen_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_JPEG_DECODE_CHOICE_H_
