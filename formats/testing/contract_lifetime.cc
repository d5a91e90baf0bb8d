// Checks that it does not matter when, where and by which thread bytes are written.
#include <errno.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <span>
#include <thread>
#include <utility>

#include "formats/io/staged_file.h"
#include "formats/testing/contract_checks.h"
#include "formats/testing/fault_injection.h"

namespace shardpack::testing {
namespace {

// A writer and its file, driven step by step.
class OpenShard {
 public:
  static absl::StatusOr<OpenShard> Create(const FormatCase& c, std::span<const OwnedSample> samples,
                                          const std::string& path) {
    OpenShard shard;
    shard.spec_ = std::make_unique<ShardSpec>(SpecFor(c.spec, samples));
    absl::StatusOr<std::unique_ptr<StagedFile>> file = StagedFile::Create(path + ".part");
    if (!file.ok()) return file.status();
    shard.file_ = *std::move(file);
    auto writer = c.format->create(*shard.file_, *shard.spec_);
    if (!writer.ok()) return writer.status();
    shard.writer_ = *std::move(writer);
    shard.path_ = path;
    return shard;
  }
  absl::Status Append(const SampleView& sample) { return writer_->Append(sample); }
  absl::Status Finish() { return writer_->Finish(); }
  // The writer is destroyed by this.
  absl::StatusOr<std::string> Publish() {
    writer_.reset();
    absl::Status published = file_->Publish(path_);
    if (!published.ok()) return published;
    return ReadWholeFile(path_, uint64_t{1} << 30);
  }

