#include "converters/publishing/shard_results.h"

#include <errno.h>
#include <sys/stat.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "converters/listing/first_few.h"
#include "converters/publishing/owned_folder.h"
#include "converters/publishing/shard_failures.h"
#include "formats/core/index_name.h"
#include "formats/io/exists.h"
#include "formats/io/file.h"
#include "formats/io/sequential_reader.h"
#include "formats/io/shell_quoted.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr size_t kNamedShards = 5, kNamedRanges = 20;
// Of a list of shards on a command line.
constexpr size_t kMaxListBytes = 500;
// Of a word there, which Linux ends at 128 KiB.
constexpr size_t kMaxWordBytes = 100'000;

std::span<const int64_t> FieldTimes(const Listing& listing, uint64_t row) {
  const size_t fields = listing.field_mtime_ns.empty() ? 0 : listing.fields.size();
  return std::span<const int64_t>(listing.field_mtime_ns).subspan(fields * row, fields);
}

// The list in as many words as it takes.
std::vector<std::string> ShardLists(const std::set<uint32_t>& shards) {
  std::string list = ShardList(shards);
  std::vector<std::string> words;
  while (list.size() > kMaxWordBytes) {
    const size_t comma = list.rfind(',', kMaxWordBytes);
    words.push_back(list.substr(0, comma));
    list.erase(0, comma + 1);
  }
  if (!list.empty()) words.push_back(std::move(list));
  return words;
}

}  // namespace

absl::StatusOr<bool> Matches(const std::string& path, const FileEntry& entry, ShardLook look,
                             std::string* why, const std::atomic<int>* stop) {
  const auto differs = [&](const std::string& text) {
    if (why != nullptr) *why = absl::StrCat(EscapeForTerminal(entry.name), " ", text);
    return false;
  };
  const auto other_size = [&](uint64_t size) {
    return differs(absl::StrCat("has ", size, " bytes, expected ", entry.bytes));
  };
  const auto unreadable = [&](const absl::Status& why) -> absl::StatusOr<bool> {
    if (absl::IsNotFound(why)) return differs("is missing");
    if (!IsAboutThePath(why)) return why;
    return differs(absl::StrCat("cannot be read: ", std::string(why.message())));
  };
  if (look == ShardLook::kSize) {
    struct stat facts;
    if (::stat(path.c_str(), &facts) != 0) return unreadable(IoStatus("look at", path, errno));
    const auto size = static_cast<uint64_t>(facts.st_size);
    return size == entry.bytes ? true : other_size(size);
  }
  const absl::StatusOr<File> file = File::OpenRead(path);
  if (!file.ok()) return unreadable(file.status());
  ASSIGN_OR_RETURN(uint64_t size, file->Size());
  if (size != entry.bytes) return other_size(size);
  SequentialReader reader(*file, size);
  reader.OnBlock([stop](uint64_t) {
    return stop != nullptr && stop->load() != 0 ? absl::CancelledError("stopped by a signal")
                                                : absl::OkStatus();
  });
  ASSIGN_OR_RETURN(Digest digest, reader.Finish());
  return digest == entry.xxh3_128 ? true : differs("has another hash than when it was built");
}

absl::StatusOr<std::optional<uint32_t>> FirstChangedRow(const Plan& was, const Plan& now,
                                                        size_t shard) {
  std::optional<uint32_t> changed;
  if (was.ShardTimes(shard) == now.ShardTimes(shard)) return changed;
  RETURN_IF_ERROR(was.CheckSlice(shard));
  RETURN_IF_ERROR(now.CheckSlice(shard));
  const PlannedShard& planned = now.shards()[shard];
  for (uint64_t p = planned.first; p < planned.first + planned.count && !changed; ++p) {
    const uint32_t row_was = was.row(p), row = now.row(p);
    const std::span<const int64_t> before = FieldTimes(was.listing(), row_was),
                                   after = FieldTimes(now.listing(), row);
    if (was.listing().mtime_ns[row_was] != now.listing().mtime_ns[row] ||
        !std::equal(before.begin(), before.end(), after.begin(), after.end()))
      changed = row;
  }
  return changed;
}

bool FitsPlan(const ShardResult& line, const Plan& plan) {
  if (line.shard >= plan.shards().size() || line.file.name != plan.DataFile(line.shard))
    return false;
  if (line.plan && *line.plan != plan.digest()) return false;
  if (line.times && *line.times != plan.ShardTimes(line.shard)) return false;
  const std::string& name = plan.shards()[line.shard].name;
  if (line.index.name != IndexName(name) && line.index.name != LongIndexName(name)) return false;
  const uint64_t rows = plan.listing().rows();
  return line.records <= plan.shards()[line.shard].count &&
         std::all_of(line.skips.begin(), line.skips.end(),
                     [&](const Skip& skip) { return skip.row < rows; });
}

