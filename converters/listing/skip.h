// Skip: one input left out of the dataset, and the reason. Skips are data, listed in skipped.jsonl.
//
//   Skip skip{row, SkipReason::kTruncated, "no EOI marker"};
//   line["reason"] = SkipReasonName(skip.reason);
//
// Lifetime: a plain value, which owns its detail.
#ifndef SHARDPACK_CONVERTERS_LISTING_SKIP_H_
#define SHARDPACK_CONVERTERS_LISTING_SKIP_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shardpack {

enum class SkipReason : uint8_t {
  kEmpty,
  kNotAnImage,
  kTruncated,
  kBadCrc,
  kPixelLimit,
  kTooLarge,
  kNotRegular,
  kPermission,
  kIoError,
  kChanged,
  kVanished,
  kSymlinkLoop,
  kOutsideRoot,
  kDangling,
  kDuplicateKey,
  kUnpaired,
  // Passed the probe but could not be decoded or re-encoded: counted as failed.
  kDecodeFailed,
  kBadLabel,
};

// The stable names of the reasons, in the order of the enum.
inline constexpr std::array<std::string_view, 18> kSkipReasonNames = {
    "empty",        "not-an-image", "truncated",     "bad-crc",  "pixel-limit",   "too-large",
    "not-regular",  "permission",   "io-error",      "changed",  "vanished",      "symlink-loop",
    "outside-root", "dangling",     "duplicate-key", "unpaired", "decode-failed", "bad-label"};

// In skipped.jsonl: a copy left out by --dedupe drop, counted as filtered.
inline constexpr std::string_view kDuplicateReason = "duplicate";

inline std::string_view SkipReasonName(SkipReason reason) {
  return kSkipReasonNames[static_cast<size_t>(reason)];
}
inline std::optional<SkipReason> ParseSkipReason(std::string_view name) {
  for (size_t i = 0; i < kSkipReasonNames.size(); ++i) {
    if (kSkipReasonNames[i] == name) return static_cast<SkipReason>(i);
  }
  return std::nullopt;
}

struct Skip {
  uint64_t row = 0;  // of the listing
  SkipReason reason = SkipReason::kIoError;
  std::string detail;
  friend bool operator==(const Skip&, const Skip&) = default;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_SKIP_H_
