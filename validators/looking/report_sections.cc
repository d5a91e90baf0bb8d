#include "validators/looking/report_sections.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "formats/core/class_name.h"
#include "formats/io/escape.h"
#include "validators/looking/svg_charts.h"

namespace shardpack::report_sections {
namespace {

using absl::StrCat;

constexpr size_t kShownClasses = 100, kShownSplits = 8, kShownRows = 50, kLongestMessage = 600;
constexpr size_t kShownReasons = 20, kShownGroups = 12, kShownInGroup = 6;
constexpr uint32_t kCopySide = 96;

std::string NamedOr(std::string_view name, const char* otherwise) {
  return name.empty() ? otherwise : Shortened(name);
}

// A table that scrolls by itself on narrow screens, and by keyboard. Closed by two Close().
void OpenTable(HtmlWriter& page, const std::string& label, bool words = false) {
  page.Open("div",
            {{"class", "scroll"}, {"tabindex", "0"}, {"role", "region"}, {"aria-label", label}});
  page.Open("table", {{"class", words ? "words" : "numbers"}});
}

void CloseTable(HtmlWriter& page) {
  page.Close();
  page.Close();
  page.NewLine();
}

void WriteHeads(HtmlWriter& page, const std::vector<std::string>& heads) {
  page.Open("tr");
  for (const std::string& head : heads) page.Element("th", head, {{"scope", "col"}});
  page.Close();
}

void WriteRow(HtmlWriter& page, const std::vector<std::string>& cells) {
  page.Open("tr");
  for (const std::string& cell : cells) page.Element("td", cell);
  page.Close();
}

void OpenSection(HtmlWriter& page, const char* id, const char* title) {
  page.Open("section", {{"id", id}, {"aria-labelledby", StrCat(id, "-title")}});
  page.Element("h2", title, {{"id", StrCat(id, "-title")}});
}

void CloseSection(HtmlWriter& page) {
  page.Close();
  page.NewLine();
}

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

// "1 group", "2,000 groups".
std::string Counted(uint64_t groups) {
  return StrCat(Whole(groups), groups == 1 ? " group" : " groups");
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

// "and 3 more fields", if fewer are shown than there are.
void WriteRest(HtmlWriter& page, size_t all, size_t shown, const char* what) {
  if (all > shown) page.Element("p", StrCat("and ", Whole(all - shown), " more", what));
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

// Whether it fits.
bool WriteGroup(HtmlWriter& out, const CopiesReport& copies, const CopyGroup& group,
                const std::vector<int>* distances, uint64_t* budget_bytes) {
  std::vector<uint64_t> which(
      group.rows.begin(),
      group.rows.begin() + static_cast<ptrdiff_t>(std::min(kShownInGroup, group.rows.size())));
  std::vector<SheetPicture> pictures = MakePictures(copies.rows, which, kCopySide, nullptr);
  HtmlWriter page;
  page.Open("div", {{"class", "group"}});
  page.Element(
      "p", StrCat(distances == nullptr ? "Equal byte for byte" : "Look alike",
                  group.label_conflict ? ", label conflict" : "", group.leak ? ", leakage" : ""));
  page.Open("div", {{"class", "pictures"}});
  for (size_t i = 0; i < pictures.size(); ++i) {
    const absl::StatusOr<RowFacts> facts = copies.rows.Facts(pictures[i].row);
    if (!facts.ok()) continue;
    const std::string name = facts->label < 0 ? "no label" : Shortened(facts->class_name);
    page.Open("figure");
    WritePicture(page, pictures[i], name);
    page.Element(
        "figcaption",
        StrCat(NamedOr(facts->split, ""), facts->split.empty() ? "" : ", ", name, ": ",
               Shortened(facts->key),
               distances != nullptr && i > 0 ? StrCat(" (distance ", (*distances)[i], ")") : ""));
    page.Close();
  }
  page.Close();
  if (group.rows.size() > which.size())
    page.Element("p", StrCat("and ", Whole(group.rows.size() - which.size()), " more"));
  page.Close();
  page.NewLine();
  if (page.size() > *budget_bytes) return false;
  *budget_bytes -= page.size();
  out.Append(std::move(page));
  return true;
}

}  // namespace

std::string Whole(uint64_t number) {
  std::string digits = StrCat(number);
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string ByteSize(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  // 999.5 would be printed as 1000.
  for (; value >= 999.5 && unit + 1 < std::size(kUnits); ++unit) value /= 1000;
  if (unit == 0) return StrCat(bytes, " B");
  return absl::StrFormat(value < 9.995   ? "%.2f %s"
                         : value < 99.95 ? "%.1f %s"
                                         : "%.0f %s",
                         value, kUnits[unit]);
}

std::string Shortened(std::string_view name, size_t longest) {
  if (name.size() <= longest) return std::string(name);
  size_t end = 0;
  while (true) {
    const size_t length = std::max<size_t>(1, Utf8SequenceLength(name.substr(end)));
    if (end + length > longest) break;
    end += length;
  }
  return StrCat(std::string(name.substr(0, end)), " ... (", name.size(), " bytes)");
}

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
  if (stats.not_looked_at.empty() && !unread && !near_damaged) return;
  OpenSection(page, "damage", "Damage");
  if (!stats.not_looked_at.empty())
    WriteMessages(
        page,
        "Parts of this dataset could not be read. They count as samples and shards, but are not "
        "in the numbers of classes, images, fields and skipped inputs:",
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

void WriteNotes(HtmlWriter& page, const DatasetStats& stats) {
  OpenSection(page, "notes", "Worth a look");
  if (stats.unread_shards > 0) {
    page.Element("p",
                 StrCat("Classes, folders, fields and copies were not looked at: ",
                        Whole(stats.unread_shards), " of ", Whole(stats.shards),
                        " shards could not be read, and what seems to be missing may be there."));
  } else if (stats.notes.empty()) {
    page.Element("p",
                 "Nothing suspicious was found: no class without samples, no copies, no folder "
                 "of another class.");
  } else {
    page.Open("ul");
    for (size_t i = 0; i < std::min(kShownRows, stats.notes.size()); ++i)
      page.Element("li",
                   NoteText(stats.notes[i], [](std::string_view name) { return Shortened(name); }));
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

void WritePicture(HtmlWriter& page, const SheetPicture& picture, const std::string& of_class) {
  const std::string name = StrCat(Shortened(picture.key), ", ", of_class);
  if (picture.thumbnail.uri.empty()) {
    page.Element(
        "span",
        StrCat(Shortened(picture.key), " cannot be shown: ", Shortened(picture.thumbnail.why_none)),
        {{"class", "none"}});
    return;
  }
  page.Empty("img", {{"src", picture.thumbnail.uri},
                     {"alt", name},
                     {"width", StrCat(picture.thumbnail.width)},
                     {"height", StrCat(picture.thumbnail.height)}});
}

void WriteSheet(HtmlWriter& page, const ContactSheet& sheet, const Thumbnail& mean,
                const std::vector<std::string>& classes) {
  if (sheet.rows.empty() || sheet.each == 0) return;
  OpenSection(page, "pictures", "Pictures");
  page.Element(
      "p",
      StrCat("At most ", sheet.each, sheet.each == 1 ? " sample" : " samples", " of each class, ",
             "chosen by the hashes of their keys, at most ", sheet.side, " pixels wide and high",
             sheet.rows.size() < sheet.classes
                 ? StrCat("; the largest and smallest ", Whole(sheet.rows.size()), " of ",
                          Whole(sheet.classes), " classes, which is what fits this page")
                 : "",
             ".",
             sheet.not_shown > 0 ? StrCat(" ", Whole(sheet.not_shown), " cannot be shown.") : ""));
  if (!mean.uri.empty()) {
    page.Open("figure");
    page.Empty("img", {{"src", mean.uri},
                       {"alt", "Mean of the pictures"},
                       {"width", StrCat(mean.width)},
                       {"height", StrCat(mean.height)}});
    page.Element("figcaption", StrCat("The mean of ", Whole(sheet.mean.images), " of them"));
    page.Close();
  }
  for (const SheetRow& row : sheet.rows) {
    const std::string name =
        row.label < 0 ? "(no label)" : Shortened(ClassName(classes, row.label));
    page.Element("h3", StrCat(name, " (", Whole(row.samples), ")"));
    page.Open("div", {{"class", "pictures"}});
    for (const SheetPicture& picture : row.pictures) WritePicture(page, picture, name);
    page.Close();
    page.NewLine();
  }
  CloseSection(page);
}

void WriteNoSheet(HtmlWriter& page) {
  OpenSection(page, "pictures", "Pictures");
  page.Element(
      "p",
      "No picture fits the size that was given for this page; --max-bytes allows a larger one.");
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

void WriteNoCopies(HtmlWriter& page, bool near) {
  OpenSection(page, "copies", "Copies");
  page.Element("p",
               StrCat("Copies", near ? ", and images that look alike (--near)," : "",
                      " were not looked for, because parts of the dataset could not be read."));
  CloseSection(page);
}

void WriteCopies(HtmlWriter& page, const CopiesReport& copies, uint64_t budget_bytes) {
  OpenSection(page, "copies", "Copies");
  uint64_t conflicts = 0, leaks = 0;
  for (const CopyGroup& group : copies.exact) {
    conflicts += group.label_conflict ? 1 : 0;
    leaks += group.leak ? 1 : 0;
  }
  page.Element("p",
               StrCat(Counted(copies.exact.size()), " of images that are equal byte for byte; ",
                      Whole(conflicts), " with a label conflict, ", Whole(leaks),
                      " with images in several splits."));
  if (copies.with_near) {
    page.Element("p", StrCat(Counted(copies.near.groups.size()),
                             " of images that look alike (64-bit pHash, at most ", copies.distance,
                             " bits between neighbours); ", Whole(copies.near.flat),
                             " images of nearly one color are left out, ",
                             Whole(copies.near.unread.count), " cannot be decoded."));
  }
  uint64_t left = budget_bytes;
  size_t shown = 0;
  for (size_t i = 0; i < std::min(kShownGroups, copies.exact.size()) && left > 0; ++i)
    shown += WriteGroup(page, copies, copies.exact[i], nullptr, &left) ? 1 : 0;
  for (size_t i = 0; i < std::min(kShownGroups, copies.near.groups.size()) && left > 0; ++i) {
    const NearGroup& near = copies.near.groups[i];
    shown += WriteGroup(page, copies, near.group, &near.distances, &left) ? 1 : 0;
  }
  const size_t groups = copies.exact.size() + copies.near.groups.size();
  if (groups > shown)
    page.Element("p", StrCat(Counted(groups - shown), groups - shown == 1 ? " is" : " are",
                             " not shown here; pack dups --json names all."));
  CloseSection(page);
}

}  // namespace shardpack::report_sections
