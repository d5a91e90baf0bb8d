#include "cli/terminal/progress.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/terminal/stop_signal.h"
#include "cli/terminal/units.h"

namespace shardpack::cli {
namespace {

using absl::StrCat;

constexpr auto kFrame = std::chrono::milliseconds(125);
constexpr auto kJsonInterval = std::chrono::milliseconds(500);
constexpr auto kLineInterval = std::chrono::seconds(30);
constexpr double kWindowSeconds = 5;

double Share(const ProgressView& view) {
  if (view.bytes_total > 0) {
    return std::min(1.0,
                    static_cast<double>(view.bytes_in) / static_cast<double>(view.bytes_total));
  }
  return view.total == 0
             ? 0
             : std::min(1.0, static_cast<double>(view.done) / static_cast<double>(view.total));
}

std::string Bar(double share, int columns, bool utf8) {
  const int full = static_cast<int>(share * columns);
  std::string bar;
  for (int i = 0; i < columns; ++i) {
    if (utf8) {
      bar += i < full ? "█" : "░";
    } else {
      bar += i < full ? "#" : "-";
    }
  }
  return bar;
}

std::string Counts(const ProgressView& view) {
  if (view.total == 0) return StrCat(FormatCount(view.done), " ", view.unit);
  return StrCat(FormatCount(view.done), " of ", FormatCount(view.total), " ", view.unit);
}

// "packing ████░░░░ 62%  6,210 of 10,000 images  ETA 0:03". On a narrow terminal the counts are
// dropped first: bar and ETA show the progress.
std::string BarLine(const ProgressView& view, const ProgressRates& rates, int columns, bool utf8) {
  constexpr int kLeast = 8, kMost = 30;
  if (view.total == 0 && view.bytes_total == 0) return StrCat(view.stage, "   ", Counts(view));
  const std::string percent = StrCat(" ", static_cast<int>(Share(view) * 100), "%");
  const std::string eta =
      rates.eta_seconds < 0 ? "" : StrCat("  ETA ", FormatClock(rates.eta_seconds));
  const auto room = [&](const std::string& right) {
    return columns - static_cast<int>(view.stage.size() + right.size()) - 2;
  };
  std::string right = StrCat(percent, "  ", Counts(view), eta);
  if (room(right) < kLeast) right = StrCat(percent, eta);
  const int bar = std::min(room(right), kMost);
  return StrCat(view.stage, " ", bar >= kLeast ? Bar(Share(view), bar, utf8) : "", right);
}

// Uses as many lines as needed: no part is cut.
void AppendParts(const std::vector<std::string>& parts, size_t columns,
                 std::vector<std::string>* lines) {
  std::string line;
  for (const std::string& part : parts) {
    if (!line.empty() && line.size() + 2 + part.size() > columns) {
      lines->push_back(line);
      line.clear();
    }
    absl::StrAppend(&line, "  ", part);
  }
  if (!line.empty()) lines->push_back(line);
}

}  // namespace

std::vector<std::string> RenderProgress(const ProgressView& view, const ProgressRates& rates,
                                        int columns, bool utf8) {
  std::vector<std::string> lines;
  const auto room = static_cast<size_t>(std::max(columns - 1, 0));
  lines.push_back(BarLine(view, rates, columns, utf8));

  std::vector<std::string> parts;
  if (rates.items > 0)
    parts.push_back(StrCat(FormatCount(static_cast<uint64_t>(rates.items)), " ", view.unit, "/s"));
  if (view.bytes_in > 0)
    parts.push_back(StrCat(FormatBytes(static_cast<uint64_t>(rates.bytes_in)), "/s in"));
  if (view.bytes_out > 0)
    parts.push_back(StrCat(FormatBytes(static_cast<uint64_t>(rates.bytes_out)), "/s out"));
  if (!view.limit.empty()) parts.push_back(StrCat("limit: ", view.limit));
  AppendParts(parts, room, &lines);

  parts.clear();
  if (view.shards_total > 0)
    parts.push_back(StrCat("shards ", view.shards_done, " of ", view.shards_total));
  if (view.memory_ceiling > 0) {
    parts.push_back(StrCat("skipped ", FormatCount(view.skipped)));
    parts.push_back(StrCat("memory ", FormatBytes(view.memory_bytes), " of ",
                           FormatBytes(view.memory_ceiling)));
  }
  if (view.errors > 0) parts.push_back(StrCat("errors ", FormatCount(view.errors)));
  AppendParts(parts, room, &lines);

  if (StopSignal() != 0) lines.push_back("  stopping; a second Ctrl-C ends at once");
  for (std::string& line : lines) line = FitColumns(line, columns - 1);
  return lines;
}

std::string ProgressJson(const ProgressView& view, const ProgressRates& rates, double seconds) {
  nlohmann::json json = {{"schema", "shardpack.progress/1"},
                         {"stage", view.stage},
                         {"seconds", seconds},
                         {"done", view.done},
                         {"total", view.total},
                         {"unit", view.unit},
                         {"bytes_in", view.bytes_in},
                         {"bytes_total", view.bytes_total},
                         {"bytes_out", view.bytes_out},
                         {"items_per_second", rates.items},
                         {"bytes_in_per_second", rates.bytes_in},
                         {"bytes_out_per_second", rates.bytes_out},
                         {"skipped", view.skipped},
                         {"errors", view.errors},
                         {"shards_done", view.shards_done},
                         {"shards_total", view.shards_total},
                         {"memory_bytes", view.memory_bytes},
                         {"limit", view.limit}};
  json["eta_seconds"] =
      rates.eta_seconds < 0 ? nlohmann::json() : nlohmann::json(rates.eta_seconds);
  return json.dump() + "\n";
}

void Progress::Watch(std::function<ProgressView()> view) {
  End();
  begin_ = said_ = Clock::now();
  points_.clear();
  ending_ = false;
  if (terminal_.quiet() || terminal_.mode() == ProgressMode::kNever) return;
  thread_ = std::thread([this, view = std::move(view)] { Run(view); });
}

void Progress::End() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  thread_.join();
  terminal_.Draw({});
}

