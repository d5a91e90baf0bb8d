// What the sections of a report are made of: its words for numbers and names, tables and headings;
// internal to dataset_report.cc and the sections.
//
//   OpenSection(page, "shards", "Shards");
//   OpenTable(page, "Shards of each split");
//   WriteHeads(page, {"split", "samples"});
//   WriteRow(page, {Shortened(split.name), Whole(split.samples)});
//   CloseTable(page);
//   CloseSection(page);
//
// Thread-safety: pure, besides the writer.
#ifndef SHARDPACK_VALIDATORS_LOOKING_REPORT_PARTS_H_
#define SHARDPACK_VALIDATORS_LOOKING_REPORT_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "validators/looking/html_writer.h"

namespace shardpack::report_sections {

std::string Whole(uint64_t number);    // "1,234"
std::string ByteSize(uint64_t bytes);  // "1.23 MB"
// A name, cut where it is very long.
std::string Shortened(std::string_view name, size_t longest = 160);
// The same; `otherwise` for an empty name.
std::string NamedOr(std::string_view name, const char* otherwise);

void OpenSection(HtmlWriter& page, const char* id, const char* title);
void CloseSection(HtmlWriter& page);

// A table that scrolls by itself on narrow screens, and by keyboard. `words`: of texts, not of
// numbers.
void OpenTable(HtmlWriter& page, const std::string& label, bool words = false);
void CloseTable(HtmlWriter& page);
void WriteHeads(HtmlWriter& page, const std::vector<std::string>& heads);
void WriteRow(HtmlWriter& page, const std::vector<std::string>& cells);
// "and 3 more fields", if fewer are shown than there are.
void WriteRest(HtmlWriter& page, size_t all, size_t shown, const char* what);

}  // namespace shardpack::report_sections

#endif  // SHARDPACK_VALIDATORS_LOOKING_REPORT_PARTS_H_
