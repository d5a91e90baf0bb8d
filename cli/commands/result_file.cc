#include "cli/commands/result_file.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "formats/core/manifest.h"
#include "formats/io/escape.h"
#include "formats/io/exists.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack::cli {
namespace {

using absl::StrCat;

// The name of the file's folder; "." if it has none.
std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

absl::Status CheckResultFile(std::string_view flag, const std::string& path,
                             const std::vector<std::string>& inputs) {
  const auto refused = [&](const char* why) {
    return absl::InvalidArgumentError(StrCat(std::string(flag), " ", EscapeForTerminal(path), why));
  };
  struct stat facts;
  if (::stat(path.c_str(), &facts) == 0) {
    if (!S_ISREG(facts.st_mode)) return refused(" is not a file");
    for (const std::string& input : inputs) {
      struct stat other;
      if (::stat(input.c_str(), &other) == 0 && other.st_dev == facts.st_dev &&
          other.st_ino == facts.st_ino)
        return refused(" is one of the inputs, which it would replace");
    }
  }
  ASSIGN_OR_RETURN(const bool in_dataset,
                   Exists(StrCat(FolderOf(path), "/", std::string(kManifestName))));
  if (!in_dataset) return absl::OkStatus();
  return refused(
      ": that folder is a dataset, whose manifest would not list the file; put it elsewhere");
}

absl::Status WriteResultFile(const std::string& path, std::string_view text) {
  const std::string part = StrCat(path, ".part-", ::getpid());
  RETURN_IF_ERROR(RemoveFile(part));
  ASSIGN_OR_RETURN(File file, File::CreateExclusive(part));
  const Bytes bytes = AsBytes(text);
  absl::Status written = file.Write({&bytes, 1});
  if (written.ok()) written = file.Close();
  if (written.ok() && ::rename(part.c_str(), path.c_str()) != 0)
    written = IoStatus("rename", path, errno);
  if (!written.ok()) (void)RemoveFile(part);
  return written;
}

}  // namespace shardpack::cli
