#include "images/resize/resize_kernels.h"

#include <algorithm>
#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace shardpack {
namespace {

uint8_t Rounded(int32_t sum, int shift) {
  return static_cast<uint8_t>(std::clamp(sum >> shift, 0, 255));
}

template <uint32_t kChannels>
void AddWeighted(const uint8_t* from, const int16_t* weights, uint32_t count, int32_t* sums) {
  for (uint32_t k = 0; k < count; ++k, from += kChannels) {
    for (uint32_t c = 0; c < kChannels; ++c) sums[c] += weights[k] * from[c];
  }
}

template <uint32_t kChannels>
void PortableRow(const uint8_t* row, const ResizeTable& table, uint8_t* out) {
  const int shift = table.shift();
  for (uint32_t x = 0; x < table.size(); ++x, out += kChannels) {
    const uint8_t* from = row + size_t{table.first(x)} * kChannels;
    int32_t sums[kChannels] = {};
    if (table.has_fine()) {
      AddWeighted<kChannels>(from, table.fine(x), table.inside(x), sums);
      for (uint32_t c = 0; c < kChannels; ++c) sums[c] >>= ResizeTable::kFineShift;
    }
    for (uint32_t c = 0; c < kChannels; ++c) sums[c] += 1 << (shift - 1);
    AddWeighted<kChannels>(from, table.weights(x), table.inside(x), sums);
    for (uint32_t c = 0; c < kChannels; ++c) out[c] = Rounded(sums[c], shift);
  }
}

void PortableColumns(const uint8_t* const* rows, uint32_t channels, const ResizeTable& table,
                     uint8_t* const* outs) {
  for (uint32_t i = 0; i < ResizeKernels::kRowsAtOnce; ++i) {
    if (channels == 1) {
      PortableRow<1>(rows[i], table, outs[i]);
    } else {
      PortableRow<3>(rows[i], table, outs[i]);
    }
  }
}

void AddWeightedRows(const uint8_t* const* rows, const int16_t* weights, uint32_t taps,
                     size_t first, size_t count, int32_t* sums) {
  for (uint32_t k = 0; k < taps; ++k) {
    const uint8_t* row = rows[k] + first;
    const int32_t weight = weights[k];
    for (size_t i = 0; i < count; ++i) sums[i] += weight * row[i];
  }
}

void RowsFrom(const uint8_t* const* rows, const ResizeTable& table, uint32_t y, size_t first,
              size_t size_bytes, uint8_t* out) {
  const int shift = table.shift();
  const uint32_t taps = table.inside(y);
  // In blocks, so that sums stay in registers or the nearest cache.
  constexpr size_t kBlock = 64;
  for (; first < size_bytes; first += kBlock) {
    const size_t count = std::min(kBlock, size_bytes - first);
    int32_t sums[kBlock] = {};
    if (table.has_fine()) {
      AddWeightedRows(rows, table.fine(y), taps, first, count, sums);
      for (size_t i = 0; i < count; ++i) sums[i] >>= ResizeTable::kFineShift;
    }
    for (size_t i = 0; i < count; ++i) sums[i] += 1 << (shift - 1);
    AddWeightedRows(rows, table.weights(y), taps, first, count, sums);
    for (size_t i = 0; i < count; ++i) out[first + i] = Rounded(sums[i], shift);
  }
}

void PortableRows(const uint8_t* const* rows, const ResizeTable& table, uint32_t y,
                  size_t size_bytes, uint8_t* out) {
  RowsFrom(rows, table, y, 0, size_bytes, out);
}

#ifdef __x86_64__

#define SHARDPACK_AVX2 __attribute__((target("avx2"), always_inline)) inline

// Two output pixels at once, one in each half of a register, for four rows with the same weights.
// Takes two taps of each as pairs of 16 bits for red, green and blue, which pmaddwd multiplies and
// adds; then the next two.
SHARDPACK_AVX2 void AddTaps(const uint8_t* const* rows, size_t from_a, size_t from_b,
                            const int16_t* weights_a, const int16_t* weights_b, uint32_t taps,
                            __m256i* sums) {
  const __m256i first = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1));
  const __m256i second = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1));
  const auto load = [](const void* at) __attribute__((target("avx2"), always_inline)) {
    return _mm_loadu_si128(static_cast<const __m128i*>(at));
  };
  for (uint32_t k = 0; k < taps; k += 4) {
    const __m256i weights = _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(weights_a + k))),
        _mm_loadl_epi64(reinterpret_cast<const __m128i*>(weights_b + k)), 1);
    const __m256i first_weights = _mm256_shuffle_epi32(weights, 0x00);
    const __m256i second_weights = _mm256_shuffle_epi32(weights, 0x55);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m256i pixels =
          _mm256_inserti128_si256(_mm256_castsi128_si256(load(rows[i] + from_a + 3 * k)),
                                  load(rows[i] + from_b + 3 * k), 1);
      const __m256i a = _mm256_madd_epi16(_mm256_shuffle_epi8(pixels, first), first_weights);
      const __m256i b = _mm256_madd_epi16(_mm256_shuffle_epi8(pixels, second), second_weights);
      sums[i] = _mm256_add_epi32(sums[i], _mm256_add_epi32(a, b));
    }
  }
}

