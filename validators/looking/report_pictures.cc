#include "validators/looking/report_pictures.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/core/class_name.h"
#include "validators/looking/report_parts.h"

namespace shardpack::report_sections {
namespace {

using absl::StrCat;

constexpr size_t kShownGroups = 12, kShownInGroup = 6;
constexpr uint32_t kCopySide = 96;

// "1 group", "2,000 groups".
std::string Counted(uint64_t groups) {
  return StrCat(Whole(groups), groups == 1 ? " group" : " groups");
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
