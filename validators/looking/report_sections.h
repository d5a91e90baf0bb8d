// The sections of a dataset's report that have no pictures, one function each; internal to
// dataset_report.cc.
//
//   WriteClasses(page, stats);
//
// Thread-safety: pure, besides the writer.
// Errors: none; a section without content is left out.
#ifndef SHARDPACK_VALIDATORS_LOOKING_REPORT_SECTIONS_H_
#define SHARDPACK_VALIDATORS_LOOKING_REPORT_SECTIONS_H_

#include <string>
#include <vector>

#include "formats/core/manifest.h"
#include "validators/looking/copies_report.h"
#include "validators/looking/dataset_stats.h"
#include "validators/looking/html_writer.h"
#include "validators/looking/validation_facts.h"

namespace shardpack::report_sections {

void WriteHead(HtmlWriter& page, const std::string& name, const DatasetStats& stats);
// `copies`: if they were looked for.
void WriteDamage(HtmlWriter& page, const DatasetStats& stats, const CopiesReport* copies);
// `identity`: of the dataset that the page shows.
void WriteValidation(HtmlWriter& page, const ValidationFacts& facts, const std::string& identity);
// `of_pictures`: what is odd about those that the page shows.
void WriteNotes(HtmlWriter& page, const DatasetStats& stats,
                const std::vector<StatsNote>& of_pictures);
void WriteClasses(HtmlWriter& page, const DatasetStats& stats);
void WriteSizes(HtmlWriter& page, const DatasetStats& stats);
void WriteSkipped(HtmlWriter& page, const DatasetStats& stats);
void WriteShards(HtmlWriter& page, const DatasetStats& stats);
void WriteFacts(HtmlWriter& page, const DatasetStats& stats, const Manifest* manifest);

}  // namespace shardpack::report_sections

#endif  // SHARDPACK_VALIDATORS_LOOKING_REPORT_SECTIONS_H_
