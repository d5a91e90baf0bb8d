// Parses arbitrary bytes as the result of a validation: refused, or within its bounds.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "validators/looking/validation_facts.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shardpack;
  const absl::StatusOr<ValidationFacts> facts =
      ParseValidation({reinterpret_cast<const char*>(data), size});
  if (!facts.ok()) return absl::IsInvalidArgument(facts.status()) ? 0 : (abort(), 0);
  if (facts->findings.size() > ValidationFacts::kMostFindings) abort();
  return 0;
}