absl::Status CheckOnePlan(const std::string& dataset, const Digest& plan,
                          std::span<const ShardResult> lines) {
  std::map<std::string, std::vector<std::string>> files;
  std::map<std::string, std::set<std::string>> journals;
  const bool others = std::any_of(lines.begin(), lines.end(), [&](const ShardResult& line) {
    return line.plan && *line.plan != plan;
  });
  if (!others) return absl::OkStatus();
  for (const ShardResult& line : lines) {
    const std::string of = line.plan.value_or(plan).ToHex();
    files[of].push_back(line.file.name);
    journals[of].insert(EscapeForTerminal(line.journal));
  }
  const bool mixed = files.contains(plan.ToHex()) || files.size() > 1;
  std::string text =
      absl::StrCat(EscapeForTerminal(dataset),
                   mixed ? " holds shards of several plans, which are never mixed:"
                         : " holds shards of another plan than this one, and several plans are "
                           "never mixed:");
  for (const auto& [of, names] : files) {
    absl::StrAppend(
        &text, "\n  plan xxh3:", of, of == plan.ToHex() ? " (that of this dataset)" : "", ": ",
        FirstFew(names, kNamedShards), ", by .pack/", absl::StrJoin(journals[of], ", .pack/"));
  }
  const std::string this_plan = absl::StrCat("plan xxh3:", plan.ToHex());
  if (mixed) {
    return absl::FailedPreconditionError(absl::StrCat(
        text, "\nIf ", this_plan,
        " is the one that you want, move the files and journals of the others away; then build "
        "what is missing of it."));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      text, "\nThis is ", this_plan,
      ". If the other one is what you want, the command that began it goes on with it (the same "
      "source and flags, or --plan with its file). If this one is, build it in another folder, or "
      "move the files and journals of the other one away."));
}

absl::StatusOr<ShardStates> LookAtShards(const std::string& dataset, const Plan& plan,
                                         std::span<const ShardResult> lines,
                                         const std::vector<bool>& wants, ShardLook look,
                                         IoPool& pool, const std::atomic<int>* stop) {
  std::vector<ShardResult> fitting;
  for (const ShardResult& line : lines) {
    if (line.shard >= wants.size() || !wants[line.shard] || !FitsPlan(line, plan)) continue;
    fitting.push_back(line);
    // For a run that was killed while it gave indexes of an older version today's names.
    const std::string name = IndexName(plan.shards()[line.shard].name);
    if (line.index.name == name) continue;
    const absl::StatusOr<bool> as_before = Exists(absl::StrCat(dataset, "/", line.index.name)),
                               as_today = Exists(absl::StrCat(dataset, "/", name));
    if (!as_before.ok()) return as_before.status();
    if (!as_today.ok()) return as_today.status();
    if (!*as_before && *as_today) fitting.back().index.name = name;
  }
  std::vector<std::string> whys(fitting.size());
  std::mutex mutex;
  absl::Status failed;
  // Few at a time, so that looks at sizes alone cost no more than they do.
  constexpr size_t kAtOnce = 16;
  const auto look_at = [&](size_t i) {
    for (const FileEntry* entry : {&fitting[i].file, &fitting[i].index}) {
      std::string why;
      const absl::StatusOr<bool> same =
          Matches(absl::StrCat(dataset, "/", entry->name), *entry, look, &why, stop);
      if (!same.ok()) {
        const std::lock_guard lock(mutex);
        failed = same.status();
      } else if (!*same && whys[i].empty()) {
        whys[i] = why;
      }
    }
  };
  const size_t at_once = look == ShardLook::kSize ? kAtOnce : 1;
  pool.ForEach((fitting.size() + at_once - 1) / at_once, [&](size_t chunk) {
    const size_t end = std::min(fitting.size(), (chunk + 1) * at_once);
    for (size_t i = chunk * at_once; i < end; ++i) look_at(i);
  });
  if (!failed.ok()) return failed;
  ShardStates states;
  for (size_t i = 0; i < fitting.size(); ++i) {
    const bool known = !states.finished.empty() && states.finished.back().shard == fitting[i].shard;
    if (known) continue;
    if (whys[i].empty()) {
      states.damaged.erase(fitting[i].shard);
      states.finished.push_back(std::move(fitting[i]));
    } else {
      states.damaged[fitting[i].shard] = whys[i];
    }
  }
  return states;
}

bool MayBeBack(const Skip& skip) {
  switch (skip.reason) {
    // Of the file system as it was just then.
    case SkipReason::kNotRegular:
    case SkipReason::kPermission:
    case SkipReason::kIoError:
    case SkipReason::kChanged:
    case SkipReason::kVanished:
    case SkipReason::kSymlinkLoop:
    case SkipReason::kOutsideRoot:
    case SkipReason::kDangling:
      return true;
    // Of the bytes that were planned, or of the plan.
    case SkipReason::kEmpty:
    case SkipReason::kNotAnImage:
    case SkipReason::kTruncated:
    case SkipReason::kBadCrc:
    case SkipReason::kPixelLimit:
    case SkipReason::kTooLarge:
    case SkipReason::kDuplicateKey:
    case SkipReason::kUnpaired:
    case SkipReason::kDecodeFailed:
    case SkipReason::kBadLabel:
      return false;
  }
  return false;
}

bool LacksWhatMayBeBack(const ShardResult& result) {
  return std::any_of(result.skips.begin(), result.skips.end(), MayBeBack);
}

