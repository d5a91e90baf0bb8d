// The C interface used wrongly, or in odd ways: sizes of other versions, any order of releases,
// threads, a fork.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "api/errors.h"
#include "api/structs.h"
#include "formats/core/manifest.h"
#include "formats/core/shard_index.h"
#include "formats/testing/datasets/toy_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/api/fixture.h"

namespace shardpack::testing {

// As a later version will have it: `added` is not in the first one.
struct Grown {
  size_t size;
  uint64_t first, added;
};

}  // namespace shardpack::testing

template <>
inline constexpr size_t shardpack::api::kFirstSize<shardpack::testing::Grown> = 16;

namespace shardpack::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ApiHostileTest : public ApiTest {
 protected:
  shardpack_code TryOrder(const void* options) {
    shardpack_order* order = nullptr;
    const shardpack_code code = shardpack_order_make(
        30, static_cast<const shardpack_order_options*>(options), &order, Error());
    EXPECT_EQ(order != nullptr, code == SHARDPACK_OK);
    shardpack_order_release(order);
    return code;
  }
};

// What a program was compiled with decides how much is read and written.
TEST_F(ApiHostileTest, OptionsOfOtherVersions) {
  struct Longer {
    shardpack_order_options known;
    uint64_t unknown;
  } longer = {OrderOptions(), 0};
  longer.known.size = sizeof(longer);
  EXPECT_EQ(TryOrder(&longer), SHARDPACK_OK) << Why();
  longer.unknown = 1;
  EXPECT_EQ(TryOrder(&longer), SHARDPACK_INVALID);
  EXPECT_THAT(Why(), HasSubstr("does not know"));
  shardpack_order_options options = OrderOptions();
  options.tail = 99;
  EXPECT_EQ(TryOrder(&options), SHARDPACK_INVALID);
  options.tail = 0;
  // Of a pointer, of no version, and never set.
  for (const size_t size :
       {size_t{0}, sizeof(&options), sizeof(options) - 8, sizeof(options) + 1, size_t{65537}}) {
    options.size = size;
    EXPECT_EQ(TryOrder(&options), SHARDPACK_INVALID) << size;
    EXPECT_THAT(Why(), HasSubstr("sizeof"));
  }
}

TEST(ApiStructs, AShorterOneLacksWhatWasAdded) {
  Grown given = {api::kFirstSize<Grown>, 1, 2};
  EXPECT_EQ(api::Known(&given, "options")->first, 1u);
  EXPECT_EQ(api::Known(&given, "options")->added, 0u);
  const auto fill = [](Grown& all) { all.first = all.added = 5; };
  ASSERT_TRUE(api::Fill(&given, "result", fill).ok());
  EXPECT_EQ(given.size, api::kFirstSize<Grown>);
  EXPECT_EQ(given.first, 5u);
  EXPECT_EQ(given.added, 2u);
  given.size = sizeof(Grown);
  ASSERT_TRUE(api::Fill(&given, "result", fill).ok());
  EXPECT_EQ(given.added, 5u);
  EXPECT_EQ(api::Known(&given, "options")->added, 5u);
}

TEST_F(ApiHostileTest, ResultsOfOtherVersions) {
  Make();
  const LoaderHandle loader = OpenLoader();
  const BatchHandle batch = Next(loader);
  struct Longer {
    shardpack_batch_view known;
    unsigned char unknown[64];
  } longer;
  std::memset(&longer, 0xab, sizeof(longer));
  longer.known.size = sizeof(longer);
  ASSERT_EQ(shardpack_batch_view_of(batch.get(), &longer.known, Error()), SHARDPACK_OK);
  EXPECT_EQ(longer.known.size, sizeof(longer));
  EXPECT_EQ(longer.known.slots, 8u);
  for (const unsigned char byte : longer.unknown) EXPECT_EQ(byte, 0);
  shardpack_batch_view shorter = {};
  for (const size_t size : {size_t{0}, offsetof(shardpack_batch_view, ids), size_t{65537}}) {
    shorter.size = size;
    EXPECT_EQ(shardpack_batch_view_of(batch.get(), &shorter, Error()), SHARDPACK_INVALID) << size;
    EXPECT_EQ(shorter.slots, 0u);
  }
}

