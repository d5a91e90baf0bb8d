// TargetRule: refuses samples, when they are added, that the finish could not pack.
//
//   const TargetRule rule({"--format=webdataset", "--layout=pax"});
//   absl::Status fits = rule.Check("a/1", /*labelled=*/true, fields);
//
// It asks the writer of the format that `pack convert` would write with these arguments, as far as
// the library has it: of WebDataset, which is the default. Others, and what --key, --fields and
// the like make of keys and fields, are known at the finish alone.
//
// Lifetime: holds copies.
// Thread-safety: any thread.
// Errors: InvalidArgument, with the writer's message.
#ifndef SHARDPACK_API_WRITING_TARGET_RULE_H_
#define SHARDPACK_API_WRITING_TARGET_RULE_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "formats/core/sample.h"

namespace shardpack {

class TargetRule {
 public:
  explicit TargetRule(const std::vector<std::string>& arguments);
  // fields[0] is the image.
  absl::Status Check(std::string_view key, bool labelled, std::span<const FieldView> fields) const;

 private:
  bool known_ = true;
  std::string layout_, image_field_;
  bool with_metadata_ = false;
};

}  // namespace shardpack

#endif  // SHARDPACK_API_WRITING_TARGET_RULE_H_
