#include "converters/publishing/pack_folder.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "converters/planning/plan_bytes.h"
#include "converters/publishing/conflict.h"
#include "converters/publishing/exchange.h"
#include "converters/publishing/index_mark.h"
#include "converters/publishing/journal.h"
#include "converters/publishing/pack_names.h"
#include "converters/publishing/replacement.h"
#include "converters/publishing/run_stage.h"
#include "formats/core/manifest.h"
#include "formats/io/escape.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

using Kind = OwnedFolder::Kind;

// Found in stages besides the dataset's files: from builds, `pack repair`, and writers of sidecars.
constexpr std::array<std::string_view, 8> kScratch = {
    kOfTheRun, kPlanOfTheRun, "rebuilt", "energon-index.sqlite",
    "beat",    "lease",       "tried",   "tried-link"};
// More than any beat, lease or note of a failure holds.
constexpr uint64_t kMaxNoteBytes = uint64_t{1} << 20;
// Of SkippedLines.
constexpr std::string_view kSkippedLineBegin = "{\"detail\":";
constexpr std::string_view kRebuilding =
    "build";  // a dataset that `pack repair` builds in its stage
// A worker that does not yet know that its dataset is published may add files to a stage while it
// is removed.
constexpr int kRemoveTries = 100;

template <typename List>
bool Contains(const List& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

std::string In(std::string_view folder, std::string_view name) {
  return absl::StrCat(std::string(folder), "/", std::string(name));
}

// Adds the names that a dataset's files have in stages.
void AddStaged(const std::set<std::string>& names, std::set<std::string>& staged) {
  for (const std::string& name : names) {
    std::string flat = name;
    std::replace(flat.begin(), flat.end(), '/', '_');
    staged.insert({name, name.substr(0, name.find('/')), flat});
  }
}

// An index that `pack index` has staged under its shard's number.
bool IsNumberedIndex(std::string_view name) {
  if (!name.ends_with(kIndexSuffix)) return false;
  name.remove_suffix(kIndexSuffix.size());
  return !name.empty() && std::all_of(name.begin(), name.end(),
                                      [](unsigned char c) { return c >= '0' && c <= '9'; });
}

class PackLister {
 public:
  explicit PackLister(const OwnedFolder& dataset) : dataset_(dataset) {}

  PackEntries Take() {
    std::sort(entries_.others.begin(), entries_.others.end());
    return std::move(entries_);
  }

  absl::Status Pack(const std::string& folder) {
    ASSIGN_OR_RETURN(const std::vector<std::string> names, dataset_.List(folder));
    std::optional<std::string> lock, mark;
    for (const std::string& name : names) {
      const std::string path = In(folder, name);
      if (!OwnedFolder::IsName(path)) {
        entries_.others.push_back(path);
        continue;
      }
      if (name == NameInFolder(kStageFolder)) {
        RETURN_IF_ERROR(Stage(path));
        continue;
      }
      if (name == NameInFolder(kOwnersFolder) || name == NameInFolder(kLeaseFolder) ||
          name == NameInFolder(kFailedFolder)) {
        RETURN_IF_ERROR(Shared(path, name));
        continue;
      }
      ASSIGN_OR_RETURN(const OwnedFolder::Look look, dataset_.LookAt(path));
      if (look.kind == Kind::kNothing) continue;  // another run has ended in the meantime
      const absl::StatusOr<bool> ours =
          look.kind == Kind::kFile ? IsOfPack(path, name, look.bytes) : false;
      if (absl::IsNotFound(ours.status())) continue;
      if (!ours.ok()) return ours.status();
      if (!*ours) {
        entries_.others.push_back(path);
      } else if (name == NameInFolder(kLockName)) {
        lock = path;
      } else if (name == NameInFolder(kReplacedByName)) {
        mark = path;
      } else {
        entries_.files.push_back(path);
      }
    }
    if (lock) entries_.files.push_back(*lock);
    if (mark) entries_.files.push_back(*mark);
    return absl::OkStatus();
  }

  // For a file in `.pack`; true if it does not exist.
  absl::StatusOr<bool> MayWrite(const std::string& path) const {
    ASSIGN_OR_RETURN(const OwnedFolder::Look look, dataset_.LookAt(path));
    if (look.kind == Kind::kNothing) return true;
    if (look.kind != Kind::kFile) return false;
    return IsOfPack(path, std::string(NameInFolder(path)), look.bytes);
  }

  absl::Status Stage(const std::string& folder) {
    return WithFolder(folder, [&](const std::string& name, const std::string& path) {
      return StageEntry(name, path);
    });
  }

  // The stage of one run.
  absl::Status Run(const std::string& folder) {
    return WithFolder(folder, [&](const std::string& name, const std::string& path) {
      return StagedEntry(name, path);
    });
  }

 private:
  // Takes each entry of one of pack's folders, then the folder itself if no entry belongs to
  // others.
  template <typename Take>
  absl::Status WithFolder(const std::string& folder, const Take& take) {
    ASSIGN_OR_RETURN(const OwnedFolder::Look look, dataset_.LookAt(folder));
    if (look.kind == Kind::kNothing) return absl::OkStatus();
    const size_t others = entries_.others.size();
    ASSIGN_OR_RETURN(const std::vector<std::string> names, dataset_.List(folder));
    for (const std::string& name : names) {
      const std::string path = In(folder, name);
      if (OwnedFolder::IsName(path)) {
        RETURN_IF_ERROR(take(name, path));
      } else {
        entries_.others.push_back(path);
      }
    }
    if (entries_.others.size() == others) entries_.folders.push_back(folder);
    return absl::OkStatus();
  }

  // What workers tell each other, in three folders.
  absl::Status Shared(const std::string& folder, const std::string& kind) {
    ASSIGN_OR_RETURN(const OwnedFolder::Look look, dataset_.LookAt(folder));
    if (look.kind != Kind::kFolder) {
      if (look.kind != Kind::kNothing) entries_.others.push_back(folder);
      return absl::OkStatus();
    }
    return WithFolder(folder, [&](const std::string& name, const std::string& path) {
      if (kind == NameInFolder(kOwnersFolder)) return SharedFile(path, IsRunName(name));
      if (kind == NameInFolder(kFailedFolder))
        return SharedFile(path, ParseFailureName(name).has_value());
      return LeasesOfThousand(name, path);
    });
  }

  absl::Status LeasesOfThousand(const std::string& name, const std::string& path) {
    const bool number =
        std::all_of(name.begin(), name.end(), [](unsigned char c) { return c >= '0' && c <= '9'; });
    ASSIGN_OR_RETURN(const OwnedFolder::Look look, dataset_.LookAt(path));
    if (look.kind == Kind::kNothing) return absl::OkStatus();
    if (look.kind != Kind::kFolder || !number) {
      entries_.others.push_back(path);
      return absl::OkStatus();
    }
    return WithFolder(path, [&](const std::string& lease, const std::string& inner) {
      return SharedFile(inner, ParseLeaseName(lease).has_value());
    });
  }

  absl::Status SharedFile(const std::string& path, bool named) {
    ASSIGN_OR_RETURN(const OwnedFolder::Look look, dataset_.LookAt(path));
    if (look.kind == Kind::kNothing) return absl::OkStatus();
    const bool ours = named && look.kind == Kind::kFile && look.bytes <= kMaxNoteBytes;
    (ours ? entries_.files : entries_.others).push_back(path);
    return absl::OkStatus();
  }

  absl::Status StageEntry(const std::string& name, const std::string& path) {
    ASSIGN_OR_RETURN(const OwnedFolder::Look look, dataset_.LookAt(path));
    if (look.kind == Kind::kFolder && IsRunName(name)) return Run(path);
    if (look.kind == Kind::kFolder && Contains(kTriedFolders, path)) {
      return WithFolder(path, [&](const std::string&, const std::string& inner) {
        entries_.others.push_back(inner);
        return absl::OkStatus();
      });
    }
    const std::string_view run =
        std::string_view(name).substr(0, name.size() - std::min(name.size(), kLockSuffix.size()));
    if (look.kind == Kind::kFile && look.bytes == 0 && name.ends_with(kLockSuffix) &&
        IsRunName(run)) {
      entries_.files.push_back(path);
      return absl::OkStatus();
    }
    return StagedEntry(name, path);  // older versions did not always have a folder per run
  }

  absl::Status StagedEntry(const std::string& name, const std::string& path) {
    ASSIGN_OR_RETURN(const OwnedFolder::Look look, dataset_.LookAt(path));
    if (look.kind == Kind::kFolder && name == kRebuilding) return Rebuilding(path);
    bool ours = false;
    if (look.kind == Kind::kFile) {
      ASSIGN_OR_RETURN(ours, IsStaged(name));
    }
    if (look.kind != Kind::kNothing) (ours ? entries_.files : entries_.others).push_back(path);
    return absl::OkStatus();
  }

  // The files of the shards that `pack repair` builds, and the `.pack` of that build.
  absl::Status Rebuilding(const std::string& folder) {
    ASSIGN_OR_RETURN(const std::set<std::string> noted, NotedIn(folder));
    RETURN_IF_ERROR(ReadNamesOnce());
    AddStaged(noted, *names_);
    return WithFolder(folder, [&](const std::string& name, const std::string& path) {
      return RebuiltEntry(name, path, /*below=*/"");
    });
  }

  absl::Status RebuiltEntry(const std::string& name, const std::string& path,
                            const std::string& below) {
    ASSIGN_OR_RETURN(const OwnedFolder::Look look, dataset_.LookAt(path));
    if (look.kind == Kind::kFolder && below.empty() && name == kPackFolder) {
      const size_t others = entries_.others.size();
      RETURN_IF_ERROR(Pack(path));
      if (entries_.others.size() == others) entries_.folders.push_back(path);
      return absl::OkStatus();
    }
    if (look.kind == Kind::kFolder && below.empty() && names_->contains(name)) {
      return WithFolder(path, [&](const std::string& inner, const std::string& inner_path) {
        return RebuiltEntry(inner, inner_path, name + "/");
      });
    }
    if (look.kind == Kind::kNothing) return absl::OkStatus();
    const bool ours = look.kind == Kind::kFile && names_->contains(below + name);
    (ours ? entries_.files : entries_.others).push_back(path);
    return absl::OkStatus();
  }

  // Judges a file in `.pack` by name and content; NotFound if it does not exist any more.
  absl::StatusOr<bool> IsOfPack(const std::string& path, const std::string& name,
                                uint64_t bytes) const {
    const auto is = [&](std::string_view known) { return name == NameInFolder(known); };
    if (is(kLockName)) return bytes == 0;
    if (is(kIndexMark)) return IsIndexMark(dataset_, path);
    if (std::none_of(kBuildNotes.begin(), kBuildNotes.end(), is)) return IsJournal(path, name);
    if (is(kPlanName)) {
      ASSIGN_OR_RETURN(const std::string text, dataset_.Read(path, kPlanMagic.size()));
      // Accepts a plan that is truncated, or was not flushed before a power failure.
      return kPlanMagic.starts_with(std::string_view(text).substr(0, text.find('\0')));
    }
    if (is(kRefusedName)) {
      ASSIGN_OR_RETURN(const std::string text, dataset_.Read(path, kSkippedLineBegin.size()));
      return text == kSkippedLineBegin;
    }
    ASSIGN_OR_RETURN(const std::string text, dataset_.Read(path, kMaxNamesBytes));
    if (is(kReplacesName)) return IsReplacesText(text);
    if (is(kReplacedName) || is(kReplacedByName)) return IsReplacedText(text);
    return IsNamesText(text);
  }

  // A copy under another name belongs to the user.
  absl::StatusOr<bool> IsJournal(const std::string& path, std::string_view name) const {
    if (!IsOwnJournalName(name)) return false;
    ASSIGN_OR_RETURN(const std::string text, dataset_.Read(path, kJournalBeginningBytes));
    return IsJournalText(text);
  }

  // A name used in stages, or such a name with an extension: shard writers name their temporary
  // files that way.
  absl::StatusOr<bool> IsStaged(const std::string& name) {
    for (size_t end = name.find('.', 1);; end = name.find('.', end + 1)) {
      const std::string whole = name.substr(0, end);
      if (Contains(kScratch, whole) || whole == kManifestName || IsNumberedIndex(whole))
        return true;
      RETURN_IF_ERROR(ReadNamesOnce());
      if (names_->contains(whole)) return true;
      if (end == std::string::npos) return false;
    }
  }

  // What a build in the folder has noted that it may write.
  absl::StatusOr<std::set<std::string>> NotedIn(const std::string& folder) const {
    std::set<std::string> noted;
    for (const std::string_view name : {kMadeName, kMadeExtrasName}) {
      const absl::StatusOr<std::string> text =
          dataset_.Read(folder.empty() ? std::string(name) : In(folder, name), kMaxNamesBytes);
      if (!text.ok() && !absl::IsNotFound(text.status())) return text.status();
      if (text.ok()) noted.merge(ParseNames(*text));
    }
    return noted;
  }

  absl::Status ReadNamesOnce() {
    if (names_) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::set<std::string> noted, NotedIn(""));
    std::set<std::string> names;
    AddStaged(noted, names);
    const absl::StatusOr<std::string> text = dataset_.Read(kManifestName, kMaxManifestBytes);
    if (!text.ok() && !absl::IsNotFound(text.status())) return text.status();
    // A damaged manifest says nothing.
    const absl::StatusOr<Manifest> manifest =
        text.ok() ? Manifest::Parse(*text) : absl::StatusOr<Manifest>(text.status());
    if (manifest.ok()) AddStaged(FilesOf(*manifest), names);
    names_ = std::move(names);
    return absl::OkStatus();
  }

  const OwnedFolder& dataset_;
  PackEntries entries_;
  std::optional<std::set<std::string>> names_;  // of the dataset's files in stages
};

