#include "readers/order/cursor.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace shardpack {
namespace {

constexpr std::string_view kMagic = "SPCURSOR";
constexpr std::string_view kPrefix = "shardpack-cursor:";
constexpr size_t kCheckAt = kCursorBytes - sizeof(uint64_t);
constexpr size_t kHexDigits = 16;

absl::Status Newer(uint64_t version) {
  return absl::InvalidArgumentError(
      absl::StrCat("a cursor of version ", version, "; this program knows up to ", kCursorVersion));
}

std::string Hex(uint64_t value) { return absl::StrCat(absl::Hex(value, absl::kZeroPad16)); }

// Takes the number up to the next colon or the end off `text`; false if there is none.
bool TakeNumber(std::string_view& text, int base, uint64_t* value) {
  const std::string_view digits = text.substr(0, text.find(':'));
  text.remove_prefix(std::min(text.size(), digits.size() + 1));
  const char* const end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, *value, base);
  return error == std::errc() && rest == end;
}

// A run without augmentation has cursors of version 1, which older programs read.
bool IsVersionOf(uint32_t version, uint32_t augment) { return version == (augment == 0 ? 1 : 2); }

// Everything before the check.
std::string TextBody(const Cursor& cursor) {
  std::string body = absl::StrCat(std::string(kPrefix), cursor.version, ":", Hex(cursor.dataset[0]),
                                  Hex(cursor.dataset[1]), ":", Hex(cursor.order), ":");
  if (cursor.version > 1) absl::StrAppend(&body, absl::Hex(cursor.augment, absl::kZeroPad8), ":");
  absl::StrAppend(&body, cursor.epoch, ":", cursor.step);
  return body;
}

}  // namespace

Cursor MakeCursor(const Digest& dataset, const Order& order, uint64_t epoch, uint64_t step,
                  uint32_t augment) {
  return {.version = augment == 0 ? 1u : 2u,
          .augment = augment,
          .dataset = {dataset.high, dataset.low},
          .order = order.digest(),
          .epoch = epoch,
          .step = step};
}

std::array<std::byte, kCursorBytes> CursorToBytes(const Cursor& cursor) {
  std::array<std::byte, kCursorBytes> bytes;
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  StoreLittle(&bytes[8], cursor.version);
  StoreLittle(&bytes[12], cursor.augment);
  StoreLittle(&bytes[16], cursor.dataset[0]);
  StoreLittle(&bytes[24], cursor.dataset[1]);
  StoreLittle(&bytes[32], cursor.order);
  StoreLittle(&bytes[40], cursor.epoch);
  StoreLittle(&bytes[48], cursor.step);
  StoreLittle(&bytes[kCheckAt], Xxh3_64(Bytes(bytes).first(kCheckAt)));
  return bytes;
}

absl::StatusOr<Cursor> CursorFromBytes(Bytes bytes) {
  if (bytes.size() < kMagic.size() + sizeof(uint32_t) || !AsText(bytes).starts_with(kMagic)) {
    return absl::InvalidArgumentError("not a Shardpack cursor (expected SPCURSOR...)");
  }
  const uint32_t version = LoadLittle<uint32_t>(&bytes[8]);
  if (bytes.size() != kCursorBytes) {
    if (version > kCursorVersion) return Newer(version);  // its text may well be longer
    return absl::DataLossError(
        absl::StrCat("a cursor of ", bytes.size(), " bytes; it has ", kCursorBytes));
  }
  if (LoadLittle<uint64_t>(&bytes[kCheckAt]) != Xxh3_64(bytes.first(kCheckAt))) {
    return absl::DataLossError("a damaged cursor: its bytes do not match their check value");
  }
  const uint32_t augment = LoadLittle<uint32_t>(&bytes[12]);
  if (version > kCursorVersion) return Newer(version);
  if (!IsVersionOf(version, augment)) {
    return absl::InvalidArgumentError(
        absl::StrCat("no cursor of version ", version, " has the augmentation ", augment));
  }
  return Cursor{.version = version,
                .augment = augment,
                .dataset = {LoadLittle<uint64_t>(&bytes[16]), LoadLittle<uint64_t>(&bytes[24])},
                .order = LoadLittle<uint64_t>(&bytes[32]),
                .epoch = LoadLittle<uint64_t>(&bytes[40]),
                .step = LoadLittle<uint64_t>(&bytes[48])};
}

