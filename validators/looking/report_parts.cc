#include "validators/looking/report_parts.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/io/escape.h"

namespace shardpack::report_sections {

using absl::StrCat;

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
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return absl::StrFormat("%.*f %s", decimals, value, kUnits[unit]);
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

std::string NamedOr(std::string_view name, const char* otherwise) {
  return name.empty() ? otherwise : Shortened(name);
}

void OpenTable(HtmlWriter& page, const std::string& label, bool words) {
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

void WriteRest(HtmlWriter& page, size_t all, size_t shown, const char* what) {
  if (all > shown) page.Element("p", StrCat("and ", Whole(all - shown), " more", what));
}

}  // namespace shardpack::report_sections