absl::Status Remove(const OwnedFolder& dataset, const PackEntries& entries) {
  for (const std::string& name : entries.files) {
    RETURN_IF_ERROR(dataset.RemoveFile(name));
  }
  for (const std::string& name : entries.folders) {
    RETURN_IF_ERROR(dataset.RemoveEmptyFolder(name));
  }
  return absl::OkStatus();
}

// Repeats until none of pack's files is left; returns files of others.
template <typename List>
absl::StatusOr<std::vector<std::string>> RemoveAll(const OwnedFolder& dataset, const List& list) {
  for (int i = 0; i < kRemoveTries; ++i) {
    PackLister lister(dataset);
    RETURN_IF_ERROR(list(lister));
    const PackEntries entries = lister.Take();
    if (!entries.AnyOfPack()) return entries.others;
    RETURN_IF_ERROR(Remove(dataset, entries));
  }
  return absl::UnavailableError(absl::StrCat("remove ",
                                             EscapeForTerminal(dataset.PathOf(kStageFolder)),
                                             ": another run keeps writing there"));
}

}  // namespace

std::vector<std::string> PackEntries::Unfinished() const {
  std::vector<std::string> names;
  for (const std::string& name : files) {
    const bool shared =
        name.starts_with(In(kStageFolder, "")) || name.starts_with(In(kOwnersFolder, "")) ||
        name.starts_with(In(kLeaseFolder, "")) || name.starts_with(In(kFailedFolder, ""));
    if (name != kLockName && name != kReplacedByName && !shared) names.push_back(name);
  }
  return names;
}

