#include "converters/publishing/staged_writes.h"

#include <memory>

#include "absl/status/statusor.h"
#include "converters/publishing/pack_folder.h"
#include "converters/publishing/pack_lock.h"
#include "formats/io/status_macros.h"

namespace shardpack {

// A link is safe to repeat where a reply was lost, and leaves the staged file until all is noted.
absl::Status Place(StagedFile& staged, const std::string& path, bool shares) {
  return shares ? staged.Link(path) : staged.Publish(path);
}

absl::Status CheckOursInPack(const OwnedFolder& folder, std::string_view name) {
  RETURN_IF_ERROR(CheckPackFolder(folder.path()));  // nor is another program's link replaced
  return CheckMayWrite(folder, name);
}

absl::Status ReplaceInPack(const OwnedFolder& folder, const RunStage& stage, std::string_view name,
                           std::string_view bytes, bool sync) {
  RETURN_IF_ERROR(CheckOursInPack(folder, name));
  ASSIGN_OR_RETURN(const std::unique_ptr<StagedFile> staged,
                   stage.StageWhole(kOfTheRun, bytes, sync));
  return folder.Replace(stage.NameOf(kOfTheRun), name);
}

}  // namespace shardpack
