#include "formats/lmdb/writing/lmdb_environment.h"

#include <errno.h>
#include <lmdb.h>
#include <sys/statvfs.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"
#include "formats/lmdb/lmdb_layout.h"
#include "formats/lmdb/map_size_bound.h"

namespace shardpack {
namespace {

// A transaction ends once its entries have this many bytes. The value decides the placement of
// pages, so it is fixed. It is small enough that a batch's pages are written while they are in the
// cache and that many shards can be written at once, and large enough that the pages which a commit
// abandons (one path of the tree) do not matter.
constexpr uint64_t kBatchBytes = 4 << 20;
// What a commit needs in addition to its entries: the path that it copies, and the free list.
constexpr uint64_t kCommitBytes = 1 << 20;

// liblmdb reports a short write, the first sign of a full disk, as EIO.
bool DiskIsFull(const std::string& path, uint64_t wanted_bytes) {
  struct statvfs facts;
  if (::statvfs(path.c_str(), &facts) != 0) return false;
  return uint64_t{facts.f_bavail} * facts.f_frsize < wanted_bytes;
}

}  // namespace

LmdbEnvironment::LmdbEnvironment(std::string path, uint64_t map_bytes)
    : path_(std::move(path)), map_bytes_(map_bytes) {}

LmdbEnvironment::~LmdbEnvironment() {
  if (cursor_ != nullptr) mdb_cursor_close(cursor_);
  if (transaction_ != nullptr) mdb_txn_abort(transaction_);
  if (environment_ != nullptr) mdb_env_close(environment_);
}

absl::StatusOr<std::unique_ptr<LmdbEnvironment>> LmdbEnvironment::Create(const std::string& path,
                                                                         uint64_t map_bytes) {
  auto created = std::unique_ptr<LmdbEnvironment>(new LmdbEnvironment(path, map_bytes));
  RETURN_IF_ERROR(created->Open());
  return created;
}

absl::Status LmdbEnvironment::Failed(std::string_view operation, int error) {
  // liblmdb's own errors are negative.
  if (error < 0) {
    failed_ =
        absl::InternalError(absl::StrCat("lmdb: ", std::string(operation), " ",
                                         EscapeForTerminal(path_), ": ", mdb_strerror(error)));
  } else {
    if (error == EIO && DiskIsFull(path_, pending_bytes_ + kCommitBytes)) error = ENOSPC;
    failed_ = IoStatus(operation, path_, error);
  }
  return failed_;
}

absl::Status LmdbEnvironment::Open() {
  int error = mdb_env_create(&environment_);
  if (error == 0) error = mdb_env_set_mapsize(environment_, map_bytes_);
  // No lock: one transaction may begin on one thread and end on another. No sync: the caller syncs
  // once. No writable map: the file would be as large as the map.
  constexpr unsigned kFlags = MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOSYNC | MDB_NOMETASYNC;
  if (error == 0) error = mdb_env_open(environment_, path_.c_str(), kFlags, 0666);
  return error == 0 ? absl::OkStatus() : Failed("create", error);
}

absl::Status LmdbEnvironment::Begin() {
  int error = mdb_txn_begin(environment_, nullptr, 0, &transaction_);
  if (error == 0) error = mdb_dbi_open(transaction_, nullptr, 0, &database_);
  if (error == 0) error = mdb_cursor_open(transaction_, database_, &cursor_);
  return error == 0 ? absl::OkStatus() : Failed("write", error);
}

absl::Status LmdbEnvironment::Commit() {
  if (transaction_ == nullptr) return absl::OkStatus();
  mdb_cursor_close(std::exchange(cursor_, nullptr));
  // The transaction is gone whether the commit succeeds or not.
  int error = mdb_txn_commit(std::exchange(transaction_, nullptr));
  MDB_envinfo info = {};
  MDB_stat stat = {};
  if (error == 0) error = mdb_env_info(environment_, &info);
  if (error == 0) error = mdb_env_stat(environment_, &stat);
  if (error != 0) return Failed("write", error);
  committed_bytes_ = (info.me_last_pgno + 1) * stat.ms_psize;
  pending_bytes_ = 0;
  return absl::OkStatus();
}

// Grows the map before each entry as needed, so that it is never full in the middle of a
// transaction.
absl::Status LmdbEnvironment::MakeRoom(uint64_t entry_bytes) {
  const uint64_t wanted = committed_bytes_ + pending_bytes_ + entry_bytes + kCommitBytes;
  const bool grow = wanted > map_bytes_;
  if (grow || pending_bytes_ >= kBatchBytes) {
    RETURN_IF_ERROR(Commit());
  }
  if (grow) {
    while (map_bytes_ < wanted) map_bytes_ += map_bytes_ / 4 / kMapUnitBytes * kMapUnitBytes;
    const int error = mdb_env_set_mapsize(environment_, map_bytes_);
    if (error != 0) return Failed("grow the map of", error);
  }
  return transaction_ == nullptr ? Begin() : absl::OkStatus();
}

absl::StatusOr<std::span<std::byte>> LmdbEnvironment::Reserve(std::string_view key,
                                                              uint64_t value_bytes) {
  if (!failed_.ok()) return failed_;
  if (key.empty() || key.size() > kMaxLmdbKeyBytes) {
    return absl::InvalidArgumentError(absl::StrCat("key ", EscapeForTerminal(key), " has ",
                                                   key.size(), " bytes, expected 1 to ",
                                                   kMaxLmdbKeyBytes, " in an LMDB environment"));
  }
  if (key <= last_key_) {
    return absl::InvalidArgumentError(
        absl::StrCat("key ", EscapeForTerminal(key), " does not follow ",
                     EscapeForTerminal(last_key_), "; LMDB entries are written in key order"));
  }
  const uint64_t entry_bytes = EntryBound(key.size(), value_bytes, LmdbPageBytes());
  RETURN_IF_ERROR(MakeRoom(entry_bytes));
  MDB_val lmdb_key = {key.size(), const_cast<char*>(key.data())};
  MDB_val value = {value_bytes, nullptr};
  const int error = mdb_cursor_put(cursor_, &lmdb_key, &value, MDB_APPEND | MDB_RESERVE);
  if (error != 0) return Failed("write", error);
  pending_bytes_ += entry_bytes;
  last_key_.assign(key);
  return std::span(static_cast<std::byte*>(value.mv_data), value_bytes);
}

absl::Status LmdbEnvironment::Close() {
  if (!failed_.ok()) return failed_;
  RETURN_IF_ERROR(Commit());
  mdb_env_close(std::exchange(environment_, nullptr));
  failed_ = absl::FailedPreconditionError("the environment is closed");
  return absl::OkStatus();
}

std::string LmdbLibrary() {
  int major = 0, minor = 0, patch = 0;
  mdb_version(&major, &minor, &patch);
  return absl::StrCat("liblmdb ", major, ".", minor, ".", patch);
}

}  // namespace shardpack
