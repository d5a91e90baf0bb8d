#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/commands/cluster_jobs.h"
#include "cli/commands/commands.h"
#include "cli/commands/out_folder.h"
#include "cli/commands/packing.h"
#include "cli/flags/failure.h"
#include "cli/terminal/units.h"
#include "converters/listing/labels.h"
#include "converters/planning/class_gaps.h"
#include "converters/planning/plan_bytes.h"
#include "formats/io/escape.h"
#include "formats/io/exists.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/io/named_lock.h"
#include "formats/io/sequential_reader.h"
#include "formats/io/staged_file.h"
#include "formats/io/status_macros.h"
#include "jobs/open_source.h"

namespace shardpack::cli {
namespace {

using absl::StrAppend;
using absl::StrCat;

constexpr size_t kShownShards = 20, kPlannedFolders = 5;

uint64_t SourceBytes(const Plan& plan) {
  uint64_t bytes = 0;
  for (uint64_t position = 0; position < plan.positions(); ++position)
    bytes += plan.listing().SampleBytes(plan.row(position));
  return bytes;
}

std::vector<uint64_t> SplitCounts(const Plan& plan) {
  std::vector<uint64_t> counts(plan.splits().size(), 0);
  for (const PlannedShard& shard : plan.shards()) counts[shard.split] += shard.count;
  return counts;
}

std::string Text(const Plan& plan) {
  const Listing& listing = plan.listing();
  std::string out =
      StrCat(Counted(plan.positions(), "sample", "samples"), " of ", FormatBytes(SourceBytes(plan)),
             " from ", EscapeForTerminal(listing.root), " into ",
             Counted(plan.shards().size(), "shard", "shards"), " of ",
             std::string(plan.format().name), " (layout ", std::string(plan.layout()),
             plan.sizes_change() ? "), with the sources' sizes " : "), at most ",
             FormatBytes(plan.bound_bytes()), " in all\n");
  const std::vector<uint64_t> counts = SplitCounts(plan);
  StrAppend(&out, "splits    ");
  for (size_t i = 0; i < counts.size(); ++i) {
    StrAppend(&out, i == 0 ? "" : ", ", plan.splits()[i], " ", FormatCount(counts[i]));
  }
  StrAppend(&out, "\nclasses   ", listing.classes.size(), "\norder     ",
            plan.options().shuffle ? StrCat("shuffled with seed ", plan.options().seed)
                                   : std::string("as in the source"),
            "\nkeys      ", plan.index_keys() ? "by number" : "by path", "\n");
  const uint64_t filtered = plan.filtered() + listing.left_out;
  if (filtered > 0) StrAppend(&out, "filtered  ", FormatCount(filtered), "\n");
  const size_t skips = listing.skips.size() + plan.skips().size();
  if (skips > 0)
    StrAppend(&out, "skipped   ", FormatCount(skips),
              " so far; each file's bytes are judged while packing\n");
  size_t width = 5;
  for (const PlannedShard& shard : plan.shards()) width = std::max(width, shard.name.size());
  StrAppend(&out, absl::StrFormat("\n%6s  %-*s  %12s  %12s\n", "number", width, "shard", "samples",
                                  plan.sizes_change() ? "of sources" : "at most"));
  const size_t shards = plan.shards().size();
  for (size_t n = 0; n < shards; ++n) {
    // Print only both ends of a long table; --json has all of it.
    if (shards > kShownShards && n == kShownShards / 2) {
      StrAppend(&out,
                absl::StrFormat("%6s  ... %d more; --json lists all\n", "", shards - kShownShards));
      n = shards - kShownShards / 2;
    }
    const PlannedShard& shard = plan.shards()[n];
    StrAppend(&out, absl::StrFormat("%6d  %-*s  %12s  %12s\n", n, width, shard.name,
                                    FormatCount(shard.count), FormatBytes(shard.bound_bytes)));
  }
  return out;
}

// A folder that could not be listed may be all of its class: if it is planned anyway, the classes
// after that get other numbers.
std::vector<std::string> UnreadFolders(const Listing& listing) {
  std::vector<std::string> warnings;
  const size_t count = listing.unread_folders.size();
  if (count == 0) return warnings;
  using Have = UnreadClasses::Have;
  const UnreadClasses classes(listing);
  for (const UnreadFolder& folder : listing.unread_folders) {
    if (warnings.size() == kPlannedFolders) {
      warnings.push_back(StrCat("and ", count - kPlannedFolders, " more folders like it"));
      break;
    }
    const Have have = classes.Of(folder);
    warnings.push_back(
        StrCat(EscapeForTerminal(folder.path),
               folder.reason == SkipReason::kVanished ? ": the folder vanished while it was listed"
               : folder.reason == SkipReason::kOutsideRoot
                   ? ": a link to a folder outside of the source, which "
                     "--follow follows"
               : folder.reason == SkipReason::kDangling
                   ? ": a link that leads nowhere, as one to a folder may"
                   : ": the folder cannot be listed (permission denied)",
               "; its files are not in the plan",
               listing.classes.empty()  ? ""
               : have == Have::kSamples ? ", though others of its class are"
               : have == Have::kNumber  ? ", and no other of its class, which keeps its number"
                                        : ", and the labels are numbered without it"));
  }
  return warnings;
}

std::string Json(const Plan& plan) {
  nlohmann::json shards = nlohmann::json::array();
  for (const PlannedShard& shard : plan.shards()) {
    shards.push_back({{"name", shard.name},
                      {"split", plan.splits()[shard.split]},
                      {"samples", shard.count},
                      {"bound_bytes", shard.bound_bytes}});
  }
  nlohmann::json splits = nlohmann::json::object();
  const std::vector<uint64_t> counts = SplitCounts(plan);
  for (size_t i = 0; i < counts.size(); ++i) splits[plan.splits()[i]] = counts[i];
  std::vector<std::string> classes, notes;
  for (const std::string& name : plan.listing().classes) classes.push_back(PercentEscape(name));
  for (const std::string& note : plan.notes()) notes.push_back(PercentEscape(note));
  for (const std::string& note : UnreadFolders(plan.listing())) notes.push_back(note);
  const nlohmann::json json = {{"schema", "shardpack.plan/1"},
                               {"plan", StrCat("xxh3:", plan.digest().ToHex())},
                               {"source", PercentEscape(plan.listing().root)},
                               {"format", plan.format().name},
                               {"layout", plan.layout()},
                               {"seen", plan.listing().rows() + plan.listing().left_out},
                               {"samples", plan.positions()},
                               {"filtered", plan.filtered() + plan.listing().left_out},
                               {"skipped", plan.listing().skips.size() + plan.skips().size()},
                               {"source_bytes", SourceBytes(plan)},
                               {"bound_bytes", plan.bound_bytes()},
                               {"index_keys", plan.index_keys()},
                               {"classes", classes},
                               {"splits", splits},
                               {"notes", notes},
                               {"shards", shards}};
  return json.dump() + "\n";
}

// Removes only what a killed run has left of a plan. False if that run is still alive.
absl::StatusOr<bool> RemoveLeftover(const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    return absl::FailedPreconditionError(StrCat(EscapeForTerminal(path),
                                                " is not what a killed run of pack has left (", why,
                                                "); move it away, or --write to another folder"));
  };
  // Do not follow a link.
  const int descriptor = ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) {
    const int error = errno;
    if (error == ENOENT) return true;
    const absl::Status failed = IoStatus("open", path, error);
    return IsAboutThePath(failed) ? refuse(std::string(failed.message())) : failed;
  }
  const File old(descriptor, path);
  struct stat facts;
  if (::fstat(descriptor, &facts) != 0) return IoStatus("look at", path, errno);
  if (!S_ISREG(facts.st_mode)) return refuse("no regular file");
  ASSIGN_OR_RETURN(const bool dead, LockNamed(old, AT_FDCWD, path));
  if (!dead) return false;
  std::string begins(kPlanMagic.size(), '\0');
  ASSIGN_OR_RETURN(const size_t got, old.ReadAt(0, std::as_writable_bytes(std::span(begins))));
  begins.resize(got);
  if (!kPlanMagic.starts_with(begins)) return refuse("no plan");
  RETURN_IF_ERROR(RemoveFile(path));
  return true;
}

