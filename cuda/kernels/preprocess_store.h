// Stores results of the preprocess kernel: four pixels of a row at once, in any type and layout.
//
//   StoreFourPixels<3>(store, sample, x, y, samples);   // x is a multiple of four
//   StoreLine<3>(store, sample, left, y, n, samples);   // NHWC: 16 bytes from the n-th number on
//
// Lifetime: `out` is borrowed.
// Thread-safety: calls for different pixels.
// Units: pixels. `vectors` promises that rows are multiples of four pixels and that `out` is
// aligned for four numbers; `lines`, of NHWC alone, that rows are multiples of 16 bytes and `out`
// is aligned to that.
#ifndef SHARDPACK_CUDA_KERNELS_PREPROCESS_STORE_H_
#define SHARDPACK_CUDA_KERNELS_PREPROCESS_STORE_H_

#include <cstdint>
#include <cstring>

#include "images/pixels/host_device.h"
#include "images/pixels/pixel_numbers.h"
#include "images/pixels/pixel_output.h"

namespace shardpack {

struct PreprocessStore {
  uint8_t* out;
  uint32_t width, height;  // of one result
  PixelType type;
  PixelLayout layout;
  bool vectors, lines;
  ChannelScale scale[3];
};

inline constexpr uint32_t kLineBytes = 16;

SHARDPACK_HOST_DEVICE inline uint32_t StoredBytes(PixelType type) {
  return type == PixelType::kU8 ? 1 : type == PixelType::kF32 ? 4 : 2;
}

// In memory aligned to 16 bytes.
SHARDPACK_HOST_DEVICE inline void StoreFourWords(const uint32_t* words, void* to) {
#ifdef __CUDA_ARCH__
  *static_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
#else
  std::memcpy(to, words, 16);
#endif
}

SHARDPACK_HOST_DEVICE inline void LoadFourWords(const void* from, uint32_t* words) {
#ifdef __CUDA_ARCH__
  const uint4 all = *static_cast<const uint4*>(from);
  words[0] = all.x, words[1] = all.y, words[2] = all.z, words[3] = all.w;
#else
  std::memcpy(words, from, 16);
#endif
}

// One kind of number: how a sample becomes its bits, and how four of them are stored.
template <PixelType kType>
struct NumberOf {
  using Bits = uint16_t;
  SHARDPACK_HOST_DEVICE static Bits Make(uint8_t sample, const ChannelScale& scale) {
    const float number = NormalizedSample(sample, scale);
    return kType == PixelType::kF16 ? FloatToHalf(number) : FloatToBfloat(number);
  }
  SHARDPACK_HOST_DEVICE static void StoreFour(const Bits* bits, Bits* to) {
#ifdef __CUDA_ARCH__
    *reinterpret_cast<uint2*>(to) = make_uint2(bits[0] | static_cast<uint32_t>(bits[1]) << 16,
                                               bits[2] | static_cast<uint32_t>(bits[3]) << 16);
#else
    std::memcpy(to, bits, 4 * sizeof(Bits));
#endif
  }
};

template <>
struct NumberOf<PixelType::kU8> {
  using Bits = uint8_t;
  SHARDPACK_HOST_DEVICE static Bits Make(uint8_t sample, const ChannelScale&) { return sample; }
  SHARDPACK_HOST_DEVICE static void StoreFour(const Bits* bits, Bits* to) {
#ifdef __CUDA_ARCH__
    *reinterpret_cast<uint32_t*>(to) =
        bits[0] | bits[1] << 8 | bits[2] << 16 | static_cast<uint32_t>(bits[3]) << 24;
#else
    std::memcpy(to, bits, 4);
#endif
  }
};

template <>
struct NumberOf<PixelType::kF32> {
  using Bits = float;
  SHARDPACK_HOST_DEVICE static Bits Make(uint8_t sample, const ChannelScale& scale) {
    return NormalizedSample(sample, scale);
  }
  SHARDPACK_HOST_DEVICE static void StoreFour(const Bits* bits, Bits* to) {
#ifdef __CUDA_ARCH__
    *reinterpret_cast<float4*>(to) = make_float4(bits[0], bits[1], bits[2], bits[3]);
#else
    std::memcpy(to, bits, 4 * sizeof(Bits));
#endif
  }
};

// The first number of this result, and the distance from one channel to the next and from one pixel
// to the next, in numbers.
template <uint32_t kChannels>
struct NumberOffsets {
  uint64_t first;
  uint64_t channel, pixel;

