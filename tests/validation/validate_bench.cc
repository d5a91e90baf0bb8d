// Speed of a full validation against a plain read of the same bytes, in one process, warm, best of
// seven.
//
//   usage: validate_bench FORMAT SHARDS RECORDS_PER_SHARD IMAGE_BYTES [FOLDER]
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "formats/formats.h"
#include "formats/io/file.h"
#include "formats/testing/datasets/test_dataset.h"
#include "validators/validator.h"

namespace shardpack {
namespace {

// Processor seconds of all threads tell more than elapsed ones on a machine that others use too.
struct Cost {
  double wall = 1e9, cpu = 1e9;
};

double CpuSeconds() {
  rusage usage;
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Cost BestOf(const std::function<void()>& run) {
  Cost best;
  for (int i = 0; i < 7; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const double cpu = CpuSeconds();
    run();
    best.cpu = std::min(best.cpu, CpuSeconds() - cpu);
    best.wall = std::min(
        best.wall, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

uint64_t ReadAll(const std::string& path) {
  static std::vector<char> block(1 << 20);
  const int fd = ::open(path.c_str(), O_RDONLY);
  uint64_t total = 0;
  for (ssize_t got; (got = ::read(fd, block.data(), block.size())) > 0;)
    total += static_cast<uint64_t>(got);
  ::close(fd);
  return total;
}

int Main(int argc, char** argv) {
  if (argc < 5) return 2;
  const Format* format = FindFormat(argv[1]);
  if (format == nullptr) return 2;
  const size_t bytes = std::strtoull(argv[4], nullptr, 10);
  const std::string folder = argc > 5 ? argv[5] : testing::MakeTestFolder("validate_bench");
  const Manifest manifest =
      testing::WriteTestDataset(folder, *format,
                                {.shards = std::strtoull(argv[2], nullptr, 10),
                                 .records_per_shard = std::strtoull(argv[3], nullptr, 10),
                                 .min_image_bytes = bytes / 2,
                                 .max_image_bytes = bytes * 3 / 2});
  uint64_t total = 0;
  const Cost raw = BestOf([&] {
    total = 0;
    for (const FileEntry& file : manifest.files) total += ReadAll(folder + "/" + file.name);
  });
  const auto rate = [&](double seconds) { return static_cast<double>(total) / seconds / 1e9; };
  std::printf("%s, %zu shards, %.1f MB, %.0f B an image: raw read %.2f GB/s (%.2f GB a cpu second)",
              argv[1], manifest.shards.size(), static_cast<double>(total) / 1e6,
              static_cast<double>(bytes), rate(raw.wall), rate(raw.cpu));
  for (const int jobs : {1, 0}) {
    const Cost cost = BestOf([&] {
      ValidationProgress progress;
      std::atomic<int> stop{0};
      const auto report = ValidateDataset(folder, AllFormats(), {.jobs = jobs}, progress, stop);
      if (!report.ok() || report->errors() > 0) std::abort();
    });
    std::printf("; full with %s %.2f GB/s = %.2f x (%.2f GB a cpu second = %.2f x)",
                jobs == 1 ? "one job" : "all cores", rate(cost.wall), raw.wall / cost.wall,
                rate(cost.cpu), raw.cpu / cost.cpu);
  }
  std::printf("\n");
  if (argc <= 5) (void)RemoveTree(folder);
  return 0;
}

}  // namespace
}  // namespace shardpack

int main(int argc, char** argv) { return shardpack::Main(argc, argv); }