// Creates the temporary file for the plan. Its name is always the same, so that the next run
// removes what a killed run has left.
absl::StatusOr<std::unique_ptr<StagedFile>> CreatePart(const std::string& plan) {
  const size_t base = plan.rfind('/') + 1;
  const std::string path = StrCat(plan.substr(0, base), ".", plan.substr(base), ".pack-part");
  ASSIGN_OR_RETURN(const bool there, Exists(path));
  const absl::Status busy = absl::FailedPreconditionError(
      StrCat("another run of pack is writing the plan ", EscapeForTerminal(plan), " (",
             EscapeForTerminal(path), ")"));
  if (there) {
    ASSIGN_OR_RETURN(const bool removed, RemoveLeftover(path));
    if (!removed) return busy;
  }
  absl::StatusOr<std::unique_ptr<StagedFile>> staged = StagedFile::Create(path);
  if (absl::IsAlreadyExists(staged.status())) return busy;
  if (!staged.ok()) return staged;
  ASSIGN_OR_RETURN(const bool ours, LockNamed((*staged)->file(), AT_FDCWD, path));
  if (!ours) return busy;
  return staged;
}

absl::StatusOr<Digest> HashOf(const std::string& path) {
  ASSIGN_OR_RETURN(const File file, File::OpenRead(path));
  ASSIGN_OR_RETURN(const uint64_t bytes, file.Size());
  return SequentialReader(file, bytes).Finish();
}

