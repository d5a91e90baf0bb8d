#include "converters/sources/damaged_manifest.h"

#include "absl/strings/str_cat.h"
#include "formats/core/manifest.h"
#include "formats/io/exists.h"
#include "formats/io/file.h"
#include "formats/io/shell_quoted.h"

namespace shardpack {

absl::Status DamagedManifest(const std::string& folder, const absl::Status& why) {
  if (!absl::IsDataLoss(why) && !absl::IsInvalidArgument(why)) return why;
  const std::string path = absl::StrCat(folder, "/", std::string(kManifestName));
  std::string aside = absl::StrCat(path, ".damaged");
  for (int n = 2; Exists(aside).value_or(false); ++n) aside = absl::StrCat(path, ".damaged-", n);
  const std::string text = absl::StrCat(
      std::string(why.message()), "\nNothing was changed. If pack built the dataset in ",
      EscapeForTerminal(folder), ", a copy of it puts the manifest back:\n  ", TypedProgram(),
      " repair ", ShellQuoted(folder),
      " --from COPY\nIf pack index made the manifest, or another program did, move it away and run "
      "the same command again:\n  mv -n -- ",
      ShellQuoted(path), " ", ShellQuoted(aside));
  return absl::Status(why.code(), text);
}

}  // namespace shardpack