absl::StatusOr<PackEntries> ListPackFolder(const OwnedFolder& dataset) {
  PackLister lister(dataset);
  RETURN_IF_ERROR(lister.Pack(std::string(kPackFolder)));
  return lister.Take();
}

absl::Status CheckJournal(const OwnedFolder& dataset, const PackEntries& entries) {
  if (!Contains(entries.others, kJournalName)) return absl::OkStatus();
  return Conflict(dataset.PathOf(kJournalName),
                  "is not a journal of pack; move it away and run again");
}

absl::Status CheckMayWrite(const OwnedFolder& dataset, std::string_view name) {
  ASSIGN_OR_RETURN(const bool ours, PackLister(dataset).MayWrite(std::string(name)));
  if (ours) return absl::OkStatus();
  return Conflict(dataset.PathOf(name),
                  "was not made by pack, which would write it; move it away and run again");
}

absl::Status RemoveRunStage(const OwnedFolder& dataset, const std::string& run) {
  const std::string folder = In(kStageFolder, run);
  ASSIGN_OR_RETURN(const OwnedFolder::Look look, dataset.LookAt(folder));
  if (look.kind == Kind::kNothing) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<std::string> others,
                   RemoveAll(dataset, [&](PackLister& lister) { return lister.Run(folder); }));
  return others.empty() ? absl::OkStatus()
                        : Conflict(dataset.PathOf(others.front()), "was not made by pack");
}

absl::Status RemoveStage(const OwnedFolder& dataset) {
  const std::string folder(kStageFolder);
  return RemoveAll(dataset, [&](PackLister& lister) { return lister.Stage(folder); }).status();
}

absl::Status RemovePackFolder(const OwnedFolder& dataset) {
  // Stages first: the files removed after them say which of their files are pack's.
  RETURN_IF_ERROR(RemoveStage(dataset));
  RETURN_IF_ERROR(RemoveAll(dataset, [&](PackLister& lister) {
                    return lister.Pack(std::string(kPackFolder));
                  }).status());
  return dataset.RemoveEmptyFolder(kPackFolder);
}

}  // namespace shardpack
