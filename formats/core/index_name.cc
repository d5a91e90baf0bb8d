#include "formats/core/index_name.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "formats/core/manifest.h"

namespace shardpack {

std::string IndexName(std::string_view shard) {
  const size_t dot = shard.rfind('.');
  if (dot == shard.npos || dot == 0) return LongIndexName(shard);
  const std::string_view extension = shard.substr(dot + 1);
  const auto is_alphanumeric = [](char c) { return absl::ascii_isalnum(c); };
  const bool is_extension = !extension.empty() && absl::ascii_isalpha(extension[0]) &&
                            std::all_of(extension.begin(), extension.end(), is_alphanumeric);
  return LongIndexName(is_extension ? shard.substr(0, dot) : shard);
}

std::string LongIndexName(std::string_view shard) {
  return std::string(shard) + std::string(kIndexSuffix);
}

}  // namespace shardpack
