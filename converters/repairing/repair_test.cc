// Repairs datasets of in-memory images with the toy format: what is found, trusted and refused.
#include "converters/repairing/repair.h"

#include <errno.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "converters/building/build.h"
#include "converters/repairing/repair_rows.h"
#include "converters/testing/memory_source.h"
#include "formats/io/file.h"
#include "formats/testing/datasets/test_dataset.h"
#include "formats/testing/datasets/toy_format.h"
#include "formats/testing/scratch_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::shardpack::testing::MemorySource;
using ::shardpack::testing::ReadTestFile;
using ::shardpack::testing::ToyFormat;
using ::shardpack::testing::WriteTestFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Records what File reads during its lifetime. `before` returns an errno to inject, 0 = none.
class ReadWatch {
 public:
  explicit ReadWatch(std::function<int(const std::string& path)> before = nullptr)
      : before_(std::move(before)), real_(SyscallsForTesting()) {
    active = this;
    SyscallsForTesting().pread = &Pread;
  }
  ~ReadWatch() { SyscallsForTesting() = real_; }
  ReadWatch(const ReadWatch&) = delete;
  ReadWatch& operator=(const ReadWatch&) = delete;

  // For files whose path ends with this.
  uint64_t BytesOf(const std::string& end) const {
    uint64_t sum = 0;
    for (const auto& [path, bytes] : bytes_) sum += path.ends_with(end) ? bytes : 0;
    return sum;
  }

 private:
  static ssize_t Pread(int descriptor, void* into, size_t bytes, off_t at) {
    const std::string path =
        std::filesystem::read_symlink(absl::StrCat("/proc/self/fd/", descriptor));
    const std::lock_guard lock(active->mutex_);
    const int error = active->before_ == nullptr ? 0 : active->before_(path);
    if (error != 0) {
      errno = error;
      return -1;
    }
    const ssize_t got = active->real_.pread(descriptor, into, bytes, at);
    active->bytes_[path] += got > 0 ? static_cast<uint64_t>(got) : 0;
    return got;
  }

  static inline ReadWatch* active = nullptr;
  const std::function<int(const std::string&)> before_;
  const Syscalls real_;
  std::mutex mutex_;
  std::map<std::string, uint64_t> bytes_;
};

class RepairTest : public ::testing::Test {
 protected:
  static constexpr size_t kImages = 20;
  RepairTest() : source_(kImages) {}

  std::string Path(const std::string& name) const { return scratch_.File(name); }
  // A dataset made from the source: 20 samples, 4 shards.
  Manifest Make(const std::string& out) {
    PlanOptions plan_options;
    plan_options.samples_per_shard = 5;
    plan_.emplace(*Plan::Make(*source_.List(), plan_options, ToyFormat()));
    BuildOptions options;
    options.out = Path(out);
    options.jobs = 1;
    options.max_skip = 1;
    BuildProgress progress;
    absl::StatusOr<RunReport> report = Build(*plan_, source_, options, pool_, progress, stop_);
    EXPECT_TRUE(report.ok()) << report.status();
    return *Manifest::Read(Path(out));
  }
  RepairSource Copy(const std::string& name) {
    RepairSource source{.name = name};
    source.copy.emplace(*DatasetCopy::Open(Path(name)));
    return source;
  }
  // A source that can plan again, and whose sample `failing` cannot be read.
  RepairSource Again(std::optional<uint64_t> failing = std::nullopt) {
    RepairSource source{.name = "source"};
    source.replan = [this, failing]() -> absl::StatusOr<Replanned> {
      auto again = std::make_unique<MemorySource>(kImages);
      if (bad_) again->Replace(*bad_, std::string(source_.bytes(*bad_)));
      if (failing)
        again->FailToRead(*failing, absl::UnavailableError("read x: Input/output error"));
      absl::StatusOr<Plan> plan = Plan::Make(*again->List(), plan_->options(), ToyFormat());
      if (!plan.ok()) return plan.status();
      return Replanned{std::move(again), *std::move(plan)};
    };
    return source;
  }
  absl::StatusOr<RepairReport> Repair(const std::string& out, std::vector<RepairSource> sources,
                                      const RepairOptions& options = {.fsync = false, .jobs = 1}) {
    RepairProgress progress;
    return RepairDataset(Path(out), *Manifest::Read(Path(out)), sources, ToyFormat(), options,
                         pool_, progress, stop_);
  }
  // The manifest of a copy whose first shard has another name, and so possibly another hash.
  static Manifest Renamed(Manifest manifest, const std::string& from, const std::string& to) {
    manifest.shards[0].name = to;
    for (FileEntry& file : manifest.files) {
      if (file.name == from) file = {to, file.bytes, {}};
    }
    return manifest;
  }
  void Flip(const std::string& name, size_t at) const {
    std::string bytes = ReadTestFile(Path(name));
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    WriteTestFile(Path(name), bytes);
  }
  static std::vector<std::string> Damages(const RepairReport& report) {
    std::vector<std::string> damages;
    for (const RepairedFile& file : report.files)
      damages.push_back(absl::StrCat(file.name, " ", file.damage));
    return damages;
  }