TEST_F(ApiHostileTest, NumbersThatMeanNothingAreRefused) {
  Make();
  const DatasetHandle dataset = Open();
  const OrderHandle order = MakeOrder();
  for (uint32_t shardpack_order_options::*member :
       {&shardpack_order_options::mode, &shardpack_order_options::tail,
        &shardpack_order_options::reserved}) {
    shardpack_order_options options = OrderOptions();
    options.*member = 77;
    EXPECT_EQ(TryOrder(&options), SHARDPACK_INVALID);
  }
  for (uint32_t shardpack_decode::*member :
       {&shardpack_decode::crop, &shardpack_decode::filter, &shardpack_decode::channels,
        &shardpack_decode::type, &shardpack_decode::layout, &shardpack_decode::reserved}) {
    shardpack_decode decode = Decode();
    decode.*member = 258;
    shardpack_loader_options options = LoaderOptions();
    options.decode = &decode;
    shardpack_loader* loader = nullptr;
    EXPECT_EQ(shardpack_loader_open(dataset.get(), order.get(), &options, &loader, Error()),
              SHARDPACK_INVALID);
  }
  const auto try_loader = [&](const shardpack_loader_options& options) {
    shardpack_loader* loader = nullptr;
    const shardpack_code code =
        shardpack_loader_open(dataset.get(), order.get(), &options, &loader, Error());
    shardpack_loader_release(loader);
    return code;
  };
  shardpack_loader_options options = LoaderOptions();
  for (const int32_t threads : {-5, 4097, INT32_MAX}) {
    options.threads = threads;
    EXPECT_EQ(try_loader(options), SHARDPACK_INVALID);
  }
  for (const int32_t threads : {-2, 4097, INT32_MAX}) {
    options = LoaderOptions();
    options.io_threads = threads;
    EXPECT_EQ(try_loader(options), SHARDPACK_INVALID);
  }
  options = LoaderOptions();
  options.no_verify = 7;
  EXPECT_EQ(try_loader(options), SHARDPACK_INVALID);
  const LoaderHandle loader = OpenLoader();
  shardpack_batch* batch = nullptr;
  for (const int64_t wait_ms : {int64_t{-2}, INT64_MIN}) {
    EXPECT_EQ(shardpack_loader_next(loader.get(), wait_ms, &batch, Error()), SHARDPACK_INVALID);
    EXPECT_EQ(shardpack_loader_opened(loader.get(), wait_ms, Error()), SHARDPACK_INVALID);
    EXPECT_EQ(shardpack_loader_close(loader.get(), wait_ms, Error()), SHARDPACK_INVALID);
  }
  const uint64_t id = 0;
  EXPECT_EQ(
      shardpack_dataset_read(dataset.get(), &id, size_t{1} << 62, nullptr, 0, &batch, Error()),
      SHARDPACK_INVALID);
  EXPECT_STREQ(shardpack_code_name(SHARDPACK_TIMEOUT), "TIMEOUT");
  EXPECT_STREQ(shardpack_code_name(-1), "UNKNOWN");
  EXPECT_STREQ(shardpack_code_name(SHARDPACK_TIMEOUT + 1), "UNKNOWN");
}

