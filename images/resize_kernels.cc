#include "images/resize_kernels.h"

#include <algorithm>

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

// Four taps of an RGB pixel at once: taps 0 and 1 in the low half, 2 and 3 in the high half, as
// pairs of 16 bits for each channel, which pmaddwd multiplies and adds. Four rows share a weight.
SHARDPACK_AVX2 void AddTaps(const uint8_t* const* rows, size_t from, const int16_t* weights,
                            uint32_t taps, __m256i* sums) {
  const __m256i pairs =
      _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1,  //
                       6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
  const __m256i spread = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
  for (uint32_t k = 0; k < taps; k += 4) {
    const __m256i weight = _mm256_permutevar8x32_epi32(
        _mm256_castsi128_si256(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(weights + k))),
        spread);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m256i pixels = _mm256_broadcastsi128_si256(
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[i] + from + 3 * k)));
      sums[i] =
          _mm256_add_epi32(sums[i], _mm256_madd_epi16(_mm256_shuffle_epi8(pixels, pairs), weight));
    }
  }
}

template <bool kFine>
__attribute__((target("avx2"))) void Avx2RgbColumns(const uint8_t* const* rows,
                                                    const ResizeTable& table,
                                                    uint8_t* const* outs) {
  const __m128i shift = _mm_cvtsi32_si128(table.shift());
  const __m128i half = _mm_set1_epi32(1 << (table.shift() - 1));
  const uint32_t taps = table.taps();
  for (uint32_t x = 0; x < table.size(); ++x) {
    const size_t from = size_t{table.first(x)} * 3;
    __m256i sums[4] = {}, fine[4] = {};
    AddTaps(rows, from, table.weights(x), taps, sums);
    if constexpr (kFine) AddTaps(rows, from, table.fine(x), taps, fine);
    __m128i total[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      __m128i both =
          _mm_add_epi32(_mm256_castsi256_si128(sums[i]), _mm256_extracti128_si256(sums[i], 1));
      if constexpr (kFine) {
        const __m128i more =
            _mm_add_epi32(_mm256_castsi256_si128(fine[i]), _mm256_extracti128_si256(fine[i], 1));
        both = _mm_add_epi32(both, _mm_srai_epi32(more, ResizeTable::kFineShift));
      }
      total[i] = _mm_sra_epi32(_mm_add_epi32(both, half), shift);
    }
    const __m128i bytes =
        _mm_packus_epi16(_mm_packs_epi32(total[0], total[1]), _mm_packs_epi32(total[2], total[3]));
    // The fourth byte is the next pixel's first, which is written after it.
    _mm_storeu_si32(outs[0] + 3 * x, bytes);
    _mm_storeu_si32(outs[1] + 3 * x, _mm_srli_si128(bytes, 4));
    _mm_storeu_si32(outs[2] + 3 * x, _mm_srli_si128(bytes, 8));
    _mm_storeu_si32(outs[3] + 3 * x, _mm_srli_si128(bytes, 12));
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

// Sixteen bytes of two rows at a time, as pairs for pmaddwd.
SHARDPACK_AVX2 void AddRows(const uint8_t* const* rows, size_t at, const int16_t* weights,
                            uint32_t taps, __m256i* low, __m256i* high) {
  for (uint32_t k = 0; k < taps; k += 2) {
    const __m256i weight = _mm256_set1_epi32(
        static_cast<int>(static_cast<uint16_t>(weights[k]) |
                         static_cast<uint32_t>(static_cast<uint16_t>(weights[k + 1])) << 16));
    const __m256i a =
        _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[k] + at)));
    const __m256i b =
        _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[k + 1] + at)));
    *low = _mm256_add_epi32(*low, _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), weight));
    *high = _mm256_add_epi32(*high, _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), weight));
  }
}

__attribute__((target("avx2"))) void Avx2Rows(const uint8_t* const* rows, const ResizeTable& table,
                                              uint32_t y, size_t size_bytes, uint8_t* out) {
  const __m128i count = _mm_cvtsi32_si128(table.shift());
  const __m256i half = _mm256_set1_epi32(1 << (table.shift() - 1));
  const uint32_t taps = (table.inside(y) + 1) / 2 * 2;
  size_t at = 0;
  for (; at + 16 <= size_bytes; at += 16) {
    __m256i low = _mm256_setzero_si256(), high = low;
    if (table.has_fine()) {
      AddRows(rows, at, table.fine(y), taps, &low, &high);
      low = _mm256_srai_epi32(low, ResizeTable::kFineShift);
      high = _mm256_srai_epi32(high, ResizeTable::kFineShift);
    }
    low = _mm256_add_epi32(low, half);
    high = _mm256_add_epi32(high, half);
    AddRows(rows, at, table.weights(y), taps, &low, &high);
    const __m256i words =
        _mm256_packs_epi32(_mm256_sra_epi32(low, count), _mm256_sra_epi32(high, count));
    const __m128i bytes =
        _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + at), bytes);
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
