#include "formats/hdf5/hdf5_format.h"
#include "formats/hdf5/hdf5_layout.h"
#include "formats/testing/format_contract.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using testing::ContractOf;
using testing::ContractTestName;
using testing::FormatContract;

// Further fields lie in datasets of their own, so not within the image's record: they have tests of
// their own (hdf5_format_test.cc).
INSTANTIATE_TEST_SUITE_P(Packed, FormatContract,
                         ::testing::ValuesIn(ContractOf({.format = &kHdf5Format,
                                                         .spec = {.layout = kPackedLayout}})),
                         ContractTestName);

INSTANTIATE_TEST_SUITE_P(Vlen, FormatContract,
                         ::testing::ValuesIn(ContractOf({.format = &kHdf5Format,
                                                         .spec = {.layout = kVlenLayout}})),
                         ContractTestName);

}  // namespace
}  // namespace shardpack
