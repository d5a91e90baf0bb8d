// Suggest: finds the word that a user probably meant.
//
//   std::vector<std::string> words = {"validate", "plan"};
//   std::string meant = Nearest("valdate", words);         // "validate"; "" if nothing is close
//   std::string tail = DidYouMean("valdate", words);       // "; did you mean validate?" or ""
#ifndef SHARDPACK_CLI_FLAGS_SUGGEST_H_
#define SHARDPACK_CLI_FLAGS_SUGGEST_H_

#include <span>
#include <string>
#include <string_view>

namespace shardpack::cli {

// The closest word within a third of the typed length, or one that begins with the typed word.
std::string Nearest(std::string_view typed, std::span<const std::string> words);

// The word is escaped for a terminal: it may be a name from a dataset.
std::string DidYouMean(std::string_view typed, std::span<const std::string> words);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_FLAGS_SUGGEST_H_