 private:
  std::unique_ptr<ShardSpec> spec_;
  std::unique_ptr<StagedFile> file_;
  std::unique_ptr<ShardWriter> writer_;  // borrows both, so it is declared after them
  std::string path_;
};

// Overwrites a view's memory, as if its owner were gone.
void Poison(OwnedSample& sample, BorrowedSample& borrowed) {
  static constexpr std::string_view kPoison = "poison";
  for (std::string* text : {&sample.key, &sample.source_path, &sample.class_name}) {
    std::fill(text->begin(), text->end(), '\xDD');
  }
  for (auto& [name, bytes] : sample.fields) {
    std::fill(name.begin(), name.end(), '\xDD');
    std::fill(bytes.begin(), bytes.end(), '\xDD');
  }
  for (FieldView& field : borrowed.fields) field = {kPoison, AsBytes(kPoison)};
}

void InThread(auto call) { std::thread(std::move(call)).join(); }

}  // namespace

absl::Status CheckSameBytesAgain(const FormatCase& c, const std::string& scratch) {
  const std::vector<OwnedSample> samples = SamplesFor(c);
  absl::StatusOr<std::string> first = WriteShard(*c.format, c.spec, samples, scratch + "/first");
  // Containers store times in seconds.
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  absl::StatusOr<std::string> second =
      WriteShard(*c.format, c.spec, samples, scratch + "/another-name");
  if (!first.ok() || !second.ok())
    return Broken("writing: ", first.status().ToString(), " ", second.status().ToString());
  if (*first == *second) return absl::OkStatus();
  const auto differs =
      std::mismatch(first->begin(), first->end(), second->begin(), second->end()).first;
  return Broken("written twice, two shards differ at offset ", differs - first->begin());
}

absl::Status CheckViewsDieAfterAppend(const FormatCase& c, const std::string& scratch) {
  const std::vector<OwnedSample> samples = SamplesFor(c, {.count = 40});
  absl::StatusOr<std::string> expected = WriteShard(*c.format, c.spec, samples, scratch + "/kept");
  if (!expected.ok()) return Broken("writing: ", expected.status().ToString());
  absl::StatusOr<OpenShard> shard = OpenShard::Create(c, samples, scratch + "/poisoned");
  if (!shard.ok()) return Broken("create: ", shard.status().ToString());
  std::vector<OwnedSample> dying = samples;
  std::vector<BorrowedSample> graves(dying.size());  // kept, so that late reads find the poison
  for (size_t i = 0; i < dying.size(); ++i) {
    graves[i] = dying[i].Borrow();
    absl::Status appended = shard->Append(graves[i].view);
    if (!appended.ok()) return Broken("append: ", appended.ToString());
    Poison(dying[i], graves[i]);
    graves[i].view = {};
  }
  absl::Status finished = shard->Finish();
  if (!finished.ok()) return Broken("finish: ", finished.ToString());
  absl::StatusOr<std::string> actual = shard->Publish();
  if (!actual.ok()) return actual.status();
  return *actual == *expected ? absl::OkStatus() : Broken("a sample was looked at after Append");
}

absl::Status CheckAppendsFromManyThreads(const FormatCase& c, const std::string& scratch) {
  const std::vector<OwnedSample> samples = SamplesFor(c, {.count = 30});
  absl::StatusOr<std::string> expected = WriteShard(*c.format, c.spec, samples, scratch + "/one");
  if (!expected.ok()) return Broken("writing: ", expected.status().ToString());
  absl::StatusOr<OpenShard> shard = absl::UnknownError("");
  InThread([&] { shard = OpenShard::Create(c, samples, scratch + "/many"); });
  if (!shard.ok()) return Broken("create: ", shard.status().ToString());
  absl::Status status;
  for (const OwnedSample& sample : samples) {
    InThread([&] {
      const BorrowedSample borrowed = sample.Borrow();
      status.Update(shard->Append(borrowed.view));
    });
  }
  InThread([&] { status.Update(shard->Finish()); });
  if (!status.ok()) return Broken("append or finish: ", status.ToString());
  absl::StatusOr<std::string> actual = absl::UnknownError("");
  InThread([&] { actual = shard->Publish(); });
  if (!actual.ok()) return Broken("publish: ", actual.status().ToString());
  return *actual == *expected ? absl::OkStatus()
                              : Broken("the thread that appends changes the bytes");
}

absl::Status CheckWritersAtOnce(const FormatCase& c, const std::string& scratch) {
  if (!c.format->traits.concurrent_writers) return absl::OkStatus();
  constexpr uint64_t kWriters = 4;
  std::vector<std::vector<OwnedSample>> samples;
  std::vector<std::string> expected;
  for (uint64_t w = 0; w < kWriters; ++w) {
    samples.push_back(SamplesFor(c, {.seed = 60 + w, .count = 50}));
    absl::StatusOr<std::string> bytes =
        WriteShard(*c.format, c.spec, samples[w], absl::StrCat(scratch, "/alone-", w));
    if (!bytes.ok()) return Broken("writing: ", bytes.status().ToString());
    expected.push_back(*std::move(bytes));
  }
  // Alternately, on one thread.
  std::vector<OpenShard> shards;
  absl::Status status;
  for (uint64_t w = 0; w < kWriters; ++w) {
    absl::StatusOr<OpenShard> shard =
        OpenShard::Create(c, samples[w], absl::StrCat(scratch, "/turns-", w));
    if (!shard.ok()) return Broken("create: ", shard.status().ToString());
    shards.push_back(*std::move(shard));
  }
  for (size_t i = 0; i < samples[0].size(); ++i) {
    for (uint64_t w = 0; w < kWriters; ++w) {
      const BorrowedSample borrowed = samples[w][i].Borrow();
      status.Update(shards[w].Append(borrowed.view));
    }
  }
  for (OpenShard& shard : shards) status.Update(shard.Finish());
  if (!status.ok()) return Broken("alternately: ", status.ToString());
  for (uint64_t w = 0; w < kWriters; ++w) {
    absl::StatusOr<std::string> bytes = shards[w].Publish();
    if (!bytes.ok()) return Broken("alternately: ", bytes.status().ToString());
    if (*bytes != expected[w]) return Broken("writers that take turns change each other's bytes");
  }
  // Concurrently.
  std::vector<absl::StatusOr<std::string>> results(kWriters, absl::UnknownError(""));
  std::vector<std::thread> threads;
  for (uint64_t w = 0; w < kWriters; ++w) {
    threads.emplace_back([&, w] {
      results[w] = WriteShard(*c.format, c.spec, samples[w], absl::StrCat(scratch, "/at-once-", w));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (uint64_t w = 0; w < kWriters; ++w) {
    if (!results[w].ok()) return Broken("at once: ", results[w].status().ToString());
    if (*results[w] != expected[w]) return Broken("writers at once change each other's bytes");
  }
  return absl::OkStatus();
}

absl::Status CheckAbandonedWriter(const FormatCase& c, const std::string& scratch) {
  const std::vector<OwnedSample> samples = SamplesFor(c);
  // Before the first sample, among them, before Finish, and after it.
  for (const size_t appended : {size_t{0}, size_t{1}, samples.size(), samples.size() + 1}) {
    absl::StatusOr<OpenShard> shard = OpenShard::Create(c, samples, scratch + "/abandoned");
    if (!shard.ok()) return Broken("create: ", shard.status().ToString());
    for (size_t i = 0; i < std::min(appended, samples.size()); ++i) {
      const BorrowedSample borrowed = samples[i].Borrow();
      absl::Status status = shard->Append(borrowed.view);
      if (!status.ok()) return Broken("append: ", status.ToString());
    }
    if (appended > samples.size()) {
      absl::Status status = shard->Finish();
      if (!status.ok()) return Broken("finish: ", status.ToString());
    }
    shard = absl::UnknownError("abandoned");
    for (const auto& entry : std::filesystem::directory_iterator(scratch)) {
      return Broken("left behind after ", appended, " samples: ", entry.path().filename().string());
    }
  }
  return absl::OkStatus();
}

absl::Status CheckFullDisk(const FormatCase& c, const std::string& scratch) {
  // The large payload is written at once, the small ones when a buffer is flushed.
  std::vector<OwnedSample> samples = SamplesFor(c, {.count = 40});
  Random random(65);
  SetPayload(c, 150000, random, samples[20]);
  absl::StatusOr<std::string> whole = absl::UnknownError("");
  uint64_t written = 0;  // less than the file if a library writes a part itself
  {
    FaultInjection faults;
    whole = WriteShard(*c.format, c.spec, samples, scratch + "/whole");
    written = faults.written();
  }
  if (!whole.ok()) return Broken("writing: ", whole.status().ToString());
  for (const uint64_t room : {uint64_t{0}, written / 2, written - 1}) {
    if (written == 0) break;
    FaultInjection faults;
    faults.FailWritesAfter(room, ENOSPC);
    absl::StatusOr<std::string> bytes =
        WriteShard(*c.format, c.spec, samples, absl::StrCat(scratch, "/full-", room));
    if (!absl::IsResourceExhausted(bytes.status())) {
      return Broken("room for ", room, " bytes of ", written, " gives ", bytes.status().ToString());
    }
  }
  FaultInjection faults;
  faults.LimitTransfers(700);
  faults.InterruptEverySecondCall();
  absl::StatusOr<std::string> slow = WriteShard(*c.format, c.spec, samples, scratch + "/slow");
  if (!slow.ok()) return Broken("short writes: ", slow.status().ToString());
  return *slow == *whole ? absl::OkStatus() : Broken("short writes change the bytes");
}

}  // namespace shardpack::testing
