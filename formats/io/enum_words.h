// The words for an enum's values on the command line, in manifests and in messages. Each such enum
// defines:
//
//   constexpr auto WordsOf(KeyMode) {
//     return std::to_array<std::string_view>({"auto", "path", "index"});
//   }
//
//   Word(KeyMode::kPath);                      // "path"
//   FindWord<KeyMode>("path");                 // KeyMode::kPath; nullopt for an unknown word
//
// The words are in the order of the values, which count from 0 without gaps.
#ifndef SHARDPACK_FORMATS_IO_ENUM_WORDS_H_
#define SHARDPACK_FORMATS_IO_ENUM_WORDS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace shardpack {

template <typename T>
concept HasWords = requires(T value) {
  WordsOf(value)[0];
};

template <HasWords Enum>
std::string Word(Enum value) {
  return std::string(WordsOf(value)[static_cast<size_t>(value)]);
}

template <HasWords Enum>
std::optional<Enum> FindWord(std::string_view word) {
  const auto words = WordsOf(Enum{});
  const auto found = std::find(words.begin(), words.end(), word);
  if (found == words.end()) return std::nullopt;
  return static_cast<Enum>(found - words.begin());
}

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_ENUM_WORDS_H_
