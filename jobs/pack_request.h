// PackRequest: what to pack, and how: everything that a plan is made from. The command line, a
// manifest (recorded_request.h) and a program fill it in the same way.
//
//   PackRequest request{.paths = {"photos"}, .format = "tfrecord"};
//   request.plan.samples_per_shard = 10'000;
//   absl::StatusOr<Prepared> prepared = PreparePlan(request, pool, observer);
//
// Lifetime: a plain value.
#ifndef SHARDPACK_JOBS_PACK_REQUEST_H_
#define SHARDPACK_JOBS_PACK_REQUEST_H_

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "converters/listing/key_list.h"
#include "converters/planning/plan_options.h"
#include "converters/sources/folder_source.h"
#include "converters/sources/list_lines.h"

namespace shardpack {

struct PackRequest {
  std::vector<std::string> paths =
      {};  // the source; several only if they are shards of one dataset
  // The kind of the source: auto, folder, list, csv, tsv, jsonl, coco, archive or dataset.
  std::string input_format = "auto";
  std::string root = {};  // base of relative paths in a list or COCO json; "" = its folder
  FolderSourceOptions source = {};            // for sources of files
  ListOptions columns = {};                   // for lists
  std::string label_from = {};                // the value of --label-from; "" = not given
  bool coco_boxes = false;                    // the json field of COCO json holds boxes only
  std::vector<std::string> annotations = {};  // more COCO json files for the same images
  bool one_split = false;                     // folders are not splits
  bool recorded = false;                      // what a dataset was packed with: not doubted again
  std::optional<KeyList> exclude_keys = {};   // samples of a dataset that are left out

  std::string format = {};   // output format; "" = the first in the table
  bool drop_fields = false;  // leave out fields that the format cannot hold
  PlanOptions plan = {};

  // The options set by the user, by flag name. An option that does not apply to the source is
  // refused only if it was set; an option that was not set may come from the packed dataset.
  std::set<std::string> given = {};
  bool Given(const std::string& option) const { return given.contains(option); }
};

}  // namespace shardpack

#endif  // SHARDPACK_JOBS_PACK_REQUEST_H_
