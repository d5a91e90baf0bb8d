#include "cuda/kernels/gather.h"

#include <cstring>

namespace shardpack {

void GatherOnHost(const GatherLaunch& given) {
  GatherLaunch launch = given;
  if (given.source != nullptr) {
    launch.rows = given.source->rows;
    launch.labels = given.out_labels == nullptr ? nullptr : given.source->labels;
  }
  for (uint32_t i = 0; i < launch.count; ++i) {
    uint8_t* const to = launch.out + i * launch.row_bytes;
    if (launch.rows[i] == kNoRow) {
      std::memset(to, 0, launch.row_bytes);
    } else {
      std::memcpy(to, launch.table + launch.rows[i] * launch.row_bytes, launch.row_bytes);
    }
  }
  if (launch.labels == nullptr) return;
  std::memcpy(launch.out_labels, launch.labels, launch.count * sizeof(int64_t));
}

}  // namespace shardpack
