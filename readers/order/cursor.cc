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

// Everything before the check.
std::string TextBody(const Cursor& cursor) {
  return absl::StrCat(std::string(kPrefix), cursor.version, ":", Hex(cursor.dataset[0]),
                      Hex(cursor.dataset[1]), ":", Hex(cursor.order), ":", cursor.epoch, ":",
                      cursor.step);
}

}  // namespace

Cursor MakeCursor(const Digest& dataset, const Order& order, uint64_t epoch, uint64_t step) {
  return {.dataset = {dataset.high, dataset.low},
          .order = order.digest(),
          .epoch = epoch,
          .step = step};
}

std::array<std::byte, kCursorBytes> CursorToBytes(const Cursor& cursor) {
  std::array<std::byte, kCursorBytes> bytes;
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  StoreLittle(&bytes[8], cursor.version);
  StoreLittle(&bytes[12], cursor.reserved);
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
  const uint32_t reserved = LoadLittle<uint32_t>(&bytes[12]);
  if (version > kCursorVersion) return Newer(version);
  if (version != kCursorVersion || reserved != 0) {
    return absl::InvalidArgumentError(absl::StrCat("no cursor of version ", version, " has ",
                                                   reserved, " in its reserved field"));
  }
  return Cursor{.version = version,
                .reserved = reserved,
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
  bool good = version == kCursorVersion && rest.size() > 2 * kHexDigits;
  if (good) {
    std::string_view high = rest.substr(0, kHexDigits);
    rest.remove_prefix(kHexDigits);
    good = TakeNumber(high, 16, &cursor.dataset[0]) && TakeNumber(rest, 16, &cursor.dataset[1]) &&
           TakeNumber(rest, 16, &cursor.order) && TakeNumber(rest, 10, &cursor.epoch) &&
           TakeNumber(rest, 10, &cursor.step);
  }
  // The text must be exactly what CursorToText writes: no leading zeros, no other spelling.
  if (!good || CursorToText(cursor) != text) {
    return absl::InvalidArgumentError("not a Shardpack cursor: its fields are not those of one");
  }
  return cursor;
}

absl::Status CheckCursor(const Cursor& cursor, const Digest& dataset, const Order& order) {
  if (cursor.version > kCursorVersion) return Newer(cursor.version);
  std::vector<std::string> differs;
  if (cursor.version != kCursorVersion || cursor.reserved != 0) {
    differs.push_back(absl::StrCat("it is not a cursor: version ", cursor.version,
                                   ", reserved field ", cursor.reserved));
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
