#include "validators/looking/svg_charts.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace shardpack {
namespace {

using absl::StrCat;

constexpr int kShownPercents[] = {0, 5, 25, 50, 75, 95, 100};
constexpr double kWidth = 320, kHeight = 96, kBarWidth = 160, kBarHeight = 10;

// With at most two decimals, so that it is the same everywhere.
std::string Number(double value) {
  const auto hundredths = static_cast<int64_t>(std::llround(value * 100));
  std::string text = StrCat(hundredths / 100);
  if (hundredths % 100 != 0) {
    text += StrCat(".", hundredths % 100 / 10);
    if (hundredths % 10 != 0) text += StrCat(hundredths % 10);
  }
  return text;
}

void WriteRect(HtmlWriter& page, double x, double y, double width, double height) {
  page.Open("rect", {{"class", "bar"},
                     {"x", Number(x)},
                     {"y", Number(y)},
                     {"width", Number(width)},
                     {"height", Number(height)}});
  page.Close();
}

void WriteQuantiles(HtmlWriter& page, const Distribution& values,
                    const std::function<std::string(double)>& format) {
  page.Open("table");
  page.Open("tr");
  for (const int percent : kShownPercents) {
    page.Element("th",
                 percent == 0     ? "min"
                 : percent == 100 ? "max"
                 : percent == 50  ? "median"
                                  : StrCat(percent, " %"),
                 {{"scope", "col"}});
  }
  page.Close();
  page.Open("tr");
  for (const int percent : kShownPercents) page.Element("td", format(values.At(percent)));
  page.Close();
  page.Close();
}

}  // namespace

void WriteHistogram(HtmlWriter& page, const ChartTitle& title, const Distribution& values,
                    const std::function<std::string(double)>& format) {
  const std::string name =
      title.unit.empty() ? title.title : StrCat(title.title, " in ", title.unit);
  page.Open("figure");
  page.Element("figcaption", name);
  if (values.counts.empty()) {
    page.Element("p", "not known of any image");
    page.Close();
    return;
  }
  if (values.At(0) == values.At(100)) {
    page.Element("p", StrCat("the same for all images: ", format(values.At(0))));
    page.Close();
    return;
  }
  const uint64_t most = *std::max_element(values.counts.begin(), values.counts.end());
  page.Open("svg", {{"viewBox", StrCat("0 0 ", Number(kWidth), " ", Number(kHeight))},
                    {"preserveAspectRatio", "none"},
                    {"role", "img"},
                    {"aria-label",
                     StrCat("Histogram of ", name, ": from ", format(values.At(0)), " to ",
                            format(values.At(100)), ", the median is ", format(values.At(50)))}});
  const double step = kWidth / static_cast<double>(values.counts.size());
  for (size_t i = 0; i < values.counts.size(); ++i) {
    const double share = static_cast<double>(values.counts[i]) / static_cast<double>(most);
    // What is there is seen.
    const double height = values.counts[i] == 0 ? 0 : std::max(1.0, share * kHeight);
    if (height > 0)
      WriteRect(page, static_cast<double>(i) * step, kHeight - height, std::max(0.5, step - 1),
                height);
  }
  page.Close();
  page.Open("div", {{"class", "scroll"},
                    {"tabindex", "0"},
                    {"role", "region"},
                    {"aria-label", StrCat("Quantiles of ", name)}});
  WriteQuantiles(page, values, format);
  page.Close();
  page.Close();
  page.NewLine();
}

void WriteBar(HtmlWriter& page, std::span<const double> shares) {
  page.Open("svg", {{"class", "line"},
                    {"viewBox", StrCat("0 0 ", Number(kBarWidth), " ", Number(kBarHeight))},
                    {"preserveAspectRatio", "none"},
                    {"aria-hidden", "true"}});
  double left = 0;
  for (const double share : shares) {
    const double width = std::clamp(share, 0.0, 1.0) * kBarWidth;
    // What is there is seen, and so is where it ends.
    WriteRect(page, left, 0, share > 0 ? std::max(1.0, width - 1) : 0, kBarHeight);
    left += width;
  }
  page.Close();
}

}  // namespace shardpack