// Of sparse shards, whose indexes are right in themselves: lengths that add up to 2^64, each below
// the size of the file.
TEST_F(ApiHostileTest, SamplesLargerThanMemoryAreRefused) {
  constexpr uint64_t kQuarter = uint64_t{1} << 62, kHalf = uint64_t{1} << 63;
  struct Case {
    uint64_t file;
    std::vector<uint64_t> lengths, ids;
  };
  for (const Case& each : {Case{kQuarter, {kQuarter}, {0}}, Case{kQuarter, {kQuarter}, {0, 0}},
                           Case{kQuarter, {kQuarter}, {0, 0, 0, 0}},
                           Case{kHalf - 32, {kHalf - 32, 15, 64}, {0, 1, 0, 2}}}) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    if (each.ids.size() == 1) continue;  // memory that the sanitizer ends the process for
#endif
    (void)RemoveTree(folder_);
    folder_ = "/dev/shm/shardpack-huge." + std::to_string(::getpid());  // ext4 has smaller files
    std::filesystem::create_directory(folder_);
    Manifest manifest = WriteTestDataset(folder_, ToyFormat(),
                                         {.shards = 1, .records_per_shard = each.lengths.size()});
    ManifestShard& shard = manifest.shards[0];
    if (::truncate((folder_ + "/" + shard.name).c_str(), static_cast<off_t>(each.file)) != 0)
      GTEST_SKIP() << "no file system for such a file";
    ShardIndexBuilder builder;
    for (const uint64_t length : each.lengths) {
      const ScannedField field = {.name = "image", .offset = 0, .length = length, .hash = 1};
      builder.Add({.offset = 0, .length = length, .fields = {&field, 1}}, std::to_string(length),
                  "path", 0, {});
    }
    const std::string index = builder.Finish(each.file);
    WriteTestFile(folder_ + "/" + shard.index.name, index);
    shard.bytes = each.file;
    shard.index.bytes = index.size();
    shard.index.xxh3_128 = Xxh3_128(AsBytes(index));
    for (FileEntry& file : manifest.files) {
      if (file.name == shard.name) file.bytes = each.file;
      if (file.name == shard.index.name) file = shard.index;
    }
    WriteTestFile(folder_ + "/manifest.json", manifest.ToJson());
    const DatasetHandle dataset = Open();
    shardpack_batch* batch = nullptr;
    EXPECT_EQ(shardpack_dataset_read(dataset.get(), each.ids.data(), each.ids.size(), nullptr, 0,
                                     &batch, Error()),
              SHARDPACK_NO_MEMORY)
        << each.ids.size();
    EXPECT_THAT(Why(), HasSubstr(each.ids.size() == 1 ? "memory" : "read fewer at once"));
  }
}

TEST_F(ApiHostileTest, ADatasetOfAnotherVersionIsNoDamage) {
  Make();
  const std::string path = folder_ + "/manifest.json";
  std::string json = ReadTestFile(path);
  const auto replace = [&json](const std::string& from, const std::string& to) {
    json.replace(json.find(from), from.size(), to);
  };
  replace("\"schema\": 1", "\"schema\": 7");
  replace("{", "{\n \"added\": {\"x\": null},");
  json = ResealedManifest(std::move(json));
  WriteTestFile(path, json);
  shardpack_dataset* dataset = nullptr;
  EXPECT_EQ(shardpack_dataset_open(folder_.c_str(), &dataset, Error()), SHARDPACK_UNSUPPORTED);
  EXPECT_THAT(Why(), HasSubstr(path + ": schema 7, expected 1; another version of pack"));
  replace("\"x\": null", "\"y\": null");  // after it was written
  WriteTestFile(path, json);
  EXPECT_EQ(shardpack_dataset_open(folder_.c_str(), &dataset, Error()), SHARDPACK_DATA_LOSS);
}

TEST_F(ApiHostileTest, HandlesMayBeReleasedInAnyOrder) {
  Make();
  for (int order_of_release = 0; order_of_release < 24; ++order_of_release) {
    DatasetHandle dataset = Open();
    OrderHandle order = MakeOrder();
    const shardpack_loader_options options = LoaderOptions();
    shardpack_loader* opened = nullptr;
    ASSERT_EQ(shardpack_loader_open(dataset.get(), order.get(), &options, &opened, Error()),
              SHARDPACK_OK);
    LoaderHandle loader(opened);
    BatchHandle batch = Next(loader);
    const BatchHandle kept(shardpack_batch_retain(batch.get()));
    std::vector<int> left = {0, 1, 2, 3};
    for (int n = order_of_release, k = 4; k > 0; n /= k, --k) {
      const int which = left[static_cast<size_t>(n % k)];
      left.erase(left.begin() + n % k);
      if (which == 0) dataset.reset();
      if (which == 1) order.reset();
      if (which == 2) loader.reset();
      if (which == 3) batch.reset();
      const shardpack_batch_view view = View(kept);
      ASSERT_EQ(Bytes(kept, 0), samples_[view.ids[0]].image);
    }
  }
}

