// The main function of fuzz targets where libFuzzer is not available (see third_party/fuzz.bzl).
// Runs LLVMFuzzerTestOneInput over the corpus and over inputs derived from it by a fixed
// pseudo-random sequence, so that every build and sanitizer configuration exercises each target
// with the same inputs.
//
// Supports the needed subset of libFuzzer's arguments:
//   -seed_inputs=FILE,FILE   the corpus          -seed=N   another sequence (default 1)
//   -runs=N                  generated inputs    -max_len=N   longest generated input (default 65536)
//   FILE...                  runs just these
// On a crash, the input is saved in $TEST_UNDECLARED_OUTPUTS_DIR, or else in $TMPDIR or /tmp, and
// its name is printed.

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// Optional in a fuzz target, as with libFuzzer.
extern "C" __attribute__((weak)) int LLVMFuzzerInitialize(int* argc, char*** argv);
// Present if a sanitizer is linked: its reports end the process without a signal.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

using Bytes = std::vector<uint8_t>;

struct Options {
  uint64_t runs = 20000;
  uint64_t seed = 1;
  uint64_t max_len_bytes = 65536;
  std::vector<std::string> seed_inputs;
  std::vector<std::string> only;
};

// The current input, for the crash handler, which may only touch plain memory.
const uint8_t* current_data = nullptr;
size_t current_size = 0;
char crash_path[4096];

void SaveCurrentInput() {
  if (current_data == nullptr) return;
  const int fd = open(crash_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return;
  for (size_t done = 0; done < current_size;) {
    const ssize_t n = write(fd, current_data + done, current_size - done);
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  close(fd);
  static constexpr char kMessage[] = "\nfuzz_driver: the input was written to ";
  (void)!write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1);
  (void)!write(STDERR_FILENO, crash_path, strlen(crash_path));
  (void)!write(STDERR_FILENO, "\n", 1);
  current_data = nullptr;
}

void OnSignal(int number) {
  SaveCurrentInput();
  signal(number, SIG_DFL);
  raise(number);
}

void InstallCrashHandler() {
  const char* folder = getenv("TEST_UNDECLARED_OUTPUTS_DIR");
  if (folder == nullptr) folder = getenv("TMPDIR");
  if (folder == nullptr) folder = "/tmp";
  snprintf(crash_path, sizeof(crash_path), "%s/crash-%d", folder, static_cast<int>(getpid()));
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(&SaveCurrentInput);
  // A sanitizer's own handlers print more than ours would; none handles SIGABRT.
  const bool sanitized = __sanitizer_set_death_callback != nullptr;
  signal(SIGABRT, &OnSignal);
  if (sanitized) return;
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) signal(number, &OnSignal);
}

// splitmix64: small, and unlike <random>'s distributions identical in every standard library.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // In [0, n); n > 0. The bias of the remainder does not matter here.
  uint64_t Below(uint64_t n) { return Next() % n; }

 private:
  uint64_t state_;
};

// Overwrites one to eight bytes with an edge value of a length, an offset or a count.
void OverwriteWithEdgeValue(Random& random, Bytes& bytes) {
  static constexpr uint64_t kEdges[] = {0,
                                        1,
                                        0x7f,
                                        0x80,
                                        0xff,
                                        0x100,
                                        0x7fff,
                                        0x8000,
                                        0xffff,
                                        0x7fffffff,
                                        0x80000000,
                                        0xffffffff,
                                        0x7fffffffffffffff,
                                        0xffffffffffffffff};
  const uint64_t value = kEdges[random.Below(std::size(kEdges))];
  const size_t width = std::min<size_t>(size_t{1} << random.Below(4), bytes.size());
  const size_t at = random.Below(bytes.size() - width + 1);
  const bool big_endian = random.Below(2) == 0;
  for (size_t i = 0; i < width; ++i) {
    const size_t shift = 8 * (big_endian ? width - 1 - i : i);
    bytes[at + i] = static_cast<uint8_t>(value >> shift);
  }
}

// Copies a part of `from` over or into `bytes`.
void Splice(Random& random, const Bytes& from, Bytes& bytes) {
  if (from.empty()) return;
  const size_t begin = random.Below(from.size());
  const size_t length = 1 + random.Below(std::min<size_t>(from.size() - begin, 1024));
  const size_t at = random.Below(bytes.size() + 1);
  const Bytes span(from.begin() + begin, from.begin() + begin + length);
  if (random.Below(2) == 0) {
    bytes.insert(bytes.begin() + at, span.begin(), span.end());
  } else {
    bytes.resize(std::max(bytes.size(), at + length));
    std::copy(span.begin(), span.end(), bytes.begin() + at);
  }
}

