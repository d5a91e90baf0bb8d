#include "validators/looking/report_sections.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "validators/looking/report_parts.h"
#include "validators/looking/svg_charts.h"

namespace shardpack::report_sections {
namespace {

using absl::StrCat;

constexpr size_t kShownClasses = 100, kShownSplits = 8, kShownRows = 50, kLongestMessage = 600;
constexpr size_t kShownReasons = 20;

// The classes that have a row: all, or the largest and all small ones as far as there is room.
std::vector<const ClassStats*> ShownClasses(const DatasetStats& stats) {
  std::vector<const ClassStats*> shown;
  for (const ClassStats& each : stats.classes) shown.push_back(&each);
  if (shown.size() <= kShownClasses) return shown;
  std::stable_sort(shown.begin(), shown.end(), [](const ClassStats* a, const ClassStats* b) {
    return a->samples > b->samples;
  });
  shown.erase(shown.begin() + kShownClasses / 2, shown.end() - kShownClasses / 2);
  return shown;
}

void WriteClassRow(HtmlWriter& page, const std::string& name, const ClassStats& each,
                   const DatasetStats& stats, uint64_t most, bool with_splits) {
  const auto share_of = [](uint64_t samples, uint64_t all) {
    return static_cast<double>(samples) / static_cast<double>(std::max<uint64_t>(1, all));
  };
  page.Open("tr");
  page.Element("th", name, {{"scope", "row"}});
  std::vector<double> parts;
  for (size_t split = 0; split < stats.splits.size() && with_splits; ++split) {
    page.Element("td", Whole(each.by_split[split]));
    parts.push_back(share_of(each.by_split[split], most));
  }
  if (!with_splits) parts.push_back(share_of(each.samples, most));
  page.Element("td", Whole(each.samples));
  page.Element("td", absl::StrFormat("%.2f %%", 100 * share_of(each.samples, stats.samples)));
  page.Open("td");
  WriteBar(page, parts);
  page.Close();
  page.Close();
  page.NewLine();
}

std::string RangeOf(uint64_t low, uint64_t high, std::string (*format)(uint64_t)) {
  return low == high ? format(low) : StrCat(format(low), " to ", format(high));
}

template <typename Map>
std::string Listed(const Map& counts) {
  std::string text;
  size_t shown = 0;
  for (const auto& [name, count] : counts) {
    if (shown++ == kShownReasons)
      return StrCat(text, "; and ", Whole(counts.size() - kShownReasons), " more");
    absl::StrAppend(&text, text.empty() ? "" : "; ", Whole(count), " ", Shortened(name));
  }
  return text;
}

// `all`: how many there are, of which messages tell about the first ones.
void WriteMessages(HtmlWriter& page, const std::string& head,
                   const std::vector<std::string>& messages, uint64_t all) {
  page.Element("p", head, {{"class", "alert"}});
  page.Open("ul");
  const size_t shown = std::min(kShownRows, messages.size());
  for (size_t i = 0; i < shown; ++i) page.Element("li", Shortened(messages[i], kLongestMessage));
  page.Close();
  WriteRest(page, all, shown, "");
}

}  // namespace

void WriteHead(HtmlWriter& page, const std::string& name, const DatasetStats& stats) {
  page.Open("header");
  page.Element("h1", NamedOr(name, "dataset"));
  page.Element(
      "p",
      StrCat(Whole(stats.samples), " samples in ", Whole(stats.shards), " shards of ",
             Shortened(stats.format),
             stats.layout.empty() ? "" : StrCat(", layout ", Shortened(stats.layout)), "; ",
             ByteSize(stats.shard_bytes), "; ", Whole(stats.classes.size()), " classes; ",
             Whole(stats.splits.size()), stats.splits.size() == 1 ? " split" : " splits"),
      {{"id", "counts"}});
  page.Element("p", StrCat("dataset ", stats.identity), {{"class", "soft"}, {"id", "identity"}});
  page.Close();
  page.NewLine();
}

void WriteDamage(HtmlWriter& page, const DatasetStats& stats, const CopiesReport* copies) {
  const bool unread = copies != nullptr && copies->unread.count > 0;
  const bool near_damaged = copies != nullptr && copies->near.damaged > 0;
  if (!stats.damaged() && !unread && !near_damaged) return;
  OpenSection(page, "damage", "Damage");
  if (!stats.damaged_files.empty())
    WriteMessages(
        page,
        "Files of this dataset are missing, or have another size. What their indexes say "
        "is in the numbers, as far as these can be read; images that are gone are not shown:",
        stats.damaged_files, stats.damaged_files.size());
  if (!stats.not_looked_at.empty())
    WriteMessages(page,
                  "Parts of this dataset could not be read. Their samples are not in the numbers:",
                  stats.not_looked_at, stats.not_looked_at.size());
  if (unread)
    WriteMessages(page,
                  StrCat("Read to compare copies, and could not be read (",
                         Whole(copies->unread.count), "); believed to be what the index says:"),
                  copies->unread.messages, copies->unread.count);
  if (near_damaged)
    WriteMessages(
        page,
        StrCat("Images that were looked at for others alike: ", Whole(copies->near.damaged),
               " could not be read, ", Whole(copies->near.unread.count - copies->near.damaged),
               " could not be decoded:"),
        copies->near.unread.messages, copies->near.unread.count);
  CloseSection(page);
}

void WriteValidation(HtmlWriter& page, const ValidationFacts& facts, const std::string& identity) {
  OpenSection(page, "validation", "Validation");
  if (facts.identity != identity) {
    page.Element(
        "p",
        StrCat("This result is not of this dataset, but of ",
               facts.identity.empty() ? "one without identity" : Shortened(facts.identity)),
        {{"class", "alert"}});
  }
  page.Element("p", StrCat("Level ", Shortened(facts.level), ": ", Whole(facts.errors), " errors, ",
                           Whole(facts.warnings), " warnings in ", Whole(facts.records_checked),
                           " of ", Whole(facts.records), " records."));
  for (const std::string& gap : facts.not_checked)
    page.Element("p", StrCat("Not checked: ", Shortened(gap)));
  if (!facts.findings.empty()) {
    OpenTable(page, "Findings", /*words=*/true);
    WriteHeads(page, {"severity", "finding", "what", "shard", "key"});
    for (const ValidationFacts::Line& line : facts.findings)
      WriteRow(page, {Shortened(line.severity), Shortened(line.id), Shortened(line.message),
                      Shortened(line.shard), Shortened(line.key)});
    CloseTable(page);
  }
  if (facts.errors + facts.warnings > facts.findings.size())
    page.Element("p", StrCat("The first ", Whole(facts.findings.size()), " are shown."));
  CloseSection(page);
}

void WriteNotes(HtmlWriter& page, const DatasetStats& stats,
                const std::vector<StatsNote>& of_pictures) {
  const auto short_name = [](std::string_view name) { return Shortened(name); };
  OpenSection(page, "notes", "Worth a look");
  if (stats.unread_shards > 0) {
    page.Element(
        "p", StrCat("Classes, folders, fields and copies were not looked at: ",
                    Whole(stats.unread_shards), " of ", Whole(stats.unread_shards + stats.shards),
                    " shards could not be read, and what seems to be missing may be there."));
  }
  if (stats.unread_shards == 0 && stats.notes.empty() && of_pictures.empty()) {
    page.Element(
        "p", StrCat("Nothing suspicious was found: no copies",
                    stats.classes.empty()
                        ? ". Nothing has a label here, so there were no classes to look at."
                    : stats.classes_have_names
                        ? ", no class without samples, no folder of another class."
                        : ", no class without samples. Classes have no names here, so folders were "
                          "not compared with them."));
  } else if (!stats.notes.empty() || !of_pictures.empty()) {
    page.Open("ul");
    for (size_t i = 0; i < std::min(kShownRows, stats.notes.size()); ++i)
      page.Element("li", NoteText(stats.notes[i], short_name));
    for (const StatsNote& note : of_pictures)
      page.Element("li", absl::StrCat("Of the pictures below, ", NoteText(note, short_name)));
    page.Close();
    WriteRest(page, stats.notes.size(), kShownRows, "; pack stats has all of them");
  }
  CloseSection(page);
}

void WriteClasses(HtmlWriter& page, const DatasetStats& stats) {
  if (stats.classes.empty() && stats.unlabelled.samples == 0) return;
  OpenSection(page, "classes", "Classes");
  const std::vector<const ClassStats*> shown = ShownClasses(stats);
  if (shown.size() < stats.classes.size()) {
    page.Element(
        "p", StrCat("The ", shown.size() / 2, " largest and the ", shown.size() - shown.size() / 2,
                    " smallest of ", Whole(stats.classes.size()), " classes."));
  }
  const bool with_splits = stats.splits.size() > 1 && stats.splits.size() <= kShownSplits;
  if (stats.splits.size() > kShownSplits) {
    page.Element("p", StrCat("All splits together, because there are ", Whole(stats.splits.size()),
                             "; pack stats --json has each."));
  }
  std::vector<std::string> heads = {"class"};
  for (size_t split = 0; split < stats.splits.size() && with_splits; ++split)
    heads.push_back(NamedOr(stats.splits[split].name, "(no name)"));
  for (const char* head : {"samples", "share"}) heads.emplace_back(head);
  // The parts of the bars.
  heads.push_back(with_splits ? absl::StrJoin(heads.begin() + 1, heads.end() - 2, " + ") : "");
  uint64_t most = stats.unlabelled.samples;
  for (const ClassStats& each : stats.classes) most = std::max(most, each.samples);
  OpenTable(page, "Samples of each class");
  WriteHeads(page, heads);
  for (const ClassStats* each : shown)
    WriteClassRow(page, NamedOr(each->name, "(empty name)"), *each, stats, most, with_splits);
  if (stats.unlabelled.samples > 0)
    WriteClassRow(page, "(no label)", stats.unlabelled, stats, most, with_splits);
  CloseTable(page);
  CloseSection(page);
}

void WriteSizes(HtmlWriter& page, const DatasetStats& stats) {
  if (stats.bytes.count == 0) return;
  const auto whole = [](double value) { return Whole(static_cast<uint64_t>(value)); };
  const auto fraction = [](double value) { return absl::StrFormat("%.2f", value); };
  const auto bytes = [](double value) { return ByteSize(static_cast<uint64_t>(value)); };
  OpenSection(page, "sizes", "Sizes");
  page.Open("div", {{"class", "charts"}});
  WriteHistogram(page, {"Width", "pixels"}, stats.width, whole);
  WriteHistogram(page, {"Height", "pixels"}, stats.height, whole);
  WriteHistogram(page, {"Aspect ratio", ""}, stats.aspect, fraction);
  WriteHistogram(page, {"Size of the file", ""}, stats.bytes, bytes);
  page.Close();
  CloseSection(page);
}

void WriteSkipped(HtmlWriter& page, const DatasetStats& stats) {
  if (stats.skipped.count == 0 && stats.filtered == 0) return;
  OpenSection(page, "skipped", "Left out");
  page.Element("p", StrCat(Whole(stats.skipped.count), " inputs were skipped (",
                           Listed(stats.skipped.by_reason), "); ", Whole(stats.filtered),
                           " were filtered, as the options asked."));
  if (!stats.skipped.first.empty()) {
    OpenTable(page, "Skipped inputs", /*words=*/true);
    WriteHeads(page, {"input", "reason", "detail"});
    for (size_t i = 0; i < std::min(kShownRows, stats.skipped.first.size()); ++i) {
      const SkippedInput& input = stats.skipped.first[i];
      WriteRow(page, {Shortened(input.path), Shortened(input.reason), Shortened(input.detail)});
    }
    CloseTable(page);
    if (stats.skipped.count > std::min(kShownRows, stats.skipped.first.size()))
      page.Element("p", "The file skipped.jsonl of the dataset lists all of them.");
  }
  CloseSection(page);
}

void WriteShards(HtmlWriter& page, const DatasetStats& stats) {
  OpenSection(page, "shards", "Shards");
  OpenTable(page, "Shards of each split");
  WriteHeads(page, {"split", "samples", "shards", "size", "samples in a shard", "size of a shard"});
  for (size_t i = 0; i < std::min(kShownRows, stats.splits.size()); ++i) {
    const SplitStats& split = stats.splits[i];
    WriteRow(page, {NamedOr(split.name, "(no name)"), Whole(split.samples), Whole(split.shards),
                    ByteSize(split.shard_bytes),
                    RangeOf(split.min_shard_samples, split.max_shard_samples, Whole),
                    RangeOf(split.min_shard_bytes, split.max_shard_bytes, ByteSize)});
  }
  CloseTable(page);
  WriteRest(page, stats.splits.size(), kShownRows, " splits");
  CloseSection(page);
}

void WriteFacts(HtmlWriter& page, const DatasetStats& stats, const Manifest* manifest) {
  OpenSection(page, "facts", "Facts");
  OpenTable(page, "Facts", /*words=*/true);
  const auto row = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) WriteRow(page, {std::string(name), value});
  };
  row("images", Listed(stats.formats));
  row("pixels", Listed(stats.pixels));
  const auto count = [&](std::string_view name, uint64_t number) {
    if (number > 0) row(name, Whole(number));
  };
  count("progressive", stats.progressive);
  count("animated", stats.animated);
  count("with transparency", stats.alpha);
  count("turned by EXIF", stats.turned);
  count("truncated", stats.truncated);
  count("of unknown size", stats.without_facts);
  size_t numbers = 0;
  for (const auto& [name, value] : stats.pixel_stats) {
    if (numbers++ < kShownRows) row(Shortened(name), Shortened(value));
  }
  for (size_t i = 0; i < std::min(kShownRows, stats.fields.size()); ++i) {
    const FieldStats& field = stats.fields[i];
    row(StrCat("field ", Shortened(field.name)),
        StrCat(Whole(field.samples), " samples, ", ByteSize(field.bytes)));
  }
  size_t shown = 0;
  if (manifest != nullptr) {
    row("source", Shortened(manifest->source_root));
    for (const auto& [name, value] : manifest->options) {
      if (shown++ < kShownRows) row(StrCat("option ", Shortened(name)), Shortened(value));
    }
  }
  CloseTable(page);
  WriteRest(page, stats.pixel_stats.size(), kShownRows, " statistics of pixels");
  WriteRest(page, stats.fields.size(), kShownRows, " fields");
  WriteRest(page, shown, kShownRows, " options");
  CloseSection(page);
}

}  // namespace shardpack::report_sections
