#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/commands/commands.h"
#include "cli/commands/rows.h"
#include "cli/commands/selection.h"
#include "cli/flags/failure.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/stop_signal.h"
#include "cli/terminal/units.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"
#include "validators/looking/dataset_stats.h"

namespace shardpack::cli {
namespace {

using absl::StrAppend;
using absl::StrCat;

constexpr size_t kShownClasses = 20, kShownSplits = 6, kBarColumns = 24, kShownReasons = 10;

std::string Escaped(std::string_view text) { return EscapeForTerminal(text); }

// "1,249-1,251", or one number if both are the same.
template <typename Format>
std::string Span(uint64_t low, uint64_t high, const Format& format) {
  return low == high ? format(low) : StrCat(format(low), "-", format(high));
}

std::string Head(const DatasetStats& stats) {
  std::string out = StrCat(
      "samples   ", FormatCount(stats.samples), " in ", Counted(stats.shards, "shard", "shards"),
      " of ", stats.format, stats.layout.empty() ? "" : StrCat(", layout ", stats.layout),
      stats.unread_shards > 0
          ? StrCat("; not looked at: ", Counted(stats.unread_shards, "shard", "shards"))
          : "",
      stats.has_manifest ? "" : " (no manifest: scanned)", "\n");
  StrAppend(&out, "size      ", FormatBytes(stats.shard_bytes), ", ",
            FormatBytes(stats.image_bytes), " of it images\n");
  for (const SplitStats& split : stats.splits) {
    StrAppend(&out, "split     ",
              split.name.empty() ? std::string("(without a name)") : Escaped(split.name), " ",
              FormatCount(split.samples), " in ", Counted(split.shards, "shard", "shards"), " of ",
              Span(split.min_shard_samples, split.max_shard_samples, FormatCount), " samples, ",
              Span(split.min_shard_bytes, split.max_shard_bytes, FormatBytes), "\n");
  }
  return out;
}

std::string Classes(const DatasetStats& stats, bool utf8) {
  if (stats.classes.empty()) return "";
  std::vector<const ClassStats*> shown;
  for (const ClassStats& each : stats.classes) shown.push_back(&each);
  const auto larger = [](const ClassStats* a, const ClassStats* b) {
    return a->samples != b->samples ? a->samples > b->samples : a->label < b->label;
  };
  // The largest ones, in the order of their labels.
  if (shown.size() > kShownClasses) {
    std::nth_element(shown.begin(), shown.begin() + kShownClasses, shown.end(), larger);
    shown.resize(kShownClasses);
    std::sort(shown.begin(), shown.end(),
              [](const ClassStats* a, const ClassStats* b) { return a->label < b->label; });
  }
  const bool with_splits = stats.splits.size() > 1 && stats.splits.size() <= kShownSplits;
  std::vector<Align> columns = {Align::kLeft, Align::kRight, Align::kRight};
  std::vector<std::string> head = {"class", "samples", "share"};
  if (with_splits) {
    columns.insert(columns.begin() + 1, stats.splits.size(), Align::kRight);
    for (size_t i = 0; i < stats.splits.size(); ++i)
      head.insert(head.begin() + 1 + static_cast<ptrdiff_t>(i), Escaped(stats.splits[i].name));
  }
  columns.push_back(Align::kLeft);
  Rows rows(columns);
  rows.Add(head);
  const uint64_t most =
      shown.empty() ? 0 : (*std::min_element(shown.begin(), shown.end(), larger))->samples;
  const auto add = [&](const std::string& name, const ClassStats& each) {
    std::vector<std::string> cells = {name};
    for (size_t i = 0; i < stats.splits.size() && with_splits; ++i)
      cells.push_back(FormatCount(each.by_split[i]));
    const double samples = static_cast<double>(each.samples);
    cells.push_back(FormatCount(each.samples));
    cells.push_back(absl::StrFormat(
        "%.1f %%", 100 * samples / static_cast<double>(std::max<uint64_t>(1, stats.samples))));
    cells.push_back(BarOf(std::min(1.0, samples / static_cast<double>(std::max<uint64_t>(1, most))),
                          kBarColumns, utf8));
    rows.Add(std::move(cells));
  };
  for (const ClassStats* each : shown) add(Escaped(each->name), *each);
  if (stats.unlabelled.samples > 0) add("(no label)", stats.unlabelled);
  std::string out = StrCat("\n", rows.Text());
  if (shown.size() < stats.classes.size()) {
    StrAppend(&out, "and ", FormatCount(stats.classes.size() - shown.size()),
              " smaller classes; --json has them all\n");
  }
  return out;
}

std::string Sizes(const DatasetStats& stats, bool utf8) {
  if (stats.bytes.count == 0) return "";
  Rows rows({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight,
             Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight,
             Align::kLeft});
  rows.Add({"", "min", "1 %", "5 %", "25 %", "median", "75 %", "95 %", "99 %", "max", ""});
  const auto add = [&](const char* name, const Distribution& values, const auto& format) {
    if (values.count == 0) return;
    std::vector<std::string> cells = {name};
    for (const double value : values.quantiles) cells.push_back(format(value));
    cells.push_back(Sparkline(values.counts, utf8));
    rows.Add(std::move(cells));
  };
  const auto whole = [](double value) { return FormatCount(static_cast<uint64_t>(value)); };
  add("width", stats.width, whole);
  add("height", stats.height, whole);
  add("aspect", stats.aspect, [](double value) { return absl::StrFormat("%.2f", value); });
  add("bytes", stats.bytes, [](double value) { return FormatBytes(static_cast<uint64_t>(value)); });
  return StrCat("\n", rows.Text());
}

std::string Images(const DatasetStats& stats) {
  std::vector<std::string> kinds, pixels, more;
  for (const auto& [name, count] : stats.formats)
    kinds.push_back(StrCat(FormatCount(count), " ", name));
  for (const auto& [name, count] : stats.pixels)
    pixels.push_back(StrCat(FormatCount(count), " ", name));
  const auto add = [&](uint64_t count, const char* what) {
    if (count > 0) more.push_back(StrCat(FormatCount(count), " ", what));
  };
  add(stats.progressive, "progressive");
  add(stats.animated, "animated");
  add(stats.alpha, "with transparency");
  add(stats.turned, "turned by EXIF");
  add(stats.truncated, "truncated");
  add(stats.without_facts, "of unknown size");
  std::string out = "\n";
  if (!kinds.empty())
    StrAppend(&out, "images    ", absl::StrJoin(kinds, ", "), "; ", absl::StrJoin(pixels, "; "),
              "\n");
  if (!more.empty()) StrAppend(&out, "          ", absl::StrJoin(more, ", "), "\n");
  std::vector<std::string> fields;
  for (const FieldStats& field : stats.fields)
    fields.push_back(StrCat(Escaped(field.name), " ", FormatCount(field.samples)));
  if (!fields.empty()) StrAppend(&out, "fields    ", absl::StrJoin(fields, ", "), "\n");
  for (const auto& [name, numbers] : stats.pixel_stats)
    StrAppend(&out, PaddedTo(10, name), Escaped(numbers), "\n");
  return out;
}

std::string LeftOut(const DatasetStats& stats) {
  std::string out;
  if (stats.skipped.count > 0) {
    std::vector<std::string> reasons;
    for (const auto& [reason, count] : stats.skipped.by_reason) {
      if (reasons.size() == kShownReasons) {
        reasons.push_back("...");
        break;
      }
      reasons.push_back(StrCat(FormatCount(count), " ", Escaped(reason)));
    }
    StrAppend(&out, "skipped   ", FormatCount(stats.skipped.count), ": ",
              absl::StrJoin(reasons, ", "), "; listed in skipped.jsonl\n");
  }
  if (stats.filtered > 0)
    StrAppend(&out, "filtered  ", FormatCount(stats.filtered), ", as the options asked\n");
  if (stats.copies.groups > 0) {
    StrAppend(&out, "copies    ",
              Counted(stats.copies.extra, "sample is a copy", "samples are copies"),
              " of another; pack dups names them\n");
  }
  return out;
}

std::string Notes(const DatasetStats& stats) {
  std::string out;
  for (const StatsNote& note : stats.notes)
    StrAppend(&out, "look at   ", NoteText(note, EscapeForTerminal), "\n");
  return out;
}

std::string Text(const DatasetStats& stats, bool utf8) {
  const std::string notes = Notes(stats);
  return StrCat(Head(stats), Classes(stats, utf8), Sizes(stats, utf8), Images(stats),
                LeftOut(stats), "dataset   ", stats.identity, "\n", notes.empty() ? "" : "\n",
                notes);
}

void WarnOf(const DatasetStats& stats, Terminal& terminal) {
  WarnDamage(
      stats.damaged_files,
      "the dataset is damaged; what the indexes say of these files is in the numbers, as far as "
      "these can be read:",
      terminal);
  WarnDamage(stats.not_looked_at,
             StrCat("the dataset is damaged; not in the numbers",
                    stats.unread_shards > 0 ? ", so that there are no notes and no copies:" : ":"),
             terminal);
}

// Adds the notes of images that do not decode, or show nothing. How many cannot be read.
absl::StatusOr<uint64_t> Decode(const Dataset& dataset, DatasetStats& stats, Terminal& terminal) {
  // What cannot be looked at has been said.
  if (stats.unread_shards > 0) return uint64_t{0};
  NearProgress counts;
  Progress progress(terminal);
  progress.Watch([&] {
    ProgressView view;
    view.stage = "decoding";
    view.done = counts.done;
    view.total = counts.total;
    view.bytes_in = counts.bytes;
    view.errors = counts.bad;
    return view;
  });
  const SampleRows rows({&dataset, 1});
  const absl::StatusOr<NearCopies> decoded =
      FindNearCopies(rows, {.distance = 0}, counts, StopSignal());
  progress.End();
  if (!decoded.ok()) return decoded.status();
  AddDecodedNotes(rows, *decoded, stats);
  if (decoded->damaged > 0) {
    RETURN_IF_ERROR(dataset.CheckNotReplaced());
    terminal.Warn(StrCat(Counted(decoded->damaged, "image", "images"), " cannot be read"));
  }
  return decoded->damaged;
}

}  // namespace

ExitCode RunStats(const CommandLine& line, Terminal& terminal) {
  StatsOptions options{.in_spite_of_damage = true};
  const absl::StatusOr<Dataset> dataset =
      OpenShownDamaged(line.arguments, terminal, options.damaged_files);
  if (!dataset.ok()) return Fail(dataset.status(), terminal);
  if (dataset->manifest() != nullptr) options.folder = line.arguments[0];
  absl::StatusOr<DatasetStats> stats = GatherStats(*dataset, options);
  if (!stats.ok()) return Fail(stats.status(), terminal);
  bool damaged = stats->damaged();
  if (line.look().decode) {
    const absl::StatusOr<uint64_t> unread = Decode(*dataset, *stats, terminal);
    if (!unread.ok()) return Fail(unread.status(), terminal);
    damaged = damaged || *unread > 0;
  }
  WarnOf(*stats, terminal);
  Results results;
  if (line.json) {
    results.Write(ToJson(*stats));
  } else {
    results.Write(line.quiet ? Notes(*stats) : Text(*stats, terminal.utf8()));
  }
  const bool found = line.look().check && !stats->notes.empty();
  return FinishResults(results,
                       damaged ? ExitCode::kDamage
                       : found ? ExitCode::kFound
                               : ExitCode::kDone,
                       terminal);
}

}  // namespace shardpack::cli
