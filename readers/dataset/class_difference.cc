#include "readers/dataset/class_difference.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "formats/io/file.h"

namespace shardpack {

std::string FirstClassDifference(std::span<const std::string> was, const std::string& where_was,
                                 std::span<const std::string> now, const std::string& where_now) {
  size_t same = 0;
  while (same < std::min(was.size(), now.size()) && was[same] == now[same]) ++same;
  const auto name = [same](std::span<const std::string> classes) {
    return same < classes.size() ? EscapeForTerminal(classes[same]) : std::string("nothing");
  };
  return absl::StrCat("class ", same, " is ", name(was), where_was, " and ", name(now), where_now);
}

}  // namespace shardpack
