// OptionTexts: the options of a description in their manifest form, name -> canonical value.
//
//   OptionTexts texts(map);  VisitMembers(options, texts);
//
// Skips a part of an option that has no text of its own; its owner writes it.
//
// Lifetime: borrows the map.
#ifndef SHARDPACK_IMAGES_TRANSFORM_OPTION_TEXTS_H_
#define SHARDPACK_IMAGES_TRANSFORM_OPTION_TEXTS_H_

#include <array>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "formats/io/enum_words.h"

namespace shardpack {

inline std::string OptionText(bool on) { return on ? "on" : "off"; }
inline std::string OptionText(const std::string& text) { return text; }
inline std::string OptionText(const std::vector<std::string>& texts) {
  return absl::StrJoin(texts, ",");
}
// The shortest text that parses back to the same number.
inline std::string OptionText(double value) {
  std::array<char, 32> text;
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return std::string(text.data(), end);
}
template <std::unsigned_integral Number>
std::string OptionText(Number value) {
  return absl::StrCat(uint64_t{value});
}
template <HasWords Enum>
std::string OptionText(Enum value) {
  return Word(value);
}

class OptionTexts {
 public:
  explicit OptionTexts(std::map<std::string, std::string>& map) : map_(map) {}

  template <typename T>
  void Option(const char* name, const T& value, bool shown = true) {
    if (shown) map_[name] = OptionText(value);
  }
  template <typename T>
  void Part(const T&) {}

 private:
  std::map<std::string, std::string>& map_;
};

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_TRANSFORM_OPTION_TEXTS_H_
