// LmdbEnvironment: a new LMDB environment in one file, filled by liblmdb in ascending key order.
//
//   auto environment = LmdbEnvironment::Create(staged.path(), map_bytes);
//   absl::StatusOr<std::span<std::byte>> value =
//       (*environment)->Reserve("00000000_cat/1.jpg", jpeg.size());
//   std::memcpy(value->data(), jpeg.data(), jpeg.size());
//   absl::Status closed = (*environment)->Close();
//
// The bytes of the file depend only on the requested map size and the entries: commits and map
// growth are triggered by byte counts.
//
// Lifetime: fill the span from Reserve before the next call. If destroyed before Close, discard the
// file.
// Thread-safety: one caller at a time, from any thread (there is no lock file).
// Errors: as IoStatus; InvalidArgument for a key that liblmdb refuses, which changes nothing; any
// other error is final. Nothing is synced: the caller syncs.
// Memory: one batch.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_LMDB_WRITING_LMDB_ENVIRONMENT_H_
#define SHARDPACK_FORMATS_LMDB_WRITING_LMDB_ENVIRONMENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct MDB_env;
struct MDB_txn;
struct MDB_cursor;

namespace shardpack {

class LmdbEnvironment {
 public:
  // `path` is an empty file.
  static absl::StatusOr<std::unique_ptr<LmdbEnvironment>> Create(const std::string& path,
                                                                 uint64_t map_bytes);
  ~LmdbEnvironment();
  LmdbEnvironment(const LmdbEnvironment&) = delete;
  LmdbEnvironment& operator=(const LmdbEnvironment&) = delete;

  // Adds an entry whose key is above all previous keys; the caller fills in the value.
  absl::StatusOr<std::span<std::byte>> Reserve(std::string_view key, uint64_t value_bytes);
  // When it returns, the kernel has all bytes of the file. No calls are allowed after it.
  absl::Status Close();

 private:
  LmdbEnvironment(std::string path, uint64_t map_bytes);
  absl::Status Open();
  absl::Status Begin();
  absl::Status Commit();
  absl::Status MakeRoom(uint64_t entry_bytes);
  absl::Status Failed(std::string_view operation, int error);

  const std::string path_;
  uint64_t map_bytes_;
  MDB_env* environment_ = nullptr;
  MDB_txn* transaction_ = nullptr;
  MDB_cursor* cursor_ = nullptr;
  unsigned database_ = 0;
  uint64_t committed_bytes_ = 0;  // size of the file after the last commit
  uint64_t pending_bytes_ = 0;    // upper bound for what the next commit adds
  std::string last_key_;
  absl::Status failed_;
};

// "liblmdb 0.9.24"
std::string LmdbLibrary();

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_LMDB_WRITING_LMDB_ENVIRONMENT_H_