// Stores two pixels for each of four rows; the bytes after them are overwritten with garbage.
SHARDPACK_AVX2 void PutPixels(const __m256i* sums, __m128i shift, size_t at, uint8_t* const* outs) {
  const __m256i bytes = _mm256_packus_epi16(
      _mm256_packs_epi32(_mm256_sra_epi32(sums[0], shift), _mm256_sra_epi32(sums[1], shift)),
      _mm256_packs_epi32(_mm256_sra_epi32(sums[2], shift), _mm256_sra_epi32(sums[3], shift)));
  const __m128i a = _mm256_castsi256_si128(bytes), b = _mm256_extracti128_si256(bytes, 1);
  const __m128i close = _mm_setr_epi8(0, 1, 2, 4, 5, 6, -1, -1, 8, 9, 10, 12, 13, 14, -1, -1);
  const __m128i low = _mm_shuffle_epi8(_mm_unpacklo_epi32(a, b), close);
  const __m128i high = _mm_shuffle_epi8(_mm_unpackhi_epi32(a, b), close);
  const int64_t rows[4] = {_mm_extract_epi64(low, 0), _mm_extract_epi64(low, 1),
                           _mm_extract_epi64(high, 0), _mm_extract_epi64(high, 1)};
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) std::memcpy(outs[i] + at, &rows[i], sizeof(rows[i]));
}

template <bool kFine>
__attribute__((target("avx2"))) void Avx2RgbColumns(const uint8_t* const* rows,
                                                    const ResizeTable& table,
                                                    uint8_t* const* outs) {
  const __m128i shift = _mm_cvtsi32_si128(table.shift());
  const __m256i half = _mm256_set1_epi32(1 << (table.shift() - 1));
  const uint32_t taps = table.taps(), size = table.size();
  for (uint32_t x = 0; x < size; x += 2) {
    // If the number is odd, the last one is computed twice.
    const uint32_t y = x + 1 < size ? x + 1 : x;
    const size_t from_x = size_t{table.first(x)} * 3, from_y = size_t{table.first(y)} * 3;
    __m256i sums[4] = {half, half, half, half};
    AddTaps(rows, from_x, from_y, table.weights(x), table.weights(y), taps, sums);
    if constexpr (kFine) {
      __m256i fine[4] = {};
      AddTaps(rows, from_x, from_y, table.fine(x), table.fine(y), taps, fine);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        sums[i] = _mm256_add_epi32(sums[i], _mm256_srai_epi32(fine[i], ResizeTable::kFineShift));
      }
    }
    PutPixels(sums, shift, size_t{x} * 3, outs);
  }
}

void Avx2Columns(const uint8_t* const* rows, uint32_t channels, const ResizeTable& table,
                 uint8_t* const* outs) {
  if (channels != 3) {
    PortableColumns(rows, channels, table, outs);
  } else if (table.has_fine()) {
    Avx2RgbColumns<true>(rows, table, outs);
  } else {
    Avx2RgbColumns<false>(rows, table, outs);
  }
}

// The weights of two rows as a pair.
SHARDPACK_AVX2 __m256i LoadPair(const int16_t* weights) {
  int pair;
  std::memcpy(&pair, weights, sizeof(pair));
  return _mm256_set1_epi32(pair);
}

SHARDPACK_AVX2 __m256i LoadWords(const uint8_t* bytes) {
  return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)));
}

