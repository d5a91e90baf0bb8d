#include "converters/planning/class_gaps.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "converters/listing/first_few.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr size_t kNamed = 5;
constexpr std::string_view kTrain = "train";

// "the class a has", "the classes a, b have"
std::string ClassesWith(const std::vector<std::string>& names) {
  return absl::StrCat(names.size() == 1 ? "the class " : "the classes ", FirstFew(names, kNamed),
                      names.size() == 1 ? " has" : " have");
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ClassGaps(const Plan& plan, std::span<const Skip> skips) {
  const Listing& listing = plan.listing();
  const size_t classes = listing.classes.size();
  if (listing.label.empty() || classes == 0) return std::vector<std::string>();
  std::vector<bool> skipped(listing.rows(), false);
  for (const Skip& skip : skips) skipped[skip.row] = true;
  std::vector<bool> lost(classes, false);
  std::vector<uint64_t> samples(plan.splits().size() * classes, 0);
  for (size_t n = 0; n < plan.shards().size(); ++n) {
    RETURN_IF_ERROR(plan.CheckSlice(n));
    const PlannedShard& shard = plan.shards()[n];
    for (uint64_t p = shard.first; p < shard.first + shard.count; ++p) {
      const int32_t label = listing.label[plan.row(p)];
      if (!skipped[plan.row(p)] && label >= 0)
        ++samples[shard.split * classes + static_cast<size_t>(label)];
    }
    plan.DropSlice(n);
  }
  if (!skips.empty()) RETURN_IF_ERROR(plan.CheckSlice(plan.shards().size()));
  for (const Skip& skip : skips) {
    if (listing.label[skip.row] >= 0) lost[static_cast<size_t>(listing.label[skip.row])] = true;
  }
  const auto train = std::find(plan.splits().begin(), plan.splits().end(), kTrain);
  std::vector<std::string> none, not_in_train;
  for (size_t label = 0; label < classes; ++label) {
    uint64_t all = 0;
    for (size_t split = 0; split < plan.splits().size(); ++split)
      all += samples[split * classes + label];
    const auto in_train = static_cast<size_t>(train - plan.splits().begin()) * classes + label;
    const std::string& name = listing.classes[label];
    if (all == 0 && lost[label]) none.push_back(name);
    if (all > 0 && train != plan.splits().end() && samples[in_train] == 0)
      not_in_train.push_back(name);
  }
  std::vector<std::string> lines;
  if (!none.empty()) {
    lines.push_back(absl::StrCat(ClassesWith(none),
                                 " no sample in the dataset: what there was could not be packed; "
                                 "the other classes keep their numbers"));
  }
  if (!not_in_train.empty())
    lines.push_back(
        absl::StrCat(ClassesWith(not_in_train), " samples, but none in the split train"));
  return lines;
}

}  // namespace shardpack
