#include "images/probe/marker_scan.h"

#include <bit>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace shardpack {
namespace {

// Whether FF, `code` ends a run of entropy-coded data. T.81 B.1.1.5: a data byte FF is followed by
// a stuffed 00; B.2.1: restart markers D0..D7 lie within a scan; B.1.1.2: FF FF is a fill byte.
bool EndsScan(std::byte code) {
  return code != std::byte{0x00} && code != std::byte{0xFF} &&
         (code & std::byte{0xF8}) != std::byte{0xD0};
}

}  // namespace

uint64_t FindJpegMarkerPortable(std::span<const std::byte> file, uint64_t from) {
  while (file.size() >= 2 && from < file.size() - 1) {
    const void* hit = std::memchr(file.data() + from, 0xFF, file.size() - 1 - from);
    if (hit == nullptr) break;
    const uint64_t at = static_cast<const std::byte*>(hit) - file.data();
    if (EndsScan(file[at + 1])) return at;
    from = at + 1;
  }
  return file.size();
}

#ifdef __SSE2__
namespace {

// FF in each lane i where p[i], p[i + 1] ends a scan; reads p[0..16]. There is no branch on the FF
// byte itself: it occurs every few hundred bytes and would be mispredicted each time.
inline __m128i ScanEnds(const std::byte* p) {
  const __m128i ones = _mm_set1_epi8(static_cast<char>(0xFF));
  const __m128i current = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const __m128i next = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 1));
  const __m128i stuffed = _mm_cmpeq_epi8(next, _mm_setzero_si128());
  const __m128i fill = _mm_cmpeq_epi8(next, ones);
  const __m128i restart =
      _mm_cmpeq_epi8(_mm_and_si128(next, _mm_set1_epi8(static_cast<char>(0xF8))),
                     _mm_set1_epi8(static_cast<char>(0xD0)));
  const __m128i passed_over = _mm_or_si128(_mm_or_si128(stuffed, fill), restart);
  return _mm_andnot_si128(passed_over, _mm_cmpeq_epi8(current, ones));
}

}  // namespace

uint64_t FindJpegMarker(std::span<const std::byte> file, uint64_t from) {
  const std::byte* const data = file.data();
  while (from < file.size() && file.size() - from > 64) {
    const std::byte* const p = data + from;
    const __m128i a = ScanEnds(p), b = ScanEnds(p + 16);
    const __m128i c = ScanEnds(p + 32), d = ScanEnds(p + 48);
    const __m128i any = _mm_or_si128(_mm_or_si128(a, b), _mm_or_si128(c, d));
    if (_mm_movemask_epi8(any) != 0) {
      const uint64_t mask = static_cast<uint64_t>(_mm_movemask_epi8(a)) |
                            static_cast<uint64_t>(_mm_movemask_epi8(b)) << 16 |
                            static_cast<uint64_t>(_mm_movemask_epi8(c)) << 32 |
                            static_cast<uint64_t>(_mm_movemask_epi8(d)) << 48;
      return from + static_cast<uint64_t>(std::countr_zero(mask));
    }
    from += 64;
  }
  return FindJpegMarkerPortable(file, from);
}

#else

uint64_t FindJpegMarker(std::span<const std::byte> file, uint64_t from) {
  return FindJpegMarkerPortable(file, from);
}

#endif  // __SSE2__

}  // namespace shardpack
