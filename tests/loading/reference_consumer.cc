// reference_consumer: a program that trusts nothing of what a loader delivers. Over all epochs it
// counts every id, compares labels with the index and the bytes of every field with the first time
// they were delivered, and prints the process's memory after each epoch.
//
//   reference_consumer DATASET --epochs 10 --batch 64 --fields image,json --list ids.tsv
//
// With --list, one line a sample: id, label, and CRC-32 (zlib's, so that any other program can make
// it) or "-" of each field. Exit 1 with a message on the first thing that is wrong.
#include <isa-l/crc.h>

#include <CLI/CLI.hpp>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "formats/io/hash.h"
#include "readers/loading/loader.h"

namespace shardpack {
namespace {

struct Options {
  std::string dataset, list, order = "shuffle";
  std::vector<std::string> fields = {"image"};
  uint32_t batch = 64, world_size = 1;
  uint64_t epochs = 10;
  int threads = 2;
  bool pad = true;
};

int Wrong(const std::string& what) {
  std::fprintf(stderr, "reference_consumer: %s\n", what.c_str());
  return 1;
}

// Of this process, without the pages of mapped files: kilobytes.
uint64_t AnonymousKilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stoull(line.substr(8));
  }
  return 0;
}

class Consumer {
 public:
  Consumer(const Options& options, const Dataset& dataset)
      : options_(options),
        dataset_(dataset),
        seen_(dataset.size()),
        hashes_(dataset.size() * options.fields.size()) {}

  // All ranks' share of a step, one loader a rank.
  int Take(const HostBatch& batch, uint64_t epoch, const Order& order, const Rank& rank) {
    if (batch.epoch() != epoch) return Wrong("a batch of another epoch");
    for (size_t slot = 0; slot < batch.size(); ++slot) {
      const uint64_t id = order.IdAt(epoch, batch.step(),
                                     rank.first_slot(options_.batch) + static_cast<uint32_t>(slot));
      if (batch.ids()[slot] != id) return Wrong("an id that is not the order's");
      if (id == kPaddingId) {
        if (batch.status()[slot].state != SampleState::kPadding) return Wrong("unmarked padding");
        continue;
      }
      if (batch.status()[slot].state != SampleState::kOk) return Wrong("a sample that is not ok");
      if (seen_[id]++ != epoch) return Wrong("id " + std::to_string(id) + " not once an epoch");
      const SampleLocation at = dataset_.Locate(id);
      if (batch.labels()[slot] != (*dataset_.BorrowIndex(at.shard))->label(at.record))
        return Wrong("a label that is not the index's");
      for (size_t f = 0; f < options_.fields.size(); ++f) {
        const uint64_t hash = batch.has(f, slot) ? Xxh3_64(batch.bytes(f, slot)) : 0;
        uint64_t& known = hashes_[id * options_.fields.size() + f];
        if (epoch == 0) {
          known = hash;
        } else if (known != hash) {
          return Wrong("other bytes than in the first epoch");
        }
      }
      ++delivered_;
      if (epoch == 0 && !options_.list.empty()) List(batch, slot);
    }
    return 0;
  }

  // What the epoch did not deliver although it should have.
  uint64_t Missing(uint64_t epoch) const {
    uint64_t missing = 0;
    for (const uint64_t times : seen_) missing += times != epoch + 1;
    return missing;
  }
  uint64_t delivered() const { return delivered_; }
  const std::string& list() const { return list_; }

 private:
  void List(const HostBatch& batch, size_t slot) {
    list_ += std::to_string(batch.ids()[slot]) + "\t" + std::to_string(batch.labels()[slot]);
    for (size_t f = 0; f < options_.fields.size(); ++f) {
      const Bytes bytes = batch.bytes(f, slot);
      list_ += "\t";
      list_ += !batch.has(f, slot)
                   ? "-"
                   : std::to_string(::crc32_gzip_refl(
                         0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
    }
    list_ += "\n";
  }

  const Options& options_;
  const Dataset& dataset_;
  std::vector<uint64_t> seen_, hashes_;
  uint64_t delivered_ = 0;
  std::string list_;
};

int Run(const Options& options) {
  const absl::StatusOr<Dataset> dataset = Dataset::Open(options.dataset);
  if (!dataset.ok()) return Wrong(dataset.status().ToString());
  OrderSpec spec;
  spec.samples = dataset->size();
  spec.mode = options.order == "shuffle"  ? OrderMode::kShuffle
              : options.order == "blocks" ? OrderMode::kBlockShuffle
                                          : OrderMode::kSequential;
  spec.seed = 5;
  spec.global_batch = options.batch;
  spec.tail = options.pad ? Tail::kPad : Tail::kDrop;
  const absl::StatusOr<Order> order = Order::Make(spec);
  if (!order.ok()) return Wrong(order.status().ToString());
  PageableMemory memory;
  std::vector<Loader> loaders;
  for (uint32_t r = 0; r < options.world_size; ++r) {
    absl::StatusOr<Loader> loader =
        Loader::Open(*dataset, *order, {.rank = r, .world_size = options.world_size},
                     {.fields = options.fields, .threads = options.threads}, memory);
    if (!loader.ok()) return Wrong(loader.status().ToString());
    loaders.push_back(*std::move(loader));
  }
  Consumer consumer(options, *dataset);
  for (uint64_t epoch = 0; epoch < options.epochs; ++epoch) {
    for (uint32_t r = 0; r < options.world_size; ++r) {
      for (;;) {
        const absl::StatusOr<std::optional<HostBatch>> batch = loaders[r].Next();
        if (!batch.ok()) return Wrong(batch.status().ToString());
        if (!batch->has_value()) break;
        const Rank rank = {.rank = r, .world_size = options.world_size};
        if (consumer.Take(**batch, epoch, *order, rank) != 0) return 1;
      }
    }
    if (options.pad && consumer.Missing(epoch) > 0)
      return Wrong(std::to_string(consumer.Missing(epoch)) + " samples were not delivered");
    std::printf("epoch %" PRIu64 ": %" PRIu64 " samples so far, %" PRIu64 " kB\n", epoch,
                consumer.delivered(), AnonymousKilobytes());
  }
  if (!options.list.empty()) std::ofstream(options.list) << consumer.list();
  return 0;
}

int Main(int argc, char** argv) {
  CLI::App app("checks everything that a loader delivers");
  Options options;
  app.add_option("dataset", options.dataset)->required();
  app.add_option("--epochs", options.epochs);
  app.add_option("--batch", options.batch);
  app.add_option("--world-size", options.world_size);
  app.add_option("--threads", options.threads);
  app.add_option("--fields", options.fields)->delimiter(',');
  app.add_option("--order", options.order)
      ->check(CLI::IsMember({"shuffle", "blocks", "sequential"}));
  app.add_flag("!--drop", options.pad, "leave out what fills no whole batch");
  app.add_option("--list", options.list);
  CLI11_PARSE(app, argc, argv);
  return Run(options);
}

}  // namespace
}  // namespace shardpack

int main(int argc, char** argv) { return shardpack::Main(argc, argv); }