  ::shardpack::testing::ScratchFolder scratch_;
  MemorySource source_;
  std::optional<uint64_t> bad_;  // of its images
  std::optional<Plan> plan_;
  IoPool pool_{2};
  std::atomic<int> stop_{0};
};

TEST_F(RepairTest, EachKindOfDamageIsFound) {
  const Manifest manifest = Make("out");
  const std::vector<ManifestShard>& shards = manifest.shards;
  Flip("out/" + shards[0].name, 100);
  WriteTestFile(Path("out/" + shards[1].name), "short");
  std::filesystem::remove(Path("out/" + shards[2].index.name));
  std::filesystem::remove(Path("out/" + shards[3].name));
  std::filesystem::create_directory(Path("out/" + shards[3].name));
  const std::string cut =
      absl::StrCat(shards[1].name, " 5 bytes where ", shards[1].bytes, " are expected");
  const std::string gone = shards[2].index.name + " missing",
                    folder = shards[3].name + " not a file";

  absl::StatusOr<RepairReport> report = Repair("out", {}, {.dry_run = true, .jobs = 1});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(Damages(*report),
              ::testing::UnorderedElementsAre(shards[0].name + " other bytes", cut, gone, folder));
  EXPECT_EQ(manifest.files.size(), report->looked_at);
  report = Repair("out", {}, {.full = false, .dry_run = true, .jobs = 1});
  EXPECT_THAT(Damages(*report), ::testing::UnorderedElementsAre(cut, gone, folder));
  EXPECT_EQ(0, report->hashed_bytes);
  report = Repair("out", {}, {.only = {shards[0].name}, .dry_run = true, .jobs = 1});
  EXPECT_THAT(Damages(*report), ElementsAre(shards[0].name + " other bytes"));
  EXPECT_EQ(2, report->looked_at);  // the shard and its index
}

TEST_F(RepairTest, ACopyThatLiesAboutItsHashesIsRefused) {
  const Manifest manifest = Make("out");
  std::filesystem::copy(Path("out"), Path("liar"), std::filesystem::copy_options::recursive);
  const std::string& shard = manifest.shards[0].name;
  // Its index and manifest are unchanged, but the bytes they describe are not.
  const ShardIndex index =
      *ShardIndex::Open(Path("out/" + manifest.shards[0].index.name), manifest.shards[0].bytes,
                        manifest.shards[0].index.xxh3_128);
  Flip("liar/" + shard, index.field(2, 0).offset);
  const std::string whole = ReadTestFile(Path("out/" + shard));
  std::filesystem::remove(Path("out/" + shard));

  std::vector<RepairSource> liar;
  liar.push_back(Copy("liar"));
  absl::StatusOr<RepairReport> report = Repair("out", std::move(liar));
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(1, report->files.size());
  EXPECT_THAT(report->files[0].why_not, HasSubstr("are nowhere"));
  EXPECT_FALSE(std::filesystem::exists(Path("out/" + shard)));
  // An intact second copy has what the first lacks.
  std::filesystem::copy(Path("liar"), Path("honest"), std::filesystem::copy_options::recursive);
  WriteTestFile(Path("honest/" + shard), whole);
  std::vector<RepairSource> both;
  both.push_back(Copy("liar"));
  both.push_back(Copy("honest"));
  report = Repair("out", std::move(both));
  EXPECT_TRUE(report->all_whole());
  EXPECT_EQ(whole, ReadTestFile(Path("out/" + shard)));
}

