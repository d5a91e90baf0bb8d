#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/commands/commands.h"
#include "cli/commands/selection.h"
#include "cli/flags/failure.h"
#include "cli/terminal/units.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"
#include "validators/looking/dataset_diff.h"

namespace shardpack::cli {
namespace {

using absl::StrAppend;
using absl::StrCat;

constexpr uint64_t kShownChanges = 20;  // of each kind
constexpr size_t kShownClasses = 20;

std::string Escaped(const std::string& text) { return EscapeForTerminal(text); }

std::string ClassOf(const RowFacts& facts) {
  return facts.label < 0 ? "(no label)" : Escaped(facts.class_name);
}

// What was compared of the label.
std::string ComparedLabel(const DatasetDiff& diff, const RowFacts& facts) {
  return facts.label >= 0 && diff.labels_by_number ? StrCat(facts.label) : ClassOf(facts);
}

// The key, or which record of which shard it is.
std::string NameOf(const RowFacts& facts) {
  return facts.key.empty() ? StrCat(Escaped(facts.shard), " record ", facts.at.record)
                           : Escaped(facts.key);
}

// "train  cat" of a sample that only one side has.
std::string PlaceOf(const RowFacts& facts) {
  return StrCat(facts.split.empty() ? "" : StrCat(Escaped(facts.split), "  "), ClassOf(facts));
}

absl::StatusOr<std::string> ChangeLine(const DatasetDiff& diff, const SampleChange& change,
                                       ChangeKind kind) {
  const bool added = kind == ChangeKind::kAdded, removed = kind == ChangeKind::kRemoved;
  ASSIGN_OR_RETURN(const RowFacts was, diff.rows.Facts(added ? change.now : change.was));
  ASSIGN_OR_RETURN(const RowFacts now, diff.rows.Facts(removed ? change.was : change.now));
  const std::string key = NameOf(was);
  switch (kind) {
    case ChangeKind::kAdded:
      return StrCat("+ ", NameOf(now), "  ", PlaceOf(now));
    case ChangeKind::kRemoved:
      return StrCat("- ", key, "  ", PlaceOf(was));
    case ChangeKind::kContent:
      return StrCat("M ", key, "  ", FormatCount(was.bytes), " -> ", FormatCount(now.bytes),
                    " bytes");
    case ChangeKind::kRelabelled:
      return StrCat("L ", key, "  ", ComparedLabel(diff, was), " -> ", ComparedLabel(diff, now));
    case ChangeKind::kMoved:
      return StrCat("S ", key, "  ", Escaped(was.split), " -> ", Escaped(now.split));
    case ChangeKind::kRenamed:
      return was.key == now.key
                 ? StrCat("R ", Escaped(was.source_path), " -> ", Escaped(now.source_path))
                 : StrCat("R ", key, " -> ", NameOf(now));
    case ChangeKind::kFields: {
      ASSIGN_OR_RETURN(const std::vector<std::string> names, ChangedFields(diff, change));
      return StrCat("F ", key, "  ", Escaped(absl::StrJoin(names, ", ")));
    }
    case ChangeKind::kCount:
      break;
  }
  return "";
}

absl::Status AppendChanges(const DatasetDiff& diff, std::string* out) {
  for (size_t n = 0; n < diff.counts.size(); ++n) {
    const auto kind = static_cast<ChangeKind>(n);
    uint64_t shown = 0;
    for (const SampleChange& change : diff.changes) {
      if (shown == kShownChanges) break;
      if (!change.Has(kind)) continue;
      ASSIGN_OR_RETURN(const std::string line, ChangeLine(diff, change, kind));
      StrAppend(out, line, "\n");
      ++shown;
    }
    if (diff.counts[n] > shown) {
      StrAppend(out, "  and ", FormatCount(diff.counts[n] - shown), " more ",
                std::string(ChangeWord(kind)), "; --json has them all\n");
    }
  }
  return absl::OkStatus();
}

void AppendClasses(const DatasetDiff& diff, std::string* out) {
  size_t shown = 0;
  for (const ClassDifference& each : diff.classes) {
    if (shown++ == kShownClasses) {
      StrAppend(out, "  and ", FormatCount(diff.classes.size() - kShownClasses),
                " more classes; --json has them all\n");
      break;
    }
    const std::string name = Escaped(each.name);
    StrAppend(out,
              each.was < 0   ? StrCat("class + ", name, " (", each.now, ")")
              : each.now < 0 ? StrCat("class - ", name, " (", each.was, ")")
                             : StrCat("class ", name, "  ", each.was, " -> ", each.now),
              "\n");
  }
}

// "added 3, removed 1; 17 are the same".
std::string Summary(const DatasetDiff& diff) {
  std::vector<std::string> counts;
  for (size_t kind = 0; kind < diff.counts.size(); ++kind) {
    if (diff.counts[kind] > 0)
      counts.push_back(StrCat(std::string(ChangeWord(static_cast<ChangeKind>(kind))), " ",
                              FormatCount(diff.counts[kind])));
  }
  // Of samples that nobody could look at on the other side, nothing is known.
  if (counts.empty() && diff.same == 0 && !diff.not_compared.empty())
    return "no sample was compared\n";
  return StrCat(counts.empty() ? "no sample differs" : absl::StrJoin(counts, ", "), "; ",
                FormatCount(diff.same), " are the same\n");
}

// `brief`: what differs between the samples and classes alone.
absl::StatusOr<std::string> Text(const DatasetDiff& diff, bool brief) {
  std::string out = brief ? "" : Summary(diff);
  RETURN_IF_ERROR(AppendChanges(diff, &out));
  for (const FieldDifference& field : diff.fields) {
    StrAppend(&out, "field ", Escaped(field.name), "  lost ", FormatCount(field.lost), ", gained ",
              FormatCount(field.gained), ", changed ", FormatCount(field.changed), "\n");
  }
  AppendClasses(diff, &out);
  if (brief) return out;
  for (const OptionDifference& option : diff.options) {
    const auto value = [](const std::string& text) {
      return text.empty() ? std::string("(none)") : Escaped(text);
    };
    StrAppend(&out, "option ", Escaped(option.name), "  ", value(option.was), " -> ",
              value(option.now), "\n");
  }
  for (const std::string& text : diff.not_compared) StrAppend(&out, "not compared: ", text, "\n");
  return out;
}

}  // namespace

ExitCode RunDiff(const CommandLine& line, Terminal& terminal) {
  std::vector<Dataset> datasets;
  DatasetDamage damage;
  std::vector<bool> partial;
  for (const std::string& path : line.arguments) {
    const size_t before = damage.not_looked_at.size();
    absl::StatusOr<Dataset> dataset = OpenCompared({&path, 1}, terminal, damage);
    if (!dataset.ok()) return Fail(dataset.status(), terminal);
    datasets.push_back(*std::move(dataset));
    partial.push_back(damage.not_looked_at.size() > before);
  }
  absl::StatusOr<DatasetDiff> diff = DiffDatasets(
      datasets[0], datasets[1],
      {.by = line.look().by, .was_is_partial = partial[0], .now_is_partial = partial[1]});
  if (!diff.ok()) return Fail(diff.status(), terminal);
  diff->damage = std::move(damage);
  Results results;
  absl::Status written;
  if (line.json) {
    written = WriteJson(*diff, [&](std::string_view text) { results.Write(text); });
  } else if (const absl::StatusOr<std::string> text = Text(*diff, line.quiet); text.ok()) {
    results.Write(*text);
  } else {
    written = text.status();
  }
  const ExitCode code = !written.ok()                          ? Fail(written, terminal)
                        : diff->damage.any()                   ? ExitCode::kDamage
                        : line.look().check && diff->differs() ? ExitCode::kFound
                                                               : ExitCode::kDone;
  return FinishResults(results, code, terminal);
}

}  // namespace shardpack::cli
