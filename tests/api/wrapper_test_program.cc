// Uses every class of the wrapper. Exits with the line of the first expectation that fails.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "shardpack.hpp"

#define EXPECT(condition)                                                  \
  do {                                                                     \
    if (condition) break;                                                  \
    std::fprintf(stderr, "line %d: not true: %s\n", __LINE__, #condition); \
    std::exit(1);                                                          \
  } while (false)

namespace {

namespace sp = shardpack_api;

constexpr std::uint32_t kBatch = 8;

#ifdef SHARDPACK_NO_EXCEPTIONS

template <typename T>
T Get(sp::Result<T> result) {
  if (!result.ok()) std::fprintf(stderr, "%s\n", result.error().what());
  EXPECT(result.ok());
  return *std::move(result);
}
#define DO(call) EXPECT((call).ok())

template <typename Call>
sp::Error ErrorOf(Call call) {
  auto result = call();
  EXPECT(!result.ok() && !result);
  return result.error();
}

const sp::Batch& BatchOf(const sp::Result<sp::Batch>& item) {
  EXPECT(item.ok());
  return *item;
}

#else

template <typename T>
T Get(T value) {
  return value;
}
#define DO(call) call

template <typename Call>
sp::Error ErrorOf(Call call) {
  try {
    call();
  } catch (const sp::Error& error) {
    return error;
  }
  EXPECT(false);
  std::abort();
}

const sp::Batch& BatchOf(const sp::Batch& item) { return item; }

// The constructors throw.
void TestConstructors(const std::string& path) {
  const sp::Dataset data((std::filesystem::path(path)));
  sp::Loader loader(data, sp::OrderOptions().set_global_batch(kBatch).set_seed(7),
                    sp::LoaderOptions().set_epochs(1));
  EXPECT(loader.next()->slots() == kBatch);
  EXPECT(sp::Loader(data, {}).next()->slots() == 1);
  EXPECT(sp::Loader(data, {}, {}).next()->slots() == 1);
  EXPECT(sp::Loader(data, sp::Order(data), {}).next()->slots() == 1);
  const sp::Device cpu("cpu");
  sp::Job job({"info", path});
  EXPECT(job.wait() == 0);
  try {
    sp::Dataset("/no/such/dataset");
    EXPECT(false);
  } catch (const std::exception& error) {
    EXPECT(std::string(error.what()).find("/no/such/dataset") != std::string::npos);
  }
}

#endif

void TestErrors(const sp::Dataset& data) {
  const sp::Error absent = ErrorOf([] { return sp::Dataset::Open("/no/such/dataset"); });
  EXPECT(absent.code() == sp::Code::kNotFound);
  const sp::Error far = ErrorOf([&] { return data.key(data.samples()); });
  EXPECT(far.code() == sp::Code::kOutOfRange);
  const sp::Error copy = far;
  EXPECT(copy.what() == std::string(far.what()));
  EXPECT(copy.record() == far.record() && copy.key() == far.key());
  const sp::Dataset empty;
  EXPECT(empty.samples() == 0 && empty.classes().empty());
  EXPECT(ErrorOf([&] { return empty.key(0); }).code() == sp::Code::kInvalid);
  const sp::Error size = ErrorOf([&] { return data.column<char>(0, SHARDPACK_COLUMN_LABEL); });
  EXPECT(size.code() == sp::Code::kInvalid);
  EXPECT(size.what() == std::string("the column's items have 8 bytes, not 1"));
  EXPECT(!size.record() && size.path().empty());
}

// In C a text ends at its first NUL: it would be another one.
void TestNul(const sp::Dataset& data, const std::string& path) {
  const std::string cut("image\0x", 7), out("written\0x", 9);
  const auto is_refused = [](auto call) {
    const sp::Error error = ErrorOf(call);
    return error.code() == sp::Code::kInvalid &&
           error.what() == std::string("a text with a NUL byte in it");
  };
  EXPECT(is_refused([&] { return sp::Dataset::Open(path + cut.substr(5)); }));
  EXPECT(is_refused([&] { return sp::Dataset::OpenShards({path, cut}); }));
  EXPECT(is_refused([&] { return data.split(std::string("train\0x", 7)); }));
  EXPECT(is_refused([&] { return data.column<std::uint64_t>(0, SHARDPACK_COLUMN_BYTES, cut); }));
  EXPECT(is_refused([&] { return data.read({0}, {cut}); }));
  const sp::Batch batch = Get(data.read({0}));
  EXPECT(is_refused([&] { return batch.bytes(cut); }));
  EXPECT(is_refused([&] { return batch.masks(cut); }));
  EXPECT(is_refused([&] { return batch.decoded(cut); }));
  EXPECT(is_refused([] { return sp::Device::Open(std::string("cpu\0x", 5)); }));
  const sp::Order order = Get(sp::Order::Make(data.samples(), sp::OrderOptions()));
  EXPECT(is_refused(
      [&] { return sp::Loader::Open(data, order, sp::LoaderOptions().set_fields({cut})); }));
  EXPECT(is_refused(
      [&] { return sp::Loader::Open(data, order, sp::LoaderOptions().set_decode_fields({cut})); }));
  const std::string cursor = Get(Get(sp::Loader::Open(data, order, {})).cursor());
  EXPECT(is_refused([&] {
    return sp::Loader::Open(data, order, sp::LoaderOptions().set_cursor(cursor + cut.substr(5)));
  }));
  const sp::Device cpu = Get(sp::Device::Open("cpu"));
  EXPECT(is_refused([&] {
    return sp::Loader::Resident(data, order, cpu, sp::ResidentOptions().set_cursor(cut));
  }));
  sp::Loader host = Get(sp::Loader::Open(data, order, sp::LoaderOptions().set_device(cpu)));
  EXPECT(is_refused([&] {
    return host.to_device(cpu,
                          sp::DeviceOptions().set_decode({}).set_augment("invert" + cut.substr(5)));
  }));
  EXPECT(is_refused([&] { return sp::Job::Start({"info", cut}); }));
  EXPECT(is_refused([&] { return sp::Job::Start({"info", path}, std::string(".\0x", 3)); }));
  EXPECT(is_refused([&] { return sp::Writer::Open(out, {}); }));
  EXPECT(is_refused(
      [&] { return sp::Writer::Open("written", sp::WriterOptions().set_arguments({cut})); }));
  EXPECT(!std::filesystem::exists("written.parts"));
}

// What a filter or an empty file left is not the same as nothing at all.
void TestEmpty(const sp::Dataset& data) {
  const std::vector<std::uint64_t> none, one = {5};
  EXPECT(ErrorOf([&] {
           return sp::Order::Make(data.samples(), sp::OrderOptions().set_subset(none));
         }).code() == sp::Code::kInvalid);
  const sp::Order order = Get(sp::Order::Make(data.samples(), sp::OrderOptions().set_subset(one)));
  EXPECT(order.samples() == 1);
  EXPECT(ErrorOf([&] {
           return sp::Loader::Open(data, order, sp::LoaderOptions().set_cursor(""));
         }).code() == sp::Code::kInvalid);
  const auto pixels = [&](const sp::LoaderOptions& options) {
    sp::Loader loader = Get(sp::Loader::Open(data, order, options));
    return Get(loader.next())->pixels().size();
  };
  EXPECT(pixels({}) == 0);
  EXPECT(pixels(sp::LoaderOptions().set_decode(sp::Decode())) == 224 * 224 * 3);
  EXPECT(pixels(sp::LoaderOptions().set_decode(sp::Decode().set_height(32))) == 224 * 32 * 3);
  EXPECT(pixels(sp::LoaderOptions().set_decode(sp::NoDecode())) == 0);
}

// Not even what a handle knew by heart stays behind.
void TestMoved(const std::string& path) {
  sp::Dataset data = Get(sp::Dataset::Open(path));
  sp::Batch batch = Get(data.read({1, 2}));
  const sp::Batch kept = std::move(batch);
  EXPECT(kept.slots() == 2 && kept.ids()[1] == 2);
  EXPECT(batch.get() == nullptr && batch.slots() == 0 && batch.ids().data() == nullptr);
  EXPECT(batch.view().states == nullptr && batch.state(0) == sp::State::kPadding);
  EXPECT(sp::Batch().state(0) == sp::State::kPadding);
  const sp::Dataset held = std::move(data);
  EXPECT(held.samples() == 59 && data.samples() == 0 && data.format().empty());
  data = held;
  EXPECT(data.samples() == 59);
  sp::Dataset& same = data;
  data = std::move(same);
  EXPECT(data.samples() == 59 && data.get() != nullptr);
  data = sp::Dataset();
  EXPECT(data.samples() == 0);
}

// Views of a temporary, and its range, would dangle.
template <template <typename> class View, typename Handle, typename = void>
struct Gives : std::false_type {};
template <template <typename> class View, typename Handle>
struct Gives<View, Handle, std::void_t<View<Handle>>> : std::true_type {};
#define ONLY_OF_A_NAMED(handle, name, call)              \
  template <typename Handle>                             \
  using name = decltype(std::declval<Handle>().call);    \
  static_assert(Gives<name, sp::handle&>::value, #call); \
  static_assert(!Gives<name, sp::handle>::value, #call)
ONLY_OF_A_NAMED(Loader, Epoch, epoch());
ONLY_OF_A_NAMED(Dataset, Format, format());
ONLY_OF_A_NAMED(Dataset, Classes, classes());
ONLY_OF_A_NAMED(Dataset, Splits, splits());
ONLY_OF_A_NAMED(Dataset, Shard, shard(0));
ONLY_OF_A_NAMED(Dataset, Fields, fields(0));
ONLY_OF_A_NAMED(Dataset, Column, template column<char>(0, 0));
ONLY_OF_A_NAMED(Dataset, Labels, labels(0));
ONLY_OF_A_NAMED(Dataset, Key, key(0));
ONLY_OF_A_NAMED(Order, Explain, explain());
ONLY_OF_A_NAMED(Device, Info, info());
ONLY_OF_A_NAMED(Batch, Why, why(0));
ONLY_OF_A_NAMED(Batch, Pixels, pixels());

static_assert(std::is_same_v<decltype(sp::OrderOptions().set_seed(1)), sp::OrderOptions&&>);

void TestDataset(const sp::Dataset& data) {
  EXPECT(data.samples() == 59);
  EXPECT(data.shards() == 1);
  EXPECT(data.format() == "webdataset");
  EXPECT(data.splits() == std::vector<std::string_view>{"train"});
  const sp::Dataset train = Get(data.split("train"));
  EXPECT(train.samples() == data.samples());
  EXPECT(sp::View(Get(data.shard(0)).split) == "train");
  EXPECT(Get(data.labels(0)).size() == 59);
  EXPECT(Get(data.fields(0)) == std::vector<std::string_view>{"image"});
  const std::string key(Get(data.key(5)));
  EXPECT(Get(data.find_key(key)) == 5);
  EXPECT(Get(data.locate(5)).record == 5);
  const sp::Dataset twice = Get(sp::Dataset::Join({data, train}));
  EXPECT(twice.samples() == 2 * data.samples());
  const sp::Dataset some = Get(data.select({7, 5, 5}));
  EXPECT(some.samples() == 3 && Get(some.key(2)) == key && Get(some.find_key(key)) == 1);
  EXPECT(ErrorOf([&] { return data.select({59}); }).id() == 59u);
  const sp::Batch batch = Get(data.read({5, 6, 5}));
  EXPECT(ErrorOf([&] { return batch.masks("mask"); }).code() == sp::Code::kNotFound);
  EXPECT(ErrorOf([&] { return batch.decoded("mask"); }).code() == sp::Code::kNotFound);
  EXPECT(ErrorOf([&] { return batch.objects(); }).code() == sp::Code::kNotFound);
  EXPECT(ErrorOf([&] { return batch.affine(); }).code() == sp::Code::kUnsupported);
  EXPECT(ErrorOf([&] { return batch.projection(); }).code() == sp::Code::kUnsupported);
  EXPECT(batch.slots() == 3 && batch.ids()[2] == 5);
  const std::vector<sp::Span<const std::byte>> bytes = Get(batch.bytes());
  EXPECT(bytes[0].size() == Get(data.column<std::uint64_t>(0, SHARDPACK_COLUMN_BYTES))[5]);
  EXPECT(batch.pixels().empty());
  const sp::Span<const std::byte> same = batch.pixels();
  EXPECT(same.empty());
  const sp::Dataset taken(shardpack_dataset_retain(data.get()));
  EXPECT(taken.get() == data.get() && taken.samples() == data.samples());
  sp::Batch copy = batch;
  sp::Batch moved = std::move(copy);
  copy = moved;
  EXPECT(copy.get() == moved.get() && copy.labels().data() == batch.labels().data());
}

void TestLoader(const sp::Dataset& data) {
  const sp::OrderOptions spec =
      sp::OrderOptions().set_global_batch(kBatch).set_seed(7).set_tail(sp::Tail::kPad);
  const sp::Order order = Get(sp::Order::Make(data.samples(), spec));
  EXPECT(order.steps() == 8 && order.samples() == 59);
  const sp::LoaderOptions options =
      sp::LoaderOptions()
          .set_decode(sp::Decode().set_width(16).set_height(12).set_type(sp::Type::kF32))
          .set_bad_samples(sp::BadSamples::kSubstitute)
          .set_epochs(2);
  sp::Loader loader = Get(sp::Loader::Open(data, order, options));
  std::set<std::uint64_t> seen;
  std::uint64_t steps = 0;
  for (const auto& item : loader.epoch()) {
    const sp::Batch& batch = BatchOf(item);
    EXPECT(batch.step() == steps++);
    EXPECT(batch.pixels<float>().size() == kBatch * 16 * 12 * 3);
    EXPECT(batch.pixels<std::uint16_t>().empty() && batch.pixels<double>().empty());
    EXPECT(batch.slots() == kBatch && Get(batch.crops()).size() == kBatch);
    const std::vector<std::uint64_t> ids = Get(order.ids(0, batch.step(), 0, kBatch));
    for (std::size_t slot = 0; slot < batch.slots(); ++slot) {
      if (batch.state(slot) == sp::State::kPadding) continue;
      EXPECT(batch.state(slot) == sp::State::kSubstituted || batch.ids()[slot] == ids[slot]);
      EXPECT((batch.state(slot) == sp::State::kSubstituted) == !Get(batch.why(slot)).empty());
      seen.insert(ids[slot]);
    }
  }
  EXPECT(steps == 8 && seen.size() == 59);
  EXPECT(Get(loader.position()).epoch == 1);
  EXPECT(!Get(loader.explain()).empty() && Get(loader.stats_json())[0] == '{');
  EXPECT(Get(loader.take_bad_samples_json())[0] == '[');

  sp::Loader resumed =
      Get(sp::Loader::Open(data, order, sp::LoaderOptions().set_cursor(Get(loader.cursor()))));
  sp::Polled polled;
  while (polled.code == sp::Code::kWait) polled = Get(resumed.poll(std::chrono::milliseconds(5)));
  EXPECT(polled.code == sp::Code::kOk && polled.batch.epoch() == 1);
  DO(resumed.seek(3, 2));
  const std::optional<sp::Batch> third = Get(resumed.next());
  EXPECT(third.has_value() && third->epoch() == 3 && third->step() == 2);
  resumed.stop();
  EXPECT(ErrorOf([&] { return resumed.next(); }).code() == sp::Code::kCancelled);
  int errors = 0;
#ifdef SHARDPACK_NO_EXCEPTIONS
  for (const auto& item : resumed.epoch()) errors += item.ok() ? 0 : 1;
#else
  errors += ErrorOf([&] { resumed.epoch().begin(); }).code() == sp::Code::kCancelled ? 1 : 0;
#endif
  EXPECT(errors == 1);
  while (!Get(resumed.close(std::chrono::milliseconds(100)))) {
  }
  EXPECT(Get(resumed.close(std::chrono::milliseconds(0))));
  EXPECT(ErrorOf([] { return sp::Loader().close(std::chrono::milliseconds(0)); }).code() ==
         sp::Code::kInvalid);
  const sp::Loader assigned = std::exchange(resumed, sp::Loader());
  EXPECT(resumed.get() == nullptr);
}

// What is printed before the end.
template <typename Call>
std::string LastWords(Call call) {
  int ends[2];
  EXPECT(::pipe(ends) == 0);
  const pid_t child = ::fork();
  EXPECT(child >= 0);
  if (child == 0) {
    const rlimit no_core = {0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::dup2(ends[1], STDERR_FILENO);
    call();
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string words;
  char piece[256];
  for (ssize_t got; (got = ::read(ends[0], piece, sizeof piece)) > 0;)
    words.append(piece, static_cast<std::size_t>(got));
  ::close(ends[0]);
  int status = 0;
  EXPECT(::waitpid(child, &status, 0) == child);
  EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
  return words;
}

void TestResultsThatAreNot() {
  const sp::Result<int> refused = sp::Error(sp::Code::kInvalid, "not today");
  const std::string value = "shardpack: the value was taken from a Result that is an error: ";
  EXPECT(LastWords([&] { std::printf("%d", *refused); }) == value + "not today\n");
  const sp::Result<std::string> also = sp::Error(sp::Code::kInvalid, "nor then");
  EXPECT(LastWords([&] { std::printf("%zu", also->size()); }) == value + "nor then\n");
  const std::string error = "shardpack: the error was taken from a Result that is none\n";
  EXPECT(LastWords([] { std::puts(sp::Result<int>(3).error().what()); }) == error);
  EXPECT(LastWords([] { std::puts(sp::Result<void>().error().what()); }) == error);
}

void TestSingleImages(const sp::Dataset& data) {
  const sp::Batch batch = Get(data.read({0}));
  const sp::Span<const std::byte> file = Get(batch.bytes())[0];
  const shardpack_image_info info = Get(sp::ImageInfoOf(file.data(), file.size()));
  EXPECT(info.width > 0 && info.height > 0 && info.stored.format > 0);
  for (const std::uint32_t channels : {1u, 3u}) {
    const sp::Pixels pixels = Get(sp::DecodeImage(file.data(), file.size(), channels));
    EXPECT(pixels.width == info.width && pixels.height == info.height);
    EXPECT(pixels.channels == channels);
    EXPECT(pixels.bytes.size() == std::size_t{info.width} * info.height * channels);
  }
  EXPECT(Get(sp::DecodeImage(file.data(), file.size())).channels == 3);
  const auto code = [&](std::size_t size, std::uint32_t channels, std::uint64_t max_pixels) {
    return ErrorOf([&] { return sp::DecodeImage(file.data(), size, channels, max_pixels); }).code();
  };
  EXPECT(code(file.size(), 2, 0) == sp::Code::kInvalid);
  EXPECT(code(0, 3, 0) == sp::Code::kInvalid);
  EXPECT(code(file.size(), 3, 1) == sp::Code::kNoMemory);
  EXPECT(ErrorOf([] { return sp::ImageInfoOf(nullptr, 5); }).code() == sp::Code::kInvalid);
}

// Of which there is only the header; its pixels would take 189 MB.
void TestAnImageWithoutMemory() {
  const unsigned char png[] = {0x89, 'P', 'N', 'G', 13,  10, 26, 10,   0, 0, 0,
                               13,   'I', 'H', 'D', 'R', 0,  0,  0x1F, 0, 0, 0,
                               0x1F, 0,   8,   2,   0,   0,  0,  0,    0, 0, 0};
  rlimit before = {};
  EXPECT(::getrlimit(RLIMIT_AS, &before) == 0);
  std::ifstream sizes("/proc/self/statm");
  rlim_t pages = 0;
  EXPECT(sizes >> pages);
  const rlimit little = {pages * static_cast<rlim_t>(::getpagesize()) + (rlim_t{64} << 20),
                         before.rlim_max};
  EXPECT(::setrlimit(RLIMIT_AS, &little) == 0);
  const sp::Code code = ErrorOf([&] { return sp::DecodeImage(png, sizeof png); }).code();
  EXPECT(::setrlimit(RLIMIT_AS, &before) == 0);
  EXPECT(code == sp::Code::kNoMemory);
}

// Of a dataset whose only field is the image.
void TestMasks(const sp::Dataset& data) {
  const sp::Order order = Get(sp::Order::Make(data.samples(), sp::OrderOptions()));
  const auto code = [&](const sp::LoaderOptions& options) {
    return ErrorOf([&] { return sp::Loader::Open(data, order, options); }).code();
  };
  const sp::LoaderOptions decoded = sp::LoaderOptions().set_decode(sp::Decode());
  EXPECT(code(sp::LoaderOptions(decoded).set_decode_fields({"image"})) == sp::Code::kInvalid);
  EXPECT(code(sp::LoaderOptions(decoded).set_decode_fields({"mask"})) == sp::Code::kInvalid);
  const sp::FieldDecode objects = sp::FieldDecode().set_field("image").set_as(sp::FieldAs::kCoco);
  EXPECT(code(sp::LoaderOptions(decoded).set_field_decodes({objects})) == sp::Code::kInvalid);
  const sp::OwnOperation own = sp::OwnOperation().set_plugin("none.so");
  EXPECT(code(sp::LoaderOptions(decoded).set_own_operations({own})) == sp::Code::kNotFound);
  DO(sp::check(sp::Decode().set_width(32)));
  const sp::Error wide = ErrorOf([] { return sp::check(sp::Decode().set_width(70000)); });
  EXPECT(wide.code() == sp::Code::kInvalid);
}

#if __cplusplus >= 202002L
void TestAggregates(const sp::Dataset& data) {
  const sp::Order order = Get(sp::Order::Make(data.samples(), {.global_batch = 4, .seed = 3}));
  sp::Loader loader =
      Get(sp::Loader::Open(data, order,
                           {.decode = {.width = 16, .height = 16, .flip_probability = 0.5},
                            .bad_samples = sp::BadSamples::kSubstitute}));
  const std::optional<sp::Batch> batch = Get(loader.next());
  const std::span<const std::uint64_t> ids = batch->ids();
  EXPECT(ids.size() == 4);
  const std::span<std::byte> pixels = batch->pixels();
  EXPECT(pixels.size() == 4 * 16 * 16 * 3);
  static_assert(std::ranges::borrowed_range<sp::Span<int>>);
}
#endif

void TestDevice(const sp::Dataset& data) {
  const sp::Device cpu = Get(sp::Device::Open("cpu"));
  EXPECT(Get(cpu.info()).number == -1);
  // As in C, where 0 is the default.
  const sp::ResidentOptions resident;
  EXPECT(resident.type == sp::Type::kU8 && resident.layout == sp::Layout::kNhwc);
  EXPECT(ErrorOf([] { return sp::Device::Open("toaster"); }).code() == sp::Code::kInvalid);
  const sp::Order order =
      Get(sp::Order::Make(data.samples(), sp::OrderOptions().set_global_batch(kBatch)));
  sp::Loader host = Get(sp::Loader::Open(data, order,
                                         sp::LoaderOptions()
                                             .set_decode(sp::Decode().set_width(16).set_height(16))
                                             .set_bad_samples(sp::BadSamples::kSubstitute)
                                             .set_device(cpu)));
  sp::Loader loader =
      Get(host.to_device(cpu, sp::DeviceOptions().set_preprocess(true).set_type(sp::Type::kF16)));
  std::optional<sp::Batch> batch = Get(loader.next());
  DO(batch->wait_on(nullptr));
  EXPECT(batch->pixels<std::uint16_t>().size() == kBatch * 16 * 16 * 3);
  DO(batch->release_on(nullptr));
  EXPECT(ErrorOf([&] { return batch->dlpack(); }).code() == sp::Code::kState);
  EXPECT(ErrorOf([&] { return host.next(); }).code() == sp::Code::kState);
}

void TestJob(const std::string& path) {
  sp::Job job = Get(sp::Job::Start({"validate", path}));
  shardpack_job_progress progress = {};
  while (!Get(job.poll(std::chrono::milliseconds(10), &progress))) {
  }
  EXPECT(Get(job.wait()) == 0 && job.exit_code() == 0);
  EXPECT(Get(job.result_json()).find("\"exit_code\":0") != std::string::npos);
  const sp::Job moved = std::move(job);
  EXPECT(ErrorOf([] { return sp::Job::Start({"man"}); }).code() == sp::Code::kInvalid);
}

void TestWriter(const sp::Dataset& data) {
#if __cplusplus >= 202002L
  const std::string path = "written/20";
#else
  const std::string path = "written/17";
#endif
  std::filesystem::remove_all(path);
  std::filesystem::create_directories("written");
  sp::Writer writer =
      Get(sp::Writer::Open(path, sp::WriterOptions().set_arguments({"--format=tfrecord"})));
  const sp::Batch batch = Get(data.read({0, 1}));
  const std::vector<sp::Span<const std::byte>> images = Get(batch.bytes());
  DO(writer.add("a", "cat", {{nullptr, images[0].data(), images[0].size()}}));
  const char* const text = reinterpret_cast<const char*>(images[1].data());
  DO(writer.add("b", std::nullopt, std::string_view(text, images[1].size())));
  DO(writer.add("n", {}, std::string_view(text, images[1].size())));
  EXPECT(!writer.has("a"));
  const std::string label("cat\0fish", 8);
  EXPECT(ErrorOf([&] { return writer.add("c", label, "x"); }).code() == sp::Code::kInvalid);
  DO(writer.flush());
  EXPECT(writer.has("a") && !writer.has("c"));
  const auto again = [&] { return writer.add("a", std::nullopt, std::string_view(text, 99)); };
  EXPECT(ErrorOf(again).code() == sp::Code::kExists);
  sp::Job job = Get(writer.finish());
  EXPECT(Get(job.wait()) == 0);
  EXPECT(Get(sp::Dataset::Open(path)).samples() == 3);
}

}  // namespace

#ifdef OTHER_MAIN
int OtherMain(const char* path);
int OtherMain(const char* path) {
#else
#ifdef BOTH
int OtherMain(const char* path);
#endif
int main(int argc, char** argv) {
  const char* const path = argc > 1 ? argv[1] : "shards";
#endif
  EXPECT(sp::version() == SHARDPACK_VERSION && sp::build_json()[0] == '{');
  const sp::Dataset data = Get(sp::Dataset::Open(path));
  TestErrors(data);
  TestNul(data, path);
  TestEmpty(data);
  TestMoved(path);
  TestDataset(data);
  TestLoader(data);
  TestMasks(data);
  TestSingleImages(data);
  TestAnImageWithoutMemory();
  TestResultsThatAreNot();
  TestDevice(data);
  TestJob(path);
  TestWriter(data);
#if __cplusplus >= 202002L
  TestAggregates(data);
#endif
#ifndef SHARDPACK_NO_EXCEPTIONS
  TestConstructors(path);
#endif
#ifdef BOTH
  EXPECT(OtherMain(path) == 0);
#endif
  return 0;
}