TEST_F(RepairTest, ADatasetThatIsReplacedMeanwhileIsLeftAlone) {
  const Manifest manifest = Make("out");
  const std::string shard = "out/" + manifest.shards[0].name;
  source_.Replace(0, std::string(source_.bytes(1)));
  const Manifest other = Make("new");
  ASSERT_NE(manifest.Identity(), other.Identity());
  Flip(shard, 100);
  bool replaced = false;
  // Like an --overwrite that ends between the first check and the lock.
  const ReadWatch watch([&](const std::string& path) {
    if (!path.ends_with(shard) || std::exchange(replaced, true)) return 0;
    std::filesystem::rename(Path("out"), Path("old"));
    std::filesystem::rename(Path("new"), Path("out"));
    return 0;
  });
  std::vector<RepairSource> again;
  again.push_back(Again());
  RepairProgress progress;
  const absl::StatusOr<RepairReport> report =
      RepairDataset(Path("out"), manifest, again, ToyFormat(), {.fsync = false, .jobs = 1}, pool_,
                    progress, stop_);
  EXPECT_TRUE(absl::IsFailedPrecondition(report.status())) << report.status();
  EXPECT_EQ(other.Identity(), Manifest::Read(Path("out"))->Identity());
}

TEST_F(RepairTest, RowsOfAnIndexGiveTheShardAndTheIndex) {
  const Manifest manifest = Make("out");
  const ManifestShard& shard = manifest.shards[1];
  const ShardIndex index =
      *ShardIndex::Open(Path("out/" + shard.index.name), shard.bytes, shard.index.xxh3_128);
  std::vector<RepairRow> rows;
  const DatasetCopy copy(Path("out"), manifest);
  FieldFinder finder({&copy}, {}, {});
  for (uint64_t record = 0; record < index.records(); ++record) {
    std::optional<RepairRow> row = RowOf(index, record, false);
    ASSERT_TRUE(row.has_value());
    row->number = 5 + record;
    finder.Want(row->fields[0].hash);
    rows.push_back(*std::move(row));
  }
  ASSERT_TRUE(finder.Locate().ok());
  ShardSpec spec{.layout = manifest.layout, .split = shard.split, .classes = manifest.classes};
  DescribeRows(rows, false, spec);
  EXPECT_EQ(5, spec.max_records);
  std::set<std::string> from;
  absl::Status written = WriteShard(ToyFormat(), spec, rows, manifest.classes, finder, pool_,
                                    Path("shard"), stop_, from);
  ASSERT_TRUE(written.ok()) << written;
  EXPECT_EQ(ReadTestFile(Path("out/" + shard.name)), ReadTestFile(Path("shard")));
  EXPECT_THAT(from, ElementsAre(Path("out")));

  const LayoutSpec& layout = *FindLayout(ToyFormat(), manifest.layout);
  EXPECT_EQ(ReadTestFile(Path("out/" + shard.index.name)),
            *MakeIndex(ToyFormat(), layout, Path("shard"), shard.bytes, rows, stop_));
  // Rows of another shard.
  const auto status = [&] {
    return MakeIndex(ToyFormat(), layout, Path("shard"), shard.bytes, rows, stop_).status();
  };
  std::swap(rows[0], rows[1]);
  EXPECT_TRUE(absl::IsDataLoss(status())) << status();
  rows.pop_back();
  EXPECT_TRUE(absl::IsDataLoss(status())) << status();
  stop_ = 1;
  EXPECT_TRUE(absl::IsCancelled(status())) << status();
}

TEST_F(RepairTest, ASourceThatCannotBeReadIsNoFactAboutWhatWasSkipped) {
  bad_ = 3;
  source_.Replace(3, "not an image");
  const Manifest manifest = Make("out");
  const std::string whole = ReadTestFile(Path("out/skipped.jsonl"));
  std::filesystem::remove(Path("out/skipped.jsonl"));
  std::vector<RepairSource> failing;
  failing.push_back(Again(3));
  absl::StatusOr<RepairReport> report = Repair("out", std::move(failing));
  EXPECT_TRUE(absl::IsUnavailable(report.status())) << report.status();
  EXPECT_FALSE(std::filesystem::exists(Path("out/.pack")));
  std::vector<RepairSource> again;
  again.push_back(Again());
  report = Repair("out", std::move(again));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->all_whole());
  EXPECT_EQ(whole, ReadTestFile(Path("out/skipped.jsonl")));
}

