#include "cli/terminal/units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace shardpack::cli {
namespace {

// Removes the number at the start of `text`.
bool TakeNumber(std::string_view* text, double* number) {
  if (text->empty() || !((*text)[0] >= '0' && (*text)[0] <= '9')) return false;
  const auto [end, error] =
      std::from_chars(text->data(), text->data() + text->size(), *number, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(*number)) return false;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return true;
}

bool EqualIgnoringCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

bool IsPortableName(std::string_view name) {
  return !name.empty() && name.size() <= 64 && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
         });
}

}  // namespace

absl::StatusOr<uint64_t> ParseCount(std::string_view text) {
  std::string digits(text);
  std::erase_if(digits, [](char c) { return c == '_' || c == ','; });
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) {
    return absl::InvalidArgumentError("expected a whole number, as in 1000");
  }
  return value;
}

absl::StatusOr<uint64_t> ParseSize(std::string_view text) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  static constexpr std::array<Unit, 18> kUnits = {{
      {"", 1},
      {"B", 1},
      {"k", 1e3},
      {"kB", 1e3},
      {"Ki", 1024.0},
      {"KiB", 1024.0},
      {"M", 1e6},
      {"MB", 1e6},
      {"Mi", 1048576.0},
      {"MiB", 1048576.0},
      {"G", 1e9},
      {"GB", 1e9},
      {"Gi", 1073741824.0},
      {"GiB", 1073741824.0},
      {"T", 1e12},
      {"TB", 1e12},
      {"Ti", 1099511627776.0},
      {"TiB", 1099511627776.0},
  }};
  double number = 0;
  if (TakeNumber(&text, &number)) {
    while (!text.empty() && text[0] == ' ') text.remove_prefix(1);
    for (const Unit& unit : kUnits) {
      if (!EqualIgnoringCase(text, unit.name)) continue;
      const double bytes = std::floor(number * unit.bytes + 0.5);
      if (bytes < 9.2e18) return static_cast<uint64_t>(bytes);
    }
  }
  return absl::InvalidArgumentError("expected a size, as in 256MB, 1GiB or 1000000");
}

absl::StatusOr<double> ParseNumber(std::string_view text) {
  double number = 0;
  if (TakeNumber(&text, &number) && text.empty()) return number;
  return absl::InvalidArgumentError("expected a number, as in 2.5");
}

namespace {

std::optional<double> ShareOf(std::string_view text) {
  double number = 0;
  if (!TakeNumber(&text, &number)) return std::nullopt;
  if (text == "%") number /= 100;
  if ((!text.empty() && text != "%") || number > 1) return std::nullopt;
  return number;
}

}  // namespace

absl::StatusOr<double> ParseShare(std::string_view text) {
  const std::optional<double> share = ShareOf(text);
  if (!share) return absl::InvalidArgumentError("expected a share, as in 1% or 0.01");
  if (*share == 1 && !text.ends_with('%'))
    return absl::InvalidArgumentError("this may mean either: say 1% or 100%");
  return *share;
}

absl::StatusOr<double> ParseDuration(std::string_view text) {
  double number = 0;
  if (TakeNumber(&text, &number) && number > 0) {
    if (text.empty() || text == "s") return number;
    if (text == "ms") return number / 1000;
    if (text == "m" || text == "min") return number * 60;
    if (text == "h") return number * 3600;
  }
  return absl::InvalidArgumentError("expected a duration above 0, as in 90s, 5m or 1h");
}

