#include "readers/dataset/dataset.h"

#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <filesystem>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "formats/io/error_facts.h"
#include "formats/io/file.h"
#include "formats/testing/datasets/test_dataset.h"
#include "formats/testing/datasets/toy_format.h"
#include "formats/testing/fault_injection.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "readers/dataset/warm_shards.h"

namespace shardpack {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::MakeTestFolder;
using testing::MakeTestSamples;
using testing::ReadTestFile;
using testing::Reseal;
using testing::ScopedSyscalls;
using testing::TestDatasetOptions;
using testing::TestSample;
using testing::ToyFormat;
using testing::WriteTestDataset;
using testing::WriteTestFile;
using testing::WriteTestShard;

const Format* const kToy[] = {&ToyFormat()};

class DatasetTest : public ::testing::Test {
 protected:
  DatasetTest()
      : folder_(MakeTestFolder(::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    options_ = {.shards = 3, .records_per_shard = 7};
    samples_ = MakeTestSamples(options_);
    manifest_ = WriteTestDataset(folder_, ToyFormat(), options_);
  }
  ~DatasetTest() override { (void)RemoveTree(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  // Changes one byte of a record's first field inside its shard.
  void Damage(const Dataset& dataset, uint64_t id) {
    const SampleLocation at = dataset.Locate(id);
    const Extent extent = dataset.index(at.shard)->field(at.record, 0);
    const std::string path = dataset.shards()[at.shard].data_path;
    std::string bytes = ReadTestFile(path);
    bytes[extent.offset + extent.length / 2] ^= 0x10;
    WriteTestFile(path, bytes);
  }

  std::string folder_;
  TestDatasetOptions options_;
  std::vector<TestSample> samples_;
  Manifest manifest_;
};

TEST_F(DatasetTest, GivesBackEverySample) {
  const absl::StatusOr<Dataset> dataset = Dataset::Open(folder_);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  ASSERT_EQ(dataset->size(), samples_.size());
  EXPECT_EQ(dataset->size("train"), samples_.size());
  EXPECT_EQ(dataset->size("val"), 0u);
  EXPECT_EQ(dataset->identity(), manifest_.Identity());
  EXPECT_EQ(dataset->shards().size(), 3u);
  EXPECT_EQ(dataset->format(), "toy");
  for (uint64_t id = 0; id < samples_.size(); ++id) {
    const absl::StatusOr<OwnedSample> sample = dataset->Read(id);
    ASSERT_TRUE(sample.ok()) << sample.status();
    EXPECT_EQ(sample->key, samples_[id].key);
    EXPECT_EQ(sample->source_path, samples_[id].source_path);
    EXPECT_EQ(sample->label, samples_[id].label);
    ASSERT_EQ(sample->fields.size(), 1u);
    EXPECT_EQ(sample->fields[0].name, kImageField);
    EXPECT_EQ(sample->fields[0].bytes, samples_[id].image);
    EXPECT_EQ(*dataset->FindKey(samples_[id].key), id);
  }
  EXPECT_TRUE(absl::IsOutOfRange(dataset->Read(samples_.size()).status()));
  EXPECT_TRUE(absl::IsNotFound(dataset->FindKey("cat/none").status()));
  EXPECT_TRUE(absl::IsOutOfRange(dataset->index(3).status()));
}

TEST_F(DatasetTest, ADamagedSampleIsNamedAndTheOthersAreRead) {
  const absl::StatusOr<Dataset> dataset = Dataset::Open(folder_);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  Damage(*dataset, 9);
  const absl::Status lost = dataset->Read(9).status();
  EXPECT_TRUE(absl::IsDataLoss(lost));
  EXPECT_THAT(
      std::string(lost.message()),
      AllOf(HasSubstr("train-1.toy"), HasSubstr("key dog/000009"), HasSubstr("at offset ")));
  for (uint64_t id = 0; id < samples_.size(); ++id) {
    EXPECT_EQ(dataset->Read(id).ok(), id != 9);
  }
}

// The first of several reads returns a flipped bit, like bad memory.
std::atomic<int> reads_to_spoil{0};
ssize_t SpoilingPread(int fd, void* into, size_t size, off_t offset) {
  const ssize_t got = ::pread(fd, into, size, offset);
  if (got > 0 && reads_to_spoil.fetch_sub(1) > 0) static_cast<char*>(into)[got / 2] ^= 1;
  return got;
}

TEST_F(DatasetTest, OneBadReadIsRepeatedTwoAreDamage) {
  const absl::StatusOr<Dataset> dataset = Dataset::Open(folder_);
  ASSERT_TRUE(dataset->Read(0).ok());
  const ScopedSyscalls restored;
  SyscallsForTesting().pread = SpoilingPread;
  reads_to_spoil = 1;
  EXPECT_TRUE(dataset->Read(1).ok());
  reads_to_spoil = 2;
  EXPECT_TRUE(absl::IsDataLoss(dataset->Read(1).status()));
}

int preads = 0, vector_reads = 0;
ssize_t CountedPread(int fd, void* into, size_t size, off_t offset) {
  ++preads;
  return ::pread(fd, into, size, offset);
}
ssize_t CountedPreadv2(int fd, const iovec* parts, int count, off_t offset, int flags) {
  ++vector_reads;
  return ::preadv2(fd, parts, count, offset, flags);
}

// Memory for the first field of each sample, and what to read into it.
struct FirstFields {
  FirstFields(const Dataset& dataset, std::span<const uint64_t> ids) {
    for (const uint64_t id : ids) {
      const SampleLocation at = dataset.Locate(id);
      bytes.emplace_back(dataset.index(at.shard)->field(at.record, 0).length, '\0');
      reads.push_back({at, 0, std::as_writable_bytes(std::span(bytes.back()))});
    }
  }
  std::deque<std::string> bytes;
  std::vector<FieldRead> reads;
};

TEST_F(DatasetTest, NeighboursAreReadTogetherAndEachIsVerified) {
  const absl::StatusOr<Dataset> dataset = Dataset::Open(folder_);
  // The second shard in order, then its first and third sample again in the wrong order.
  FirstFields wanted(*dataset, std::vector<uint64_t>{7, 8, 9, 10, 11, 12, 13, 9, 7});
  ASSERT_TRUE(dataset->Read(7).ok());  // opens the shard
  const ScopedSyscalls restored;
  SyscallsForTesting().pread = CountedPread;
  SyscallsForTesting().preadv2 = CountedPreadv2;
  preads = vector_reads = 0;
  for (const absl::Status& status : dataset->ReadFields(wanted.reads))
    EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(vector_reads, 1);
  EXPECT_EQ(preads, 2);
  for (size_t i = 0; i < wanted.reads.size(); ++i)
    EXPECT_EQ(wanted.bytes[i], dataset->Read(i < 7 ? 7 + i : i == 7 ? 9 : 7)->fields[0].bytes);
}

TEST_F(DatasetTest, OfNeighboursReadTogetherTheDamagedOneIsNamed) {
  const absl::StatusOr<Dataset> dataset = Dataset::Open(folder_);
  Damage(*dataset, 9);
  FirstFields wanted(*dataset, std::vector<uint64_t>{7, 8, 9, 10});
  wanted.reads.push_back({{1, 99}, 0, {}});  // not a record
  const std::vector<absl::Status> statuses = dataset->ReadFields(wanted.reads);
  EXPECT_TRUE(statuses[0].ok() && statuses[1].ok() && statuses[3].ok());
  EXPECT_EQ(statuses[2], dataset->Read(9).status());
  EXPECT_TRUE(absl::IsOutOfRange(statuses[4]));
}

TEST_F(DatasetTest, CachedShardsAreCopiedFromMappings) {
  const absl::StatusOr<Dataset> dataset = Dataset::Open(folder_);
  std::vector<uint64_t> ids;
  for (int i = 0; i < 40; ++i) ids.push_back(i % 2 == 0 ? 7 : 13);  // not neighbours in this order
  FirstFields wanted(*dataset, ids);
  const auto read = [&](bool map) {
    preads = vector_reads = 0;
    for (std::string& bytes : wanted.bytes) bytes.assign(bytes.size(), '\0');
    for (const absl::Status& status : dataset->ReadFields(wanted.reads, map))
      EXPECT_TRUE(status.ok()) << status;
    for (size_t i = 0; i < ids.size(); ++i)
      EXPECT_EQ(wanted.bytes[i], dataset->Read(ids[i])->fields[0].bytes);
    return preads + vector_reads - static_cast<int>(ids.size());  // without those of Read
  };
  const ScopedSyscalls restored;
  SyscallsForTesting().pread = CountedPread;
  SyscallsForTesting().preadv2 = CountedPreadv2;
  EXPECT_GT(read(true), 0);
  EXPECT_EQ(read(true), 0);
  EXPECT_GT(read(false), 0);
  // In a child, whose parent may have held locks, too.
  const pid_t child = ::fork();
  if (child == 0) {
    const bool first = read(true) > 0;
    ::_exit(first && read(true) == 0 && !HasFailure() ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(DatasetTest, MappedShardsThatAreDamagedOrCutAreErrors) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "its runtime does not allow a jump out of a signal handler";
#endif
  const absl::StatusOr<Dataset> dataset = Dataset::Open(folder_);
  FirstFields wanted(*dataset, std::vector<uint64_t>(40, 9));
  for (int i = 0; i < 2; ++i) (void)dataset->ReadFields(wanted.reads, true);
  ASSERT_NE(dataset->Warm(1).Get(), nullptr);
  Damage(*dataset, 9);
  std::vector<absl::Status> statuses = dataset->ReadFields(wanted.reads, true);
  EXPECT_EQ(statuses[0], dataset->Read(9).status());
  EXPECT_TRUE(absl::IsDataLoss(statuses[0])) << statuses[0];
  ASSERT_EQ(::truncate(Path("train-1.toy").c_str(), 0), 0);
  statuses = dataset->ReadFields(wanted.reads, true);
  for (const absl::Status& status : statuses) {
    EXPECT_TRUE(absl::IsDataLoss(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr("cut short"));
  }
}

TEST_F(DatasetTest, WhatIsMadeOfADatasetHasItsMappings) {
  const absl::StatusOr<Dataset> dataset = Dataset::Open(folder_);
  const absl::StatusOr<Dataset> split = dataset->Split("train");
  ASSERT_TRUE(split.ok()) << split.status();
  FirstFields wanted(*split, std::vector<uint64_t>(40, 9));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      FirstFields own(*split, std::vector<uint64_t>{7, 9, 13, 9});
      for (int i = 0; i < 50; ++i) {
        for (const absl::Status& status : split->ReadFields(own.reads, true))
          EXPECT_TRUE(status.ok()) << status;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_NE(split->Warm(1).Get(), nullptr);
  EXPECT_EQ(split->Warm(1).Get(), dataset->Warm(1).Get());
  EXPECT_EQ(split->Warm(0).Get(), nullptr);
}

std::atomic<bool> cold{false};

ssize_t PerhapsColdPreadv2(int file, const iovec* parts, int count, off_t offset, int flags) {
  if (!cold || (flags & RWF_NOWAIT) == 0) return ::preadv2(file, parts, count, offset, flags);
  errno = EAGAIN;
  return -1;
}

TEST_F(DatasetTest, WhatIsNotCachedIsReadAndNotMapped) {
  const absl::StatusOr<Dataset> dataset = Dataset::Open(folder_);
  FirstFields wanted(*dataset, std::vector<uint64_t>(40, 9));
  const ScopedSyscalls restored;
  SyscallsForTesting().preadv2 = PerhapsColdPreadv2;
  cold = true;
  for (const absl::Status& status : dataset->ReadFields(wanted.reads, true))
    EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(wanted.bytes[0], dataset->Read(9)->fields[0].bytes);
  EXPECT_EQ(dataset->Warm(1).Get(), nullptr);
  cold = false;
}

TEST_F(DatasetTest, AShardCutWhileOpenIsAnError) {
  const absl::StatusOr<Dataset> dataset = Dataset::Open(folder_);
  ASSERT_TRUE(dataset->Read(20).ok());
  ASSERT_EQ(::truncate(Path("train-2.toy").c_str(), 100), 0);
  const absl::Status lost = dataset->Read(20).status();
  EXPECT_TRUE(absl::IsDataLoss(lost)) << lost;
  EXPECT_THAT(std::string(lost.message()), HasSubstr("cut short"));
}

TEST_F(DatasetTest, OpenChecksSizesAndIndexesAreCheckedWhenTouched) {
  const std::string shard = ReadTestFile(Path("train-1.toy"));
  WriteTestFile(Path("train-1.toy"), shard + "x");
  EXPECT_TRUE(absl::IsDataLoss(Dataset::Open(folder_).status()));
  WriteTestFile(Path("train-1.toy"), shard);
  std::string index = ReadTestFile(Path("train-1.pidx"));
  index[index.size() / 2] ^= 1;
  WriteTestFile(Path("train-1.pidx"), index);
  const absl::StatusOr<Dataset> dataset = Dataset::Open(folder_);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_TRUE(dataset->Read(0).ok());
  EXPECT_TRUE(absl::IsDataLoss(dataset->Read(7).status()));
  EXPECT_TRUE(dataset->Read(14).ok());
  ASSERT_EQ(::unlink(Path("train-2.toy").c_str()), 0);
  EXPECT_TRUE(absl::IsDataLoss(Dataset::Open(folder_).status()));
}

TEST_F(DatasetTest, AnUnfinishedBuildIsNoForeignShard) {
  ASSERT_EQ(::unlink(Path("manifest.json").c_str()), 0);
  EXPECT_TRUE(absl::IsDataLoss(Dataset::Open(folder_, kToy).status()));
  const std::string empty = Path("empty");
  std::filesystem::create_directory(empty);
  EXPECT_TRUE(absl::IsInvalidArgument(Dataset::Open(empty).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Dataset::Open(empty, kToy).status()));
  EXPECT_TRUE(absl::IsNotFound(Dataset::Open(Path("none")).status()));
}

TEST_F(DatasetTest, ForeignShardsAreScanned) {
  const std::vector<std::string> paths = {Path("train-2.toy"), Path("train-0.toy")};
  const absl::StatusOr<Dataset> dataset = Dataset::OpenShards(paths, kToy);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ(dataset->manifest(), nullptr);
  ASSERT_EQ(dataset->size(), 14u);
  EXPECT_EQ(dataset->Read(0)->key, samples_[14].key);
  EXPECT_EQ(dataset->Read(0)->fields[0].bytes, samples_[14].image);
  EXPECT_EQ(dataset->Read(7)->label, samples_[0].label);
  EXPECT_EQ(*dataset->FindKey(samples_[1].key), 8u);
  EXPECT_NE(dataset->identity(), Dataset::Open(paths[0], kToy)->identity());
  EXPECT_TRUE(absl::IsInvalidArgument(Dataset::Open(paths[0]).status())) << "no format given";
  std::string bytes = ReadTestFile(paths[0]);
  WriteTestFile(paths[0], bytes.substr(0, bytes.size() / 2));
  EXPECT_TRUE(absl::IsDataLoss(Dataset::Open(paths[0], kToy).status()));
}

TEST_F(DatasetTest, ShardsIndexedInPlaceAreReadWhereTheManifestSaysThatTheyLie) {
  absl::StatusOr<Manifest> manifest = Manifest::Read(folder_);
  const std::string elsewhere = MakeTestFolder("elsewhere");
  manifest->origin = "adopted";
  for (ManifestShard& shard : manifest->shards) {
    const std::string path = elsewhere + "/" + shard.name;
    std::filesystem::rename(Path(shard.name), path);
    // One absolute, the others relative.
    shard.location = manifest->shards[1].name == shard.name
                         ? path
                         : std::filesystem::path(path).lexically_relative(folder_).native();
    std::erase_if(manifest->files, [&](const FileEntry& file) { return file.name == shard.name; });
  }
  WriteTestFile(Path("manifest.json"), manifest->ToJson());
  {
    const absl::StatusOr<Dataset> dataset = Dataset::Open(folder_);
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    for (uint64_t id = 0; id < samples_.size(); ++id) {
      EXPECT_EQ(dataset->Read(id)->fields[0].bytes, samples_[id].image);
    }
  }
  WriteTestFile(elsewhere + "/train-1.toy", "another one");
  const absl::Status changed = Dataset::Open(folder_).status();
  EXPECT_TRUE(absl::IsDataLoss(changed)) << changed;
  EXPECT_THAT(std::string(changed.message()), HasSubstr(elsewhere + "/train-1.toy has 11 bytes"));
  (void)RemoveTree(elsewhere);
}

TEST_F(DatasetTest, ManyThreadsReadAtOnce) {
  const absl::StatusOr<Dataset> dataset = Dataset::Open(folder_);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 200; ++i) {
        const uint64_t id = (i * 5 + static_cast<uint64_t>(t)) % samples_.size();
        const absl::StatusOr<OwnedSample> sample = dataset->Read(id);
        if (!sample.ok() || sample->fields[0].bytes != samples_[id].image) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(DatasetSize, AShardWithoutRecordsIsPassedOver) {
  const std::string folder = MakeTestFolder("empty_shard");
  TestDatasetOptions options{.shards = 2, .records_per_shard = 1};
  options.samples = MakeTestSamples(options);
  options.shards = 3;  // the third stays empty
  WriteTestDataset(folder, ToyFormat(), options);
  const absl::StatusOr<Dataset> dataset = Dataset::Open(folder);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ(dataset->size(), 2u);
  EXPECT_EQ(dataset->Read(1)->key, options.samples[1].key);
  (void)RemoveTree(folder);
}

TEST_F(DatasetTest, JoinedDatasetsAreOneRowOfSamples) {
  const std::string other_folder = MakeTestFolder("joined");
  TestDatasetOptions other_options = {.shards = 2, .records_per_shard = 5};
  other_options.seed = 99;
  const std::vector<TestSample> others = MakeTestSamples(other_options);
  WriteTestDataset(other_folder, ToyFormat(), other_options);
  const Dataset first = *Dataset::Open(folder_), second = *Dataset::Open(other_folder);
  const Dataset both[] = {first, second}, turned[] = {second, first};
  const absl::StatusOr<Dataset> joined = Dataset::Join(both);
  ASSERT_TRUE(joined.ok()) << joined.status();
  ASSERT_EQ(joined->size(), samples_.size() + others.size());
  EXPECT_EQ(joined->size("train"), joined->size());
  EXPECT_EQ(joined->format(), "toy");
  EXPECT_EQ(joined->manifest(), nullptr);
  EXPECT_EQ(joined->classes().size(), first.classes().size());
  for (uint64_t id = 0; id < joined->size(); ++id) {
    const TestSample& expected = id < samples_.size() ? samples_[id] : others[id - samples_.size()];
    const absl::StatusOr<OwnedSample> sample = joined->Read(id);
    ASSERT_TRUE(sample.ok()) << sample.status();
    EXPECT_EQ(sample->fields[0].bytes, expected.image);
    EXPECT_EQ(sample->label, expected.label);
  }
  // Another order of the parts gives other ids, so a cursor must not match.
  EXPECT_NE(joined->identity(), Dataset::Join(turned)->identity());
  EXPECT_EQ(joined->identity(), Dataset::Join(both)->identity());
  EXPECT_EQ(Dataset::Join({&first, 1})->identity(), first.identity());
  // A split of it, and joined splits.
  EXPECT_EQ(joined->Split("train")->size(), joined->size());
  const Dataset split = *first.Split("train");
  EXPECT_EQ(Dataset::Join({&split, 1})->size(), samples_.size());

  Damage(*joined, samples_.size() + 7);
  EXPECT_THAT(joined->Read(samples_.size() + 7).status().message(),
              AllOf(HasSubstr(other_folder + "/"), HasSubstr("record 2")));
}

TEST_F(DatasetTest, DatasetsOfOtherClassesAreNotJoined) {
  const std::string other_folder = MakeTestFolder("joined");
  Manifest other = WriteTestDataset(other_folder, ToyFormat(), options_);
  other.classes = {"cat", "cow"};
  Reseal(other_folder, other);
  const Dataset both[] = {*Dataset::Open(folder_), *Dataset::Open(other_folder)};
  const absl::Status refused = Dataset::Join(both).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(refused.message(), AllOf(HasSubstr(other_folder), HasSubstr(folder_),
                                       HasSubstr("class 1 is dog and cow")));
  EXPECT_TRUE(absl::IsInvalidArgument(Dataset::Join({}).status()));
}

TEST_F(DatasetTest, IsOpenedInSpiteOfFilesThatAreGone) {
  std::vector<DamagedFile> damage;
  ASSERT_TRUE(Dataset::OpenDamaged(folder_, damage).ok());
  EXPECT_TRUE(damage.empty());
  const std::string missing = Path(manifest_.shards[0].name), cut = Path(manifest_.shards[1].name);
  (void)RemoveFile(missing);
  const std::string bytes = ReadTestFile(cut);
  WriteTestFile(cut, bytes.substr(0, bytes.size() - 1));
  (void)RemoveFile(Path(manifest_.shards[2].index.name));
  EXPECT_TRUE(absl::IsDataLoss(Dataset::Open(folder_).status()));
  const absl::StatusOr<Dataset> dataset = Dataset::OpenDamaged(folder_, damage);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  ASSERT_EQ(damage.size(), 3u);
  EXPECT_THAT(damage[0].why, AllOf(HasSubstr(missing), HasSubstr("is missing")));
  EXPECT_THAT(damage[1].why, AllOf(HasSubstr(cut), HasSubstr("bytes, the manifest says")));
  EXPECT_THAT(damage[2].why, HasSubstr(manifest_.shards[2].index.name));
  EXPECT_EQ(dataset->size(), 21u);
  EXPECT_TRUE(dataset->index(0).ok());
  EXPECT_FALSE(dataset->index(2).ok());
  EXPECT_FALSE(dataset->Read(0).ok());
  EXPECT_TRUE(dataset->Read(7).ok());
  EXPECT_FALSE(dataset->Read(14).ok());
  EXPECT_TRUE(dataset->CheckNotReplaced().ok());
  (void)RemoveFile(Path("manifest.json"));
  EXPECT_FALSE(Dataset::OpenDamaged(folder_, damage).ok());
}

// Of one that is opened, too: no field is missing, and no sample.
TEST_F(DatasetTest, AnIndexThatGoesAwayIsDamage) {
  const Dataset dataset = *Dataset::Open(folder_);
  const std::string gone = Path(manifest_.shards[1].index.name);
  (void)RemoveFile(gone);
  const absl::Status status = dataset.BorrowIndex(1).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(gone + " is missing: the manifest lists"));
  EXPECT_EQ(FactsOf(status).path, gone);
  EXPECT_TRUE(absl::IsDataLoss(dataset.FindKey("none").status()));
  EXPECT_TRUE(absl::IsDataLoss(dataset.Read(7).status()));
  EXPECT_TRUE(dataset.Read(0).ok());
}

// In a thread, so that permissions bind root, too.
template <typename Work>
void WithoutPrivileges(const Work& work) {
  std::thread([&] {
    __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[2] = {};
    ASSERT_EQ(::syscall(SYS_capset, &header, none), 0);
    work();
  }).join();
}

// Whatever else is damaged: nobody knows whether it is.
TEST_F(DatasetTest, AFileThatCannotBeLookedAtIsNoDamage) {
  Manifest manifest = *Manifest::Read(folder_);
  const std::string closed = MakeTestFolder("closed");
  manifest.origin = "adopted";
  for (ManifestShard& shard : manifest.shards) {
    shard.location = shard.name == "train-1.toy" ? closed + "/x" : Path(shard.name);
    std::erase_if(manifest.files, [&](const FileEntry& file) { return file.name == shard.name; });
  }
  WriteTestFile(Path("manifest.json"), manifest.ToJson());
  (void)RemoveFile(Path(manifest.shards[0].name));
  ASSERT_EQ(::chmod(closed.c_str(), 0), 0);
  std::vector<DamagedFile> damage;
  WithoutPrivileges([&] {
    const absl::Status failed = Dataset::OpenDamaged(folder_, damage).status();
    EXPECT_TRUE(absl::IsPermissionDenied(failed)) << failed;
    EXPECT_TRUE(absl::IsPermissionDenied(Dataset::Open(folder_).status()));
  });
  EXPECT_TRUE(damage.empty());
  ASSERT_EQ(::chmod(closed.c_str(), 0700), 0);
  (void)RemoveTree(closed);
}

TEST_F(DatasetTest, WhatCannotBeReadIsNotSaidToBeReplaced) {
  const Dataset dataset = *Dataset::Open(folder_);
  ASSERT_EQ(::chmod(folder_.c_str(), 0), 0);
  WithoutPrivileges([&] {
    const absl::Status failed = dataset.BorrowIndex(0).status();
    EXPECT_TRUE(absl::IsPermissionDenied(failed)) << failed;
    EXPECT_TRUE(dataset.CheckNotReplaced().ok());
  });
  ASSERT_EQ(::chmod(folder_.c_str(), 0700), 0);
  // Nor if there is something else in place of its manifest.
  Damage(dataset, 3);
  WriteTestFile(Path("manifest.json"), "no manifest");
  EXPECT_TRUE(absl::IsDataLoss(dataset.Read(3).status()));
  (void)RemoveFile(Path("manifest.json"));
  ASSERT_EQ(::symlink("manifest.json", Path("manifest.json").c_str()), 0);  // a loop
  EXPECT_TRUE(absl::IsDataLoss(dataset.Read(3).status()));
}

TEST_F(DatasetTest, SaysThatItWasReplaced) {
  const Dataset dataset = *Dataset::Open(folder_), split = *dataset.Split("train");
  const Dataset parts[] = {dataset, dataset};
  const Dataset joined = *Dataset::Join(parts);
  // As --overwrite: another folder gets the name.
  options_.seed = 2;
  const std::string other = MakeTestFolder("replacement");
  const auto exchange = [&] {
    ASSERT_EQ(::rename(folder_.c_str(), (folder_ + "-old").c_str()), 0);
    ASSERT_EQ(::rename(other.c_str(), folder_.c_str()), 0);
  };
  WriteTestDataset(other, ToyFormat(), options_);
  exchange();
  for (const Dataset& each : {dataset, split, joined}) {
    const absl::Status failed = each.Read(0).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(failed)) << failed;
    EXPECT_THAT(std::string(failed.message()), HasSubstr("is being replaced by another process"));
    EXPECT_TRUE(absl::IsFailedPrecondition(each.CheckNotReplaced()));
  }
  EXPECT_TRUE(Dataset::Open(folder_)->Read(0).ok());
  (void)RemoveTree(folder_ + "-old");
  (void)RemoveFile(Path("manifest.json"));
  EXPECT_THAT(std::string(dataset.Read(0).status().message()), HasSubstr("was removed or renamed"));
}

TEST_F(DatasetTest, TheSameManifestInAnotherFileIsNoReplacement) {
  const Dataset dataset = *Dataset::Open(folder_);
  const std::string text = ReadTestFile(Path("manifest.json"));
  WriteTestFile(Path("copy"), text);
  ASSERT_EQ(::rename(Path("copy").c_str(), Path("manifest.json").c_str()), 0);
  Damage(dataset, 3);
  EXPECT_TRUE(absl::IsDataLoss(dataset.Read(3).status()));
  EXPECT_TRUE(dataset.CheckNotReplaced().ok());
}

}  // namespace
}  // namespace shardpack