// Writes atomically, and never replaces a file: workers may be using it. `again`: that this very
// plan is there already is not an error.
absl::Status Write(const Plan& plan, const std::string& path, bool again) {
  ASSIGN_OR_RETURN(std::unique_ptr<StagedFile> staged, CreatePart(path));
  absl::Status status =
      plan.WriteTo([&](std::string_view part) { return staged->Append(AsBytes(part)); });
  if (status.ok()) status = staged->SyncData();
  if (status.ok()) status = staged->Publish(path);
  struct stat facts;
  if (absl::IsAlreadyExists(status) && ::stat(path.c_str(), &facts) == 0 &&
      S_ISDIR(facts.st_mode)) {
    return absl::AlreadyExistsError(
        StrCat(EscapeForTerminal(path), " is a folder; name a file in it with --write"));
  }
  if (absl::IsAlreadyExists(status) && again) {
    ASSIGN_OR_RETURN(const Digest mine, HashOf(staged->path()));
    ASSIGN_OR_RETURN(const Digest there, HashOf(path));
    if (mine == there) return absl::OkStatus();
  }
  if (absl::IsAlreadyExists(status)) {
    return absl::AlreadyExistsError(StrCat("the plan ", EscapeForTerminal(path),
                                           " exists; --write another file, or remove it"));
  }
  return status;
}

absl::Status CheckSource(const CommandLine& line) {
  const bool given = !line.arguments.empty() || !line.pack().plan_file.empty();
  if (given && !line.pack().lists.empty()) {
    return absl::InvalidArgumentError("give either SRC or --from, not both");
  }
  if (given || !line.pack().lists.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "which folder shall be planned? As in: pack plan photos/, or pack plan --from lists/");
}

// Prints the commands that build the plan with two workers; any other division works.
void SayWorkers(const Plan& plan, const CommandLine& line, const std::string& jobs,
                Terminal& terminal) {
  const size_t shards = plan.shards().size(), workers = std::min<size_t>(shards, 2);
  const std::string out = ShellQuoted(!line.pack().out.empty() ? line.pack().out
                                      : line.arguments.empty() ? std::string("shards")
                                                               : OutFor(line.arguments[0]));
  std::string text =
      StrCat("The plan is in ", EscapeForTerminal(line.pack().write_plan), ". Workers build its ",
             Counted(shards, "shard", "shards"), ", each a part of its own, as in");
  for (size_t part = 1; part <= workers; ++part) {
    StrAppend(&text, "\n  ", TypedProgram(), " build --plan ", ShellQuoted(line.pack().write_plan),
              " -o ", out, " --worker ", part, "/", workers);
  }
  terminal.Say(
      StrCat(text, "\nand one of them at the end:\n  ", TypedProgram(), " commit ", out, jobs));
}

}  // namespace

ExitCode RunPlan(const CommandLine& line, Terminal& terminal) {
  absl::Status status = CheckSource(line);
  if (status.ok() && !line.pack().out.empty())
    status = CheckOut(line.pack().out, line.arguments.empty() ? "" : line.arguments[0]);
  if (status.ok()) status = CheckJobFlags(line);
  if (!status.ok()) return Fail(status, terminal);
  IoPool pool(line.run.io_depth);
  absl::StatusOr<Prepared> prepared = Prepare(line, pool, terminal);
  if (!prepared.ok()) return Fail(prepared.status(), terminal);
  const Plan& plan = prepared->plan;
  status = plan.CheckAllSlices();  // the worker's --dry-run has read none
  if (!status.ok()) return Fail(status, terminal);
  for (const std::string& warning : UnreadFolders(plan.listing())) terminal.Warn(warning);
  const absl::StatusOr<std::vector<std::string>> gaps = ClassGaps(plan, {});
  if (!gaps.ok()) return Fail(gaps.status(), terminal);
  for (const std::string& warning : *gaps) terminal.Warn(warning);
  const absl::StatusOr<JobFiles> jobs = PlanClusterJobs(line, plan);
  if (!jobs.ok()) return Fail(jobs.status(), terminal);
  if (!line.pack().write_plan.empty()) {
    status = CheckShared(plan);
    if (status.ok()) status = Write(plan, line.pack().write_plan, /*again=*/!jobs->files.empty());
    if (!status.ok()) return Fail(status, terminal);
  }
  status = WriteClusterJobs(*jobs);
  if (!status.ok()) return Fail(status, terminal);
  if (!line.pack().write_plan.empty()) SayWorkers(plan, line, jobs->next, terminal);
  if (line.quiet && !line.json) return ExitCode::kDone;
  return PrintResult(line.json ? Json(plan) : Text(plan), terminal);
}

}  // namespace shardpack::cli