absl::StatusOr<std::pair<size_t, size_t>> ParseShardRange(std::string_view text) {
  const bool padded = !text.empty() && (text.front() == ' ' || text.back() == ' ');
  if (!padded && text.find_first_of(",; ") != std::string_view::npos) {
    return absl::InvalidArgumentError(
        "expected one range, as in 0-9, not a list; each range is a run of its own");
  }
  const size_t dash = text.find('-');
  const std::string_view ends[] = {text.substr(0, dash),
                                   dash == std::string_view::npos ? text : text.substr(dash + 1)};
  uint64_t values[2];
  for (int i = 0; i < 2; ++i) {
    const auto [rest, error] =
        std::from_chars(ends[i].data(), ends[i].data() + ends[i].size(), values[i]);
    if (rest != ends[i].data() + ends[i].size() || error == std::errc::invalid_argument) {
      return absl::InvalidArgumentError(
          "expected a range of numbers from 0, both ends included, as in 0-9");
    }
    if (error == std::errc::result_out_of_range) values[i] = std::numeric_limits<uint64_t>::max();
  }
  if (values[0] > values[1] && values[0] == std::numeric_limits<uint64_t>::max()) {
    return absl::InvalidArgumentError("the range begins after the largest number that there is");
  }
  if (values[0] > values[1]) {
    return absl::InvalidArgumentError(absl::StrCat("the range ends before it begins; expected ",
                                                   std::string(ends[1]), "-",
                                                   std::string(ends[0])));
  }
  constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
  return std::pair<size_t, size_t>(std::min(values[0], kMost), std::min(values[1], kMost) + 1);
}

absl::StatusOr<std::vector<std::pair<std::string, double>>> ParseSplits(std::string_view text) {
  std::vector<std::pair<std::string, double>> splits;
  double sum = 0;
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const size_t equals = part.find('=');
    const std::string name(part.substr(0, equals));
    if (equals == std::string_view::npos || !IsPortableName(name)) {
      return absl::InvalidArgumentError("expected names and shares, as in train=0.9,val=0.1");
    }
    const std::optional<double> share = ShareOf(part.substr(equals + 1));
    if (!share || *share <= 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the share of ", name, " must be above 0 and at most 1, as in train=0.9,val=0.1"));
    }
    for (const auto& [other, unused] : splits) {
      if (other == name)
        return absl::InvalidArgumentError(absl::StrCat("the split ", name, " is named twice"));
    }
    splits.emplace_back(name, *share);
    sum += *share;
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  if (std::abs(sum - 1) > 1e-6) {
    return absl::InvalidArgumentError(
        absl::StrCat("the shares add up to ", FormatNumber(sum), ", not to 1"));
  }
  return splits;
}

void SplitAt(std::string_view text, char mark, std::vector<std::string>* parts) {
  while (true) {
    const size_t end = text.find(mark);
    if (end != 0 && !text.empty()) parts->emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

std::string FormatCount(uint64_t count) {
  std::string digits = absl::StrCat(count);
  for (size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

std::string FormatNumber(double number) {
  char text[64];
  const double size = std::abs(number);
  // If rounding adds a digit before the point, use one digit less after it.
  const int decimals = size >= 99.95 || size == 0 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
  std::snprintf(text, sizeof text, "%.*f", decimals, number);
  return text;
}

std::string FormatBytes(uint64_t bytes) {
  static constexpr std::array<const char*, 6> kNames = {"kB", "MB", "GB", "TB", "PB", "EB"};
  if (bytes < 1000) return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kNames.size()) {
    value /= 1000;
    ++unit;
  }
  return absl::StrCat(FormatNumber(value), " ", kNames[unit]);
}

std::string FormatDuration(double seconds) {
  return seconds < 60 ? absl::StrCat(FormatNumber(seconds), " s") : FormatClock(seconds);
}

std::string FormatClock(double seconds) {
  const auto whole = static_cast<uint64_t>(std::min(seconds + 0.5, 1e15));
  char text[64];
  if (whole < 3600) {
    std::snprintf(text, sizeof text, "%d:%02d", static_cast<int>(whole / 60),
                  static_cast<int>(whole % 60));
  } else {
    std::snprintf(text, sizeof text, "%llu:%02d:%02d",
                  static_cast<unsigned long long>(whole / 3600), static_cast<int>(whole / 60 % 60),
                  static_cast<int>(whole % 60));
  }
  return text;
}

std::string Counted(uint64_t count, std::string_view one, std::string_view many) {
  return absl::StrCat(FormatCount(count), " ", std::string(count == 1 ? one : many));
}

}  // namespace shardpack::cli
