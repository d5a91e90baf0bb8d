#include "converters/sources/indexed_shards.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/core/manifest.h"
#include "formats/io/file.h"
#include "formats/io/sequential_reader.h"
#include "formats/io/shell_quoted.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

absl::StatusOr<bool> IsAsIndexed(const Dataset& dataset, uint32_t n) {
  ASSIGN_OR_RETURN(const File file, File::OpenRead(dataset.shards()[n].data_path));
  ASSIGN_OR_RETURN(const uint64_t bytes, file.Size());
  ASSIGN_OR_RETURN(const Digest is, SequentialReader(file, bytes).Finish());
  return is == dataset.manifest()->shards[n].xxh3_128;
}

}  // namespace

absl::Status CheckIndexedShards(const Dataset& dataset, const std::string& folder, IoPool& pool) {
  if (dataset.manifest() == nullptr || !dataset.manifest()->indexed_in_place())
    return absl::OkStatus();
  const size_t shards = dataset.shards().size();
  std::vector<absl::StatusOr<bool>> same(shards, true);
  pool.ForEach(shards, [&](size_t n) { same[n] = IsAsIndexed(dataset, static_cast<uint32_t>(n)); });
  for (size_t n = 0; n < shards; ++n) {
    if (!same[n].ok()) return same[n].status();
    if (*same[n]) continue;
    return absl::DataLossError(absl::StrCat(
        EscapeForTerminal(dataset.shards()[n].data_path),
        " was changed after it was indexed, so its labels and keys may differ from those of the "
        "index. To see the differences:\n  ",
        TypedProgram(), " validate ", ShellQuoted(folder),
        "\nIf it is as it should be: pack index with --overwrite, and the shards, -o and --classes "
        "that it was indexed with, accepts it as it is"));
  }
  return absl::OkStatus();
}

}  // namespace shardpack
