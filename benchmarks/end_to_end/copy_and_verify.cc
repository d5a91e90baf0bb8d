// copy_and_verify: what the machine needs for the reads, writes and hashes of a conversion, and
// nothing else.
//
//   copy_and_verify SRC LIKE OUT [THREADS]
//
// For each file of LIKE, the converted dataset: reads its share of the bytes of SRC's files, writes
// a file of its size to OUT, reads that back, and hashes what it read with XXH3 once per field (64
// bits) and once per file (128 bits), as `pack convert` does. Files are taken by THREADS threads
// (default: as many as cores). There are no records, no index, no plan and no checks: no converter
// that verifies its output can be faster.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "formats/io/hash.h"

namespace shardpack {
namespace {

// Those of the converter.
constexpr size_t kReadBytes = 256 << 10, kWriteBytes = 1 << 20;

struct Input {
  std::string path;
  uint64_t bytes = 0;
};

[[noreturn]] void Fail(const char* what, const std::string& path) {
  std::perror((std::string("copy_and_verify: ") + what + " " + path).c_str());
  std::exit(1);
}

std::vector<Input> FilesOf(const std::string& folder) {
  std::vector<Input> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back({entry.path().native(), entry.file_size()});
  }
  std::sort(files.begin(), files.end(),
            [](const Input& a, const Input& b) { return a.bytes > b.bytes; });
  return files;
}

uint64_t BytesOf(const std::vector<Input>& files) {
  uint64_t sum = 0;
  for (const Input& file : files) sum += file.bytes;
  return sum;
}

// Reads and hashes [begin, end) of a file; the hash keeps the compiler from leaving anything out.
uint64_t ReadAll(int file, const std::string& path, uint64_t begin, uint64_t end, bool whole,
                 std::vector<std::byte>& block) {
  DigestStream digest;
  uint64_t sum = 0;
  for (uint64_t at = begin; at < end;) {
    const ssize_t got = ::pread(file, block.data(), std::min<uint64_t>(kReadBytes, end - at),
                                static_cast<off_t>(at));
    if (got <= 0) Fail("read", path);
    const Bytes bytes(block.data(), static_cast<size_t>(got));
    sum ^= Xxh3_64(bytes);
    if (whole) digest.Update(bytes);
    at += static_cast<uint64_t>(got);
  }
  return sum ^ (whole ? digest.Finish().low : 0);
}

class Copy {
 public:
  Copy(const std::string& source, const std::string& like, std::string out)
      : sources_(FilesOf(source)), targets_(FilesOf(like)), out_(std::move(out)) {
    share_ = static_cast<double>(BytesOf(sources_)) / static_cast<double>(BytesOf(targets_));
  }

  void Run(unsigned threads) {
    std::vector<std::thread> running;
    for (unsigned i = 0; i < threads; ++i) running.emplace_back([this] { Work(); });
    for (std::thread& thread : running) thread.join();
    std::printf("%016llx\n", static_cast<unsigned long long>(sum_.load()));
  }

 private:
  void Work() {
    std::vector<std::byte> block(kWriteBytes);
    for (size_t n = next_++; n < targets_.size(); n = next_++) {
      const auto wanted = static_cast<uint64_t>(static_cast<double>(targets_[n].bytes) * share_);
      ReadSource(n, wanted, block);
      Write(n, block);
    }
  }

  // As many bytes of the n-th file, from its beginning as often as needed.
  void ReadSource(size_t n, uint64_t wanted, std::vector<std::byte>& block) {
    const Input& source = sources_[n % sources_.size()];
    const int file = ::open(source.path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) Fail("open", source.path);
    while (wanted > 0) {
      const uint64_t take = std::min(wanted, source.bytes);
      if (take == 0) break;
      sum_ ^= ReadAll(file, source.path, 0, take, /*whole=*/false, block);
      wanted -= take;
    }
    ::close(file);
  }

  void Write(size_t n, std::vector<std::byte>& block) {
    const std::string path = out_ + "/" + std::to_string(n);
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0) Fail("create", path);
    for (uint64_t at = 0; at < targets_[n].bytes;) {
      const ssize_t wrote =
          ::write(file, block.data(), std::min<uint64_t>(kWriteBytes, targets_[n].bytes - at));
      if (wrote <= 0) Fail("write", path);
      at += static_cast<uint64_t>(wrote);
    }
    sum_ ^= ReadAll(file, path, 0, targets_[n].bytes, /*whole=*/true, block);
    ::close(file);
  }

  const std::vector<Input> sources_, targets_;
  const std::string out_;
  double share_ = 1;
  std::atomic<size_t> next_{0};
  std::atomic<uint64_t> sum_{0};
};

}  // namespace
}  // namespace shardpack

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: copy_and_verify SRC LIKE OUT [THREADS]\n");
    return 2;
  }
  std::filesystem::create_directories(argv[3]);
  const unsigned threads =
      argc > 4 ? static_cast<unsigned>(std::atoi(argv[4])) : std::thread::hardware_concurrency();
  shardpack::Copy(argv[1], argv[2], argv[3]).Run(std::max(1u, threads));
}
