// TargetRule: refuses samples, when they are added, that the finish could not pack.
//
//   const TargetRule rule({"--format=webdataset", "--layout=pax"});
//   absl::Status fits = rule.Check("a/1", /*labelled=*/true, fields);
//
// It asks the writer of WebDataset, the default, and has the limits of the other formats. What
// --key, --fields and the like make of keys and fields is known at the finish alone, and so is
// whether an image is whole: here it only begins as one, unless a --max-skip above 0 lets the
// finish leave out what is none.
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
#include "formats/io/bytes.h"

namespace shardpack {

class TargetRule {
 public:
  explicit TargetRule(const std::vector<std::string>& arguments);
  // fields[0] is the image.
  absl::Status Check(std::string_view key, bool labelled, std::span<const FieldView> fields) const;

 private:
  absl::Status CheckWebdataset(std::string_view key, bool labelled,
                               std::span<const FieldView> fields) const;
  absl::Status CheckHdf5(std::string_view key, std::span<const FieldView> fields) const;
  absl::Status CheckImage(std::string_view key, Bytes image) const;
  absl::Status CheckKeyBytes(std::string_view key, size_t most) const;

  bool known_ = true, takes_any_image_ = false;
  std::string format_, layout_, image_field_;
  bool with_metadata_ = false;
};

}  // namespace shardpack

#endif  // SHARDPACK_API_WRITING_TARGET_RULE_H_
