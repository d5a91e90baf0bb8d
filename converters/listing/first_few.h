// FirstFew: the first few of many names, for a message. FirstLines: the same, one a line, of lines
// that come in any order.
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

// `shown`: the first of `count` names, as they are printed.
std::string AndMore(const std::vector<std::string>& shown, size_t count);

// Of any range of strings; escaped for a terminal.
template <typename Names>
std::string FirstFew(const Names& names, size_t most) {
  std::vector<std::string> shown;
  for (const auto& name : names) {
    if (shown.size() == most) break;
    shown.push_back(EscapeForTerminal(name));
  }
  return AndMore(shown, names.size());
}

// Lines are taken as they are printed.
class FirstLines {
 public:
  void Add(std::string line);
  uint64_t count() const { return count_; }
  // At most five, in the order of their bytes.
  std::string Text() const;

 private:
  uint64_t count_ = 0;
  std::multiset<std::string> lines_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_FIRST_FEW_H_
