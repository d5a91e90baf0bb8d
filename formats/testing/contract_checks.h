// The checks of FormatContract, one function each; format_contract.h describes their purpose.
//
//   absl::Status round_trip = CheckRoundTrip(format_case, scratch.path());
//
// Lifetime, thread-safety, errors: as in format_contract.h.
#ifndef SHARDPACK_FORMATS_TESTING_CONTRACT_CHECKS_H_
#define SHARDPACK_FORMATS_TESTING_CONTRACT_CHECKS_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "formats/testing/format_contract.h"
#include "formats/testing/sample_generator.h"
#include "formats/testing/test_shard.h"

namespace shardpack::testing {

// contract_write.cc: written data can be read back
absl::Status CheckDescription(const FormatCase& c, const std::string& scratch);
absl::Status CheckRoundTrip(const FormatCase& c, const std::string& scratch);
absl::Status CheckNoSamples(const FormatCase& c, const std::string& scratch);
absl::Status CheckEmptyField(const FormatCase& c, const std::string& scratch);
absl::Status CheckHugeRecord(const FormatCase& c, const std::string& scratch);
absl::Status CheckOddKeys(const FormatCase& c, const std::string& scratch);
absl::Status CheckRefusedSample(const FormatCase& c, const std::string& scratch);
absl::Status CheckRecordBound(const FormatCase& c, const std::string& scratch);
absl::Status CheckSidecars(const FormatCase& c, const std::string& scratch);

// contract_lifetime.cc: when and where the bytes are written does not matter
absl::Status CheckSameBytesAgain(const FormatCase& c, const std::string& scratch);
absl::Status CheckViewsDieAfterAppend(const FormatCase& c, const std::string& scratch);
absl::Status CheckAppendsFromManyThreads(const FormatCase& c, const std::string& scratch);
absl::Status CheckWritersAtOnce(const FormatCase& c, const std::string& scratch);
absl::Status CheckAbandonedWriter(const FormatCase& c, const std::string& scratch);
absl::Status CheckFullDisk(const FormatCase& c, const std::string& scratch);

// contract_damage.cc: damage is detected
absl::Status CheckTruncation(const FormatCase& c, const std::string& scratch);
absl::Status CheckBitFlips(const FormatCase& c, const std::string& scratch);
absl::Status CheckZeroedPages(const FormatCase& c, const std::string& scratch);
absl::Status CheckGarbage(const FormatCase& c, const std::string& scratch);
absl::Status CheckReadErrors(const FormatCase& c, const std::string& scratch);

template <typename... Parts>
absl::Status Broken(const Parts&... parts) {
  return absl::FailedPreconditionError(absl::StrCat(parts...));
}

// Samples with the extra fields of the case.
std::vector<OwnedSample> SamplesFor(const FormatCase& c, GeneratorOptions options = {});

// Sets a payload of `bytes` bytes, or raw pixels if the case has a fixed shape.
void SetPayload(const FormatCase& c, uint64_t bytes, Random& random, OwnedSample& sample);

// Scans a shard of the case, whose layout is known.
inline ScanResult ScanCase(const FormatCase& c, std::string_view bytes) {
  const LayoutSpec* layout = FindLayout(*c.format, c.spec.layout);
  return ScanBytes(*c.format, bytes, /*strict=*/true, layout == nullptr ? 0 : layout->label_base);
}

// Invariants of every scan of arbitrary bytes: it ends with OK; every extent is within the file,
// and its hash is that of the bytes there.
absl::Status CheckScan(const ScanResult& scan, std::string_view bytes);

// CheckScan, no findings, and each record equals its sample, in order.
absl::Status CompareWithSamples(const FormatCase& c, std::span<const OwnedSample> samples,
                                const ScanResult& scan, std::string_view bytes);

}  // namespace shardpack::testing

#endif  // SHARDPACK_FORMATS_TESTING_CONTRACT_CHECKS_H_
