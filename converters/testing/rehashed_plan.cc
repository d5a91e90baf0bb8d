#include "converters/testing/rehashed_plan.h"

#include <optional>
#include <string_view>

#include "converters/planning/plan.h"
#include "converters/planning/plan_bytes.h"
#include "converters/testing/made_up.h"
#include "formats/io/bytes.h"
#include "formats/io/hash.h"

namespace shardpack::testing {
namespace {

void PutDigest(const Digest& digest, char* at) {
  StoreLittle(at, digest.low);
  StoreLittle(at + 8, digest.high);
}

// Returns where the digests of the slices are.
std::optional<uint64_t> RehashHeader(std::string& bytes) {
  if (bytes.size() < kPlanHeaderBytes + kPlanTrailerBytes) return std::nullopt;
  const std::string_view all = bytes;
  const uint64_t footer = all.size() - kPlanFooterBytes;
  const auto offset = LoadLittle<uint64_t>(bytes.data() + all.size() - kPlanTrailerBytes);
  if (offset < kPlanHeaderBytes || offset > footer) return std::nullopt;
  DigestStream hash;
  hash.Update(AsBytes(all.substr(0, kPlanHeaderBytes)));
  hash.Update(AsBytes(all.substr(offset, footer - offset)));
  PutDigest(hash.Finish(), bytes.data() + footer);
  return offset;
}

}  // namespace

std::string RehashedPlan(std::string bytes) {
  const std::optional<uint64_t> digests = RehashHeader(bytes);
  if (!digests) return bytes;
  const std::string opened = bytes;  // the plan borrows its rows
  const auto plan = Plan::Open({nullptr, opened, ""}, &FindMadeUpFormat);
  if (!plan.ok()) return bytes;
  for (size_t n = 0; n < plan->slices()->slices().size(); ++n) {
    const std::optional<Digest> digest = plan->slices()->Compute(n);
    if (digest) PutDigest(*digest, bytes.data() + *digests + 16 * n);
  }
  RehashHeader(bytes);
  return bytes;
}

}  // namespace shardpack::testing
