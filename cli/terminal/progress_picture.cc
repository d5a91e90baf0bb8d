// Prints a picture of the live block of a build, as SVG: docs/pictures/readme/progress.svg. A test
// compares them; docs/update_readme_pictures.py replaces it.
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cli/terminal/progress.h"

namespace shardpack::cli {
namespace {

using absl::StrAppend;
using absl::StrCat;

constexpr int kColumns = 80, kColumnWidth = 9, kLineHeight = 22, kMargin = 16;
constexpr std::string_view kFull = "█", kEmpty = "░";

std::string Escaped(std::string_view text) {
  return absl::StrReplaceAll(absl::string_view(text.data(), text.size()),
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

// `text` from this column on, as wide as it is in a terminal, whatever font the reader has.
std::string Text(std::string_view text, int column, int line, const char* color) {
  if (text.empty()) return "";
  return StrCat("<text x=\"", kMargin + column * kColumnWidth, "\" y=\"",
                kMargin + line * kLineHeight + 16, "\" fill=\"", color, "\" textLength=\"",
                text.size() * kColumnWidth, "\" xml:space=\"preserve\">", Escaped(text),
                "</text>\n");
}

std::string Rectangle(int column, int columns, int line, const char* color) {
  return StrCat("<rect x=\"", kMargin + column * kColumnWidth, "\" y=\"",
                kMargin + line * kLineHeight + 3, "\" width=\"", columns * kColumnWidth,
                "\" height=\"16\" fill=\"", color, "\"/>\n");
}

// The columns of a bar become rectangles, which have no gaps; all else is ASCII.
std::string Line(std::string_view text, int line) {
  std::string svg, plain;
  int column = 0, full = 0, empty = 0;
  const auto flush = [&] {
    svg += Text(plain, column - static_cast<int>(plain.size()), line, "#e8e8e8");
    if (full > 0) svg += Rectangle(column - full - empty, full, line, "#7fb0e0");
    if (empty > 0) svg += Rectangle(column - empty, empty, line, "#454545");
    plain.clear();
    full = empty = 0;
  };
  while (!text.empty()) {
    const bool is_full = text.starts_with(kFull), is_empty = text.starts_with(kEmpty);
    if (is_full || is_empty) {
      if (!plain.empty()) flush();
      ++(is_full ? full : empty);
      text.remove_prefix(kFull.size());
    } else {
      if (full + empty > 0) flush();
      plain += text[0];
      text.remove_prefix(1);
    }
    ++column;
  }
  flush();
  return svg;
}

std::string Picture() {
  const ProgressView view{.stage = "packing",
                          .done = 792'300,
                          .total = 1'281'167,
                          .bytes_in = 89'000'000'000,
                          .bytes_out = 89'000'000'000,
                          .skipped = 3,
                          .shards_done = 331,
                          .shards_total = 550,
                          .memory_bytes = 410'000'000,
                          .memory_ceiling = 6'400'000'000,
                          .limit = "reading"};
  const ProgressRates rates{
      .items = 9'870, .bytes_in = 1.11e9, .bytes_out = 1.11e9, .eta_seconds = 49};
  std::vector<std::string> lines = RenderProgress(view, rates, kColumns, /*utf8=*/true);
  lines.insert(lines.begin(), "$ pack imagenet/ -o shards --split train=0.98,val=0.02");
  const int width = 2 * kMargin + kColumns * kColumnWidth;
  const int height = 2 * kMargin + static_cast<int>(lines.size()) * kLineHeight;
  std::string label;
  for (const std::string& line : lines) StrAppend(&label, label.empty() ? "" : "\n", line);
  std::string svg =
      StrCat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", width, " ", height,
             "\" width=\"", width, "\" height=\"", height,
             "\" role=\"img\" font-family=\"ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',"
             "monospace\" font-size=\"15\">\n<title>",
             Escaped(label), "</title>\n<rect width=\"", width, "\" height=\"", height,
             "\" rx=\"8\" fill=\"#1b1b1b\"/>\n");
  for (size_t i = 0; i < lines.size(); ++i) svg += Line(lines[i], static_cast<int>(i));
  return svg + "</svg>\n";
}

}  // namespace
}  // namespace shardpack::cli

int main() { std::fputs(shardpack::cli::Picture().c_str(), stdout); }
