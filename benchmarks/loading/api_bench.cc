// api_bench: what the C interface costs, against the C++ interface in the same run.
//
//   api_bench DATASET [--rounds 15] [--epochs 1] [--batch 256] [--decode 224]
//
// Prints one line of JSON: medians over the rounds of the seconds to open a dataset and get
// its first batch, and of the seconds of all epochs, both ways, and of the ratios of C to C++. Each
// round runs both, alternating which comes first.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "api/shardpack.h"
#include "readers/loading/loader.h"

namespace shardpack {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string path;
  int rounds = 15, threads = 0;
  uint32_t batch = 256, decode = 0, epochs = 1;
};

// Seconds, and something of every batch, so that both ways are known to do the same.
struct Times {
  double first_batch = 0, epochs = 0;
  uint64_t sum = 0;
};

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

[[noreturn]] void Fail(const std::string& why) {
  std::fprintf(stderr, "api_bench: %s\n", why.c_str());
  std::exit(1);
}

Times RunCxx(const Options& options) {
  Times times;
  const Clock::time_point start = Clock::now();
  PageableMemory memory;
  const absl::StatusOr<Dataset> dataset = Dataset::Open(options.path);
  if (!dataset.ok()) Fail(std::string(dataset.status().message()));
  const Order order = *Order::Make({.samples = dataset->size(), .global_batch = options.batch});
  LoaderOptions how;
  how.threads = options.threads;
  how.map_warm_shards = false;
  how.epochs = options.epochs;
  if (options.decode > 0) {
    how.decode.emplace();
    how.decode->crop.width = how.decode->crop.height = options.decode;
  }
  absl::StatusOr<Loader> loader = Loader::Open(*dataset, order, {}, how, memory);
  if (!loader.ok()) Fail(std::string(loader.status().message()));
  for (;;) {
    absl::StatusOr<std::optional<HostBatch>> batch = loader->Next();
    if (!batch.ok()) Fail(std::string(batch.status().message()));
    if (!*batch) break;
    if (times.first_batch == 0) times.first_batch = SecondsSince(start);
    for (size_t slot = 0; slot < (*batch)->size(); ++slot)
      times.sum += (*batch)->ids()[slot] ^ (*batch)->bytes(0, slot).size();
  }
  times.epochs = SecondsSince(start);
  return times;
}

Times RunC(const Options& options) {
  Times times;
  const Clock::time_point start = Clock::now();
  shardpack_error* error = nullptr;
  const auto check = [&](shardpack_code code) {
    if (code >= SHARDPACK_INVALID) Fail(shardpack_error_message(error));
    return code;
  };
  shardpack_dataset* dataset = nullptr;
  check(shardpack_dataset_open(options.path.c_str(), &dataset, &error));
  shardpack_dataset_info info = {};
  info.size = sizeof(info);
  check(shardpack_dataset_info_of(dataset, &info, &error));
  shardpack_order_options sequence = {};
  sequence.size = sizeof(sequence);
  sequence.global_batch = options.batch;
  shardpack_order* order = nullptr;
  check(shardpack_order_make(info.samples, &sequence, &order, &error));
  shardpack_decode decode = {};
  decode.size = sizeof(decode);
  decode.width = decode.height = options.decode;
  shardpack_loader_options how = {};
  how.size = sizeof(how);
  how.threads = options.threads;
  how.epochs = options.epochs;
  if (options.decode > 0) how.decode = &decode;
  shardpack_loader* loader = nullptr;
  check(shardpack_loader_open(dataset, order, &how, &loader, &error));
  shardpack_batch* batch = nullptr;
  std::vector<shardpack_span> spans(options.batch);
  while (check(shardpack_loader_next(loader, -1, &batch, &error)) == SHARDPACK_OK) {
    if (times.first_batch == 0) times.first_batch = SecondsSince(start);
    shardpack_batch_view view = {};
    view.size = sizeof(view);
    check(shardpack_batch_view_of(batch, &view, &error));
    check(shardpack_batch_spans(batch, nullptr, spans.data(), view.slots, &error));
    for (size_t slot = 0; slot < view.slots; ++slot)
      times.sum += view.ids[slot] ^ spans[slot].bytes;
    shardpack_batch_release(batch);
  }
  times.epochs = SecondsSince(start);
  shardpack_loader_release(loader);
  shardpack_order_release(order);
  shardpack_dataset_release(dataset);
  return times;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// A ratio is the median of the rounds' ratios: other work of the machine hits both ways of a
// round.
std::string Comparison(const std::vector<double>& cxx, const std::vector<double>& c) {
  std::vector<double> ratios;
  for (size_t round = 0; round < c.size(); ++round) ratios.push_back(c[round] / cxx[round]);
  return absl::StrFormat(R"({"cxx":%.4f,"c":%.4f,"ratio":%.4f})", Median(cxx), Median(c),
                         Median(ratios));
}

int Run(const Options& options) {
  std::vector<double> cxx_first, c_first, cxx_epochs, c_epochs;
  for (int round = -1; round < options.rounds; ++round) {  // the first one warms up
    Times cxx, c;
    if (round % 2 == 0) cxx = RunCxx(options);
    c = RunC(options);
    if (round % 2 != 0) cxx = RunCxx(options);
    if (cxx.sum != c.sum) Fail("the two ways gave different batches");
    if (round < 0) continue;
    cxx_first.push_back(cxx.first_batch);
    c_first.push_back(c.first_batch);
    cxx_epochs.push_back(cxx.epochs);
    c_epochs.push_back(c.epochs);
  }
  absl::PrintF("{\"rounds\":%d,\"first_batch_s\":%s,\"epochs_s\":%s}\n", options.rounds,
               Comparison(cxx_first, c_first), Comparison(cxx_epochs, c_epochs));
  return 0;
}

}  // namespace
}  // namespace shardpack

int main(int argc, char** argv) {
  shardpack::Options options;
  CLI::App app("What the C interface costs, against the C++ interface in the same run.");
  app.add_option("dataset", options.path, "a packed dataset")->required();
  app.add_option("--rounds", options.rounds)->check(CLI::Range(1, 1000));
  app.add_option("--epochs", options.epochs)->check(CLI::Range(1, 1000));
  app.add_option("--threads", options.threads, "0: all cores");
  app.add_option("--batch", options.batch)->check(CLI::Range(1, 65536));
  app.add_option("--decode", options.decode, "decodes to this width and height; 0: does not");
  CLI11_PARSE(app, argc, argv);
  return shardpack::Run(options);
}
