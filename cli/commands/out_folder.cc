#include "cli/commands/out_folder.h"

#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <optional>

#include "absl/strings/str_cat.h"
#include "cli/terminal/terminal.h"
#include "formats/core/manifest.h"
#include "formats/formats.h"
#include "formats/io/file.h"
#include "formats/io/relative_path.h"
#include "formats/io/same_file.h"

namespace shardpack::cli {
namespace {

using absl::InvalidArgumentError;
using absl::StrCat;
using std::filesystem::path;

// Make it absolute first: the rest of a relative path that does not exist would stay relative.
path Resolved(const std::string& name) {
  std::error_code error;
  const path whole = std::filesystem::absolute(name, error);
  path resolved = std::filesystem::weakly_canonical(whole, error);
  if (error) resolved = whole;
  // "a/" and "a" are the same folder.
  return resolved.has_filename() ? resolved : resolved.parent_path();
}

bool AreTheSame(const path& a, const path& b) {
  struct stat first, second;
  return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 &&
         IsSameFile(first, second);
}

// Whether `inner` is `outer` or is inside it. Compares device and inode at each step up, because a
// folder that is mounted twice has two paths.
bool Holds(const path& outer, const path& inner) {
  for (path at = inner;; at = at.parent_path()) {
    if (at == outer || AreTheSame(at, outer)) return true;
    if (at == at.parent_path()) return false;
  }
}

// Rejects file extensions, because a dataset is a folder.
absl::Status CheckName(const std::string& out) {
  static constexpr std::array<std::string_view, 12> kFileEndings = {
      ".tar", ".tar.gz", ".tgz",  ".zip", ".tfrecord", ".tfrecords",
      ".h5",  ".hdf5",   ".lmdb", ".mdb", ".rec",      ".json"};
  const std::string name = WithoutSlashes(out);
  for (const std::string_view ending : kFileEndings) {
    if (!name.ends_with(ending)) continue;
    std::string format = "FORMAT", formats;
    for (const Format* each : AllFormats()) {
      const std::string each_name(each->name);
      absl::StrAppend(&formats, formats.empty() ? "" : ", ", each_name);
      if (std::string_view(each->shard_name("a", 0, 1)).ends_with(ending)) format = each_name;
    }
    const std::string folder = name.substr(0, name.size() - ending.size());
    return InvalidArgumentError(
        StrCat("the output ", EscapeForTerminal(out),
               " is named like a file, but a dataset is a folder. For one shard:\n  -o ",
               ShellQuoted(folder.empty() ? "DIR" : folder), " -f ", format, " --shards 1",
               format == "FORMAT" ? StrCat("\nwith FORMAT one of ", formats) : ""));
  }
  return absl::OkStatus();
}

// The source's own name: for "." that of the working folder, for a file the part before its
// extensions.
std::string NameOf(const path& source) {
  path name = source.filename();
  if (std::error_code error; !std::filesystem::is_directory(source, error)) {
    name = name.stem();
    if (name.extension() == ".tar") name = name.stem();
  }
  return name.empty() || name == "-" ? "" : name.string();
}

// What is written to a folder, for messages.
struct FolderUse {
  std::string_view flag, noun, ending;
  bool may_be_begun;  // by an earlier run
};
constexpr FolderUse kOfDataset = {"-o", "output", "shards", true};
constexpr FolderUse kOfLists = {"--write", "folder for the lists", "lists", false};

// Whether it can be created there, or was already begun there.
bool IsFree(const FolderUse& use, const path& folder) {
  std::error_code error;
  return !std::filesystem::exists(folder, error) || std::filesystem::is_empty(folder, error) ||
         (use.may_be_begun &&
          (std::filesystem::exists(folder / ".pack", error) ||
           std::filesystem::exists(folder / std::string(kManifestName), error)));
}

std::string OfferedFor(const FolderUse& use, const std::string& source) {
  const path from = Resolved(source);
  const std::string name = NameOf(from), ending(use.ending);
  std::error_code error;
  const path here = std::filesystem::current_path(error);
  const path folder =
      Holds(from, here) ? std::filesystem::relative(from.parent_path(), here, error) : path();
  for (uint64_t turn = 1;; ++turn) {
    const path out = folder / StrCat(name.empty() ? ending : StrCat(name, "-", ending),
                                     turn == 1 ? "" : StrCat("-", turn));
    if (IsFree(use, out)) return out.native().starts_with('-') ? "./" + out.string() : out.string();
  }
}

absl::Status CheckApart(const FolderUse& use, const std::string& out, const std::string& source) {
  const path from = Resolved(source), to = Resolved(out);
  const std::string flag(use.flag), noun = StrCat("the ", std::string(use.noun), " ");
  const std::string shown_out = EscapeForTerminal(out), shown_source = EscapeForTerminal(source);
  const bool in = Holds(from, to), around = Holds(to, from);
  if (in && around) {
    return InvalidArgumentError(StrCat(noun, shown_out, " and the source ", shown_source,
                                       " are the same folder; use another one, as in\n  ", flag,
                                       " ", ShellQuoted(OfferedFor(use, source))));
  }
  if (in) {
    return InvalidArgumentError(StrCat(noun, shown_out, " lies inside the source ", shown_source,
                                       ", where it would be listed as well; use a folder outside "
                                       "of it, as in\n  ",
                                       flag, " ", ShellQuoted(OfferedFor(use, source))));
  }
  if (around) {
    return InvalidArgumentError(StrCat("the source ", shown_source, " lies inside ", noun,
                                       shown_out, "; use another folder for ", flag));
  }
  return absl::OkStatus();
}

}  // namespace

bool LiesIn(const std::string& path, const std::string& folder) {
  return Holds(Resolved(folder), Resolved(path));
}

absl::Status CheckOut(const std::string& out, const std::string& source) {
  if (absl::Status named = CheckName(out); !named.ok() || source.empty()) return named;
  return CheckApart(kOfDataset, out, source);
}

absl::Status CheckLists(const std::string& lists, const std::string& source) {
  return CheckApart(kOfLists, lists, source);
}

std::string OutFor(const std::string& source) { return OfferedFor(kOfDataset, source); }

}  // namespace shardpack::cli
