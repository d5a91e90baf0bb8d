// EnergonDatabase: the table (.nv-meta/index.sqlite) in which Energon looks up samples and their
// parts.
//
//   auto database = EnergonDatabase::Create("scratch/x.sqlite");
//   (*database)->AddPart({.shard = 0, .sample = 0}, "jpg", 512, 1041);
//   (*database)->AddSample({.shard = 0, .sample = 0}, "cat/1", 0, 2048);
//   absl::StatusOr<std::string> bytes = (*database)->Finish();
//
// It is built in a file, so that memory stays bounded until Finish reads it: about 250 bytes per
// sample with two parts. The bytes depend only on the rows, their order and the version of SQLite,
// which is stored in the header. There is no write-ahead log: readers open the file as immutable.
//
// Lifetime: the destructor removes the file.
// Thread-safety: one caller at a time.
// Errors: InvalidArgument for a key that is not UTF-8 or is not unique in the dataset (Energon
// requires both); else SQLite's errors, with the path. A file left by a killed run is replaced.
// Units: bytes from the start of the shard.
// Source: NVIDIA/Megatron-Energon, src/megatron/energon/flavors/webdataset/indexing.py;
// https://www.sqlite.org/fileformat2.html.
#ifndef SHARDPACK_FORMATS_WEBDATASET_TOOL_INDEXES_ENERGON_DATABASE_H_
#define SHARDPACK_FORMATS_WEBDATASET_TOOL_INDEXES_ENERGON_DATABASE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct sqlite3;
struct sqlite3_stmt;

namespace shardpack {

class EnergonDatabase {
 public:
  // The index of a shard, and of a sample within it, from 0.
  struct ShardPosition {
    uint64_t shard = 0, sample = 0;
  };

  static absl::StatusOr<std::unique_ptr<EnergonDatabase>> Create(const std::string& path);
  ~EnergonDatabase();
  EnergonDatabase(const EnergonDatabase&) = delete;
  EnergonDatabase& operator=(const EnergonDatabase&) = delete;

  absl::Status AddSample(ShardPosition position, std::string_view key, uint64_t offset,
                         uint64_t size_bytes);
  absl::Status AddPart(ShardPosition position, std::string_view name, uint64_t offset,
                       uint64_t size_bytes);
  // Creates the indexes and returns the file's bytes. Nothing can be added afterwards.
  absl::StatusOr<std::string> Finish();

 private:
  explicit EnergonDatabase(std::string path) : path_(std::move(path)) {}
  absl::Status Run(const char* statements);
  absl::Status Prepare(const char* statement, sqlite3_stmt** into);
  absl::Status Insert(sqlite3_stmt* statement);
  absl::Status Error(std::string_view operation) const;
  void Close();

  const std::string path_;
  bool created_ = false;
  sqlite3* database_ = nullptr;
  sqlite3_stmt* samples_ = nullptr;
  sqlite3_stmt* parts_ = nullptr;
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_WEBDATASET_TOOL_INDEXES_ENERGON_DATABASE_H_
