#include "converters/listing/offered_flags.h"

#include <string_view>
#include <utility>

#include "absl/strings/cord.h"

namespace shardpack {
namespace {

constexpr char kUrl[] = "shardpack/offered-flags";
// A word contains no NUL, since a command line cannot.
constexpr char kEndOfWord = '\0', kEndOfOffer = '\n';

}  // namespace

absl::Status OfferFlags(absl::Status status, const std::vector<FlagWords>& offers) {
  std::string text;
  for (const FlagWords& words : offers) {
    for (const std::string& word : words) (text += word) += kEndOfWord;
    (text += kEndOfOffer) += kEndOfWord;
  }
  status.SetPayload(kUrl, absl::Cord(text));
  return status;
}

std::vector<FlagWords> OfferedFlags(const absl::Status& status) {
  std::vector<FlagWords> offers;
  const auto payload = status.GetPayload(kUrl);
  if (!payload) return offers;
  const std::string text(*payload);
  FlagWords words;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find(kEndOfWord, begin);
    std::string word = text.substr(begin, end - begin);
    begin = end + 1;
    if (word == std::string(1, kEndOfOffer)) {
      offers.push_back(std::move(words));
      words.clear();
    } else {
      words.push_back(std::move(word));
    }
  }
  return offers;
}

}  // namespace shardpack
