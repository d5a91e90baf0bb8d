#include <vector>

#include "formats/testing/format_contract.h"
#include "formats/webdataset/webdataset_format.h"
#include "formats/webdataset/webdataset_writer.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using testing::ContractOf;
using testing::ContractTest;
using testing::ContractTestName;
using testing::FormatContract;

// The test images have two formats, and different field names in a shard are a finding, so all
// images get the same field name.
std::vector<ContractTest> Contract(std::string_view layout, bool with_metadata) {
  std::vector<ContractTest> tests = ContractOf(
      {.format = &kWebDatasetFormat,
       .spec = {.layout = layout, .image_field = "jpg", .with_metadata = with_metadata},
       .extra_fields = with_metadata ? std::vector<std::string>{"txt"}
                                     : std::vector<std::string>{"json", "mask.png", "txt"}});
  // Names over 100 bytes and pax records are warnings, which that check does not expect;
  // webdataset_scanner_test.cc covers them instead.
  std::erase_if(tests, [](const ContractTest& test) { return test.check.name == "OddKeys"; });
  return tests;
}

INSTANTIATE_TEST_SUITE_P(Ustar, FormatContract, ::testing::ValuesIn(Contract(kUstarLayout, false)),
                         ContractTestName);
INSTANTIATE_TEST_SUITE_P(Pax, FormatContract, ::testing::ValuesIn(Contract(kPaxLayout, false)),
                         ContractTestName);
INSTANTIATE_TEST_SUITE_P(Metadata, FormatContract,
                         ::testing::ValuesIn(Contract(kUstarLayout, true)), ContractTestName);

}  // namespace
}  // namespace shardpack
