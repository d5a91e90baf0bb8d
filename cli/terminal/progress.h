// Progress: shows the progress of a run on stderr, from a separate thread, as a live block, as
// occasional lines, or as JSON lines.
//
//   Progress progress(terminal);
//   progress.Watch([&] { return ProgressView{.stage = "packing", .done = ..., .total = ...}; });
//   progress.End();                                        // the block is gone
//
// Lifetime: what the view captures must live until End, the next Watch, or the destructor.
// Thread-safety: one caller; the view is called from the other thread.
// Units: bytes, seconds.
#ifndef SHARDPACK_CLI_TERMINAL_PROGRESS_H_
#define SHARDPACK_CLI_TERMINAL_PROGRESS_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cli/terminal/terminal.h"

namespace shardpack::cli {

struct ProgressView {
  std::string stage;  // "packing"
  std::string unit = "images";
  uint64_t done = 0, total = 0;  // total 0 = unknown
  uint64_t bytes_in = 0, bytes_out = 0;
  uint64_t bytes_total = 0;  // total for bytes_in, if the bar follows bytes
  uint64_t skipped = 0, errors = 0;
  uint64_t shards_done = 0, shards_total = 0;
  uint64_t memory_bytes = 0, memory_ceiling = 0;
  std::string limit = "";  // the bottleneck; "" = unknown
};

// Rates per second, over the last few seconds.
struct ProgressRates {
  double items = 0, bytes_in = 0, bytes_out = 0;
  double eta_seconds = -1;  // < 0 = unknown
};

// The lines of the block, each at most `columns` wide.
std::vector<std::string> RenderProgress(const ProgressView& view, const ProgressRates& rates,
                                        int columns, bool utf8);
std::string ProgressJson(const ProgressView& view, const ProgressRates& rates, double seconds);

class Progress {
 public:
  explicit Progress(Terminal& terminal) : terminal_(terminal) {}
  ~Progress() { End(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Watch(std::function<ProgressView()> view);
  void End();

 private:
  using Clock = std::chrono::steady_clock;
  struct Point {
    Clock::time_point time;
    uint64_t items, bytes_in, bytes_out;
  };

  void Run(const std::function<ProgressView()>& view);
  void Show(const ProgressView& view, bool last);
  ProgressRates Measure(const ProgressView& view, Clock::time_point now);

  Terminal& terminal_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ending_ = false;
  std::thread thread_;
  Clock::time_point begin_, said_;
  std::deque<Point> points_;
};

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_TERMINAL_PROGRESS_H_
