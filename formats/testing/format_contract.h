// FormatContract: the requirements on every format, as tests that each format instantiates.
//
//   INSTANTIATE_TEST_SUITE_P(Tfrecord, FormatContract,
//       ::testing::ValuesIn(ContractOf({.format = &kTfrecordFormat, .extra_fields = {"txt"}})),
//       ContractTestName);
//
// The test's target depends on //formats/testing:format_contract and //third_party:gtest_main, has
// the tag "threads", and needs `using shardpack::testing::FormatContract` and the like. Each check
// is also a function that returns a Status, so that the checks themselves can be tested
// (format_contract_test.cc).
//
// Lifetime: a FormatCase borrows the format and the texts of its spec; usually both are static.
// Thread-safety: checks may run concurrently in separate folders.
// Errors: FailedPrecondition: how the contract is violated.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_TESTING_FORMAT_CONTRACT_H_
#define SHARDPACK_FORMATS_TESTING_FORMAT_CONTRACT_H_

#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "formats/core/format.h"
#include "gtest/gtest.h"

namespace shardpack::testing {

// A format, its writer's options, and which parts of a sample it stores.
struct FormatCase {
  const Format* format = nullptr;
  ShardSpec spec = {};
  // Names of further fields that this format and layout can store; the scanner must return each of
  // them.
  std::vector<std::string> extra_fields = {};
  bool keeps_key = true;    // the scanner returns the key
  bool keeps_label = true;  // ... and the label
  bool keeps_source_path = false;
  // True for a container without an end mark: the loss of whole records at the end cannot be seen
  // in the file itself. Any other truncation must be a finding.
  bool silent_after_record = false;
  uint64_t huge_bytes = uint64_t{20} << 20;
};

// The checks, one per row; `scratch` is an empty folder.
struct ContractCheck {
  std::string_view name;  // CamelCase, the name of the test
  absl::Status (*run)(const FormatCase& format_case, const std::string& scratch);
};
std::span<const ContractCheck> ContractChecks();

struct ContractTest {
  FormatCase format_case;
  ContractCheck check;
};
std::ostream& operator<<(std::ostream& out, const ContractTest& test);

// All checks for that format.
std::vector<ContractTest> ContractOf(FormatCase format_case);
// For INSTANTIATE_TEST_SUITE_P.
std::string ContractTestName(const ::testing::TestParamInfo<ContractTest>& info);

class FormatContract : public ::testing::TestWithParam<ContractTest> {};

}  // namespace shardpack::testing

#endif  // SHARDPACK_FORMATS_TESTING_FORMAT_CONTRACT_H_