  SHARDPACK_HOST_DEVICE NumberOffsets(const PreprocessStore& store, uint64_t image, uint32_t x,
                                      uint32_t y) {
    const uint64_t plane = uint64_t{store.width} * store.height;
    const uint64_t at = uint64_t{y} * store.width + x;
    const bool planes = store.layout == PixelLayout::kNchw;
    first = image * plane * kChannels + (planes ? at : at * kChannels);
    channel = planes ? plane : 1;
    pixel = planes ? 1 : kChannels;
  }
};

template <uint32_t kChannels, PixelType kType>
SHARDPACK_HOST_DEVICE inline void StoreFourOf(const PreprocessStore& store, uint64_t image,
                                              uint32_t x, uint32_t y,
                                              const uint8_t (&samples)[4][kChannels]) {
  using Number = NumberOf<kType>;
  using Bits = typename Number::Bits;
  const NumberOffsets<kChannels> offsets(store, image, x, y);
  Bits* const to = reinterpret_cast<Bits*>(store.out) + offsets.first;
  Bits numbers[4][kChannels];
  for (uint32_t p = 0; p < 4; ++p) {
    for (uint32_t c = 0; c < kChannels; ++c) {
      numbers[p][c] = Number::Make(samples[p][c], store.scale[c]);
    }
  }
  if (!store.vectors) {
    for (uint32_t p = 0; p < 4; ++p) {
      if (x + p >= store.width) break;
      for (uint32_t c = 0; c < kChannels; ++c) {
        to[p * offsets.pixel + c * offsets.channel] = numbers[p][c];
      }
    }
  } else if (store.layout == PixelLayout::kNchw) {
    for (uint32_t c = 0; c < kChannels; ++c) {
      Bits four[4];
      for (uint32_t p = 0; p < 4; ++p) four[p] = numbers[p][c];
      Number::StoreFour(four, to + c * offsets.channel);
    }
  } else {
    for (uint32_t i = 0; i < kChannels; ++i) {
      Bits four[4];
      for (uint32_t k = 0; k < 4; ++k) {
        four[k] = numbers[(4 * i + k) / kChannels][(4 * i + k) % kChannels];
      }
      Number::StoreFour(four, to + 4 * i);
    }
  }
}

template <uint32_t kChannels>
SHARDPACK_HOST_DEVICE inline void StoreFourPixels(const PreprocessStore& store, uint64_t image,
                                                  uint32_t x, uint32_t y,
                                                  const uint8_t (&samples)[4][kChannels]) {
  switch (store.type) {
    case PixelType::kU8:
      return StoreFourOf<kChannels, PixelType::kU8>(store, image, x, y, samples);
    case PixelType::kF32:
      return StoreFourOf<kChannels, PixelType::kF32>(store, image, x, y, samples);
    case PixelType::kF16:
      return StoreFourOf<kChannels, PixelType::kF16>(store, image, x, y, samples);
    case PixelType::kBf16:
      return StoreFourOf<kChannels, PixelType::kBf16>(store, image, x, y, samples);
  }
}

// Samples side by side, to memory aligned to four bytes.
template <uint32_t kChannels>
SHARDPACK_HOST_DEVICE inline void StageFourSamples(const uint8_t (&samples)[4][kChannels],
                                                   uint8_t* to) {
  for (uint32_t word = 0; word < kChannels; ++word) {
    uint32_t four = 0;
    for (uint32_t k = 0; k < 4; ++k) {
      const uint32_t i = 4 * word + k;
      four |= uint32_t{samples[i / kChannels][i % kChannels]} << (8 * k);
    }
    std::memcpy(to + 4 * word, &four, sizeof(four));
  }
}

template <uint32_t kChannels, PixelType kType>
SHARDPACK_HOST_DEVICE inline void StoreLineOf(const PreprocessStore& store, uint8_t* to,
                                              uint32_t channel, const uint8_t* samples) {
  using Number = NumberOf<kType>;
  constexpr uint32_t kNumbers = kLineBytes / sizeof(typename Number::Bits);
  typename Number::Bits numbers[kNumbers];
  for (uint32_t i = 0; i < kNumbers; ++i) {
    numbers[i] = Number::Make(samples[i], store.scale[channel]);
    channel = channel + 1 == kChannels ? 0 : channel + 1;
  }
  uint32_t words[4];
  std::memcpy(words, numbers, sizeof(words));
  StoreFourWords(words, to);
}

// The line that begins `number` numbers after the pixel at (left, y); `samples` are its levels.
template <uint32_t kChannels>
SHARDPACK_HOST_DEVICE inline void StoreLine(const PreprocessStore& store, uint64_t image,
                                            uint32_t left, uint32_t y, uint32_t number,
                                            const uint8_t* samples) {
  const uint64_t first = NumberOffsets<kChannels>(store, image, left, y).first + number;
  uint8_t* const to = store.out + first * StoredBytes(store.type);
  const uint32_t channel = number % kChannels;
  switch (store.type) {
    case PixelType::kU8:
      return StoreLineOf<kChannels, PixelType::kU8>(store, to, channel, samples);
    case PixelType::kF32:
      return StoreLineOf<kChannels, PixelType::kF32>(store, to, channel, samples);
    case PixelType::kF16:
      return StoreLineOf<kChannels, PixelType::kF16>(store, to, channel, samples);
    case PixelType::kBf16:
      return StoreLineOf<kChannels, PixelType::kBf16>(store, to, channel, samples);
  }
}

template <uint32_t kChannels>
SHARDPACK_HOST_DEVICE inline void StorePixel(const PreprocessStore& store, uint64_t image,
                                             uint32_t x, uint32_t y,
                                             const uint8_t (&samples)[kChannels]) {
  const NumberOffsets<kChannels> offsets(store, image, x, y);
  for (uint32_t c = 0; c < kChannels; ++c) {
    const uint64_t at = offsets.first + c * offsets.channel;
    const ChannelScale& scale = store.scale[c];
    switch (store.type) {
      case PixelType::kU8:
        store.out[at] = samples[c];
        break;
      case PixelType::kF32:
        reinterpret_cast<float*>(store.out)[at] = NormalizedSample(samples[c], scale);
        break;
      case PixelType::kF16:
      case PixelType::kBf16:
        reinterpret_cast<uint16_t*>(store.out)[at] =
            store.type == PixelType::kF16 ? NumberOf<PixelType::kF16>::Make(samples[c], scale)
                                          : NumberOf<PixelType::kBf16>::Make(samples[c], scale);
        break;
    }
  }
}

// The number 0, not the level.
template <uint32_t kChannels>
SHARDPACK_HOST_DEVICE inline void StoreZero(const PreprocessStore& store, uint64_t image,
                                            uint32_t x, uint32_t y) {
  const NumberOffsets<kChannels> offsets(store, image, x, y);
  for (uint32_t c = 0; c < kChannels; ++c) {
    const uint64_t at = offsets.first + c * offsets.channel;
    if (store.type == PixelType::kU8) {
      store.out[at] = 0;
    } else if (store.type == PixelType::kF32) {
      reinterpret_cast<float*>(store.out)[at] = 0;
    } else {
      reinterpret_cast<uint16_t*>(store.out)[at] = 0;
    }
  }
}

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_KERNELS_PREPROCESS_STORE_H_
