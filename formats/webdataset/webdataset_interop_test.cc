// libarchive reads what we write, and we read what libarchive writes.
#include <archive.h>
#include <archive_entry.h>
#include <locale.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/testing/sample_generator.h"
#include "formats/testing/scratch_folder.h"
#include "formats/testing/test_shard.h"
#include "formats/webdataset/webdataset_format.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using testing::FoundField;
using testing::FoundRecord;
using testing::GenerateSamples;
using testing::OwnedSample;
using testing::Random;
using testing::ScanBytes;
using testing::ScanResult;
using testing::ScratchFolder;
using testing::WriteShard;

struct Member {
  std::string name, data;
  friend bool operator==(const Member&, const Member&) = default;
};

std::string DataOf(archive* in) {
  std::string data;
  char buffer[4096];
  for (;;) {
    const la_ssize_t got = archive_read_data(in, buffer, sizeof(buffer));
    EXPECT_GE(got, 0) << archive_error_string(in);
    if (got <= 0) return data;
    data.append(buffer, static_cast<size_t>(got));
  }
}

std::vector<Member> ReadWithLibarchive(const std::string& bytes) {
  const std::unique_ptr<archive, decltype(&archive_read_free)> in(archive_read_new(),
                                                                  &archive_read_free);
  archive_read_support_format_tar(in.get());
  EXPECT_EQ(archive_read_open_memory(in.get(), bytes.data(), bytes.size()), ARCHIVE_OK);
  std::vector<Member> members;
  for (archive_entry* entry; archive_read_next_header(in.get(), &entry) == ARCHIVE_OK;) {
    EXPECT_EQ(archive_entry_filetype(entry), static_cast<mode_t>(AE_IFREG));
    EXPECT_EQ(archive_entry_perm(entry), 0444u);
    EXPECT_EQ(archive_entry_mtime(entry), 0);
    EXPECT_EQ(archive_entry_uid(entry), 0);
    EXPECT_EQ(archive_entry_gid(entry), 0);
    const int64_t size = archive_entry_size(entry);
    members.push_back({archive_entry_pathname(entry), DataOf(in.get())});
    EXPECT_EQ(size, static_cast<int64_t>(members.back().data.size()));
  }
  EXPECT_EQ(archive_errno(in.get()), 0) << archive_error_string(in.get());
  return members;
}

std::string WriteWithLibarchive(int format, const std::vector<Member>& members) {
  const std::unique_ptr<archive, decltype(&archive_write_free)> out(archive_write_new(),
                                                                    &archive_write_free);
  archive_write_set_format(out.get(), format);
  archive_write_set_options(out.get(), "hdrcharset=UTF-8");
  std::string bytes(8 << 20, '\0');
  size_t used = 0;
  EXPECT_EQ(archive_write_open_memory(out.get(), bytes.data(), bytes.size(), &used), ARCHIVE_OK);
  for (const Member& member : members) {
    const std::unique_ptr<archive_entry, decltype(&archive_entry_free)> entry(archive_entry_new(),
                                                                              &archive_entry_free);
    archive_entry_set_pathname(entry.get(), member.name.c_str());
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), 0644);
    archive_entry_set_size(entry.get(), static_cast<int64_t>(member.data.size()));
    archive_entry_set_mtime(entry.get(), 1700000000, 123456789);
    EXPECT_EQ(archive_write_header(out.get(), entry.get()), ARCHIVE_OK)
        << member.name << ": " << archive_error_string(out.get());
    EXPECT_EQ(archive_write_data(out.get(), member.data.data(), member.data.size()),
              static_cast<la_ssize_t>(member.data.size()));
  }
  EXPECT_EQ(archive_write_close(out.get()), ARCHIVE_OK);
  bytes.resize(used);
  return bytes;
}

