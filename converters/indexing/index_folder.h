// IndexFolder: the folder that `pack index` writes to: its lock, its staged indexes, and the steps
// that make them a dataset.
//
//   absl::StatusOr<IndexFolder> folder = IndexFolder::Open("OUT", {.holds_shards = true});
//   absl::StatusOr<FileEntry> index = folder->Stage(0, "train-000000.pidx", bytes);   // each
//   absl::Status published = folder->Publish(manifest);    // indexes first, the manifest last
//
// Until Publish nothing has changed that a reader sees, and destruction removes what was staged.
// Publish replaces nothing, but with `overwrite` the manifest and the indexes of an adopted
// dataset; what is not an index, or not a manifest of pack, by its content is kept, whatever its
// name; no shard is ever written to, moved or removed. A run that was killed while publishing
// leaves `.pack` behind, with a mark that names its indexes (index_mark.h); the next one replaces
// just those, and no build takes the folder.
//
// Lifetime: holds the lock until destroyed.
// Thread-safety: Stage from any thread, with a number of its own.
// Errors: InvalidArgument for an OUT that cannot be one; FailedPrecondition (exit 5) when OUT
// belongs to something else; DataLoss for a damaged manifest there, which `overwrite` replaces
// where there are only indexes beside it; I/O. Units: bytes.
#ifndef SHARDPACK_CONVERTERS_INDEXING_INDEX_FOLDER_H_
#define SHARDPACK_CONVERTERS_INDEXING_INDEX_FOLDER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/publishing/owned_folder.h"
#include "converters/publishing/run_stage.h"
#include "formats/core/manifest.h"
#include "formats/io/file.h"
#include "formats/io/staged_file.h"

namespace shardpack {

struct IndexFolderOptions {
  bool holds_shards = false;  // OUT is where shards lie, so that it need not be empty
  bool overwrite = false;
  bool fsync = true;
};

class IndexFolder {
 public:
  // With an adopted dataset in OUT and no `overwrite` the folder stays as it is: there is then
  // nothing to stage, but manifest() to compare with.
  static absl::StatusOr<IndexFolder> Open(const std::string& out,
                                          const IndexFolderOptions& options);
  IndexFolder(IndexFolder&&) = default;
  IndexFolder& operator=(IndexFolder&&) = delete;
  ~IndexFolder();

  const std::optional<Manifest>& manifest() const { return manifest_; }  // of what is there
  bool writable() const { return lock_.is_open(); }

  absl::StatusOr<FileEntry> Stage(uint32_t number, const std::string& name, std::string_view bytes);
  // Where a staged index lies until Publish.
  std::string StagedPath(uint32_t number) const;
  // `manifest` lists the staged indexes, shard `i` the one of number `i`.
  absl::Status Publish(const Manifest& manifest);

 private:
  IndexFolder() = default;
  absl::Status ReadManifest();
  absl::Status TakeDamage(const absl::Status& damage);
  absl::Status Begin();
  absl::Status BeginLocked();
  absl::Status CheckIsOurs();
  absl::Status CheckPackEntries() const;
  absl::Status ReadMark();
  absl::Status WriteMark() const;
  absl::Status CheckPlaceOf(const ManifestShard& shard, uint32_t number) const;
  absl::Status RemoveOld(const Manifest& manifest);
  absl::Status RemovePack() const;
  absl::StatusOr<std::unique_ptr<StagedFile>> StageBytes(const std::string& path,
                                                         std::string_view bytes) const;
  absl::Status WriteStaged(const std::string& name, std::string_view bytes) const;
  absl::Status Sync() const;

  std::string out_;
  std::unique_ptr<OwnedFolder> folder_;  // of out_, once it is there
  IndexFolderOptions options_;
  std::optional<Manifest> manifest_;
  bool damaged_ = false;              // the manifest, which `overwrite` replaces
  std::vector<std::string> created_;  // folders that were not there, outermost first
  File lock_;
  std::unique_ptr<RunStage> stage_;
  std::set<std::string> marked_;  // indexes in OUT that this run, or a killed one, has put there
  bool publishing_ = false;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_INDEXING_INDEX_FOLDER_H_
