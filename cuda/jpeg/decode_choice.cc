#include "cuda/jpeg/decode_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace shardpack {
namespace {

// The CPU decodes nothing else anyway.
const char* NameOf(const DecodeWay& way) {
  switch (way.way) {
    case JpegWay::kHardware:
      return way.regions ? "hardware by region" : "hardware";
    case JpegWay::kHybrid:
      return way.regions ? "hybrid by region" : "hybrid";
    default:
      return "cpu";
  }
}

}  // namespace

DecodeChoice::DecodeChoice(const std::vector<DecodeWay>& ways) : chosen_(ways.size() == 1) {
  for (const DecodeWay way : ways) ways_.push_back({.way = way});
}

void DecodeChoice::Note(size_t images, double us) {
  if (images == 0) return;
  Tried& tried = ways_[now_];
  const double us_an_image = us / static_cast<double>(images);
  if (tried.batches == 1) tried.us_an_image = us_an_image;
  if (tried.batches > 1) tried.us_an_image = std::min(tried.us_an_image, us_an_image);
  ++tried.batches;
  ++noted_;
  EndTurn();
}

void DecodeChoice::Refuse() {
  ways_[now_].us_an_image = std::numeric_limits<double>::infinity();
  ways_[now_].batches = kTurns;
  EndTurn();
}

void DecodeChoice::EndTurn() {
  for (size_t i = 0; i < ways_.size(); ++i) {
    now_ = (now_ + 1) % ways_.size();
    if (ways_[now_].batches < kTurns) return;
  }
  const auto least = std::min_element(
      ways_.begin(), ways_.end(),
      [](const Tried& a, const Tried& b) { return a.us_an_image < b.us_an_image; });
  now_ = static_cast<size_t>(least - ways_.begin());
  chosen_ = true;
}

std::string DecodeChoice::Describe() const {
  if (!chosen_) return "";
  const Tried& best = ways_[now_];
  if (ways_.size() == 1) return absl::StrCat(NameOf(best.way), ": there is no other way here");
  std::string text = absl::StrFormat("%s: %.1f us an image, after %u batches;", NameOf(best.way),
                                     best.us_an_image, noted_);
  const char* comma = "";
  for (const Tried& other : ways_) {
    if (&other == &best) continue;
    absl::StrAppendFormat(&text, "%s %s ", comma, NameOf(other.way));
    if (std::isinf(other.us_an_image)) {
      text += "refused";
    } else {
      absl::StrAppendFormat(&text, "%.1f", other.us_an_image);
    }
    comma = ",";
  }
  return text;
}

}  // namespace shardpack
