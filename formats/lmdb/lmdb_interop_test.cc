// liblmdb's own tools and py-lmdb read what we write.
#include <stdlib.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/lmdb/lmdb_format.h"
#include "formats/testing/sample_generator.h"
#include "formats/testing/scratch_folder.h"
#include "formats/testing/test_shard.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using testing::GenerateSamples;
using testing::OwnedSample;
using testing::ScanBytes;
using testing::ScratchFolder;
using testing::WriteShard;

// Returns the command's output; the test fails if the command does.
std::string RunTool(const std::string& command) {
  std::string out;
  FILE* pipe = ::popen(command.c_str(), "r");
  char buffer[4096];
  for (size_t got; (got = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0;)
    out.append(buffer, got);
  EXPECT_EQ(::pclose(pipe), 0) << command << "\n" << out;
  return out;
}

// Opens the shard as a folder, like most readers do; CPython unpickles the pairs.
constexpr char kReader[] = R"py(
import lmdb, pickle, sys
layout, path = sys.argv[1:]
env = lmdb.open(path, readonly=True, lock=False)
def varint(v, at):
  n = shift = 0
  while True:
    b = v[at]; at += 1; n |= (b & 127) << shift; shift += 7
    if b < 128: return n, at
def datum(v):
  assert v[0] == 0x22
  n, at = varint(v, 1)
  image = v[at:at + n]; at += n
  assert v[at] == 0x28
  label, at = varint(v, at + 1)
  assert v[at:] == b'\x38\x01', v[at:]
  return image, label - (1 << 64) if label >> 63 else label
with env.begin() as txn:
  print(env.stat()['entries'])
  if layout == 'pickle':
    keys = pickle.loads(txn.get(b'__keys__'))
    assert pickle.loads(txn.get(b'__len__')) == len(keys) == env.stat()['entries'] - 2
    rows = [(k,) + pickle.loads(txn.get(k)) for k in keys]
  elif layout == 'caffe':
    rows = [(k,) + datum(v) for k, v in txn.cursor()]
  else:
    rows = [(k, v, -1) for k, v in txn.cursor()]
  for key, image, label in rows: print(key.decode(), label, image.hex())
)py";

class Interop : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    samples_ = GenerateSamples({.count = 300, .max_bytes = 6000});
    folder_ = scratch_.File("shard.lmdb");
    ASSERT_TRUE(MakeDirectory(folder_).ok());
    ASSERT_TRUE(
        WriteShard(kLmdbFormat, {.layout = GetParam()}, samples_, folder_ + "/data.mdb").ok());
  }
  std::string KeyOf(size_t i) const {
    const std::string_view layout = GetParam();
    if (layout == "raw") return samples_[i].key;
    if (layout == "pickle") return absl::StrCat(i);
    return absl::StrFormat("%08d_%s", i, samples_[i].source_path);
  }

  ScratchFolder scratch_;
  std::vector<OwnedSample> samples_;
  std::string folder_;
};

std::string Hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) absl::StrAppendFormat(&out, "%02x", static_cast<unsigned char>(c));
  return out;
}

TEST_P(Interop, PyLmdb) {
  const std::string script = scratch_.File("reader.py");
  FILE* file = std::fopen(script.c_str(), "w");
  std::fputs(kReader, file);
  std::fclose(file);
  const bool pickle = std::string_view(GetParam()) == "pickle";
  const bool raw = std::string_view(GetParam()) == "raw";
  std::string expected = absl::StrCat(samples_.size() + (pickle ? 2 : 0), "\n");
  for (size_t i = 0; i < samples_.size(); ++i) {
    absl::StrAppend(&expected, KeyOf(i), " ", raw ? -1 : samples_[i].label, " ",
                    Hex(samples_[i].fields[0].second), "\n");
  }
  EXPECT_EQ(
      RunTool(absl::StrCat("/usr/bin/python3 ", script, " ", GetParam(), " ", folder_, " 2>&1")),
      expected);
}

// A compacted copy has the same entries, and our scanner finds the same records in it.
TEST_P(Interop, MdbTools) {
  const std::string copy = scratch_.File("copy");
  ASSERT_TRUE(MakeDirectory(copy).ok());
  const size_t entries = samples_.size() + (std::string_view(GetParam()) == "pickle" ? 2 : 0);
  const std::string stat = RunTool(absl::StrCat("mdb_stat -e -f ", folder_, " 2>&1"));
  EXPECT_NE(stat.find(absl::StrCat("Entries: ", entries, "\n")), stat.npos) << stat;
  RunTool(absl::StrCat("mdb_copy -c ", folder_, " ", copy, " 2>&1"));
  const std::string dump = RunTool(absl::StrCat("mdb_dump ", folder_, " | grep -v mapsize"));
  EXPECT_GT(dump.size(), 300u * 100);
  EXPECT_EQ(RunTool(absl::StrCat("mdb_dump ", copy, " | grep -v mapsize")), dump);
  const auto ours = ReadWholeFile(folder_ + "/data.mdb", 100 << 20);
  const auto theirs = ReadWholeFile(copy + "/data.mdb", 100 << 20);
  ASSERT_TRUE(ours.ok() && theirs.ok());
  const testing::ScanResult a = ScanBytes(kLmdbFormat, *ours), b = ScanBytes(kLmdbFormat, *theirs);
  EXPECT_EQ(b.Complaints(), "");
  ASSERT_EQ(a.records.size(), b.records.size());
  for (size_t i = 0; i < a.records.size(); ++i) {
    EXPECT_EQ(a.records[i].fields[0].hash, b.records[i].fields[0].hash);
    EXPECT_EQ(a.records[i].label, b.records[i].label);
  }
}

// Loading a dump gives a different tree.
TEST_P(Interop, MdbLoad) {
  const std::string loaded = scratch_.File("loaded.mdb");
  RunTool(absl::StrCat("mdb_dump ", folder_, " | mdb_load -n ", loaded, " 2>&1"));
  const auto bytes = ReadWholeFile(loaded, 100 << 20);
  ASSERT_TRUE(bytes.ok());
  const testing::ScanResult scan = ScanBytes(kLmdbFormat, *bytes);
  EXPECT_EQ(scan.Complaints(), "");
  ASSERT_EQ(scan.records.size(), samples_.size());
  for (size_t i = 0; i < samples_.size(); ++i) {
    EXPECT_EQ(scan.records[i].fields[0].hash, Xxh3_64(AsBytes(samples_[i].fields[0].second)));
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, Interop, ::testing::Values("caffe", "raw", "pickle"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace shardpack
