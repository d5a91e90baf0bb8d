#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/commands/commands.h"
#include "cli/commands/result_file.h"
#include "cli/commands/selection.h"
#include "cli/flags/failure.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/stop_signal.h"
#include "cli/terminal/units.h"
#include "converters/listing/key_list.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"
#include "validators/looking/copies_report.h"

namespace shardpack::cli {
namespace {

using absl::StrAppend;
using absl::StrCat;

constexpr size_t kShownGroups = 20, kShownSamples = 6, kNamedClasses = 5;

struct Inputs {
  std::vector<Dataset> datasets;
  std::vector<std::string> names;
  DatasetDamage damage;
};

// Each dataset by itself; shards that follow each other are one dataset together.
absl::StatusOr<Inputs> Open(const std::vector<std::string>& paths, Terminal& terminal) {
  Inputs inputs;
  for (size_t begin = 0, end = 0; begin < paths.size(); begin = end) {
    const auto kind_of = [&](size_t at) { return KindOfInput({&paths[at], 1}); };
    ASSIGN_OR_RETURN(const InputKind kind, kind_of(begin));
    for (end = begin + 1; kind == InputKind::kShards && end < paths.size(); ++end) {
      ASSIGN_OR_RETURN(const InputKind next, kind_of(end));
      if (next != kind) break;
    }
    const std::span<const std::string> some(paths.data() + begin, end - begin);
    ASSIGN_OR_RETURN(Dataset dataset, OpenCompared(some, terminal, inputs.damage));
    inputs.datasets.push_back(std::move(dataset));
    inputs.names.push_back(paths[begin]);
  }
  return inputs;
}

// The key, or which record of which shard it is.
std::string SampleName(const RowFacts& facts) {
  return facts.key.empty() ? StrCat(EscapeForTerminal(facts.shard), " record ", facts.at.record)
                           : EscapeForTerminal(facts.key);
}

// The same dataset twice would make every sample a copy.
absl::Status CheckDiffer(const std::vector<std::string>& paths) {
  std::map<std::pair<dev_t, ino_t>, std::string> seen;
  for (const std::string& path : paths) {
    struct stat facts;
    if (::stat(path.c_str(), &facts) != 0) continue;
    const auto [first, fresh] = seen.emplace(std::pair(facts.st_dev, facts.st_ino), path);
    if (fresh) continue;
    return absl::InvalidArgumentError(StrCat(EscapeForTerminal(first->second), " and ",
                                             EscapeForTerminal(path),
                                             " are the same; name it once"));
  }
  return absl::OkStatus();
}

class CopiesText {
 public:
  CopiesText(const CopiesReport& report, const Inputs& inputs) : report_(report), inputs_(inputs) {}

  // `brief`: the groups alone.
  absl::StatusOr<std::string> Write(bool brief) {
    RETURN_IF_ERROR(Groups());
    if (!brief) Summary();
    return std::move(out_);
  }

 private:
  absl::Status Groups();
  absl::Status Group(const char* kind, const CopyGroup& group, const std::vector<int>* distances);
  void Summary();

