#include "validators/report/finding_tally.h"

#include <utility>

namespace shardpack {

void FindingTally::Report(Finding finding) {
  ++(finding.severity == Severity::kError ? errors_ : warnings_);
  const auto id = static_cast<size_t>(finding.id);
  ++counts_[id];
  if (kept_counts_[id] >= keep_each_) return;
  ++kept_counts_[id];
  kept_.push_back(std::move(finding));
}

void FindingTally::Add(const FindingTally& other) {
  errors_ += other.errors_;
  warnings_ += other.warnings_;
  for (size_t id = 0; id < kIds; ++id) counts_[id] += other.counts_[id];
  for (const Finding& finding : other.kept_) {
    const auto id = static_cast<size_t>(finding.id);
    if (kept_counts_[id] >= keep_each_) continue;
    ++kept_counts_[id];
    kept_.push_back(finding);
  }
}

}  // namespace shardpack
