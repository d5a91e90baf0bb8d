#include "formats/webdataset/tool_indexes/energon_database.h"

#include <sqlite3.h>

#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/escape.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr uint64_t kMaxDatabaseBytes = uint64_t{64} << 30;

// Sets explicitly what a distribution may have compiled in differently. The file needs no journal:
// it is useless until it is complete.
constexpr char kPragmas[] =
    "PRAGMA page_size = 4096; PRAGMA encoding = 'UTF-8'; PRAGMA auto_vacuum = NONE;"
    "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;"
    "PRAGMA temp_store = MEMORY; PRAGMA cache_size = -65536;";

constexpr char kTables[] =
    "CREATE TABLE samples (tar_file_id INTEGER NOT NULL, sample_key TEXT NOT NULL UNIQUE,"
    " sample_index INTEGER NOT NULL, byte_offset INTEGER, byte_size INTEGER);"
    "CREATE TABLE sample_parts (tar_file_id INTEGER, sample_index INTEGER, part_name TEXT,"
    " content_byte_offset INTEGER, content_byte_size INTEGER);"
    "BEGIN;";

constexpr char kIndexes[] =
    "CREATE INDEX idx_samples_by_tar_and_idx ON samples(tar_file_id, sample_index);"
    "CREATE INDEX idx_sample_parts_seq"
    " ON sample_parts(tar_file_id, sample_index, content_byte_offset);"
    "CREATE INDEX idx_sample_parts_full ON sample_parts(tar_file_id, sample_index, part_name,"
    " content_byte_offset, content_byte_size);"
    "COMMIT;";

absl::Status Refuse(std::string_view what, std::string_view name, std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("Energon: ", std::string(what), " \"",
                                                 EscapeForTerminal(name), "\" ", std::string(why),
                                                 "; use --key index"));
}

void BindInteger(sqlite3_stmt* statement, int column, uint64_t value) {
  ::sqlite3_bind_int64(statement, column, static_cast<sqlite3_int64>(value));
}

void BindText(sqlite3_stmt* statement, int column, std::string_view text) {
  // The caller owns `text` and keeps it until the row is inserted.
  ::sqlite3_bind_text64(statement, column, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

}  // namespace

absl::StatusOr<std::unique_ptr<EnergonDatabase>> EnergonDatabase::Create(const std::string& path) {
  RETURN_IF_ERROR(RemoveFile(path));
  // Create the file here: SQLite would open an existing one, and follow a link.
  ASSIGN_OR_RETURN(File file, File::CreateExclusive(path));
  std::unique_ptr<EnergonDatabase> made(new EnergonDatabase(path));
  made->created_ = true;
  const int opened = ::sqlite3_open_v2(path.c_str(), &made->database_, SQLITE_OPEN_READWRITE,
                                       /*zVfs=*/nullptr);
  if (opened != SQLITE_OK) return made->Error("open");
  absl::Status status = made->Run(kPragmas);
  if (status.ok()) status = made->Run(kTables);
  if (status.ok()) {
    status = made->Prepare("INSERT INTO samples VALUES (?1, ?2, ?3, ?4, ?5)", &made->samples_);
  }
  if (status.ok()) {
    status = made->Prepare("INSERT INTO sample_parts VALUES (?1, ?2, ?3, ?4, ?5)", &made->parts_);
  }
  if (!status.ok()) return status;
  return made;
}

EnergonDatabase::~EnergonDatabase() {
  Close();
  if (created_) (void)RemoveFile(path_);
}

void EnergonDatabase::Close() {
  for (sqlite3_stmt** statement : {&samples_, &parts_}) {
    ::sqlite3_finalize(*statement);
    *statement = nullptr;
  }
  ::sqlite3_close(database_);
  database_ = nullptr;
}

absl::Status EnergonDatabase::Error(std::string_view operation) const {
  const int code = database_ == nullptr ? SQLITE_NOMEM : ::sqlite3_extended_errcode(database_);
  const std::string text = absl::StrCat(
      std::string(operation), " ", EscapeForTerminal(path_),
      ": SQLite: ", database_ == nullptr ? "out of memory" : ::sqlite3_errmsg(database_));
  if ((code & 0xff) == SQLITE_FULL || (code & 0xff) == SQLITE_NOMEM) {
    return absl::ResourceExhaustedError(text);
  }
  return absl::UnavailableError(text);
}

absl::Status EnergonDatabase::Run(const char* statements) {
  const int done = ::sqlite3_exec(database_, statements, nullptr, nullptr, nullptr);
  return done == SQLITE_OK ? absl::OkStatus() : Error("write");
}

absl::Status EnergonDatabase::Prepare(const char* statement, sqlite3_stmt** into) {
  const int done = ::sqlite3_prepare_v3(database_, statement, -1, SQLITE_PREPARE_PERSISTENT, into,
                                        /*pzTail=*/nullptr);
  return done == SQLITE_OK ? absl::OkStatus() : Error("write");
}

absl::Status EnergonDatabase::Insert(sqlite3_stmt* statement) {
  const int done = ::sqlite3_step(statement);
  absl::Status status;
  if (done == SQLITE_CONSTRAINT) {
    status = absl::AlreadyExistsError("a row like it is there");
  } else if (done != SQLITE_DONE) {
    status = Error("write");
  }
  ::sqlite3_reset(statement);
  return status;
}

absl::Status EnergonDatabase::AddSample(ShardPosition position, std::string_view key,
                                        uint64_t offset, uint64_t size_bytes) {
  if (samples_ == nullptr) return absl::FailedPreconditionError("AddSample after Finish");
  if (!IsUtf8(key)) return Refuse("key", key, "is not UTF-8");
  BindInteger(samples_, 1, position.shard);
  BindText(samples_, 2, key);
  BindInteger(samples_, 3, position.sample);
  BindInteger(samples_, 4, offset);
  BindInteger(samples_, 5, size_bytes);
  absl::Status inserted = Insert(samples_);
  if (absl::IsAlreadyExists(inserted)) return Refuse("key", key, "comes twice in this dataset");
  return inserted;
}

absl::Status EnergonDatabase::AddPart(ShardPosition position, std::string_view name,
                                      uint64_t offset, uint64_t size_bytes) {
  if (parts_ == nullptr) return absl::FailedPreconditionError("AddPart after Finish");
  if (!IsUtf8(name)) return Refuse("field", name, "is not UTF-8");
  BindInteger(parts_, 1, position.shard);
  BindInteger(parts_, 2, position.sample);
  BindText(parts_, 3, name);
  BindInteger(parts_, 4, offset);
  BindInteger(parts_, 5, size_bytes);
  return Insert(parts_);
}

absl::StatusOr<std::string> EnergonDatabase::Finish() {
  if (database_ == nullptr) return absl::FailedPreconditionError("Finish was called before");
  RETURN_IF_ERROR(Run(kIndexes));
  Close();
  return ReadWholeFile(path_, kMaxDatabaseBytes);
}

}  // namespace shardpack
