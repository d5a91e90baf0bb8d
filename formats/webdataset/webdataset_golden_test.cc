// Shards from other writers (testdata/make_testdata.py) have the same content for us as for those
// writers.
#include <string>
#include <string_view>
#include <vector>

#include "formats/io/file.h"
#include "formats/testing/test_shard.h"
#include "formats/webdataset/webdataset_format.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using testing::FoundRecord;
using testing::ScanBytes;
using testing::ScanResult;

struct Golden {
  std::string_view file;
  size_t records;
  // In addition to the findings for the non-ASCII name and the long one.
  std::string_view findings;
};

std::string FindingNames(const ScanResult& scan) {
  std::string names;
  for (const Finding& finding : scan.findings.findings()) {
    if (finding.id == FindingId::kWdsNameStyle || finding.id == FindingId::kWdsLongName) continue;
    names += std::string(names.empty() ? "" : " ") + std::string(SpecOf(finding.id).name);
  }
  return names;
}

class WebdatasetGolden : public ::testing::TestWithParam<Golden> {};

TEST_P(WebdatasetGolden, HoldsItsSamples) {
  absl::StatusOr<std::string> bytes =
      ReadWholeFile("formats/webdataset/testdata/" + std::string(GetParam().file), 1 << 20);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const ScanResult scan = ScanBytes(kWebDatasetFormat, *bytes);
  ASSERT_TRUE(scan.status.ok()) << scan.status;
  EXPECT_EQ(FindingNames(scan), GetParam().findings) << scan.Complaints();
  const std::string long_key = "folder_" + std::string(60, 'l') + "/key_" + std::string(60, 'n');
  const std::vector<std::string> keys = {"cat/1", "dog/2", long_key, "caf\xc3\xa9"};
  const std::vector<std::string> images = {"one", "two" + std::string(600, '.'), "three", "four"};
  ASSERT_EQ(scan.records.size(), GetParam().records);
  for (size_t i = 0; i < scan.records.size(); ++i) {
    const FoundRecord& record = scan.records[i];
    EXPECT_EQ(record.key, keys[i]);
    EXPECT_EQ(record.label, static_cast<int64_t>(i));
    ASSERT_EQ(record.fields.size(), 1u);
    EXPECT_EQ(bytes->substr(record.fields[0].offset, record.fields[0].length),
              "\xff\xd8\xff\xe0 " + images[i]);
    EXPECT_EQ(record.offset, i == 0 ? 0 : scan.records[i - 1].offset + scan.records[i - 1].length);
  }
}

INSTANTIATE_TEST_SUITE_P(Writers, WebdatasetGolden,
                         ::testing::Values(Golden{"python_gnu.tar", 4, "tar-extension-record"},
                                           Golden{"python_pax.tar", 4, "tar-extension-record"},
                                           Golden{"python_ustar.tar", 4, ""},
                                           Golden{"gnutar_gnu.tar", 4, "tar-extension-record"},
                                           Golden{"gnutar_pax.tar", 4, "tar-extension-record"},
                                           Golden{"gnutar_ustar.tar", 4, ""},
                                           Golden{"gnutar_v7.tar", 2, ""},
                                           Golden{"bsdtar_pax.tar", 4, "tar-extension-record"},
                                           Golden{"bsdtar_ustar.tar", 4, ""},
                                           Golden{"bsdtar_gnutar.tar", 4, "tar-extension-record"},
                                           Golden{"webdataset.tar", 4, "tar-extension-record"}),
                         [](const ::testing::TestParamInfo<Golden>& info) {
                           return std::string(info.param.file.substr(0, info.param.file.find('.')));
                         });

}  // namespace
}  // namespace shardpack
