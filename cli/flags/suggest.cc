#include "cli/flags/suggest.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "absl/strings/str_cat.h"

namespace shardpack::cli {
namespace {

char Lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

}  // namespace

size_t EditDistance(std::string_view a, std::string_view b) {
  // Rows of the dynamic programme: two back, one back, and the current one (optimal string
  // alignment).
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = Lower(a[i - 1]) == Lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && Lower(a[i - 1]) == Lower(b[j - 2]) &&
          Lower(a[i - 2]) == Lower(b[j - 1])) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::string Nearest(std::string_view typed, std::span<const std::string> words) {
  // A long word is not a typing error, and the dynamic programme above is quadratic.
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
  return meant.empty() ? "" : absl::StrCat("; did you mean ", meant, "?");
}

}  // namespace shardpack::cli