void Progress::Run(const std::function<ProgressView()>& view) {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kFrame, [&] { return ending_; })) Show(view(), /*last=*/false);
  Show(view(), /*last=*/true);
}

void Progress::Show(const ProgressView& view, bool last) {
  const Clock::time_point now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const ProgressRates rates = Measure(view, now);
  if (terminal_.mode() == ProgressMode::kJson) {
    if (!last && now - said_ < kJsonInterval) return;
    said_ = now;
    terminal_.Raw(ProgressJson(view, rates, seconds));
  } else if (terminal_.live()) {
    if (!last) terminal_.Draw(RenderProgress(view, rates, terminal_.width(), terminal_.utf8()));
  } else if (!last && now - said_ >= kLineInterval) {
    said_ = now;
    std::string line = StrCat(view.stage, ": ", Counts(view));
    if (rates.eta_seconds >= 0) absl::StrAppend(&line, ", ETA ", FormatClock(rates.eta_seconds));
    terminal_.Say(line);
  }
}

ProgressRates Progress::Measure(const ProgressView& view, Clock::time_point now) {
  points_.push_back({now, view.done, view.bytes_in, view.bytes_out});
  const auto age = [&](const Point& point) {
    return std::chrono::duration<double>(now - point.time).count();
  };
  while (points_.size() > 2 && age(points_[1]) >= kWindowSeconds) points_.pop_front();
  // The count at the first sample may come from an interrupted run, so it is not part of the rate.
  const Point& from = points_.front();
  const double seconds = age(from);
  ProgressRates rates;
  if (seconds <= 0) return rates;
  rates.items = static_cast<double>(view.done - std::min(view.done, from.items)) / seconds;
  rates.bytes_in =
      static_cast<double>(view.bytes_in - std::min(view.bytes_in, from.bytes_in)) / seconds;
  rates.bytes_out =
      static_cast<double>(view.bytes_out - std::min(view.bytes_out, from.bytes_out)) / seconds;
  if (view.bytes_total > 0 && rates.bytes_in > 0) {
    rates.eta_seconds =
        static_cast<double>(view.bytes_total - std::min(view.bytes_total, view.bytes_in)) /
        rates.bytes_in;
  } else if (view.total > 0 && rates.items > 0) {
    rates.eta_seconds =
        static_cast<double>(view.total - std::min(view.total, view.done)) / rates.items;
  }
  return rates;
}

}  // namespace shardpack::cli
