#include "converters/publishing/manifest_text.h"

#include <algorithm>
#include <iterator>

namespace shardpack {
namespace {

// How a manifest begins, and members that no other program's manifest.json has together.
constexpr std::string_view kBeginning = "{\n \"classes\": [";
constexpr std::string_view kMembers[] = {"\"listing_digest\": \"", "\"plan_digest\": \"",
                                         "\"xxh3_128\": \""};

}  // namespace

bool IsManifestText(std::string_view text) {
  // Cut off, or lost with the power.
  if (text.starts_with(kBeginning) || kBeginning.starts_with(text)) return true;
  if (std::all_of(text.begin(), text.end(), [](char c) { return c == '\0'; })) return true;
  return std::all_of(std::begin(kMembers), std::end(kMembers), [&](std::string_view member) {
    return text.find(member) != std::string_view::npos;
  });
}

}  // namespace shardpack
