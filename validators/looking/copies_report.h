// CopiesReport: the exact and near copies in one or several datasets, as JSON and as a list of
// keys.
//
//   absl::StatusOr<CopiesReport> report = FindCopies(datasets, options, progress, stop);
//   bool found = !report->exact.empty() || !report->near.groups.empty();
//   absl::StatusOr<std::vector<std::string>> keys = KeysToLeaveOut(*report);
//
// Lifetime: owns everything.
// Thread-safety: works on all cores.
// Errors: those of FindExactCopies and FindNearCopies.
#ifndef SHARDPACK_VALIDATORS_LOOKING_COPIES_REPORT_H_
#define SHARDPACK_VALIDATORS_LOOKING_COPIES_REPORT_H_

#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "validators/looking/exact_copies.h"
#include "validators/looking/near_copies.h"
#include "validators/looking/sample_rows.h"
#include "validators/looking/shards_with_index.h"

namespace shardpack {

struct CopiesOptions {
  bool near = false;
  int distance = kNearDistance;
  int jobs = 0;  // threads; 0 = the cores this process may use
};

struct CopiesReport {
  SampleRows rows;
  bool with_near = false;
  int distance = 0;
  std::vector<CopyGroup> exact;
  UnreadSamples unread;  // whose bytes could not be compared
  NearCopies near;
  DatasetDamage damage;  // for the JSON; set by the caller

  bool found() const { return !exact.empty() || !near.groups.empty(); }
};

absl::StatusOr<CopiesReport> FindCopies(std::span<const Dataset> datasets,
                                        const CopiesOptions& options, NearProgress& progress,
                                        const std::atomic<int>& stop);

// The keys of samples of the first dataset without which it has no copy, in itself or of another
// dataset, in the order of the samples. Of a group one sample stays: that of another dataset, else
// one of a split that is called val, valid, validation, test, dev or eval, else of the smallest
// split, so that what is measured on them stays comparable, and of these the first. Of samples
// under several classes, or with labels that are not read and may differ, none stays, because it is
// not known whose label is right. InvalidArgument
// if keys cannot say it: a sample that has none, or shares its key with one that stays.
absl::StatusOr<std::vector<std::string>> KeysToLeaveOut(const CopiesReport& report);

// One object and a newline, schema "shardpack.dups/1", in pieces.
absl::Status WriteJson(const CopiesReport& report,
                       const std::function<void(std::string_view)>& write);

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_LOOKING_COPIES_REPORT_H_