std::string ShardList(const std::set<uint32_t>& shards, size_t most) {
  std::vector<std::string> ranges;
  for (auto at = shards.begin(); at != shards.end();) {
    const uint32_t first = *at;
    uint32_t last = first;
    while (++at != shards.end() && *at == last + 1) ++last;
    ranges.push_back(first == last ? absl::StrCat(first) : absl::StrCat(first, "-", last));
  }
  const size_t more = ranges.size() - std::min(ranges.size(), most);
  ranges.resize(ranges.size() - more);
  return absl::StrCat(absl::StrJoin(ranges, ","),
                      more > 0 ? absl::StrCat(" and ", more, " more ranges") : "");
}

std::string HowToBuild(const std::string& dataset, const Plan& plan,
                       const std::set<uint32_t>& damaged, const std::set<uint32_t>& missing) {
  const std::string folder = ShellQuoted(dataset), plan_file = ShellQuoted(dataset + "/.pack/plan");
  // Workers may have been given another path to the source.
  const std::string& root = plan.listing().root;
  const bool source_is_here = Exists(root).value_or(true);
  std::string text = "\nThese are built by";
  const auto add = [&](const std::string& which) {
    absl::StrAppend(&text, "\n  ", TypedProgram(), " build ", source_is_here ? "" : "SRC ",
                    "--plan ", plan_file, " -o ", folder, which);
  };
  std::set<uint32_t> named = damaged;
  named.insert(missing.begin(), missing.end());
  const bool join = !missing.empty() && ShardList(named).size() > kMaxListBytes;
  for (const std::string& list : ShardLists(join ? damaged : named)) add(" --shards " + list);
  if (join) add(" --join");
  absl::StrAppend(&text, "\nand when all are built:\n  ", TypedProgram(), " commit ", folder);
  if (!source_is_here) {
    absl::StrAppend(&text, "\nwith SRC the folder of the source, which is not at ",
                    EscapeForTerminal(root), " here");
  }
  return text;
}

namespace {

// Why shards are missing, as far as workers have noted it. An error says nothing about that.
void AppendFailures(const std::string& dataset, const std::set<uint32_t>& missing,
                    std::string& text) {
  const absl::StatusOr<OwnedFolder> folder = OwnedFolder::Open(dataset);
  if (!folder.ok()) return;
  auto failures = ReadShardFailures(*folder);
  if (!failures.ok()) return;
  std::erase_if(*failures, [&](const auto& each) { return !missing.contains(each.first); });
  if (failures->empty()) return;
  absl::StrAppend(&text, "\n  failed ", failures->size(), ":");
  size_t named = 0;
  for (const auto& [shard, failure] : *failures) {
    if (named++ < kNamedShards)
      absl::StrAppend(&text, named > 1 ? ";" : "", " shard ", shard, ": ", failure.Text());
  }
  if (named > kNamedShards) absl::StrAppend(&text, "; and ", named - kNamedShards, " more");
}

}  // namespace

absl::Status Unfinished(const std::string& dataset, const Plan& plan, const ShardStates& states,
                        const std::set<uint32_t>& held) {
  const size_t shards = plan.shards().size();
  std::set<uint32_t> to_build;
  for (uint32_t n = 0; n < shards; ++n) to_build.insert(n);
  for (const ShardResult& result : states.finished) to_build.erase(result.shard);
  std::string text =
      absl::StrCat(EscapeForTerminal(dataset),
                   " cannot be published yet, and nothing was changed. Of ", shards, " shards:");
  std::set<uint32_t> missing = to_build, damaged;
  for (const auto& [shard, why] : states.damaged) {
    if (missing.erase(shard) > 0) damaged.insert(shard);
  }
  if (!missing.empty())
    absl::StrAppend(&text, "\n  missing ", missing.size(), ": ", ShardList(missing, kNamedRanges));
  std::set<uint32_t> awaited, free;
  for (const uint32_t shard : missing) (held.contains(shard) ? awaited : free).insert(shard);
  if (!awaited.empty()) {
    absl::StrAppend(
        &text, "\n  held ", awaited.size(), " of them: ", ShardList(awaited, kNamedRanges),
        ", by workers that are at work (pack status ", ShellQuoted(dataset), " --wait)");
  }
  if (!states.damaged.empty()) {
    absl::StrAppend(&text, "\n  damaged ", states.damaged.size(), ":");
    size_t named = 0;
    for (const auto& [shard, why] : states.damaged) {
      if (named++ < kNamedShards)
        absl::StrAppend(&text, named > 1 ? ";" : "", " shard ", shard, ": ", why);
    }
    if (named > kNamedShards) absl::StrAppend(&text, "; and ", named - kNamedShards, " more");
  }
  AppendFailures(dataset, missing, text);
  absl::StrAppend(&text, free.empty() && damaged.empty()
                             ? absl::StrCat("\nWhen they have ended:\n  ", TypedProgram(),
                                            " commit ", ShellQuoted(dataset))
                             : HowToBuild(dataset, plan, damaged, free));
  return states.damaged.empty() ? absl::AbortedError(text) : absl::DataLossError(text);
}

}  // namespace shardpack