TEST_F(ApiHostileTest, AnErrorIsReplacedOnlyByTheNextCall) {
  Make();
  const DatasetHandle dataset = Open();
  shardpack_text name;
  shardpack_error* error = nullptr;
  ASSERT_EQ(shardpack_dataset_name(dataset.get(), SHARDPACK_CLASS, 999, &name, &error),
            SHARDPACK_OUT_OF_RANGE);
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(shardpack_error_code(error), SHARDPACK_OUT_OF_RANGE);
  shardpack_error* other = error;
  EXPECT_EQ(shardpack_dataset_name(dataset.get(), SHARDPACK_CLASS, 0, &name, &other), SHARDPACK_OK);
  EXPECT_EQ(other, nullptr);
  shardpack_error_free(error);
  EXPECT_EQ(shardpack_error_code(nullptr), SHARDPACK_OK);
  EXPECT_STREQ(shardpack_error_message(nullptr), "");
}

TEST_F(ApiHostileTest, ThreadsShareHandles) {
  Make();
  const DatasetHandle dataset = Open();
  const OrderHandle order = MakeOrder();
  const LoaderHandle loader = OpenLoader();
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 40; ++i) {
        const DatasetHandle mine(shardpack_dataset_retain(dataset.get()));
        const uint64_t ids[] = {(7 * i + t) % 30, i % 30};
        shardpack_batch* read = nullptr;
        ASSERT_EQ(shardpack_dataset_read(mine.get(), ids, 2, nullptr, 0, &read, nullptr),
                  SHARDPACK_OK);
        const BatchHandle batch(read);
        EXPECT_EQ(Bytes(batch, 0), samples_[ids[0]].image);
        uint64_t epoch = 0, step = 0;
        EXPECT_EQ(shardpack_loader_position(loader.get(), &epoch, &step, nullptr), SHARDPACK_OK);
        char* text = nullptr;
        EXPECT_EQ(shardpack_loader_explain(loader.get(), &text, nullptr), SHARDPACK_OK);
        shardpack_text_free(text);
        EXPECT_EQ(shardpack_order_ids(order.get(), i, 0, 0, &epoch, 1, nullptr), SHARDPACK_OK);
      }
    });
  }
  for (int i = 0; i < 60; ++i) {
    const BatchHandle batch = Next(loader);
    if (i % 10 == 9) {
      EXPECT_EQ(shardpack_loader_seek(loader.get(), 5, 1, Error()), SHARDPACK_OK) << Why();
    }
  }
  for (std::thread& thread : threads) thread.join();
}

// Of every thread but this one: whether the signal is blocked there.
std::vector<bool> BlockedInThreads(int signal) {
  std::vector<bool> blocked;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(::gettid())) continue;
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (!line.starts_with("SigBlk:")) continue;
      const uint64_t mask = std::stoull(line.substr(line.find_last_of(" \t") + 1), nullptr, 16);
      blocked.push_back((mask >> (signal - 1) & 1) != 0);
    }
  }
  return blocked;
}

// A program's handlers run on its own threads; what a thread itself causes is not held back.
TEST_F(ApiHostileTest, ThreadsOfTheLibraryTakeNoSignals) {
  Make();
  const LoaderHandle loader = OpenLoader();
  ASSERT_NE(Next(loader), nullptr) << Why();
  EXPECT_THAT(BlockedInThreads(SIGINT), AllOf(Not(IsEmpty()), Each(true)));
  // A thread that is just starting or ending blocks all of them.
  EXPECT_THAT(BlockedInThreads(SIGBUS), Contains(false));
  sigset_t here;
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, nullptr, &here), 0);
  EXPECT_EQ(::sigismember(&here, SIGINT), 0);
}

