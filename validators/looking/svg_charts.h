// WriteHistogram, WriteBar: charts as inline SVG, each with a table of its numbers.
//
//   WriteHistogram(page, {.title = "Width", .unit = "pixels"}, stats.width, FormatWhole);
//   WriteBar(page, {{0.25, 0.05}});
//
// Colours come from the page's style sheet (classes "bar", "axis"); no meaning is in a colour
// alone.
//
// Thread-safety: pure, besides the writer.
// Errors: none; without values a sentence says so.
#ifndef SHARDPACK_VALIDATORS_LOOKING_SVG_CHARTS_H_
#define SHARDPACK_VALIDATORS_LOOKING_SVG_CHARTS_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "validators/looking/distribution.h"
#include "validators/looking/html_writer.h"

namespace shardpack {

struct ChartTitle {
  std::string title, unit;
};

// The numbers of the table are the quantiles. No chart of a single value.
void WriteHistogram(HtmlWriter& page, const ChartTitle& title, const Distribution& values,
                    const std::function<std::string(double)>& format);

// A bar in a line, whose parts are `shares` (of 1 in all) of the width, in two shades in turn; the
// numbers stand beside it in the page.
void WriteBar(HtmlWriter& page, std::span<const double> shares);

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_LOOKING_SVG_CHARTS_H_
