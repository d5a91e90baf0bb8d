#include "formats/npy/npy_format.h"
#include "formats/testing/format_contract.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using testing::ContractOf;
using testing::ContractTestName;
using testing::FormatContract;

// Labels are stored in a separate file (npy_format_test.cc).
INSTANTIATE_TEST_SUITE_P(Rgb, FormatContract,
                         ::testing::ValuesIn(ContractOf({
                             .format = &kNpyFormat,
                             .spec = {.raw_image = RawImageInfo(13, 17, 3)},
                             .keeps_key = false,
                             .keeps_label = false,
                         })),
                         ContractTestName);

INSTANTIATE_TEST_SUITE_P(Gray, FormatContract,
                         ::testing::ValuesIn(ContractOf({
                             .format = &kNpyFormat,
                             .spec = {.layout = "decoded", .raw_image = RawImageInfo(28, 28, 1)},
                             .keeps_key = false,
                             .keeps_label = false,
                         })),
                         ContractTestName);

}  // namespace
}  // namespace shardpack
