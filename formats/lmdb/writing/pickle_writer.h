// PickleWriter: appends samples to one LMDB shard in the layout pickle.
//
//   auto writer = PickleWriter::Create(staged_file.path(), std::move(environment));
//   absl::Status appended = (*writer)->Append(sample);          // key "0", "1", "2", ...
//   absl::Status finished = (*writer)->Finish();
//
// Samples come in the order of numbers, but "10" sorts before "2": values wait in a spool file
// (beside the shard, gone with the writer) for Finish, which adds them in the order of their keys,
// so that pages are as full as in the other layouts.
//
// Lifetime, thread-safety, errors: as ShardWriter.
// Memory: sixteen bytes a sample.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_LMDB_WRITING_PICKLE_WRITER_H_
#define SHARDPACK_FORMATS_LMDB_WRITING_PICKLE_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/core/shard_writer.h"
#include "formats/io/staged_file.h"
#include "formats/lmdb/writing/lmdb_environment.h"

namespace shardpack {

class PickleWriter : public ShardWriter {
 public:
  // `path` is the shard's file.
  static absl::StatusOr<std::unique_ptr<ShardWriter>> Create(
      const std::string& path, std::unique_ptr<LmdbEnvironment> environment);

  absl::Status Append(const SampleView& sample) override;
  absl::Status Finish() override;

 private:
  PickleWriter(std::unique_ptr<StagedFile> spool, std::unique_ptr<LmdbEnvironment> environment)
      : spool_(std::move(spool)), environment_(std::move(environment)) {}
  absl::Status Put(const std::string& key, std::string_view value);

  std::unique_ptr<StagedFile> spool_;
  std::unique_ptr<LmdbEnvironment> environment_;
  std::vector<uint64_t> ends_;  // of each value in the spool
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_LMDB_WRITING_PICKLE_WRITER_H_
