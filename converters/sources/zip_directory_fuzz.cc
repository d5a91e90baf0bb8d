// Checks any bytes as a zip's central directory: the result is OK or DataLoss, whatever is said of
// sizes and places.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "absl/status/status.h"
#include "converters/sources/zip_directory.h"
#include "formats/testing/fuzz_checks.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shardpack;  // NOLINT
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const uint64_t members : {0, 2}) {
    const absl::Status checked = CheckZipDirectory(testing::MemoryFile(bytes), members);
    if (!checked.ok() && !absl::IsDataLoss(checked)) abort();
  }
  return 0;
}
