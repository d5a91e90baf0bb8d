#include "formats/io/lack_of_resources.h"

namespace shardpack {

bool IsLackOfResources(const absl::Status& status) {
  if (status.ok()) return false;
  // Set by IoStatus.
  return absl::IsResourceExhausted(status) ||
         status.GetPayload("shardpack/lack-of-resources").has_value();
}

}  // namespace shardpack
