#include "converters/listing/first_few.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace shardpack {
namespace {

constexpr size_t kLines = 5;

}  // namespace

std::string AndMore(const std::vector<std::string>& shown, size_t count) {
  return absl::StrCat(
      absl::StrJoin(shown, ", "),
      count > shown.size() ? absl::StrCat(" and ", count - shown.size(), " more") : "");
}

void FirstLines::Add(std::string line) {
  ++count_;
  lines_.insert(std::move(line));
  if (lines_.size() > kLines) lines_.erase(std::prev(lines_.end()));
}

std::string FirstLines::Text() const {
  const uint64_t more = count_ - lines_.size();
  return absl::StrCat(absl::StrJoin(lines_, "\n  "),
                      more > 0 ? absl::StrCat("\n  ... and ", more, " more") : "");
}

}  // namespace shardpack
