#include "formats/webdataset/tool_indexes/energon_database.h"

#include <sqlite3.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/testing/scratch_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ScratchFolder;

// The rows of a query, with values joined by spaces.
std::vector<std::string> Query(const std::string& bytes, const std::string& query) {
  const ScratchFolder scratch;
  const std::string path = scratch.File("copy.sqlite");
  std::ofstream(path, std::ios::binary) << bytes;
  std::vector<std::string> rows;
  sqlite3* database = nullptr;
  // The way Energon opens it.
  const std::string uri = absl::StrCat("file:", path, "?mode=ro&immutable=1");
  EXPECT_EQ(
      ::sqlite3_open_v2(uri.c_str(), &database, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr),
      SQLITE_OK);
  const auto add = [](void* into, int columns, char** values, char**) {
    std::string row;
    for (int i = 0; i < columns; ++i) {
      absl::StrAppend(&row, i == 0 ? "" : " ", values[i] == nullptr ? "NULL" : values[i]);
    }
    static_cast<std::vector<std::string>*>(into)->push_back(row);
    return 0;
  };
  EXPECT_EQ(::sqlite3_exec(database, query.c_str(), add, &rows, nullptr), SQLITE_OK)
      << ::sqlite3_errmsg(database);
  ::sqlite3_close(database);
  return rows;
}

absl::StatusOr<std::string> MakeTwo(const std::string& path) {
  auto database = EnergonDatabase::Create(path);
  if (!database.ok()) return database.status();
  EXPECT_TRUE((*database)->AddPart({.shard = 1, .sample = 0}, "jpg", 512, 0).ok());
  EXPECT_TRUE((*database)->AddSample({.shard = 1, .sample = 0}, "z/1", 0, 512).ok());
  EXPECT_TRUE((*database)->AddSample({.shard = 1, .sample = 1}, "caf\xc3\xa9", 512, 1 << 20).ok());
  return (*database)->Finish();
}

TEST(EnergonDatabase, RowsAndIndexes) {
  const ScratchFolder scratch;
  const auto bytes = MakeTwo(scratch.File("x.sqlite"));
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_THAT(Query(*bytes, "SELECT * FROM samples ORDER BY sample_index"),
              ElementsAre("1 z/1 0 0 512", "1 caf\xc3\xa9 1 512 1048576"));
  EXPECT_THAT(Query(*bytes, "SELECT * FROM sample_parts"), ElementsAre("1 0 jpg 512 0"));
  EXPECT_THAT(Query(*bytes, "SELECT name FROM sqlite_master WHERE type = 'index' ORDER BY name"),
              ElementsAre("idx_sample_parts_full", "idx_sample_parts_seq",
                          "idx_samples_by_tar_and_idx", "sqlite_autoindex_samples_1"));
  EXPECT_THAT(Query(*bytes, "PRAGMA integrity_check"), ElementsAre("ok"));
  // Bytes 18 and 19 of the header: 1 is the rollback journal, 2 the write-ahead log.
  EXPECT_EQ(bytes->substr(18, 2), "\1\1");
}

TEST(EnergonDatabase, TheSameRowsGiveTheSameBytes) {
  const ScratchFolder scratch;
  EXPECT_EQ(*MakeTwo(scratch.File("a.sqlite")), *MakeTwo(scratch.File("b.sqlite")));
}

TEST(EnergonDatabase, LeavesNoFile) {
  const ScratchFolder scratch;
  // Left by a killed run. A link is not followed.
  std::ofstream(scratch.File("victim")) << "precious";
  ASSERT_EQ(::symlink(scratch.File("victim").c_str(), scratch.File("x.sqlite").c_str()), 0);
  ASSERT_TRUE(MakeTwo(scratch.File("x.sqlite")).ok());
  EXPECT_THAT(scratch.Names(), ElementsAre("victim"));
  std::string kept;
  std::ifstream(scratch.File("victim")) >> kept;
  EXPECT_EQ(kept, "precious");
  { ASSERT_TRUE(EnergonDatabase::Create(scratch.File("unfinished.sqlite")).ok()); }
  EXPECT_THAT(scratch.Names(), ElementsAre("victim"));
}

TEST(EnergonDatabase, RefusesKeysThatEnergonRefuses) {
  const ScratchFolder scratch;
  auto database = EnergonDatabase::Create(scratch.File("x.sqlite"));
  ASSERT_TRUE(database.ok());
  ASSERT_TRUE((*database)->AddSample({.shard = 0, .sample = 0}, "a", 0, 1).ok());
  const absl::Status twice = (*database)->AddSample({.shard = 1, .sample = 0}, "a", 0, 1);
  EXPECT_TRUE(absl::IsInvalidArgument(twice));
  EXPECT_THAT(std::string(twice.message()), HasSubstr("\"a\" comes twice"));
  const absl::Status latin = (*database)->AddSample({.shard = 1, .sample = 0}, "caf\xe9", 0, 1);
  EXPECT_THAT(std::string(latin.message()), HasSubstr("\"caf\\xe9\" is not UTF-8"));
  EXPECT_TRUE(
      absl::IsInvalidArgument((*database)->AddPart({.shard = 0, .sample = 0}, "\xff", 0, 1)));
  // Refused rows leave nothing in the database.
  EXPECT_THAT(Query(*(*database)->Finish(), "SELECT sample_key FROM samples"), ElementsAre("a"));
}

TEST(EnergonDatabase, NothingAfterFinish) {
  const ScratchFolder scratch;
  auto database = EnergonDatabase::Create(scratch.File("x.sqlite"));
  ASSERT_TRUE(database.ok() && (*database)->Finish().ok());
  EXPECT_FALSE((*database)->AddSample({.shard = 0, .sample = 0}, "a", 0, 1).ok());
  EXPECT_FALSE((*database)->AddPart({.shard = 0, .sample = 0}, "jpg", 0, 1).ok());
  EXPECT_FALSE((*database)->Finish().ok());
  EXPECT_TRUE(absl::IsNotFound(EnergonDatabase::Create(scratch.File("none/x.sqlite")).status()));
}

}  // namespace
}  // namespace shardpack
