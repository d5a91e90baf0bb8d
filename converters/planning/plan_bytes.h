// PlanBytesWriter and PlanBytesReader: write and read the consecutive parts of a plan file.
//
//   PlanBytesWriter out(version);  out.Number(7);  out.Text("train");  bytes = out.Finish();
//   PlanBytesReader in(parts);  in.Number();  in.Text();  if (!in.ok() || !in.at_end()) ...
//
// Parts follow each other without gaps, all integers little-endian: numbers (u64), texts (u64
// length, bytes) and columns (u64 count, u8 width, count values of that width, the smallest that
// holds the largest value). Internal to the plan.
//
// Lifetime: a reader and the texts it returns borrow the bytes.
// Errors: after the first malformed part, all results are empty and `ok` is false; never allocates
// more than the bytes can fill.
#ifndef SHARDPACK_CONVERTERS_PLANNING_PLAN_BYTES_H_
#define SHARDPACK_CONVERTERS_PLANNING_PLAN_BYTES_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "formats/io/bytes.h"
#include "formats/io/hash.h"

namespace shardpack {

inline constexpr std::string_view kPlanMagic = "SPKPLAN1";
inline constexpr size_t kPlanHeaderBytes = 16, kPlanFooterBytes = 16;

class PlanBytesWriter {
 public:
  // `expected_bytes` of the whole: only saves copies.
  explicit PlanBytesWriter(uint32_t version, size_t expected_bytes = 0) {
    out_.reserve(expected_bytes);
    out_.append(kPlanMagic);
    PutRaw(version);
    PutRaw<uint32_t>(0);
  }
  void Number(uint64_t value) { PutRaw(value); }
  void Real(double value) { PutRaw(std::bit_cast<uint64_t>(value)); }
  void Text(std::string_view text) {
    Number(text.size());
    out_.append(text);
  }
  // `get(i)` for i < count, unsigned.
  template <typename Get>
  void Column(uint64_t count, Get get) {
    uint64_t largest = 0;
    for (uint64_t i = 0; i < count; ++i) largest = std::max<uint64_t>(largest, get(i));
    const uint8_t width = largest <= 0xFF         ? 1
                          : largest <= 0xFFFF     ? 2
                          : largest <= 0xFFFFFFFF ? 4
                                                  : 8;
    Number(count);
    PutRaw(width);
    switch (width) {
      case 1:
        PutValues<uint8_t>(count, get);
        break;
      case 2:
        PutValues<uint16_t>(count, get);
        break;
      case 4:
        PutValues<uint32_t>(count, get);
        break;
      default:
        PutValues<uint64_t>(count, get);
        break;
    }
  }
  template <typename T>
  void Raw(const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    Number(values.size());
    PutRaw(static_cast<uint8_t>(sizeof(T)));
    out_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }
  void Texts(const std::vector<std::string>& texts) {
    Number(texts.size());
    for (const std::string& text : texts) Text(text);
  }
  std::string Finish() {
    const Digest digest = Xxh3_128(AsBytes(out_));
    PutRaw(digest.low);
    PutRaw(digest.high);
    return std::move(out_);
  }

 private:
  template <typename T>
  void PutRaw(T value) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  template <typename T, typename Get>
  void PutValues(uint64_t count, Get get) {
    const size_t at = out_.size();
    out_.resize(at + count * sizeof(T));
    for (uint64_t i = 0; i < count; ++i)
      StoreLittle(out_.data() + at + i * sizeof(T), static_cast<T>(get(i)));
  }

  std::string out_;
};

// Every count is compared with the remaining bytes before anything is allocated. After the first
// malformed part, all results are empty and `ok` is false.
class PlanBytesReader {
 public:
  explicit PlanBytesReader(std::string_view bytes) : left_(bytes) {}

  bool ok() const { return ok_; }
  bool at_end() const { return left_.empty(); }

  uint64_t Number() { return GetRaw<uint64_t>(); }
  double Real() { return std::bit_cast<double>(Number()); }
  bool Flag() { return Bounded(1) == 1; }
  // A number up to and including `most`.
  uint64_t Bounded(uint64_t most) {
    const uint64_t value = Number();
    return Check(value <= most) ? value : 0;
  }
  std::string_view Text() { return Take(Number()); }
  std::vector<std::string> Texts() {
    std::vector<std::string> texts;
    for (uint64_t left = Count(8); left > 0; --left) texts.emplace_back(Text());
    return texts;
  }
  // A number of items of at least `min_bytes` each.
  uint64_t Count(uint64_t min_bytes) {
    const uint64_t count = Number();
    return Check(count <= left_.size() / min_bytes) ? count : 0;
  }
  // Values up to and including `most`.
  template <typename T>
  std::vector<T> Column(uint64_t most) {
    const uint64_t count = Number();
    const uint8_t width = GetRaw<uint8_t>();
    std::vector<T> values;
    if (!Check((width == 1 || width == 2 || width == 4 || width == 8) &&
               count <= left_.size() / width)) {
      return values;
    }
    const std::string_view raw = Take(count * width);
    values.resize(count);
    uint64_t largest = 0;
    for (uint64_t i = 0; i < count; ++i) {
      uint64_t value = 0;
      std::memcpy(&value, raw.data() + i * width, width);
      largest = std::max(largest, value);
      values[i] = static_cast<T>(value);
    }
    if (!Check(largest <= most)) values.clear();
    return values;
  }
  template <typename T>
  std::vector<T> Raw() {
    const uint64_t count = Number();
    std::vector<T> values;
    if (!Check(GetRaw<uint8_t>() == sizeof(T) && count <= left_.size() / sizeof(T))) return values;
    const std::string_view raw = Take(count * sizeof(T));
    values.resize(count);
    if (count > 0) std::memcpy(static_cast<void*>(values.data()), raw.data(), raw.size());
    return values;
  }
  bool Check(bool holds) {
    ok_ = ok_ && holds;
    return ok_;
  }

 private:
  std::string_view Take(uint64_t bytes) {
    if (!Check(bytes <= left_.size())) return {};
    const std::string_view taken = left_.substr(0, bytes);
    left_.remove_prefix(bytes);
    return taken;
  }
  template <typename T>
  T GetRaw() {
    const std::string_view raw = Take(sizeof(T));
    return raw.size() == sizeof(T) ? LoadLittle<T>(raw.data()) : T{};
  }

  std::string_view left_;
  bool ok_ = true;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PLANNING_PLAN_BYTES_H_
