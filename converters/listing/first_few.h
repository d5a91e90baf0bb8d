// FirstFew: the first few of many names, for a message. FirstLines: the same for lines added in any
// order, one per line.
//
//   FirstFew(std::vector<std::string>{"a", "b", "c", "d"}, 3);   // "a, b, c and 1 more"
//   FirstLines lines;
//   lines.Add("b");  lines.Add("a");
//   lines.Text();   // "a\n  b"
//
// Thread-safety: FirstFew is pure; a FirstLines has one caller at a time.
#ifndef SHARDPACK_CONVERTERS_LISTING_FIRST_FEW_H_
#define SHARDPACK_CONVERTERS_LISTING_FIRST_FEW_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "formats/io/file.h"

namespace shardpack {

// `shown`: the first of `count` names, as printed.
std::string AndMore(const std::vector<std::string>& shown, size_t count);

// Takes any range of strings; escapes them for a terminal.
template <typename Names>
std::string FirstFew(const Names& names, size_t most) {
  std::vector<std::string> shown;
  for (const auto& name : names) {
    if (shown.size() == most) break;
    shown.push_back(EscapeForTerminal(name));
  }
  return AndMore(shown, names.size());
}

// Lines are printed unchanged.
class FirstLines {
 public:
  void Add(std::string line);
  uint64_t count() const { return count_; }
  // At most five, sorted by bytes.
  std::string Text() const;

 private:
  uint64_t count_ = 0;
  std::multiset<std::string> lines_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_FIRST_FEW_H_