// What the library's own code may throw becomes a code.
TEST(ApiErrors, ExceptionsStayInside) {
  shardpack_error* error = nullptr;
  EXPECT_EQ(api::Guarded(&error, []() -> absl::Status { throw std::bad_alloc(); }),
            SHARDPACK_NO_MEMORY);
  EXPECT_STREQ(shardpack_error_message(error), "out of memory");
  shardpack_error_free(error);
  EXPECT_EQ(api::Guarded(&error, []() -> absl::Status { throw std::runtime_error("odd"); }),
            SHARDPACK_INTERNAL);
  EXPECT_STREQ(shardpack_error_message(error), "odd");
  shardpack_error_free(error);
  EXPECT_EQ(api::Guarded(&error, []() -> absl::Status { throw 7; }), SHARDPACK_INTERNAL);
  shardpack_error_free(error);
  // As std::thread does.
  const auto no_thread = []() -> absl::Status {
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  };
  EXPECT_EQ(api::Guarded(&error, no_thread), SHARDPACK_NO_MEMORY);
  shardpack_error_free(error);
  EXPECT_EQ(api::Guarded(nullptr, []() -> absl::Status { throw 7; }), SHARDPACK_INTERNAL);
}

TEST(ApiErrors, EveryCodeOfAStatusHasItsOwn) {
  const std::pair<absl::StatusCode, shardpack_code> codes[] = {
      {absl::StatusCode::kInvalidArgument, SHARDPACK_INVALID},
      {absl::StatusCode::kNotFound, SHARDPACK_NOT_FOUND},
      {absl::StatusCode::kOutOfRange, SHARDPACK_OUT_OF_RANGE},
      {absl::StatusCode::kDataLoss, SHARDPACK_DATA_LOSS},
      {absl::StatusCode::kResourceExhausted, SHARDPACK_NO_MEMORY},
      {absl::StatusCode::kPermissionDenied, SHARDPACK_DENIED},
      {absl::StatusCode::kCancelled, SHARDPACK_CANCELLED},
      {absl::StatusCode::kUnimplemented, SHARDPACK_UNSUPPORTED},
      {absl::StatusCode::kFailedPrecondition, SHARDPACK_STATE},
      {absl::StatusCode::kUnavailable, SHARDPACK_UNAVAILABLE},
      {absl::StatusCode::kInternal, SHARDPACK_INTERNAL},
      {absl::StatusCode::kAlreadyExists, SHARDPACK_EXISTS},
      {absl::StatusCode::kDeadlineExceeded, SHARDPACK_TIMEOUT}};
  for (const auto& [status, code] : codes)
    EXPECT_EQ(api::CodeOf(absl::Status(status, "")), code) << shardpack_code_name(code);
  EXPECT_EQ(api::CodeOf(IoStatus("read", "shard", EIO)), SHARDPACK_IO);
}

// Everything that the child does must succeed; it reports by its exit status.
TEST_F(ApiHostileTest, AForkedChildReadsButDoesNotLoad) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "which allows no threads in the child of a process that had some";
#endif
  Make();
  DatasetHandle dataset = Open();
  LoaderHandle loader = OpenLoader();
  BatchHandle batch = Next(loader);
  const pid_t child = ::fork();
  if (child == 0) {
    int failed = 0;
    shardpack_batch* made = nullptr;
    char* text = nullptr;
    uint64_t epoch = 0, step = 0;
    failed |= shardpack_loader_next(loader.get(), -1, &made, nullptr) != SHARDPACK_STATE;
    failed |= (shardpack_loader_cursor(loader.get(), &text, nullptr) != SHARDPACK_STATE) << 1;
    failed |= (shardpack_loader_position(loader.get(), &epoch, &step, nullptr) != SHARDPACK_STATE)
              << 2;
    failed |= (shardpack_loader_close(loader.get(), -1, nullptr) != SHARDPACK_STATE) << 3;
    shardpack_loader_stop(loader.get());
    failed |= (Bytes(batch, 0) != samples_[View(batch).ids[0]].image) << 4;
    batch.reset();
    loader.reset();
    const uint64_t id = 3;
    failed |=
        (shardpack_dataset_read(dataset.get(), &id, 1, nullptr, 0, &made, nullptr) != SHARDPACK_OK)
        << 5;
    shardpack_batch_release(made);
    // A loader of its own works.
    LoaderHandle own = OpenLoader();
    failed |= (Next(own) == nullptr) << 6;
    own.reset();
    dataset.reset();
    ::_exit(failed);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
  ASSERT_NE(Next(loader), nullptr) << Why();
}

}  // namespace
}  // namespace shardpack::testing
