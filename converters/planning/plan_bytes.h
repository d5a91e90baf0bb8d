// PlanBytesWriter and PlanBytesReader: write and read the consecutive parts of a plan file, or of
// another file that is made in the same way.
//
//   PlanBytesWriter out;  out.Number(7);  out.Text("train");  bytes = out.Take();
//   PlanBytesReader in(parts);  in.Number();  in.Text();  if (!in.ok() || !in.at_end()) ...
//
// Parts follow each other without gaps, all integers little-endian: numbers (u64) and texts (u64
// length, bytes).
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
// Of the footer, and the two numbers before it.
inline constexpr size_t kPlanTrailerBytes = 32;

class PlanBytesWriter {
 public:
  PlanBytesWriter() = default;
  // Begins with the first bytes of a file.
  explicit PlanBytesWriter(uint32_t version) {
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
  void Texts(const std::vector<std::string>& texts) {
    Number(texts.size());
    for (const std::string& text : texts) Text(text);
  }
  std::string Take() { return std::move(out_); }

 private:
  template <typename T>
  void PutRaw(T value) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof(T));
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
