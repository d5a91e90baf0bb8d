// DecodeBalance: deals the images of a batch that engines and lanes (threads) can both decode: to
// the engines from the front, in chunks that become smaller, to lanes from the back, one by one, so
// that both end at the same time.
//
//   DecodeBalance balance(images, lanes, rates);             // rates: as the last batch left them
//   while (!(chunk = balance.TakeChunk()).empty()) ...       // the thread that feeds the engines
//   while (std::optional<size_t> i = balance.TakeOne()) ...  // each lane
//   rates = balance.rates();
//
// How long an image takes each is measured (Note...); while that is not known, a quarter of what is
// left is a chunk. A lane is given nothing when the engines would have done all before it is done
// with one, and the engines nothing when the lanes would have. As a lane that is given nothing is
// not measured either, a batch with `probe` gives one image to a lane that would be late.
//
//
// Thread-safety: any thread.
// Units: microseconds of wall time an image: of all engines together, and of one lane.
#ifndef SHARDPACK_CUDA_JPEG_DECODE_BALANCE_H_
#define SHARDPACK_CUDA_JPEG_DECODE_BALANCE_H_

#include <cstddef>
#include <mutex>
#include <optional>

namespace shardpack {

struct DecodeRates {
  double engine_us = 0, lane_us = 0;  // 0: not known
};

class DecodeBalance {
 public:
  static constexpr size_t kMostInChunk = 64;  // several a batch, and a multiple of all engines

  struct Chunk {
    size_t begin = 0, end = 0;
    bool empty() const { return begin == end; }
    size_t size() const { return end - begin; }
  };

  DecodeBalance(size_t images, size_t lanes, const DecodeRates& rates, bool probe = false)
      : lanes_(lanes), end_(images), probe_(probe), rates_(rates) {}

  Chunk TakeChunk();
  // nullopt: the lane has done its part.
  std::optional<size_t> TakeOne();
  // The engines have done so many images of this batch, in this time.
  void NoteEngines(size_t images, double us);
  void NoteLane(double us);
  // The engines take no more: the lanes do all that is left.
  void EndEngines();
  DecodeRates rates() const;

 private:
  mutable std::mutex mutex_;
  size_t lanes_;                              // that still take images
  size_t begin_ = 0, end_;                    // of what nobody has taken
  size_t last_chunk_ = 0, chunk_before_ = 0;  // which may be under way
  bool engines_ended_ = false;
  bool probe_, probed_ = false;  // to be done, done
  DecodeRates rates_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_JPEG_DECODE_BALANCE_H_