void MutateOnce(Random& random, const std::vector<Bytes>& corpus, Bytes& bytes) {
  if (bytes.empty()) bytes.push_back(0);
  switch (random.Below(8)) {
    case 0:
      bytes[random.Below(bytes.size())] ^= static_cast<uint8_t>(1u << random.Below(8));
      break;
    case 1:
      bytes[random.Below(bytes.size())] = static_cast<uint8_t>(random.Next());
      break;
    case 2:
      bytes.resize(random.Below(bytes.size() + 1));
      break;
    case 3: {
      const size_t begin = random.Below(bytes.size());
      const size_t length = 1 + random.Below(std::min<size_t>(bytes.size() - begin, 64));
      bytes.erase(bytes.begin() + begin, bytes.begin() + begin + length);
      break;
    }
    case 4:
      bytes.insert(bytes.begin() + random.Below(bytes.size() + 1), 1 + random.Below(64),
                   static_cast<uint8_t>(random.Next()));
      break;
    case 5:
      Splice(random, corpus[random.Below(corpus.size())], bytes);
      break;
    default:
      OverwriteWithEdgeValue(random, bytes);
      break;
  }
}

Bytes Generate(Random& random, const std::vector<Bytes>& corpus, size_t max_len_bytes) {
  Bytes bytes = corpus[random.Below(corpus.size())];
  // Usually few changes: those get past a magic number and into the parser.
  const uint64_t changes = 1 + random.Below(random.Below(4) == 0 ? 32 : 4);
  for (uint64_t i = 0; i < changes; ++i) MutateOnce(random, corpus, bytes);
  if (bytes.size() > max_len_bytes) bytes.resize(max_len_bytes);
  return bytes;
}

void RunInput(const Bytes& bytes) {
  // An exact heap copy, so that the address sanitizer detects the first byte read past the end.
  const std::unique_ptr<uint8_t[]> copy(new uint8_t[bytes.size()]);
  std::copy(bytes.begin(), bytes.end(), copy.get());
  current_size = bytes.size();
  current_data = copy.get();
  LLVMFuzzerTestOneInput(copy.get(), bytes.size());
  current_data = nullptr;
}

Bytes ReadFileOrDie(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    fprintf(stderr, "fuzz_driver: cannot open %s\n", path.c_str());
    exit(2);
  }
  return Bytes(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

// True if `argument` is -`name`=NUMBER; ends the program if the value is not a number.
bool ParseNumber(std::string_view argument, std::string_view name, uint64_t& value) {
  if (!argument.starts_with(name)) return false;
  argument.remove_prefix(name.size());
  const char* end = argument.data() + argument.size();
  const auto [stop, error] = std::from_chars(argument.data(), end, value);
  if (error != std::errc() || stop != end) {
    fprintf(stderr, "fuzz_driver: bad number in %.*s\n", static_cast<int>(name.size()),
            name.data());
    exit(2);
  }
  return true;
}

Options ParseOptions(int argc, char** argv) {
  static constexpr std::string_view kSeedInputs = "-seed_inputs=";
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string_view argument = argv[i];
    if (ParseNumber(argument, "-runs=", options.runs) ||
        ParseNumber(argument, "-seed=", options.seed) ||
        ParseNumber(argument, "-max_len=", options.max_len_bytes)) {
      continue;
    }
    if (argument.starts_with(kSeedInputs)) {
      argument.remove_prefix(kSeedInputs.size());
      while (!argument.empty()) {
        const size_t comma = argument.find(',');
        options.seed_inputs.emplace_back(argument.substr(0, comma));
        argument.remove_prefix(comma == argument.npos ? argument.size() : comma + 1);
      }
    } else if (argument.starts_with('-')) {
      fprintf(stderr, "fuzz_driver: unknown argument %s (libFuzzer itself: --config=fuzz)\n",
              argv[i]);
      exit(2);
    } else {
      options.only.emplace_back(argument);
    }
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  if (LLVMFuzzerInitialize != nullptr) LLVMFuzzerInitialize(&argc, &argv);
  const Options options = ParseOptions(argc, argv);
  InstallCrashHandler();

  if (!options.only.empty()) {
    for (const std::string& path : options.only) RunInput(ReadFileOrDie(path));
    printf("fuzz_driver: %zu inputs run\n", options.only.size());
    return 0;
  }

  std::vector<Bytes> corpus;
  for (const std::string& path : options.seed_inputs) corpus.push_back(ReadFileOrDie(path));
  // Always present: a target without a corpus still gets inputs, and one with a corpus also the
  // empty input.
  corpus.emplace_back();
  for (const Bytes& bytes : corpus) RunInput(bytes);

  Random random(options.seed);
  for (uint64_t run = 0; run < options.runs; ++run) {
    RunInput(Generate(random, corpus, options.max_len_bytes));
  }
  printf("fuzz_driver: %zu corpus inputs and %llu generated inputs run\n", corpus.size(),
         static_cast<unsigned long long>(options.runs));
  return 0;
}
