// IndexFolder: the folder that `pack index` writes to, with its lock, its staged indexes, and the
// steps that turn them into a dataset.
//
//   absl::StatusOr<IndexFolder> folder = IndexFolder::Open("OUT", {.holds_shards = true});
//   absl::StatusOr<FileEntry> index = folder->Stage(0, "train-000000.pidx", bytes);   // each
//   absl::Status published = folder->Publish(manifest);    // indexes first, the manifest last
//
// Readers see no change before Publish; the destructor removes what was staged. Publish replaces
// nothing unless `overwrite` is set, and then only the manifest and the indexes of a dataset that
// was indexed in place. A file whose content is not an index, or not a manifest of pack, is kept,
// whatever its name. No shard is ever written to, moved or removed. A run killed while publishing
// leaves `.pack` behind, with a mark that names its indexes (index_mark.h); the next run replaces
// only those, and no build uses the folder.
//
// Lifetime: holds the lock until destroyed.
// Thread-safety: Stage from any thread, with a distinct number for each call.
// Errors: InvalidArgument for an unsuitable OUT; FailedPrecondition (exit 5) when OUT belongs to
// something else; DataLoss for a damaged manifest there, which `overwrite` replaces if there are
// only indexes beside it; I/O.
// Units: bytes.
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
  bool holds_shards = false;  // OUT is where the shards lie, so it need not be empty
  bool overwrite = false;
  bool fsync = true;
};

// Whether OUT holds an index, and nothing else but a manifest and `.pack`.
absl::StatusOr<bool> HoldsOnlyIndexes(const std::string& out);

class IndexFolder {
 public:
  // If OUT holds an indexed dataset and `overwrite` is off, the folder stays as it is: there is
  // nothing to stage, only manifest() to compare with.
  static absl::StatusOr<IndexFolder> Open(const std::string& out,
                                          const IndexFolderOptions& options);
  IndexFolder(IndexFolder&&) = default;
  IndexFolder& operator=(IndexFolder&&) = delete;
  ~IndexFolder();

  const std::optional<Manifest>& manifest() const { return manifest_; }  // the existing one
  bool writable() const { return lock_.is_open(); }

  absl::StatusOr<FileEntry> Stage(uint32_t number, const std::string& name, std::string_view bytes);
  // Path of a staged index until Publish.
  std::string StagedPath(uint32_t number) const;
  // `manifest` lists the staged indexes: shard `i` has the index with number `i`.
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
  std::unique_ptr<OwnedFolder> folder_;  // opened on out_, once it exists
  IndexFolderOptions options_;
  std::optional<Manifest> manifest_;
  bool damaged_ = false;              // the manifest is damaged; `overwrite` replaces it
  std::vector<std::string> created_;  // folders this run created, outermost first
  File lock_;
  std::unique_ptr<RunStage> stage_;
  std::set<std::string> marked_;  // indexes that this run, or a killed one, has put in OUT
  bool publishing_ = false;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_INDEXING_INDEX_FOLDER_H_