TEST_F(RepairTest, HostileNamesOfAManifestTouchNothing) {
  const Manifest manifest = Make("out");
  std::filesystem::copy(Path("out"), Path("copy"), std::filesystem::copy_options::recursive);
  WriteTestFile(Path("precious"), "mine");
  const ManifestShard& shard = manifest.shards[0];
  for (const std::string& name :
       {std::string("../precious"), Path("precious"), std::string("a/../../precious"),
        std::string(".pack/lock"), std::string("..")}) {
    Manifest forged = manifest;
    forged.files = {{name, shard.bytes, shard.xxh3_128}};  // the copy has such a file
    std::vector<RepairSource> sources;
    sources.push_back(Copy("copy"));
    RepairProgress progress;
    const absl::StatusOr<RepairReport> report =
        RepairDataset(Path("out"), forged, sources, ToyFormat(), {.fsync = false, .jobs = 1}, pool_,
                      progress, stop_);
    ASSERT_TRUE(report.ok()) << report.status();
    ASSERT_EQ(1, report->files.size()) << name;
    EXPECT_THAT(report->files[0].why_not, HasSubstr("not a name of a file of a dataset"));
    EXPECT_EQ("mine", ReadTestFile(Path("precious")));
  }
  EXPECT_EQ(4 * 2 + 1, std::distance(std::filesystem::directory_iterator(Path("out")), {}));
}

TEST_F(RepairTest, AManifestIsPutInThePlaceOfNothingElse) {
  const Manifest manifest = Make("out");
  std::filesystem::copy(Path("out"), Path("copy"), std::filesystem::copy_options::recursive);
  const std::string path = Path("out/manifest.json"), whole = ReadTestFile(path);
  const auto restore = [&] {
    RepairProgress progress;
    return RestoreManifest(Path("out"), Path("copy"), manifest.Identity(), {.fsync = false},
                           progress, stop_)
        .status();
  };
  const auto refused = [&](const std::string& why) {
    const absl::Status status = restore();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  };
  refused("another run has put it there");  // since it was found damaged
  for (const std::string theirs :
       {R"({"name": "gallery"})", R"({"tool": "mine", "xxh3_128": "abc"})",
        R"({"plan_digest": "abc", "xxh3_128": "abc"})"}) {
    WriteTestFile(path, theirs);
    refused("was not written by pack");
    EXPECT_EQ(theirs, ReadTestFile(path));
  }
  std::filesystem::remove(path);
  struct Note {
    std::string name, bytes, why;
  };
  for (const Note& note :
       {Note{"plan", "SPKPLAN1", "not finished"}, Note{"journal.jsonl", "theirs", "move it away"},
        Note{"index", "theirs", "move it away"}}) {
    std::filesystem::create_directory(Path("out/.pack"));
    WriteTestFile(Path("out/.pack/" + note.name), note.bytes);
    refused(note.why);
    EXPECT_EQ(note.bytes, ReadTestFile(Path("out/.pack/" + note.name)));
    std::filesystem::remove_all(Path("out/.pack"));
  }
  WriteTestFile(path,
                ReadTestFile(Path("out/" + manifest.shards[0].name)));  // two files were swapped
  EXPECT_TRUE(restore().ok()) << restore();
  EXPECT_EQ(whole, ReadTestFile(path));
}

TEST_F(RepairTest, AShardIsReadOnceWhenAManifestIsRestored) {
  const Manifest manifest = Make("out");
  std::filesystem::copy(Path("out"), Path("copy"), std::filesystem::copy_options::recursive);
  std::filesystem::remove(Path("out/manifest.json"));
  RepairProgress progress;
  RepairOptions options{.fsync = false, .jobs = 1};
  const ReadWatch watch;
  absl::StatusOr<RestoredManifest> restored =
      RestoreManifest(Path("out"), Path("copy"), std::nullopt, options, progress, stop_);
  ASSERT_TRUE(restored.ok()) << restored.status();
  options.whole = std::move(restored->whole);
  const absl::StatusOr<RepairReport> report = RepairDataset(
      Path("out"), restored->manifest, {}, ToyFormat(), options, pool_, progress, stop_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->files.empty());
  for (const ManifestShard& shard : manifest.shards)
    EXPECT_EQ(shard.bytes, watch.BytesOf("/out/" + shard.name)) << shard.name;
}

