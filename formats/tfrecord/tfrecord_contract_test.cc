#include "formats/testing/format_contract.h"
#include "formats/tfrecord/tfrecord_format.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using testing::ContractOf;
using testing::ContractTestName;
using testing::FormatContract;

INSTANTIATE_TEST_SUITE_P(Tfrecord, FormatContract,
                         ::testing::ValuesIn(ContractOf({.format = &kTfrecordFormat,
                                                         .extra_fields = {"boxes", "json", "txt"},
                                                         .keeps_key = false,
                                                         .keeps_label = true,
                                                         .keeps_source_path = true,
                                                         .silent_after_record = true})),
                         ContractTestName);

INSTANTIATE_TEST_SUITE_P(Imagenet, FormatContract,
                         ::testing::ValuesIn(ContractOf({.format = &kTfrecordFormat,
                                                         .spec = {.layout = "imagenet"},
                                                         .extra_fields = {"boxes", "json", "txt"},
                                                         .keeps_key = false,
                                                         .keeps_label = true,
                                                         .keeps_source_path = false,
                                                         .silent_after_record = true})),
                         ContractTestName);

INSTANTIATE_TEST_SUITE_P(Tfds, FormatContract,
                         ::testing::ValuesIn(ContractOf({.format = &kTfrecordFormat,
                                                         .spec = {.layout = "tfds"},
                                                         .extra_fields = {"boxes", "json", "txt"},
                                                         .keeps_key = false,
                                                         .keeps_label = true,
                                                         .keeps_source_path = true,
                                                         .silent_after_record = true})),
                         ContractTestName);

}  // namespace
}  // namespace shardpack
