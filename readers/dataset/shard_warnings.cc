#include "readers/dataset/shard_warnings.h"

#include "absl/strings/str_cat.h"

namespace shardpack {
namespace {

constexpr size_t kMostOfAKind = 10;

}  // namespace

void ShardWarnings::Add(std::span<const ShardWarning> warnings) {
  for (const ShardWarning& warning : warnings) {
    if (kinds_[warning.kind]++ < kMostOfAKind)
      kept_.push_back(warning.text);
    else
      ++more_;
  }
}

std::vector<std::string> ShardWarnings::Texts() const {
  std::vector<std::string> texts = kept_;
  if (more_ > 0)
    texts.push_back(absl::StrCat("and ", more_, more_ == 1 ? " more warning" : " more warnings"));
  return texts;
}

}  // namespace shardpack