std::string CursorToText(const Cursor& cursor) {
  const std::string body = TextBody(cursor);
  return absl::StrCat(body, ":", Hex(Xxh3_64(AsBytes(body))));
}

absl::StatusOr<Cursor> CursorFromText(std::string_view text) {
  if (!text.starts_with(kPrefix)) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a Shardpack cursor (expected ", std::string(kPrefix), "...)"));
  }
  const size_t colon = text.rfind(':');
  if (text.substr(colon + 1) != Hex(Xxh3_64(AsBytes(text.substr(0, colon))))) {
    return absl::DataLossError("a damaged cursor: its text does not match its check value");
  }
  Cursor cursor;
  std::string_view rest = text.substr(kPrefix.size());
  uint64_t version = 0;
  if (TakeNumber(rest, 10, &version) && version > kCursorVersion) return Newer(version);
  cursor.version = static_cast<uint32_t>(version);
  bool good = version >= 1 && rest.size() > 2 * kHexDigits;
  if (good) {
    std::string_view high = rest.substr(0, kHexDigits);
    rest.remove_prefix(kHexDigits);
    good = TakeNumber(high, 16, &cursor.dataset[0]) && TakeNumber(rest, 16, &cursor.dataset[1]) &&
           TakeNumber(rest, 16, &cursor.order);
    uint64_t augment = 0;
    if (version > 1) good = good && TakeNumber(rest, 16, &augment);
    cursor.augment = static_cast<uint32_t>(augment);
    good = good && TakeNumber(rest, 10, &cursor.epoch) && TakeNumber(rest, 10, &cursor.step) &&
           IsVersionOf(cursor.version, cursor.augment);
  }
  // The text must be exactly what CursorToText writes: no leading zeros, no other spelling.
  if (!good || CursorToText(cursor) != text) {
    return absl::InvalidArgumentError("not a Shardpack cursor: its fields are not those of one");
  }
  return cursor;
}

absl::Status CheckCursor(const Cursor& cursor, const Digest& dataset, const Order& order,
                         std::optional<uint32_t> augment) {
  if (cursor.version > kCursorVersion) return Newer(cursor.version);
  std::vector<std::string> differs;
  if (!IsVersionOf(cursor.version, cursor.augment)) {
    differs.push_back(absl::StrCat("it is not a cursor: version ", cursor.version,
                                   ", augmentation ", cursor.augment));
  } else if (augment && cursor.augment != *augment) {
    differs.push_back(
        absl::StrCat("it is of a run with another augmentation: the cursor's has the digest ",
                     absl::Hex(cursor.augment, absl::kZeroPad8), ", this one ",
                     absl::Hex(*augment, absl::kZeroPad8),
                     " (0: none); the option other_augment goes on all the same"));
  }
  const Digest its = {cursor.dataset[0], cursor.dataset[1]};
  if (its != dataset) {
    differs.push_back(absl::StrCat("it is of another dataset: the cursor's has the identity ",
                                   its.ToHex(), ", this one ", dataset.ToHex()));
  }
  if (cursor.order != order.digest()) {
    differs.push_back(absl::StrCat("it is of another order: the cursor's has the digest ",
                                   Hex(cursor.order), ", this one ", Hex(order.digest()), " (",
                                   order.explain(), ")"));
  } else if (cursor.step > order.steps()) {
    differs.push_back(absl::StrCat("its step ", cursor.step, " is beyond the ", order.steps(),
                                   " steps of an epoch"));
  }
  if (differs.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("cannot resume from this cursor: ", absl::StrJoin(differs, "; ")));
}

}  // namespace shardpack
