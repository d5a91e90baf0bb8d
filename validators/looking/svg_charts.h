// WriteHistogram, WriteBar: charts as inline SVG, each with a table of its numbers.
//
//   WriteHistogram(page, {.title = "Width", .unit = "pixels"}, stats.width, FormatWhole);
//   WriteBar(page, 0.25);
//
// Colours come from the page's style sheet (classes "bar", "axis"); no meaning is in a colour
// alone.
//
// Lifetime: keeps nothing.
// Thread-safety: pure, besides the writer.
// Errors: none; without values a sentence says so.
#ifndef SHARDPACK_VALIDATORS_LOOKING_SVG_CHARTS_H_
#define SHARDPACK_VALIDATORS_LOOKING_SVG_CHARTS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "validators/looking/distribution.h"
#include "validators/looking/html_writer.h"

namespace shardpack {

struct ChartTitle {
  std::string title, unit;
};

// The numbers of the table are the quantiles.
void WriteHistogram(HtmlWriter& page, const ChartTitle& title, const Distribution& values,
                    const std::function<std::string(double)>& format);

// A bar in a line, `share` (0 to 1) of the width; the number stands beside it in the page.
void WriteBar(HtmlWriter& page, double share);

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_LOOKING_SVG_CHARTS_H_
