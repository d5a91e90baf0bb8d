#include "converters/planning/plan_options.h"

#include <algorithm>
#include <charconv>
#include <concepts>
#include <optional>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "formats/io/enum_words.h"
#include "formats/io/file.h"
#include "images/transform/option_texts.h"

namespace shardpack {
namespace {

template <typename Number>
bool ParseWhole(std::string_view text, int base, Number& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into, base);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool ParseOption(std::string_view text, bool& into) {
  into = text == "on";
  return into || text == "off";
}
bool ParseOption(std::string_view text, std::string& into) {
  into = text;
  return true;
}
template <std::unsigned_integral Number>
bool ParseOption(std::string_view text, Number& into) {
  return ParseWhole(text, 10, into);
}
bool ParseOption(std::string_view text, double& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size();
}
template <HasWords Enum>
bool ParseOption(std::string_view text, Enum& into) {
  const std::optional<Enum> found = FindWord<Enum>(text);
  into = found.value_or(into);
  return found.has_value();
}

// Calls `take` with each comma-separated part until it returns false.
template <typename Take>
bool ForEachPart(std::string_view text, Take take) {
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    if (!take(part)) return false;
  }
  return true;
}

bool ParseOption(std::string_view text, std::vector<std::string>& into) {
  into.clear();
  return ForEachPart(text, [&](std::string_view part) {
    into.emplace_back(part);
    return true;
  });
}
// "train=0.9,val=0.1"
bool ParseOption(std::string_view text, SplitFractions& into) {
  into.clear();
  double sum = 0;
  const bool read = ForEachPart(text, [&](std::string_view part) {
    const size_t mark = part.find('=');
    if (mark == part.npos || mark == 0) return false;
    double share = 0;
    if (!ParseOption(part.substr(mark + 1), share) || !(share > 0)) return false;
    into.emplace_back(std::string(part.substr(0, mark)), share);
    sum += share;
    return true;
  });
  return read && sum > 0.999 && sum < 1.001;
}

// Sets the member with the given name.
class OptionSetter {
 public:
  OptionSetter(std::string_view name, std::string_view value) : name_(name), value_(value) {}

  template <typename T>
  void Option(std::string_view name, T& member, bool = true) {
    if (name == name_) Take(ParseOption(value_, member));
  }
  template <typename T>
  void Part(T&) {}
  void Part(TransformOptions& pixels) { VisitMembers(pixels, *this); }

  // Sets options whose text stands for several members.
  void SetParts(PlanOptions& options) {
    TransformOptions& pixels = options.pixels;
    if (name_ == "shards") Take(ParseOption(value_, options.shards));
    if (name_ == "samples-per-shard") Take(ParseOption(value_, options.samples_per_shard));
    if (name_ == "shard-size") {
      options.shard_bytes = 0;
      Take(value_ == "auto" || ParseOption(value_, options.shard_bytes));
    }
    if (name_ == "split") Take(ParseOption(value_, options.splits));
    if (name_ == "size") {
      const size_t mark = value_.find('x');
      Take(ParseOption(value_.substr(0, mark), pixels.width) &&
           ParseOption(value_.substr(mark == value_.npos ? 0 : mark + 1), pixels.height));
    }
    if (name_ == "depth") {
      pixels.depth8 = value_ == "8";
      Take(pixels.depth8 || value_ == "keep");
    }
    if (name_ == "alpha") {
      const bool color = value_.starts_with('#') && value_.size() == 7;
      if (color) pixels.alpha = AlphaChange::kBlend;
      Take(color ? ParseWhole(value_.substr(1), 16, pixels.background)
                 : value_ != Word(AlphaChange::kBlend) && ParseOption(value_, pixels.alpha));
    }
  }

  bool found() const { return found_; }
  bool valid() const { return valid_; }

 private:
  void Take(bool valid) {
    found_ = true;
    valid_ = valid;
  }

  const std::string_view name_, value_;
  bool found_ = false, valid_ = true;
};

}  // namespace

std::map<std::string, std::string> PlanOptions::ToMap() const {
  std::map<std::string, std::string> map = source;
  OptionTexts texts(map);
  VisitMembers(*this, texts);
  if (shards > 0) {
    map["shards"] = absl::StrCat(shards);
  } else if (samples_per_shard > 0) {
    map["samples-per-shard"] = absl::StrCat(samples_per_shard);
  } else {
    map["shard-size"] = shard_bytes == 0 ? "auto" : absl::StrCat(shard_bytes);
  }
  if (!splits.empty()) {
    map["split"] = absl::StrJoin(splits, ",", [](std::string* out, const auto& split) {
      absl::StrAppend(out, split.first, "=", OptionText(split.second));
    });
  }
  map.merge(pixels.ToMap());
  return map;
}

absl::StatusOr<bool> PlanOptions::Set(std::string_view name, std::string_view value) {
  OptionSetter setter(name, value);
  VisitMembers(*this, setter);
  setter.SetParts(*this);
  if (setter.valid()) return setter.found();
  return absl::InvalidArgumentError(
      absl::StrCat("--", std::string(name), " ", EscapeForTerminal(value), ": not a value of it"));
}

}  // namespace shardpack
