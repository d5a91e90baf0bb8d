// The sections of a dataset's report, one function each; internal to dataset_report.cc.
//
//   WriteClasses(page, stats);
//
// Lifetime: keep nothing.
// Thread-safety: pure, besides the writer.
// Errors: none; a section without content is left out.
#ifndef SHARDPACK_VALIDATORS_LOOKING_REPORT_SECTIONS_H_
#define SHARDPACK_VALIDATORS_LOOKING_REPORT_SECTIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/manifest.h"
#include "validators/looking/contact_sheet.h"
#include "validators/looking/copies_report.h"
#include "validators/looking/dataset_stats.h"
#include "validators/looking/html_writer.h"
#include "validators/looking/validation_facts.h"

namespace shardpack::report_sections {

std::string Whole(uint64_t number);    // "1,234"
std::string ByteSize(uint64_t bytes);  // "1.23 MB"
// A name, cut where it is very long.
std::string Shortened(std::string_view name, size_t longest = 160);

void WriteHead(HtmlWriter& page, const std::string& name, const DatasetStats& stats);
// `copies`: if they were looked for.
void WriteDamage(HtmlWriter& page, const DatasetStats& stats, const CopiesReport* copies);
// `identity`: of the dataset that the page shows.
void WriteValidation(HtmlWriter& page, const ValidationFacts& facts, const std::string& identity);
void WriteNotes(HtmlWriter& page, const DatasetStats& stats);
void WriteClasses(HtmlWriter& page, const DatasetStats& stats);
void WriteSizes(HtmlWriter& page, const DatasetStats& stats);
void WriteSheet(HtmlWriter& page, const ContactSheet& sheet, const Thumbnail& mean,
                const std::vector<std::string>& classes);
// Where not even one picture fits.
void WriteNoSheet(HtmlWriter& page);
void WriteSkipped(HtmlWriter& page, const DatasetStats& stats);
void WriteShards(HtmlWriter& page, const DatasetStats& stats);
void WriteFacts(HtmlWriter& page, const DatasetStats& stats, const Manifest* manifest);

// Pictures of the copies, of at most `budget_bytes`; the words come on top.
void WriteCopies(HtmlWriter& page, const CopiesReport& copies, uint64_t budget_bytes);

// Of a dataset whose indexes cannot all be read.
void WriteNoCopies(HtmlWriter& page, bool near);

void WritePicture(HtmlWriter& page, const SheetPicture& picture, const std::string& of_class);

}  // namespace shardpack::report_sections

#endif  // SHARDPACK_VALIDATORS_LOOKING_REPORT_SECTIONS_H_
