#include "formats/formats.h"

#include <sys/stat.h>

#include <cstdio>
#include <fstream>
#include <set>
#include <string>

#include "formats/testing/sample_generator.h"
#include "formats/testing/scratch_folder.h"
#include "formats/testing/test_shard.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using testing::ScratchFolder;

void WriteFile(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

TEST(Formats, EveryRowIsComplete) {
  std::set<std::string_view> names;
  ASSERT_FALSE(AllFormats().empty());
  for (const Format* format : AllFormats()) {
    SCOPED_TRACE(std::string(format->name));
    EXPECT_TRUE(names.insert(format->name).second);
    EXPECT_EQ(FindFormat(format->name), format);
    EXPECT_FALSE(format->doc.empty());
    EXPECT_FALSE(format->layouts.empty());
    EXPECT_NE(format->shard_name, nullptr);
    EXPECT_NE(format->record_bound, nullptr);
    EXPECT_NE(format->sniff, nullptr);
    EXPECT_NE(format->create, nullptr);
    EXPECT_NE(format->scanner, nullptr);
    EXPECT_GT(format->traits.max_record_bytes, 0u);
  }
}

TEST(Formats, UnknownNamesAreNone) {
  EXPECT_EQ(FindFormat(""), nullptr);
  EXPECT_EQ(FindFormat("TFRecord"), nullptr);
  EXPECT_EQ(FindFormat("parquet"), nullptr);
}

// By content, so under any name.
TEST(SniffFormat, KnowsEachFormatsOwnShards) {
  const ScratchFolder scratch;
  for (const Format* format : AllFormats()) {
    const std::string path = scratch.File(std::string(format->name) + ".shard");
    std::string data = path;
    if (!format->traits.data_file.empty()) {
      ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
      data.append("/").append(format->traits.data_file);
    }
    ShardSpec spec;
    if (format->layouts[0].fixed_shape) spec.raw_image = RawImageInfo(8, 8, 3);
    const auto bytes = testing::WriteShard(
        *format, spec, testing::GenerateSamples({.count = 3, .raw_image = spec.raw_image}), data);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    const absl::StatusOr<const Format*> found = SniffFormat(path);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*found, format);
  }
}

TEST(SniffFormat, FallsBackOnTheName) {
  const ScratchFolder scratch;
  for (const Format* format : AllFormats()) {
    if (!format->traits.data_file.empty()) continue;
    const std::string path = scratch.File(format->shard_name("train", 0, 1));
    WriteFile(path, "damaged");
    const absl::StatusOr<const Format*> found = SniffFormat(path);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*found, format);
  }
}

TEST(SniffFormat, OtherFilesAreNone) {
  const ScratchFolder scratch;
  for (const std::string_view bytes :
       {"", "x", "\xff\xd8\xff an image", "plain text, longer than a header"}) {
    const std::string path = scratch.File("file.jpg");
    WriteFile(path, bytes);
    const absl::StatusOr<const Format*> found = SniffFormat(path);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*found, nullptr);
    std::remove(path.c_str());
  }
  const absl::StatusOr<const Format*> folder = SniffFormat(scratch.path());
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(*folder, nullptr);
  // Named like the data file of a format.
  ASSERT_EQ(::mkdir(scratch.File("data.mdb").c_str(), 0700), 0);
  const absl::StatusOr<const Format*> nested = SniffFormat(scratch.path());
  ASSERT_TRUE(nested.ok()) << nested.status();
  EXPECT_EQ(*nested, nullptr);
}

TEST(SniffFormat, WhatCannotBeReadIsAStatus) {
  const ScratchFolder scratch;
  EXPECT_TRUE(absl::IsNotFound(SniffFormat(scratch.File("missing")).status()));
  const std::string fifo = scratch.File("fifo.tfrecord");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(SniffFormat(fifo).status()));
}

}  // namespace
}  // namespace shardpack
