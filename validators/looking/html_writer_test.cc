#include "validators/looking/html_writer.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "validators/looking/svg_charts.h"

namespace shardpack {
namespace {

TEST(HtmlWriter, EscapesTextAndAttributes) {
  HtmlWriter page;
  page.Open("p", {{"class", "a\" onclick=\"b"}});
  page.Text("<script>alert('1 & 2')</script>");
  page.Empty("br", {});
  page.Element("b", "x");
  page.Close();
  EXPECT_EQ(
      std::move(page).Take(),
      "<p class=\"a&quot; onclick=&quot;b\">&lt;script&gt;alert(&#39;1 &amp; 2&#39;)&lt;/script&gt;"
      "<br><b>x</b></p>");
}

TEST(HtmlWriter, NamesOfAnyBytes) {
  EXPECT_EQ(HtmlEscape("caf\xC3\xA9"), "caf\xC3\xA9");
  EXPECT_EQ(HtmlEscape("a\nb\x1b\xFF"), "a\\x0ab\\x1b\\xff");
  EXPECT_EQ(HtmlEscape("\xE2\x80\xAEgpj"), "\\xe2\\x80\\xaegpj");  // right to left
  EXPECT_EQ(HtmlEscape("\xEF\xBF\xBE"), "\uFFFD");                 // U+FFFE
  EXPECT_EQ(HtmlEscape("\xEF\xB7\x90"), "\uFFFD");                 // U+FDD0
  EXPECT_EQ(HtmlEscape("\xF0\x9F\xBF\xBF"), "\uFFFD");             // U+1FFFF
  EXPECT_EQ(HtmlEscape("\xEF\xBF\xBD"), "\uFFFD");                 // U+FFFD itself
  EXPECT_EQ(HtmlEscape("\xEF\xB8\xBF"), "\xEF\xB8\xBF");           // U+FE3F, a character
  EXPECT_EQ(HtmlEscape(std::string_view("\0", 1)), "\\x00");
}

TEST(HtmlWriter, NoBytesBecomeMarkup) {
  std::mt19937 random(8);
  for (int round = 0; round < 5000; ++round) {
    std::string text(random() % 40, '\0');
    for (char& c : text) c = static_cast<char>(random());
    const std::string escaped = HtmlEscape(text);
    EXPECT_EQ(escaped.find_first_of("<>\"'\n\r"), std::string::npos);
    for (size_t at = 0; (at = escaped.find('&', at)) != std::string::npos; ++at)
      EXPECT_NE(escaped.find(';', at), std::string::npos);
  }
}

TEST(HtmlWriter, WhatIsNotClosedAborts) {
  EXPECT_DEATH(
      {
        HtmlWriter page;
        page.Open("p");
        (void)std::move(page).Take();
      },
      "<p> is not closed");
  EXPECT_DEATH(
      {
        HtmlWriter page;
        page.Close();
      },
      "no element is open");
}

size_t CountOf(const std::string& text, std::string_view part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST(SvgCharts, AHistogramHasABarForEachBinAndItsNumbers) {
  std::vector<double> values = {1, 1, 1, 1, 2, 4};
  const Distribution distribution = Distribution::Of(values, Distribution::kWhole);
  ASSERT_EQ(distribution.counts, (std::vector<uint64_t>{4, 1, 0, 1}));
  HtmlWriter page;
  WriteHistogram(page, {"Width", "pixels"}, distribution,
                 [](double value) { return std::to_string(static_cast<int>(value)); });
  const std::string html = std::move(page).Take();
  EXPECT_EQ(CountOf(html, "<rect"), 3u);
  EXPECT_NE(html.find("x=\"0\" y=\"0\" width=\"79\" height=\"96\""), std::string::npos) << html;
  EXPECT_NE(html.find("x=\"80\" y=\"72\" width=\"79\" height=\"24\""), std::string::npos) << html;
  EXPECT_NE(html.find("aria-label=\"Histogram of Width in pixels: from 1 to 4, the median is 1\""),
            std::string::npos)
      << html;
  EXPECT_EQ(CountOf(html, "<td>"), 7u);
}

TEST(SvgCharts, OfNothingAndOfShares) {
  HtmlWriter page;
  WriteHistogram(page, {"Width", ""}, {}, [](double) { return ""; });
  EXPECT_EQ(CountOf(std::move(page).Take(), "<rect"), 0u);
  HtmlWriter bars;
  WriteBar(bars, std::vector<double>{0, 0.125, 0.5});
  WriteBar(bars, std::vector<double>{1e-9});
  WriteBar(bars, std::vector<double>{7});
  const std::string html = std::move(bars).Take();
  // A part that is not there keeps its place, and so the shades of the others.
  EXPECT_EQ(CountOf(html, "<rect"), 5u);
  EXPECT_NE(html.find("x=\"0\" y=\"0\" width=\"0\""), std::string::npos) << html;
  EXPECT_NE(html.find("x=\"0\" y=\"0\" width=\"19\""), std::string::npos);
  EXPECT_NE(html.find("x=\"20\" y=\"0\" width=\"79\""), std::string::npos);
  EXPECT_NE(html.find("width=\"1\""), std::string::npos);  // what is there is seen
  EXPECT_NE(html.find("width=\"159\""), std::string::npos);
}

}  // namespace
}  // namespace shardpack
