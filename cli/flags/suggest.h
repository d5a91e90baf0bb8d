// Suggest: the word that somebody meant who typed another one.
//
//   std::vector<std::string> words = {"validate", "plan"};
//   std::string meant = Nearest("valdate", words);         // "validate"; "" when nothing is near
//   std::string tail = DidYouMean("valdate", words);       // "; did you mean validate?" or ""
#ifndef SHARDPACK_CLI_FLAGS_SUGGEST_H_
#define SHARDPACK_CLI_FLAGS_SUGGEST_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace shardpack::cli {

// Insertions, deletions, substitutions and swaps of neighbours that lead from one to the other,
// case not counted.
size_t EditDistance(std::string_view a, std::string_view b);

// The nearest word within a third of the length of what was typed, or one that it is the beginning
// of.
std::string Nearest(std::string_view typed, std::span<const std::string> words);

std::string DidYouMean(std::string_view typed, std::span<const std::string> words);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_FLAGS_SUGGEST_H_