// Thirty-two bytes of two rows at a time, as pairs for pmaddwd.
SHARDPACK_AVX2 void AddRows(const uint8_t* const* rows, size_t at, const int16_t* weights,
                            uint32_t taps, __m256i* sums) {
  for (uint32_t k = 0; k < taps; k += 2) {
    const __m256i weight = LoadPair(weights + k);
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const __m256i a = LoadWords(rows[k] + at + 16 * i), b = LoadWords(rows[k + 1] + at + 16 * i);
      sums[2 * i] =
          _mm256_add_epi32(sums[2 * i], _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), weight));
      sums[2 * i + 1] =
          _mm256_add_epi32(sums[2 * i + 1], _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), weight));
    }
  }
}

// Of two rows a and b, a * (one - w) + b * w is a + (b - a) * w, which 16 bits hold. `weight` has
// 15 fractional bits and is at most a half. Returns the number of bytes that were made.
SHARDPACK_AVX2 size_t BlendRows(const uint8_t* a, const uint8_t* b, int16_t weight,
                                size_t size_bytes, uint8_t* out) {
  const __m256i weights = _mm256_set1_epi16(weight);
  size_t at = 0;
  for (; at + 32 <= size_bytes; at += 32) {
    __m256i blended[2];
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const __m256i from = LoadWords(a + at + 16 * i), to = LoadWords(b + at + 16 * i);
      // Rounds as the sums of AddRows are rounded.
      const __m256i change = _mm256_mulhrs_epi16(_mm256_sub_epi16(to, from), weights);
      blended[i] = _mm256_add_epi16(from, change);
    }
    const __m256i bytes = _mm256_packus_epi16(blended[0], blended[1]);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + at),
                        _mm256_permute4x64_epi64(bytes, 0xD8));
  }
  return at;
}

__attribute__((target("avx2"))) void Avx2Rows(const uint8_t* const* rows, const ResizeTable& table,
                                              uint32_t y, size_t size_bytes, uint8_t* out) {
  const int16_t* const weights = table.weights(y);
  if (table.inside(y) <= 2 && !table.has_fine() && table.shift() <= 15 &&
      weights[0] + weights[1] == 1 << table.shift()) {
    const bool swap = weights[1] > weights[0];
    const auto weight = static_cast<int16_t>(weights[swap ? 0 : 1] << (15 - table.shift()));
    const size_t made = BlendRows(rows[swap], rows[!swap], weight, size_bytes, out);
    RowsFrom(rows, table, y, made, size_bytes, out);
    return;
  }
  const __m128i count = _mm_cvtsi32_si128(table.shift());
  const __m256i half = _mm256_set1_epi32(1 << (table.shift() - 1));
  const uint32_t taps = (table.inside(y) + 1) / 2 * 2;
  size_t at = 0;
  for (; at + 32 <= size_bytes; at += 32) {
    __m256i sums[4] = {};
    if (table.has_fine()) {
      AddRows(rows, at, table.fine(y), taps, sums);
#pragma GCC unroll 4
      for (__m256i& sum : sums) sum = _mm256_srai_epi32(sum, ResizeTable::kFineShift);
    }
    AddRows(rows, at, table.weights(y), taps, sums);
#pragma GCC unroll 4
    for (__m256i& sum : sums) sum = _mm256_sra_epi32(_mm256_add_epi32(sum, half), count);
    // Each half of a register: bytes 0 to 7 and 16 to 23, then 8 to 15 and 24 to 31.
    const __m256i bytes = _mm256_packus_epi16(_mm256_packs_epi32(sums[0], sums[1]),
                                              _mm256_packs_epi32(sums[2], sums[3]));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + at),
                        _mm256_permute4x64_epi64(bytes, 0xD8));
  }
  RowsFrom(rows, table, y, at, size_bytes, out);
}

#undef SHARDPACK_AVX2

#endif  // __x86_64__

}  // namespace

const ResizeKernels& PortableResizeKernels() {
  static constexpr ResizeKernels kKernels{"portable", PortableColumns, PortableRows};
  return kKernels;
}

const ResizeKernels& BestResizeKernels() {
#ifdef __x86_64__
  static constexpr ResizeKernels kAvx2{"avx2", Avx2Columns, Avx2Rows};
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  if (has_avx2) return kAvx2;
#endif
  return PortableResizeKernels();
}

}  // namespace shardpack
