#include "formats/hdf5/hdf5_format.h"
#include "formats/hdf5/hdf5_layout.h"
#include "formats/testing/format_contract.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using testing::ContractOf;
using testing::ContractTestName;
using testing::FormatContract;

// Further fields are stored in separate datasets, outside the image's record; hdf5_format_test.cc
// tests them.
INSTANTIATE_TEST_SUITE_P(Packed, FormatContract,
                         ::testing::ValuesIn(ContractOf({.format = &kHdf5Format,
                                                         .spec = {.layout = kPackedLayout}})),
                         ContractTestName);

INSTANTIATE_TEST_SUITE_P(Vlen, FormatContract,
                         ::testing::ValuesIn(ContractOf({.format = &kHdf5Format,
                                                         .spec = {.layout = kVlenLayout}})),
                         ContractTestName);

// With more and less than a page of pixels; only the former is aligned.
INSTANTIATE_TEST_SUITE_P(
    Decoded, FormatContract,
    ::testing::ValuesIn(ContractOf({.format = &kHdf5Format,
                                    .spec = {.layout = kDecodedLayout,
                                             .raw_image = RawImageInfo(30, 20, 3)}})),
    ContractTestName);

INSTANTIATE_TEST_SUITE_P(
    DecodedGray, FormatContract,
    ::testing::ValuesIn(ContractOf({.format = &kHdf5Format,
                                    .spec = {.layout = kDecodedLayout,
                                             .raw_image = RawImageInfo(5, 7, 1)}})),
    ContractTestName);

}  // namespace
}  // namespace shardpack
