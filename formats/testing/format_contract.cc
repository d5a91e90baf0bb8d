#include "formats/testing/format_contract.h"

#include <utility>

#include "formats/testing/contract_checks.h"
#include "formats/testing/scratch_folder.h"

namespace shardpack::testing {
namespace {

constexpr ContractCheck kChecks[] = {
    {"Description", CheckDescription},
    {"RoundTrip", CheckRoundTrip},
    {"NoSamples", CheckNoSamples},
    {"EmptyField", CheckEmptyField},
    {"HugeRecord", CheckHugeRecord},
    {"OddKeys", CheckOddKeys},
    {"RefusedSample", CheckRefusedSample},
    {"RecordBound", CheckRecordBound},
    {"Sidecars", CheckSidecars},
    {"SameBytesAgain", CheckSameBytesAgain},
    {"ViewsDieAfterAppend", CheckViewsDieAfterAppend},
    {"AppendsFromManyThreads", CheckAppendsFromManyThreads},
    {"WritersAtOnce", CheckWritersAtOnce},
    {"AbandonedWriter", CheckAbandonedWriter},
    {"FullDisk", CheckFullDisk},
    {"Truncation", CheckTruncation},
    {"BitFlips", CheckBitFlips},
    {"ZeroedPages", CheckZeroedPages},
    {"Garbage", CheckGarbage},
    {"ReadErrors", CheckReadErrors},
};

}  // namespace

std::span<const ContractCheck> ContractChecks() { return kChecks; }

std::ostream& operator<<(std::ostream& out, const ContractTest& test) {
  return out << std::string(test.format_case.format->name) << " " << std::string(test.check.name);
}

std::vector<ContractTest> ContractOf(FormatCase format_case) {
  if (format_case.spec.split.empty()) format_case.spec.split = "train";
  std::vector<ContractTest> tests;
  for (const ContractCheck& check : kChecks) tests.push_back({format_case, check});
  return tests;
}

std::string ContractTestName(const ::testing::TestParamInfo<ContractTest>& info) {
  return std::string(info.param.check.name);
}

TEST_P(FormatContract, Holds) {
  const ScratchFolder scratch;
  const absl::Status held = GetParam().check.run(GetParam().format_case, scratch.path());
  EXPECT_TRUE(held.ok()) << held.message();
}
// The tests of the checks themselves may instantiate nothing.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FormatContract);

}  // namespace shardpack::testing
