// PackRequest: what is to be packed, and how: all that a plan is made from. The command line, a
// manifest (recorded_request.h) and a program fill it in alike.
//
//   PackRequest request{.paths = {"photos"}, .format = "tfrecord"};
//   request.plan.samples_per_shard = 10'000;
//   absl::StatusOr<Prepared> prepared = PreparePlan(request, pool, observer);
//
// Lifetime: a plain value.
#ifndef SHARDPACK_JOBS_PACK_REQUEST_H_
#define SHARDPACK_JOBS_PACK_REQUEST_H_

#include <set>
#include <string>
#include <vector>

#include "converters/planning/plan_options.h"
#include "converters/sources/folder_source.h"
#include "converters/sources/list_lines.h"

namespace shardpack {

struct PackRequest {
  std::vector<std::string> paths = {};  // the source; several only for shards of one dataset
  // What the source is: auto, folder, list, csv, tsv, jsonl, coco, archive or dataset.
  std::string input_format = "auto";
  std::string root = {};  // what the paths of a list or COCO json are relative to; "" = its folder
  FolderSourceOptions source = {};            // of whatever holds files
  ListOptions columns = {};                   // of a list
  std::string label_from = {};                // the word of --label-from; "" = not given
  bool coco_boxes = false;                    // the json field of COCO json holds boxes alone
  std::vector<std::string> annotations = {};  // further COCO json of the same images
  bool one_split = false;                     // folders are not taken for splits

  std::string format = {};   // of the output; "" = the first of the table
  bool drop_fields = false;  // those that the format cannot hold are left out
  PlanOptions plan = {};

  // The options that were asked for, by the name of their flag. One that the source cannot have is
  // refused only where it was asked for; others may take over what a dataset was packed with.
  std::set<std::string> given = {};
  bool Given(const std::string& option) const { return given.contains(option); }
};

}  // namespace shardpack

#endif  // SHARDPACK_JOBS_PACK_REQUEST_H_