// Names without their extension, of increasing difficulty for readers and writers.
std::vector<std::string> Keys(bool long_ones) {
  std::vector<std::string> keys = {"a", "cat/1", "caf\xc3\xa9/\xe5\xae\xb6", "sp ace"};
  if (!long_ones) return keys;
  Random random(9);
  for (const size_t bytes : {95, 96, 97, 98, 99, 100, 101, 150, 216}) {
    keys.push_back(testing::MakeLongKey(bytes, random));
  }
  return keys;
}

TEST(WebdatasetInterop, LibarchiveReadsWhatWeWrite) {
  for (const std::string_view layout : {"ustar", "pax"}) {
    std::vector<std::string> keys = Keys(true);
    if (layout == "pax") keys.push_back(std::string(240, 'k'));
    std::vector<OwnedSample> samples =
        GenerateSamples({.count = keys.size(), .max_bytes = 70000, .extra_fields = {"txt"}});
    std::vector<Member> expected;
    for (size_t i = 0; i < samples.size(); ++i) {
      samples[i].key = keys[i];
      expected.push_back({keys[i] + ".cls", std::to_string(samples[i].label)});
      expected.push_back({keys[i] + ".jpg", samples[i].fields[0].second});
      expected.push_back({keys[i] + ".txt", samples[i].fields[1].second});
    }
    ScratchFolder scratch;
    absl::StatusOr<std::string> bytes =
        WriteShard(kWebDatasetFormat, {.layout = layout, .image_field = "jpg"}, samples,
                   scratch.File("s.tar"));
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    const std::vector<Member> members = ReadWithLibarchive(*bytes);
    ASSERT_EQ(members.size(), expected.size());
    for (size_t i = 0; i < members.size(); ++i) EXPECT_EQ(members[i], expected[i]);
  }
}

class WebdatasetInteropFormat : public ::testing::TestWithParam<int> {};

TEST_P(WebdatasetInteropFormat, WeReadWhatLibarchiveWrites) {
  // In pax mode libarchive converts names from the locale's encoding.
  ASSERT_NE(setlocale(LC_ALL, "C.UTF-8"), nullptr);
  Random random(11);
  std::vector<Member> members;
  const bool long_names = GetParam() != ARCHIVE_FORMAT_TAR;  // v7 holds 100 bytes
  for (const std::string& key : Keys(long_names)) {
    members.push_back({key + ".cls", std::to_string(random.Below(1000))});
    members.push_back({key + ".jpg", testing::MakeRandomPayload(random.Below(5000), random)});
  }
  if (GetParam() == ARCHIVE_FORMAT_TAR_GNUTAR || GetParam() == ARCHIVE_FORMAT_TAR_PAX_INTERCHANGE) {
    members.push_back({std::string(400, 'k') + ".cls", "5"});
    members.push_back({std::string(400, 'k') + ".jpg", "end"});
  }
  const std::string bytes = WriteWithLibarchive(GetParam(), members);
  const ScanResult scan = ScanBytes(kWebDatasetFormat, bytes);
  EXPECT_EQ(scan.findings.errors(), 0u) << scan.Complaints();
  ASSERT_EQ(scan.records.size() * 2, members.size());
  for (size_t i = 0; i < scan.records.size(); ++i) {
    const FoundRecord& record = scan.records[i];
    EXPECT_EQ(record.key + ".jpg", members[2 * i + 1].name);
    EXPECT_EQ(std::to_string(record.label), members[2 * i].data);
    ASSERT_EQ(record.fields.size(), 1u);
    EXPECT_EQ(bytes.substr(record.fields[0].offset, record.fields[0].length),
              members[2 * i + 1].data);
    EXPECT_EQ(record.offset, i == 0 ? 0 : scan.records[i - 1].offset + scan.records[i - 1].length);
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, WebdatasetInteropFormat,
                         ::testing::Values(ARCHIVE_FORMAT_TAR_USTAR,
                                           ARCHIVE_FORMAT_TAR_PAX_INTERCHANGE,
                                           ARCHIVE_FORMAT_TAR_PAX_RESTRICTED,
                                           ARCHIVE_FORMAT_TAR_GNUTAR, ARCHIVE_FORMAT_TAR));

}  // namespace
}  // namespace shardpack
