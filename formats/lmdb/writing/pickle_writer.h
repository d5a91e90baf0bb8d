// PickleWriter: appends samples to one LMDB shard in the pickle layout.
//
//   auto writer = PickleWriter::Create(staged_file.path(), std::move(environment));
//   absl::Status appended = (*writer)->Append(sample);          // key "0", "1", "2", ...
//   absl::Status finished = (*writer)->Finish();
//
// Samples come in numeric order, but "10" sorts before "2". Values therefore wait in a spool file
// (next to the shard, removed with the writer) until Finish adds them in key order. This keeps
// pages as full as in the other layouts.
//
// Lifetime, thread-safety, errors: as ShardWriter.
// Memory: 16 bytes per sample.
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
  std::vector<uint64_t> ends_;  // end of each value in the spool
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_LMDB_WRITING_PICKLE_WRITER_H_
