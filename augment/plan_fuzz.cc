// Arbitrary text as plans and programs: what parses has a canonical text, and what it draws is
// applied within the image (sanitizers check).
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "augment/plan.h"
#include "augment/program.h"

namespace {

void Check(bool holds) {
  if (!holds) std::abort();
}

// `may_not_fit`: it may have corners that no image of this size has.
void Apply(const shardpack::SampleProgram& program, bool may_not_fit) {
  for (const uint32_t channels : {1u, 3u}) {
    std::vector<uint8_t> pixels(size_t{9} * 7 * channels, 100);
    shardpack::ProgramRunner runner;
    const absl::Status done =
        runner.Apply(program, {pixels.data(), 9, 7, channels, size_t{9} * channels});
    Check(done.ok() || (may_not_fit && done.code() == absl::StatusCode::kInvalidArgument));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto program = shardpack::SampleProgram::Parse(text); program.ok()) {
    const auto again = shardpack::SampleProgram::Parse(program->ToText());
    Check(again.ok() && *again == *program);
    Apply(*program, true);
  }
  if (const auto plan = shardpack::AugmentPlan::Parse(text); plan.ok()) {
    const auto again = shardpack::AugmentPlan::Parse(plan->ToText());
    Check(again.ok() && again->ToText() == plan->ToText());
    shardpack::SampleProgram program;
    plan->Draw({1, 2, size}, 9, 7, program);
    for (const shardpack::Operation& operation : program.operations) Check(operation.Check().ok());
    if (plan->CheckReady().ok()) Apply(program, false);
  }
  return 0;
}
