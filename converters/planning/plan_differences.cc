#include "converters/planning/plan_differences.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "converters/planning/plan.h"
#include "formats/io/file.h"

namespace shardpack {
namespace {

constexpr size_t kPathsShown = 5;

constexpr std::string_view kPixelLibraries =
    "pixel-libraries";  // recorded as an option, but is not one

// Default values of options that are recorded only together with others.
std::map<std::string, std::string> BesideOthers() {
  TransformOptions pixels;
  pixels.resize = ResizeMode::kShortest;
  pixels.width = pixels.height = 1;
  std::map<std::string, std::string> defaults = pixels.ToMap();
  for (const char* own : {"resize", "size", "pixel-libraries"}) defaults.erase(own);
  defaults["split-by"] = "hash";
  defaults["shard-size"] = "auto";
  return defaults;
}

// Changes to the files, with the first few names of each kind.
struct Changes {
  uint64_t count = 0;
  std::string paths;

  void Add(const Listing& listing, uint64_t row) {
    if (count++ >= kPathsShown) return;
    absl::StrAppend(&paths, paths.empty() ? "" : ", ", EscapeForTerminal(listing.Path(row)));
  }
  void Report(std::string_view what, std::vector<std::string>& lines) const {
    if (count == 0) return;
    lines.push_back(absl::StrCat("source: ", count, count == 1 ? " file was " : " files were ",
                                 std::string(what), ": ", paths,
                                 count > kPathsShown ? ", ..." : ""));
  }
};

void CompareFiles(const Listing& was, const Listing& now, std::vector<std::string>& lines) {
  Changes added, removed, resized, relabeled;
  const auto place = [](const Listing& listing, uint64_t row) {
    return std::pair<std::string_view, std::string_view>(listing.folders[listing.folder[row]],
                                                         listing.Name(row));
  };
  const auto class_of = [](const Listing& listing, uint64_t row) -> std::string_view {
    const int32_t label = listing.label[row];
    return label < 0 ? std::string_view() : listing.classes[static_cast<size_t>(label)];
  };
  // Only folders are listed in this order.
  const auto sorted = [&](const Listing& listing) {
    std::vector<uint64_t> rows(listing.rows());
    std::iota(rows.begin(), rows.end(), uint64_t{0});
    const auto before = [&](uint64_t x, uint64_t y) {
      return place(listing, x) < place(listing, y);
    };
    if (!std::is_sorted(rows.begin(), rows.end(), before))
      std::stable_sort(rows.begin(), rows.end(), before);
    return rows;
  };
  const std::vector<uint64_t> before = sorted(was), after = sorted(now);
  uint64_t x = 0, y = 0;
  while (x < was.rows() || y < now.rows()) {
    const uint64_t a = x < was.rows() ? before[x] : was.rows();
    const uint64_t b = y < now.rows() ? after[y] : now.rows();
    if (b == now.rows() || (a < was.rows() && place(was, a) < place(now, b))) {
      removed.Add(was, a);
      ++x;
    } else if (a == was.rows() || place(now, b) < place(was, a)) {
      added.Add(now, b);
      ++y;
    } else {
      if (was.SampleBytes(a) != now.SampleBytes(b)) resized.Add(now, b);
      if (class_of(was, a) != class_of(now, b)) relabeled.Add(now, b);
      ++x;
      ++y;
    }
  }
  added.Report("added", lines);
  removed.Report("removed", lines);
  resized.Report("resized", lines);
  relabeled.Report("given another class", lines);
}

// Files are compared in the order of their paths, which a sliced plan does not have. nullptr if its
// rows are damaged.
const Listing* SourceListing(const Plan& plan, std::optional<Plan>& whole) {
  if (plan.slices() == nullptr) return &plan.listing();
  absl::StatusOr<Plan> read = plan.Whole();
  if (!read.ok()) return nullptr;
  whole = *std::move(read);
  return &whole->listing();
}

}  // namespace

std::string ClassesDifference(std::span<const std::string> was, std::span<const std::string> now) {
  if (std::ranges::equal(was, now)) return "";
  if (!std::ranges::is_permutation(was, now))
    return absl::StrCat("the classes were ", was.size(), ", are ", now.size(), " or others");
  const auto [before, after] = std::ranges::mismatch(was, now);
  return absl::StrCat("the classes have another order (--classes, --class-order): class ",
                      before - was.begin(), " was ", EscapeForTerminal(*before), ", is ",
                      EscapeForTerminal(*after));
}

std::map<std::string, std::string> DefaultOptions() {
  std::map<std::string, std::string> options = PlanOptions{}.ToMap();
  options.merge(BesideOthers());
  return options;
}

namespace {

// The flag of an option in a manifest; one option has kept an older name there.
std::string FlagOf(const std::string& option) { return option == "sidecars" ? "fields" : option; }

}  // namespace

std::vector<std::string> OptionDifferences(const std::map<std::string, std::string>& was,
                                           const std::map<std::string, std::string>& now) {
  const std::map<std::string, std::string> defaults = BesideOthers();
  std::map<std::string, std::array<const std::string*, 2>> values;
  for (const auto& [name, value] : was) values[name][0] = &value;
  for (const auto& [name, value] : now) values[name][1] = &value;
  const auto show = [](const std::string* value) {
    return value == nullptr ? "not given" : value->empty() ? "empty" : EscapeForTerminal(*value);
  };
  std::vector<std::string> lines;
  for (auto& [name, pair] : values) {
    if (name == kPixelLibraries) {
      // If one is missing, no pixels were changed; the options report that.
      if (pair[0] != nullptr && pair[1] != nullptr && *pair[0] != *pair[1]) {
        lines.push_back(absl::StrCat("the libraries that change pixels were ", show(pair[0]),
                                     ", are ", show(pair[1])));
      }
      continue;
    }
    const auto fallback = defaults.find(name);
    for (const std::string*& value : pair) {
      if (value == nullptr && fallback != defaults.end()) value = &fallback->second;
    }
    if (pair[0] != nullptr && pair[1] != nullptr && *pair[0] == *pair[1]) continue;
    lines.push_back(
        absl::StrCat("--", FlagOf(name), " was ", show(pair[0]), ", is ", show(pair[1])));
  }
  return lines;
}

std::vector<std::string> Plan::Differences(const Plan& was, const Plan& now) {
  if (was.digest() == now.digest()) return {};
  std::vector<std::string> lines = OptionDifferences(was.options_.ToMap(), now.options_.ToMap());
  if (was.format().name != now.format().name) {
    lines.push_back(absl::StrCat("--format was ", std::string(was.format().name), ", is ",
                                 std::string(now.format().name)));
  }
  const size_t options = lines.size();
  std::optional<Plan> was_whole, now_whole;
  const Listing* const before = SourceListing(was, was_whole);
  const Listing* const after = SourceListing(now, now_whole);
  if (before != nullptr && after != nullptr) CompareFiles(*before, *after, lines);
  if (was.listing_.classes != now.listing_.classes) {
    lines.push_back(
        absl::StrCat("source: ", ClassesDifference(was.listing_.classes, now.listing_.classes)));
  }
  if (lines.size() == options && was.listing_digest_ != now.listing_digest_) {
    lines.push_back("source: other files are unusable, or their content changed");
  }
  return lines;
}

}  // namespace shardpack
