// The sections of a report that show pictures; internal to dataset_report.cc.
//
//   WriteSheet(page, sheet, mean, classes);
//
// Thread-safety: pure, besides the writer; copies are read and decoded on all cores.
// Errors: none; a section without content is left out.
// Units: bytes of the page.
#ifndef SHARDPACK_VALIDATORS_LOOKING_REPORT_PICTURES_H_
#define SHARDPACK_VALIDATORS_LOOKING_REPORT_PICTURES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "validators/looking/contact_sheet.h"
#include "validators/looking/copies_report.h"
#include "validators/looking/html_writer.h"

namespace shardpack::report_sections {

void WritePicture(HtmlWriter& page, const SheetPicture& picture, const std::string& of_class);

void WriteSheet(HtmlWriter& page, const ContactSheet& sheet, const Thumbnail& mean,
                const std::vector<std::string>& classes);
// Where not even one picture fits.
void WriteNoSheet(HtmlWriter& page);

// Pictures of the copies, of at most `budget_bytes`; the words come on top.
void WriteCopies(HtmlWriter& page, const CopiesReport& copies, uint64_t budget_bytes);
// Of a dataset whose indexes cannot all be read.
void WriteNoCopies(HtmlWriter& page, bool near);

}  // namespace shardpack::report_sections

#endif  // SHARDPACK_VALIDATORS_LOOKING_REPORT_PICTURES_H_
