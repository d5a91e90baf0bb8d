// FindingTally: the findings of a run: counts all of them by id and keeps a limited number of each
// id.
//
//   FindingTally of_shard;
//   scanner.Scan(in, options, records, of_shard);
//   of_run.Add(of_shard);   // in the order of the shards, so that reports are reproducible
//
// Thread-safety: one caller at a time.
// Units: findings.
#ifndef SHARDPACK_VALIDATORS_REPORT_FINDING_TALLY_H_
#define SHARDPACK_VALIDATORS_REPORT_FINDING_TALLY_H_

#include <array>
#include <cstdint>
#include <vector>

#include "formats/core/finding.h"

namespace shardpack {

class FindingTally : public FindingSink {
 public:
  static constexpr size_t kIds = static_cast<size_t>(FindingId::kCount);

  // Keeps this many of each id, since a shard of a million bad records must not fill the memory or
  // the screen.
  explicit FindingTally(size_t keep_each = 100) : keep_each_(keep_each) {}

  void Report(Finding finding) override;
  void Add(const FindingTally& other);

  const std::vector<Finding>& kept() const { return kept_; }
  uint64_t count(FindingId id) const { return counts_[static_cast<size_t>(id)]; }
  // Whether the next one of this id would be kept.
  bool keeps(FindingId id) const { return kept_counts_[static_cast<size_t>(id)] < keep_each_; }
  uint64_t errors() const { return errors_; }
  uint64_t warnings() const { return warnings_; }
  uint64_t omitted() const { return errors_ + warnings_ - kept_.size(); }

 private:
  size_t keep_each_;
  std::vector<Finding> kept_;
  std::array<uint64_t, kIds> counts_{}, kept_counts_{};
  uint64_t errors_ = 0, warnings_ = 0;
};

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_REPORT_FINDING_TALLY_H_
