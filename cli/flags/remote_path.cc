#include "cli/flags/remote_path.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "cli/terminal/terminal.h"
#include "formats/io/file.h"
#include "formats/io/url.h"

namespace shardpack::cli {
namespace {

using absl::StrCat;

// The last component, which becomes the local name; "data" for a whole bucket.
std::string LocalName(std::string_view url) {
  while (url.ends_with('/')) url.remove_suffix(1);
  std::string_view rest = url.substr(url.find("://") + 3);
  const size_t slash = rest.rfind('/');
  return slash == std::string_view::npos ? "data" : std::string(rest.substr(slash + 1));
}

// The command that copies `from` to `to`; "" if no tool is known for the scheme.
std::string CopyCommand(const std::string& scheme, bool file, const std::string& from,
                        const std::string& to) {
  const std::string both = StrCat(" ", ShellQuoted(from), " ", ShellQuoted(to));
  if (scheme == "s3") return StrCat(file ? "aws s3 cp" : "aws s3 sync", both);
  if (scheme == "gs")
    return StrCat(file ? "gcloud storage cp" : "gcloud storage rsync --recursive", both);
  const bool web = scheme == "http" || scheme == "https" || scheme == "ftp";
  if (web && SchemeOf(to).empty())
    return StrCat("curl --fail --location --output ", ShellQuoted(to), " ", ShellQuoted(from));
  return "";
}

}  // namespace

absl::Status RefuseUrl(std::string_view where, const std::string& url, PathUse use) {
  const std::string scheme = absl::AsciiStrToLower(std::string(SchemeOf(url)));
  const std::string shown = EscapeForTerminal(url);
  const std::string what = StrCat(std::string(where), " ", shown, ": ");
  if (scheme == "file") {
    return absl::InvalidArgumentError(StrCat(what, "give the path alone, without file://, as in ",
                                             ShellQuoted(url.substr(url.find("://") + 3))));
  }
  const std::string name = LocalName(url);
  const bool writes = use == PathUse::kWritesFolder || use == PathUse::kWritesFile;
  const bool file = use == PathUse::kReadsFile || use == PathUse::kWritesFile ||
                    scheme.starts_with("http") || name.find('.') != std::string::npos;
  const std::string command = writes ? CopyCommand(scheme, use == PathUse::kWritesFile, name, url)
                                     : CopyCommand(scheme, file, url, name);
  std::string way = writes ? StrCat("pack writes to folders of this machine alone. Write to ",
                                    ShellQuoted(name), " and then copy that there")
                           : StrCat("pack reads files of this machine alone. Copy it here first",
                                    command.empty() ? "" : StrCat(" and give ", ShellQuoted(name)));
  if (command.empty()) {
    absl::StrAppend(&way, ", with the tool that knows ", scheme, "://");
  } else {
    absl::StrAppend(&way, ":\n  ", command);
  }
  return absl::InvalidArgumentError(what + way);
}

}  // namespace shardpack::cli
