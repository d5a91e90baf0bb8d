// Arbitrary bytes: the probe stays within them (sanitizers check), and its results are consistent.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "images/probe/probe.h"

namespace {

void Check(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using shardpack::ProbeLevel, shardpack::ProbeVerdict, shardpack::ProbeResult;
  const auto file = std::as_bytes(std::span(data, size));
  const ProbeResult strict = shardpack::ProbeImage(file, {});
  const ProbeResult lenient = shardpack::ProbeImage(file, {.allow_truncated = true});
  const ProbeResult header = shardpack::ProbeImage(file, {.level = ProbeLevel::kHeader});
  for (const ProbeResult& result : {strict, lenient, header}) {
    Check(result.offset <= size);
    Check(result.detail != nullptr);
    Check((result.verdict == ProbeVerdict::kEmpty) == (size == 0));
    if (result.verdict != ProbeVerdict::kOk) continue;
    const uint64_t pixels = uint64_t{result.info.width} * result.info.height;
    Check(pixels > 0 && pixels <= shardpack::ProbeOptions().max_pixels);
    Check(result.info.format == shardpack::SniffImageFormat(file));
    Check(result.info.channels >= 1 && result.info.channels <= 4);
    Check(result.info.orientation >= 1 && result.info.orientation <= 8);
  }
  if (strict.verdict == ProbeVerdict::kOk) {
    Check(!strict.info.truncated());
    Check(lenient.info == strict.info && header.info == strict.info);
    Check(header.verdict == ProbeVerdict::kOk);
  }
  Check(lenient.verdict == strict.verdict ||
        (strict.verdict == ProbeVerdict::kTruncated && lenient.info.truncated()));
  return 0;
}
