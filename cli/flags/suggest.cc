#include "cli/flags/suggest.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "formats/io/edit_distance.h"
#include "formats/io/file.h"

namespace shardpack::cli {

std::string Nearest(std::string_view typed, std::span<const std::string> words) {
  // A long word is not a typing error, and the distance is quadratic.
  if (typed.size() < 2 || typed.size() > 64) return "";
  std::string best;
  size_t best_distance = std::max<size_t>(1, typed.size() / 3) + 1;
  for (const std::string& word : words) {
    const size_t distance = EditDistance(typed, word);
    if (distance < best_distance) {
      best_distance = distance;
      best = word;
    }
  }
  if (!best.empty()) return best;
  for (const std::string& word : words) {
    if (word.size() > typed.size() && std::string_view(word).substr(0, typed.size()) == typed)
      return word;
  }
  return "";
}

std::string DidYouMean(std::string_view typed, std::span<const std::string> words) {
  const std::string meant = Nearest(typed, words);
  return meant.empty() ? "" : absl::StrCat("; did you mean ", EscapeForTerminal(meant), "?");
}

}  // namespace shardpack::cli
