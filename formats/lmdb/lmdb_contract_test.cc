#include <algorithm>
#include <vector>

#include "formats/lmdb/lmdb_format.h"
#include "formats/testing/format_contract.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using testing::ContractOf;
using testing::ContractTest;
using testing::ContractTestName;
using testing::FormatContract;

INSTANTIATE_TEST_SUITE_P(Caffe, FormatContract,
                         ::testing::ValuesIn(ContractOf({.format = &kLmdbFormat,
                                                         .keeps_key = false,
                                                         .keeps_label = true,
                                                         .keeps_source_path = true})),
                         ContractTestName);

INSTANTIATE_TEST_SUITE_P(Raw, FormatContract,
                         ::testing::ValuesIn(ContractOf({.format = &kLmdbFormat,
                                                         .spec = {.layout = "raw"},
                                                         .keeps_key = true,
                                                         .keeps_label = false})),
                         ContractTestName);

// FullDisk assumes that all bytes of a shard are written the same way, but this layout has a spool
// file (PickleWriter.AFullDiskIsSaid tests it).
std::vector<ContractTest> PickleTests() {
  std::vector<ContractTest> tests = ContractOf({.format = &kLmdbFormat,
                                                .spec = {.layout = "pickle"},
                                                .keeps_key = false,
                                                .keeps_label = true});
  std::erase_if(tests, [](const ContractTest& test) { return test.check.name == "FullDisk"; });
  return tests;
}

INSTANTIATE_TEST_SUITE_P(Pickle, FormatContract, ::testing::ValuesIn(PickleTests()),
                         ContractTestName);

}  // namespace
}  // namespace shardpack
