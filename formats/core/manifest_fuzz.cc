// Parses arbitrary bytes as a manifest: rejected, or exactly what ToJson writes. Each input is also
// tried with a correct `self`; otherwise the checks after it would never be reached.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "formats/core/manifest.h"

namespace {

using namespace shardpack;

void ParseAndCompare(std::string_view json) {
  const absl::StatusOr<Manifest> manifest = Manifest::Parse(json);
  if (!manifest.ok()) {
    // Unimplemented: another schema, with a correct `self`.
    if (!absl::IsDataLoss(manifest.status()) && !absl::IsUnimplemented(manifest.status())) abort();
    return;
  }
  if (manifest->ToJson() != json || !manifest->Check().ok()) abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string json(reinterpret_cast<const char*>(data), size);
  ParseAndCompare(json);
  constexpr std::string_view kSelf = "\n \"self\": \"";
  constexpr size_t kLineBytes = kSelf.size() + 32 + 2;
  const size_t at = json.find(kSelf);
  if (at == json.npos || json.size() - at < kLineBytes) return 0;
  std::string body = json;
  body.erase(at, kLineBytes);
  json.replace(at + kSelf.size(), 32, Xxh3_128(AsBytes(body)).ToHex());
  ParseAndCompare(json);
  return 0;
}
