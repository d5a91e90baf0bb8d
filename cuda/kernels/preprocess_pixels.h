// Pixels inside the preprocess kernel: four of them from a row of bytes to words, and weighted
// sums.
//
//   StageFourPixels<3>(row, row_bytes, first_byte, words);   // a word a pixel
//   PixelSums<3> sums;
//   sums.Begin();
//   for (uint32_t k = 0; k < taps; ++k) sums.Add(words[k], weights[k]);
//   const uint32_t pixel = sums.Pixel();
//
// In a word: red in the lowest byte, then green and blue; or gray alone.
//
// Lifetime: rows are borrowed.
// Thread-safety: pure functions, plain values.
//
// Nothing outside the row is read.
// Units: bytes, words of 32 bits.
#ifndef SHARDPACK_CUDA_KERNELS_PREPROCESS_PIXELS_H_
#define SHARDPACK_CUDA_KERNELS_PREPROCESS_PIXELS_H_

#include <cstdint>
#include <cstring>

#include "cuda/kernels/preprocess.h"
#include "cuda/kernels/preprocess_store.h"
#include "images/pixels/host_device.h"
#include "images/resize/resize_weights.h"

namespace shardpack {

SHARDPACK_HOST_DEVICE inline uint32_t LoadWord(const uint8_t* aligned) {
#ifdef __CUDA_ARCH__
  return __ldg(reinterpret_cast<const uint32_t*>(aligned));
#else
  uint32_t word;
  std::memcpy(&word, aligned, sizeof(word));
  return word;
#endif
}

// The word that begins `shift` bits into the pair.
SHARDPACK_HOST_DEVICE inline uint32_t Joined(uint32_t low, uint32_t high, uint32_t shift) {
#ifdef __CUDA_ARCH__
  return __funnelshift_r(low, high, shift);
#else
  return static_cast<uint32_t>(((uint64_t{high} << 32) | low) >> shift);
#endif
}

// The aligned words that contain the bytes [at, at + 4 * kWords) of a row, joined so that they
// begin with the first; false if some lie outside the row, where there may be no memory.
template <uint32_t kWords>
SHARDPACK_HOST_DEVICE inline bool LoadWords(const uint8_t* row, uint32_t row_bytes, uint32_t at,
                                            uint32_t* words) {
  const uint8_t* from = row + at;
  const auto ahead = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(from) & 3);
  const uint32_t count = kWords + (ahead != 0);
  if (at < ahead || row_bytes - at + ahead < 4 * count) return false;
  from -= ahead;
  uint32_t low = LoadWord(from);
  for (uint32_t i = 0; i < kWords; ++i) {
    const uint32_t high = i + 1 < count ? LoadWord(from + 4 * (i + 1)) : 0;
    words[i] = Joined(low, high, 8 * ahead);
    low = high;
  }
  return true;
}

// Four pixels, from bytes without gaps.
template <uint32_t kChannels>
SHARDPACK_HOST_DEVICE inline void UnpackFourPixels(const uint32_t* packed, uint32_t* words) {
  uint32_t pixels[4];
  if constexpr (kChannels == 3) {
    pixels[0] = packed[0] & 0xFFFFFF;
    pixels[1] = Joined(packed[0], packed[1], 24) & 0xFFFFFF;
    pixels[2] = Joined(packed[1], packed[2], 16) & 0xFFFFFF;
    pixels[3] = packed[2] >> 8;
  } else {
    for (uint32_t i = 0; i < 4; ++i) pixels[i] = packed[0] >> (8 * i) & 0xFF;
  }
  StoreFourWords(pixels, words);
}

// Eight pixels from byte `at` of a row, which is inside; bytes after the row are left out.
template <uint32_t kChannels>
SHARDPACK_HOST_DEVICE inline void StageEightPixels(const uint8_t* row, uint32_t row_bytes,
                                                   uint32_t at, uint32_t* words) {
  uint32_t packed[2 * kChannels];
  if (LoadWords<2 * kChannels>(row, row_bytes, at, packed)) {
    UnpackFourPixels<kChannels>(packed, words);
    UnpackFourPixels<kChannels>(packed + kChannels, words + 4);
    return;
  }
  for (uint32_t four = 0; four < 2; ++four, at += 4 * kChannels, words += 4) {
    if (at >= row_bytes) return;
    if (!LoadWords<kChannels>(row, row_bytes, at, packed)) {
      for (uint32_t i = 0; i < kChannels; ++i) {
        packed[i] = 0;
        for (uint32_t k = 0; k < 4; ++k) {
          const uint32_t byte = at + 4 * i + k;
          if (byte < row_bytes) packed[i] |= uint32_t{row[byte]} << (8 * k);
        }
      }
    }
    UnpackFourPixels<kChannels>(packed, words);
  }
}

// The pixel at (x, y) of an image that is turned, of this size when it is.
template <uint32_t kChannels>
SHARDPACK_HOST_DEVICE inline uint32_t TurnedPixel(const PreprocessSample& sample, uint32_t x,
                                                  uint32_t y) {
  const Orientation& turn = sample.turn;
  if (turn.mirror_x) x = sample.width - 1 - x;
  if (turn.mirror_y) y = sample.height - 1 - y;
  const uint64_t down = turn.transpose ? x : y, across = turn.transpose ? y : x;
  const uint8_t* const from = sample.pixels + down * sample.stride_bytes + across * kChannels;
  uint32_t pixel = 0;
  for (uint32_t c = 0; c < kChannels; ++c) pixel |= uint32_t{from[c]} << (8 * c);
  return pixel;
}

// One of the word's bytes.
SHARDPACK_HOST_DEVICE inline int32_t ByteOf(uint32_t word, uint32_t i) {
#ifdef __CUDA_ARCH__
  return static_cast<int32_t>(__byte_perm(word, 0, 0x4440 + i));
#else
  return static_cast<int32_t>(word >> (8 * i) & 0xFF);
#endif
}

template <uint32_t kChannels>
struct PixelSums {
  int32_t of[kChannels];

  SHARDPACK_HOST_DEVICE void Begin() {
    for (uint32_t c = 0; c < kChannels; ++c) of[c] = kResizeFixedHalf;
  }
  SHARDPACK_HOST_DEVICE void Add(uint32_t pixel, int32_t weight) {
    for (uint32_t c = 0; c < kChannels; ++c) {
      of[c] += weight * ByteOf(pixel, c);
    }
  }
  SHARDPACK_HOST_DEVICE uint32_t Pixel() const {
    uint32_t pixel = 0;
    for (uint32_t c = 0; c < kChannels; ++c) pixel |= SampleOfSum(of[c]) << (8 * c);
    return pixel;
  }
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_KERNELS_PREPROCESS_PIXELS_H_
