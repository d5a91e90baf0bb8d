// MakeReport: one HTML page that shows what a dataset holds, for people without this program.
//
//   absl::StatusOr<DatasetReport> report = MakeReport(dataset, {.name = "shards"}, progress, stop);
//   WriteFile("report.html", report->html);
//
// The page has no script, loads nothing, shows names of any bytes as text, and fits the budget
// whatever the dataset: where pictures do not fit there are fewer, and it says so. The same dataset
// gives the same page.
//
// Lifetime: owns its text.
// Thread-safety: works on all cores.
// Errors: those of GatherStats in spite of damage; InvalidArgument, with the bytes that it takes,
// if the page does not fit even without pictures; FailedPrecondition if the dataset was replaced
// meanwhile; Cancelled if `stop` becomes nonzero.
// Units: bytes.
#ifndef SHARDPACK_VALIDATORS_LOOKING_DATASET_REPORT_H_
#define SHARDPACK_VALIDATORS_LOOKING_DATASET_REPORT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "readers/dataset/dataset.h"
#include "validators/looking/looking_options.h"
#include "validators/looking/near_copies.h"
#include "validators/looking/validation_facts.h"

namespace shardpack {

struct ReportOptions {
  std::string name;         // of the dataset, for the title
  std::string folder = {};  // of a dataset with a manifest; see StatsOptions
  size_t thumbs = 8;        // pictures of each class
  uint64_t max_bytes = 3'000'000;
  bool near = false;
  int distance = kNearDistance;
  int jobs = 0;                                    // threads; 0 = the cores this process may use
  std::optional<ValidationFacts> validation = {};  // shown, if given
  std::vector<DamagedFile> damaged_files = {};     // as Dataset::OpenDamaged found them
};

struct DatasetReport {
  std::string html;
  bool damaged = false;  // parts or images could not be read; the page names them
};

absl::StatusOr<DatasetReport> MakeReport(const Dataset& dataset, const ReportOptions& options,
                                         NearProgress& progress, const std::atomic<int>& stop);

// Whether a file that begins so is such a page. The first 1024 bytes tell.
bool IsReport(std::string_view beginning);

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_LOOKING_DATASET_REPORT_H_