  const CopiesReport& report_;
  const Inputs& inputs_;
  std::string out_;
};

absl::Status CopiesText::Group(const char* kind, const CopyGroup& group,
                               const std::vector<int>* distances) {
  StrAppend(&out_, kind, group.label_conflict ? ", label conflict" : "",
            group.unread_labels ? ", labels not read" : "", group.leak ? ", leakage" : "", "\n");
  for (size_t i = 0; i < group.rows.size(); ++i) {
    if (i == kShownSamples) {
      StrAppend(&out_, "  and ", FormatCount(group.rows.size() - i), " more\n");
      break;
    }
    ASSIGN_OR_RETURN(const RowFacts facts, report_.rows.Facts(group.rows[i]));
    StrAppend(&out_, "  ",
              inputs_.names.size() > 1
                  ? StrCat(EscapeForTerminal(inputs_.names[facts.dataset]), "  ")
                  : "",
              facts.split.empty() ? "" : StrCat(EscapeForTerminal(facts.split), "  "),
              facts.label < 0 ? "(no label)" : EscapeForTerminal(facts.class_name), "  ",
              SampleName(facts),
              distances != nullptr && i > 0 ? StrCat("  distance ", (*distances)[i]) : "", "\n");
  }
  return absl::OkStatus();
}

absl::Status CopiesText::Groups() {
  size_t shown = 0;
  for (const CopyGroup& group : report_.exact) {
    if (shown++ == kShownGroups) break;
    RETURN_IF_ERROR(Group("copies", group, nullptr));
  }
  if (report_.exact.size() > kShownGroups) {
    StrAppend(&out_, "and ", FormatCount(report_.exact.size() - kShownGroups),
              " more groups of copies; --json has them all\n");
  }
  shown = 0;
  for (const NearGroup& near : report_.near.groups) {
    if (shown++ == kShownGroups) break;
    RETURN_IF_ERROR(Group("alike", near.group, &near.distances));
  }
  if (report_.near.groups.size() > kShownGroups) {
    StrAppend(&out_, "and ", FormatCount(report_.near.groups.size() - kShownGroups),
              " more groups that look alike; --json has them all\n");
  }
  return absl::OkStatus();
}

// "3 groups: 1 with a label conflict, 2 with leakage".
std::string Counts(const std::vector<const CopyGroup*>& groups) {
  uint64_t conflicts = 0, leaks = 0, extra = 0;
  for (const CopyGroup* group : groups) {
    conflicts += group->label_conflict ? 1 : 0;
    leaks += group->leak ? 1 : 0;
    extra += group->rows.size() - 1;
  }
  return StrCat(Counted(groups.size(), "group", "groups"), ", ", FormatCount(extra),
                " more than one of each; ", FormatCount(conflicts), " with a label conflict, ",
                FormatCount(leaks), " with leakage");
}

void CopiesText::Summary() {
  std::vector<const CopyGroup*> exact, near;
  for (const CopyGroup& group : report_.exact) exact.push_back(&group);
  for (const NearGroup& group : report_.near.groups) near.push_back(&group.group);
  StrAppend(&out_, "copies    ", Counts(exact), "; of ", FormatCount(report_.rows.size()),
            " samples\n");
  if (!report_.with_near) return;
  StrAppend(&out_, "alike     ", Counts(near), "; at most ", report_.distance,
            " bits of 64 between neighbours\n");
  StrAppend(&out_, "decoded   ", FormatCount(report_.near.hashed + report_.near.flat), " images; ",
            FormatCount(report_.near.flat), " of nearly one color left out; ",
            FormatCount(report_.near.unread.count), " cannot be decoded",
            report_.near.damaged > 0
                ? StrCat(", of which ", FormatCount(report_.near.damaged), " cannot be read")
                : "",
            "\n");
}

// What makes label conflicts between datasets mean less than they say.
void WarnClasses(const Inputs& inputs, Terminal& terminal) {
  std::string named, numbered;
  for (size_t i = 0; i < inputs.datasets.size(); ++i)
    (inputs.datasets[i].classes().empty() ? numbered : named) = inputs.names[i];
  if (!named.empty() && !numbered.empty()) {
    terminal.Warn(StrCat("classes have names in ", EscapeForTerminal(named),
                         " and only numbers in ", EscapeForTerminal(numbered),
                         ": label conflicts between them are not looked for"));
  }
  const std::span<const std::string> first = inputs.datasets[0].classes();
  const std::set<std::string> known(first.begin(), first.end());
  for (size_t i = 1; i < inputs.datasets.size(); ++i) {
    const std::span<const std::string> classes = inputs.datasets[i].classes();
    if (first.empty() || classes.empty()) continue;
    const std::set<std::string> others(classes.begin(), classes.end());
    if (others == known) continue;
    const auto only = [](const std::set<std::string>& a, const std::set<std::string>& b) {
      std::string text;
      size_t count = 0;
      for (const std::string& name : a) {
        if (b.contains(name)) continue;
        if (++count <= kNamedClasses)
          StrAppend(&text, count > 1 ? ", " : "", EscapeForTerminal(name));
      }
      if (count == 0) return std::string("no class of its own");
      return StrCat("only it has ", text, count > kNamedClasses ? ", ..." : "");
    };
    terminal.Warn(StrCat("names of classes differ between ", EscapeForTerminal(inputs.names[0]),
                         " (", only(known, others), ") and ", EscapeForTerminal(inputs.names[i]),
                         " (", only(others, known),
                         "): one image under two names counts as a label conflict"));
  }
}

// Of copies whose labels are text, it is not known whether they have the same one.
void WarnUnreadLabels(const CopiesReport& report, Terminal& terminal) {
  const auto unread = [](const CopyGroup& group) { return group.unread_labels; };
  uint64_t groups =
      static_cast<uint64_t>(std::count_if(report.exact.begin(), report.exact.end(), unread));
  for (const NearGroup& near : report.near.groups) groups += unread(near.group) ? 1 : 0;
  if (groups == 0) return;
  terminal.Warn(
      StrCat(Counted(groups, "group has", "groups have"),
             " samples whose label is a text in cls, which this does not read, beside "
             "other texts or labels: whether they conflict is not known, and --write-list "
             "lists all of their samples"));
}

// A distance that links what is not alike makes one group of nearly everything.
void WarnLargeGroup(const CopiesReport& report, Terminal& terminal) {
  constexpr size_t kSmall = 20;
  size_t largest = 0;
  for (const NearGroup& near : report.near.groups)
    largest = std::max(largest, near.group.rows.size());
  if (largest < kSmall || largest * 10 < report.rows.size()) return;
  terminal.Warn(StrCat("one group of images that look alike has ", FormatCount(largest), " of ",
                       FormatCount(report.rows.size()),
                       " samples: chains of neighbours may link images that are not alike; look "
                       "at it, or give a smaller --distance, before you use a list of these keys"));
}

void WarnUnread(const UnreadSamples& unread, const char* what, Terminal& terminal) {
  if (unread.count == 0) return;
  std::string text = StrCat(Counted(unread.count, "image", "images"), what);
  for (const std::string& message : unread.messages) StrAppend(&text, "\n  ", message);
  if (!unread.messages.empty() && unread.count > unread.messages.size())
    StrAppend(&text, "\n  and ", FormatCount(unread.count - unread.messages.size()), " more");
  terminal.Warn(text);
}

// What is wrong with the flags and with the place of the list.
absl::Status CheckDupsLine(const CommandLine& line) {
  const LookFlags& flags = line.look();
  if (!flags.near && line.Given("distance"))
    return absl::InvalidArgumentError("--distance is for --near");
  if (!flags.write_list.empty()) {
    RETURN_IF_ERROR(CheckResultFile("--write-list", flags.write_list, line.arguments, kKeyList));
    RETURN_IF_ERROR(CheckFolderOf("--write-list", flags.write_list));
  }
  return CheckDiffer(line.arguments);
}

// Writes the keys that packing again should leave out.
absl::Status WriteKeyList(const std::string& file, const CopiesReport& report, const Inputs& inputs,
                          Terminal& terminal) {
  // A key may be there again in what could not be looked at.
  if (!inputs.damage.not_looked_at.empty()) {
    return absl::DataLossError(
        "no list is written of a dataset some of whose indexes cannot be read; repair it first");
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> keys, KeysToLeaveOut(report));
  const std::string identity = IdentityText(inputs.datasets[0].identity());
  RETURN_IF_ERROR(WriteResultFile(file, KeyListText(identity, keys)));
  terminal.Say(
      StrCat("wrote ", Counted(keys.size(), "key", "keys"), " to ", EscapeForTerminal(file)));
  return absl::OkStatus();
}

}  // namespace

ExitCode RunDups(const CommandLine& line, Terminal& terminal) {
  const LookFlags& flags = line.look();
  if (const absl::Status fits = CheckDupsLine(line); !fits.ok()) return Fail(fits, terminal);
  const absl::StatusOr<Inputs> inputs = Open(line.arguments, terminal);
  if (!inputs.ok()) return Fail(inputs.status(), terminal);
  WarnClasses(*inputs, terminal);
  NearProgress counts;
  Progress progress(terminal);
  if (flags.near) {
    progress.Watch([&] {
      ProgressView view;
      view.stage = "hashing";
      view.done = counts.done;
      view.total = counts.total;
      view.bytes_in = counts.bytes;
      view.errors = counts.bad;
      return view;
    });
  }
  absl::StatusOr<CopiesReport> report = FindCopies(
      inputs->datasets, {.near = flags.near, .distance = flags.distance, .jobs = line.run.Jobs()},
      counts, StopSignal());
  progress.End();
  if (!report.ok()) return Fail(report.status(), terminal);
  report->damage = inputs->damage;
  WarnUnread(report->unread, " could not be read; believed to be what the index says", terminal);
  WarnUnread(report->near.unread, " cannot be read or decoded", terminal);
  WarnUnreadLabels(*report, terminal);
  WarnLargeGroup(*report, terminal);
  const bool damaged = inputs->damage.any() || report->unread.count > 0 || report->near.damaged > 0;
  for (const Dataset& dataset : inputs->datasets) {
    const absl::Status there = damaged ? dataset.CheckNotReplaced() : absl::OkStatus();
    if (!there.ok()) return Fail(there, terminal);
  }
  ExitCode code = damaged                          ? ExitCode::kDamage
                  : flags.check && report->found() ? ExitCode::kFound
                                                   : ExitCode::kDone;
  absl::Status written;
  if (!flags.write_list.empty())
    written = WriteKeyList(flags.write_list, *report, *inputs, terminal);
  Results results;
  if (line.json) {
    written.Update(WriteJson(*report, [&](std::string_view text) { results.Write(text); }));
  } else if (absl::StatusOr<std::string> text = CopiesText(*report, *inputs).Write(line.quiet);
             text.ok()) {
    results.Write(*text);
  } else {
    written.Update(text.status());
  }
  if (!written.ok()) code = Worse(code, Fail(written, terminal));
  return FinishResults(results, code, terminal);
}

}  // namespace shardpack::cli