TEST_F(RepairTest, FilesOfACopyAreReadOnce) {
  const Manifest manifest = Make("out");
  std::filesystem::copy(Path("out"), Path("copy"), std::filesystem::copy_options::recursive);
  for (const ManifestShard& shard : manifest.shards)
    std::filesystem::remove(Path("out/" + shard.name));
  std::vector<RepairSource> sources;
  sources.push_back(Copy("copy"));
  const ReadWatch watch;
  const absl::StatusOr<RepairReport> report = Repair("out", std::move(sources));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->all_whole());
  for (const ManifestShard& shard : manifest.shards)
    EXPECT_EQ(shard.bytes, watch.BytesOf("/copy/" + shard.name)) << shard.name;
}

TEST_F(RepairTest, TakingFilesOfACopyIsStopped) {
  const Manifest manifest = Make("out");
  std::filesystem::copy(Path("out"), Path("copy"), std::filesystem::copy_options::recursive);
  for (const ManifestShard& shard : manifest.shards)
    std::filesystem::remove(Path("out/" + shard.name));
  for (const std::string where : {"/copy/", "/.pack/stage/"}) {
    stop_ = 0;
    std::vector<RepairSource> sources;
    sources.push_back(Copy("copy"));
    const ReadWatch watch([&](const std::string& path) {
      if (path.find(where) != std::string::npos) stop_ = 1;
      return 0;
    });
    const absl::StatusOr<RepairReport> report = Repair("out", std::move(sources));
    EXPECT_EQ(1, stop_) << where;
    EXPECT_TRUE(absl::IsCancelled(report.status())) << where << report.status();
    for (const ManifestShard& shard : manifest.shards)
      EXPECT_FALSE(std::filesystem::exists(Path("out/" + shard.name))) << where;
    EXPECT_FALSE(std::filesystem::exists(Path("out/.pack"))) << where;
  }
}

// A read error says nothing about the content of a copy.
TEST_F(RepairTest, ACopyThatCannotBeReadDoesNotLackTheBytes) {
  const Manifest manifest = Make("out");
  std::filesystem::copy(Path("out"), Path("copy"), std::filesystem::copy_options::recursive);
  const std::string& shard = manifest.shards[0].name;
  std::filesystem::remove(Path("out/" + shard));
  const auto repair = [&](int error, const std::string& copied, bool dry_run) {
    std::vector<RepairSource> sources;
    sources.push_back(Copy("copy"));
    if (copied != shard) sources[0].copy.emplace(Path("copy"), Renamed(manifest, shard, copied));
    const ReadWatch watch(
        [&](const std::string& path) { return path.ends_with("/copy/" + copied) ? error : 0; });
    return Repair("out", std::move(sources), {.dry_run = dry_run, .fsync = false, .jobs = 1});
  };
  // The second copy has the same samples in a different file.
  std::filesystem::copy(Path("copy/" + shard), Path("copy/other.toy"));
  WriteTestFile(Path("copy/other.toy"), ReadTestFile(Path("copy/other.toy")) + "x");
  for (const bool dry_run : {true, false}) {
    for (const std::string& copied : {shard, std::string("other.toy")}) {
      const absl::StatusOr<RepairReport> report = repair(EIO, copied, dry_run);
      ASSERT_TRUE(report.ok()) << report.status();
      ASSERT_EQ(1, report->files.size());
      EXPECT_FALSE(report->files[0].whole());
      EXPECT_THAT(report->files[0].why_not, HasSubstr("copy/" + copied + ": Input/output error"));
      EXPECT_THAT(report->files[0].why_not, Not(HasSubstr("nowhere")));
      for (const int lack : {ENOMEM, EMFILE}) {
        EXPECT_TRUE(absl::IsUnavailable(repair(lack, copied, dry_run).status()))
            << copied << repair(lack, copied, dry_run).status();
      }
    }
  }
  EXPECT_TRUE(repair(0, shard, false)->all_whole());
}

TEST_F(RepairTest, ARunThatIsStoppedLeavesNothingBehind) {
  const Manifest manifest = Make("out");
  std::filesystem::remove(Path("out/" + manifest.shards[0].name));
  stop_ = 1;
  EXPECT_TRUE(absl::IsCancelled(Repair("out", {}).status()));
  EXPECT_FALSE(std::filesystem::exists(Path("out/.pack")));
}

}  // namespace
}  // namespace shardpack
