#include "validators/looking/dataset_stats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "formats/testing/datasets/test_dataset.h"
#include "formats/testing/datasets/toy_format.h"

namespace shardpack {
namespace {

using testing::TestDatasetOptions;
using testing::TestSample;

class DatasetStatsTest : public ::testing::Test {
 protected:
  // The shards from `first_val` on are of split val; the classes are cat, dog and `more`.
  Dataset Write(std::vector<TestSample> samples, size_t shards, size_t first_val,
                std::vector<std::string> more = {}) {
    Manifest manifest =
        WriteTestDataset(folder_, testing::ToyFormat(),
                         TestDatasetOptions{.shards = shards, .samples = std::move(samples)});
    manifest.splits.clear();
    for (size_t n = 0; n < manifest.shards.size(); ++n) {
      ManifestShard& shard = manifest.shards[n];
      shard.split = n < first_val ? "train" : "val";
      manifest.splits[shard.split] += shard.records;
    }
    for (std::string& name : more) manifest.classes.push_back(std::move(name));
    testing::Reseal(folder_, manifest);
    return *Dataset::Open(folder_);
  }
  static TestSample Sample(std::string key, int64_t label, std::string image, std::string path,
                           ImageInfo info = {.width = 8,
                                             .height = 4,
                                             .format = ImageFormat::kJpeg,
                                             .color_space = ColorSpace::kRgb,
                                             .channels = 3,
                                             .bits_per_channel = 8}) {
    return {.key = std::move(key),
            .source_path = std::move(path),
            .image = std::move(image),
            .label = label,
            .info = info};
  }
  static const StatsNote* Find(const DatasetStats& stats, NoteKind kind) {
    const auto found = std::find_if(stats.notes.begin(), stats.notes.end(),
                                    [&](const StatsNote& note) { return note.kind == kind; });
    return found == stats.notes.end() ? nullptr : &*found;
  }

  const std::string folder_ = testing::MakeTestFolder("stats");
};

TEST_F(DatasetStatsTest, CountsWhatIsThere) {
  std::vector<TestSample> samples = {Sample("a", 0, "12345", "cat/a.jpg"),
                                     Sample("b", 1, "123", "dog/b.jpg"),
                                     Sample("c", 0, "1234", "cat/c.jpg"),
                                     Sample("d", 1, "12", "dog/d.png",
                                            {.width = 16,
                                             .height = 16,
                                             .format = ImageFormat::kPng,
                                             .color_space = ColorSpace::kGray,
                                             .channels = 1,
                                             .bits_per_channel = 16,
                                             .orientation = 6,
                                             .flags = ImageInfo::kProgressive})};
  samples[0].more_fields = {{"txt", "words"}};
  const Dataset dataset = Write(samples, 2, 1);
  const absl::StatusOr<DatasetStats> stats = GatherStats(dataset, {.folder = folder_});
  ASSERT_TRUE(stats.ok()) << stats.status();
  EXPECT_EQ(stats->samples, 4u);
  EXPECT_EQ(stats->shards, 2u);
  EXPECT_EQ(stats->image_bytes, 14u);
  ASSERT_EQ(stats->splits.size(), 2u);
  EXPECT_EQ(stats->splits[0].name, "train");
  EXPECT_EQ(stats->splits[1].samples, 2u);
  ASSERT_EQ(stats->classes.size(), 2u);
  EXPECT_EQ(stats->classes[0].name, "cat");
  EXPECT_EQ(stats->classes[0].by_split, (std::vector<uint64_t>{1, 1}));
  EXPECT_EQ(stats->classes[1].image_bytes, 5u);
  EXPECT_EQ(stats->width.At(0), 8);
  EXPECT_EQ(stats->width.At(100), 16);
  EXPECT_EQ(stats->aspect.At(50), 2);
  EXPECT_EQ(stats->bytes.At(100), 5);
  EXPECT_EQ(stats->formats, (std::map<std::string, uint64_t>{{"jpg", 3}, {"png", 1}}));
  EXPECT_EQ(stats->pixels,
            (std::map<std::string, uint64_t>{{"RGB, 8 bits", 3}, {"gray, 16 bits", 1}}));
  EXPECT_EQ(stats->turned, 1u);
  EXPECT_EQ(stats->progressive, 1u);
  ASSERT_EQ(stats->fields.size(), 2u);
  EXPECT_EQ(stats->fields[0].name, "image");
  EXPECT_EQ(stats->fields[1].name, "txt");
  EXPECT_EQ(stats->fields[1].samples, 1u);
  EXPECT_EQ(stats->fields[1].bytes, 5u);
  EXPECT_EQ(stats->skipped.count, 1u);
  EXPECT_EQ(stats->skipped.by_reason.at("empty"), 1u);
  ASSERT_EQ(stats->skipped.first.size(), 1u);
  EXPECT_EQ(stats->skipped.first[0].path, "cat/broken.jpg");
  ASSERT_EQ(stats->notes.size(), 1u);
  EXPECT_EQ(stats->notes[0].kind, NoteKind::kPartialField);
  EXPECT_EQ(stats->notes[0].count, 3u);
}

TEST_F(DatasetStatsTest, NamesWhatIsSuspicious) {
  std::vector<TestSample> samples;
  for (int i = 0; i < 6; ++i)
    samples.push_back(Sample("c" + std::to_string(i), 0, "cat " + std::to_string(i),
                             "cat/" + std::to_string(i) + ".jpg"));
  samples[1].source_path = "cat/dog/1.jpg";
  samples.push_back(Sample("d0", 1, "cat 0", "dog/0.jpg"));  // shard 1: val; the image of c0
  samples.push_back(Sample("x0", -1, "x 0", "0.jpg"));
  samples.push_back(Sample("c6", 0, "cat 2", "cat/6.jpg"));  // the image of c2
  samples.push_back(Sample("c7", 0, "twice", "cat/7.jpg"));
  samples.push_back(Sample("c8", 0, "twice", "cat/8.jpg"));
  samples.push_back(Sample("c9", 0, "cat 9", "cat/9.jpg"));
  const Dataset dataset = Write(samples, 2, 1, {"bird"});
  const absl::StatusOr<DatasetStats> stats = GatherStats(dataset, {});
  ASSERT_TRUE(stats.ok()) << stats.status();
  EXPECT_EQ(stats->copies.groups, 3u);
  EXPECT_EQ(stats->copies.extra, 3u);
  ASSERT_NE(Find(*stats, NoteKind::kLabelConflict), nullptr);
  EXPECT_EQ(Find(*stats, NoteKind::kLabelConflict)->count, 1u);
  ASSERT_NE(Find(*stats, NoteKind::kLeak), nullptr);
  EXPECT_EQ(Find(*stats, NoteKind::kLeak)->count, 2u);
  ASSERT_NE(Find(*stats, NoteKind::kCopies), nullptr);
  EXPECT_EQ(Find(*stats, NoteKind::kCopies)->count, 1u);
  ASSERT_NE(Find(*stats, NoteKind::kMisplacedFolder), nullptr);
  EXPECT_EQ(Find(*stats, NoteKind::kMisplacedFolder)->names,
            (std::vector<std::string>{"cat", "dog"}));
  ASSERT_NE(Find(*stats, NoteKind::kEmptyClass), nullptr);
  EXPECT_EQ(Find(*stats, NoteKind::kEmptyClass)->names, std::vector<std::string>{"bird"});
  ASSERT_NE(Find(*stats, NoteKind::kMissingInSplit), nullptr);
  EXPECT_EQ(Find(*stats, NoteKind::kMissingInSplit)->split, "train");
  EXPECT_EQ(Find(*stats, NoteKind::kMissingInSplit)->names, std::vector<std::string>{"dog"});
  ASSERT_NE(Find(*stats, NoteKind::kSingleSampleClass), nullptr);
  EXPECT_EQ(Find(*stats, NoteKind::kSingleSampleClass)->names, std::vector<std::string>{"dog"});
  ASSERT_NE(Find(*stats, NoteKind::kUnlabelled), nullptr);
  EXPECT_EQ(Find(*stats, NoteKind::kUnlabelled)->count, 1u);
}

TEST_F(DatasetStatsTest, ClassesMadeOfSubfoldersAreNotMisplaced) {
  std::vector<TestSample> samples = {
      Sample("a", 1, "1", "cat/dog/a.jpg"), Sample("b", 1, "2", "cat/dog/b.jpg"),
      Sample("c", 0, "3", "cat/c.jpg"), Sample("d", 0, "4", "cat/d.jpg")};
  const absl::StatusOr<DatasetStats> stats = GatherStats(Write(samples, 1, 1), {});
  ASSERT_TRUE(stats.ok()) << stats.status();
  EXPECT_TRUE(stats->notes.empty())
      << NoteText(stats->notes[0], [](auto text) { return std::string(text); });
}

TEST_F(DatasetStatsTest, SamplesBelowTwoFoldersOfOneClassCountOnce) {
  std::vector<TestSample> samples = {
      Sample("a", 0, "1", "dog/dog/a.jpg"), Sample("b", 0, "2", "cat/b.jpg"),
      Sample("c", 0, "3", "cat/c.jpg"), Sample("d", 1, "4", "dog/d.jpg"),
      Sample("e", 1, "5", "dog/e.jpg")};
  const absl::StatusOr<DatasetStats> stats = GatherStats(Write(samples, 1, 1), {});
  ASSERT_TRUE(stats.ok()) << stats.status();
  ASSERT_NE(Find(*stats, NoteKind::kMisplacedFolder), nullptr);
  EXPECT_EQ(Find(*stats, NoteKind::kMisplacedFolder)->count, 1u);
}

TEST_F(DatasetStatsTest, AWholeClassFolderInAnotherOne) {
  std::vector<TestSample> samples;
  // More cats in dog/cat than there are dogs; val still has its folder of cats.
  for (int i = 0; i < 4; ++i)
    samples.push_back(Sample("m" + std::to_string(i), 1, "m" + std::to_string(i),
                             "train/dog/cat/" + std::to_string(i) + ".jpg"));
  samples.push_back(Sample("d", 1, "d", "train/dog/d.jpg"));
  samples.push_back(Sample("c", 0, "c", "val/cat/c.jpg"));
  const absl::StatusOr<DatasetStats> stats = GatherStats(Write(samples, 1, 1), {});
  ASSERT_TRUE(stats.ok()) << stats.status();
  const StatsNote* const note = Find(*stats, NoteKind::kMisplacedFolder);
  ASSERT_NE(note, nullptr);
  EXPECT_EQ(note->count, 4u);
  EXPECT_EQ(note->names, (std::vector<std::string>{"dog", "cat"}));
}

TEST_F(DatasetStatsTest, AFolderBelowAClassWhereOthersHaveNone) {
  const auto note_of = [&](const std::vector<std::pair<int64_t, std::string>>& paths) {
    std::vector<TestSample> samples;
    for (const auto& [label, path] : paths) samples.push_back(Sample(path, label, path, path));
    const absl::StatusOr<DatasetStats> stats = GatherStats(Write(samples, 2, 2), {});
    EXPECT_TRUE(stats.ok()) << stats.status();
    const StatsNote* const note = Find(*stats, NoteKind::kDeeperFolder);
    return note == nullptr ? "" : NoteText(*note, [](auto text) { return std::string(text); });
  };
  EXPECT_EQ(note_of({{0, "cat/1.jpg"},
                     {0, "cat/2.jpg"},
                     {1, "dog/1.jpg"},
                     {1, "dog/owl/1.jpg"},
                     {1, "dog/fish/1.jpg"}}),
            "2 samples of class dog lie in subfolders of its folder, such as fish; the others lie "
            "directly in it");
  // Most lie deeper: so they are meant.
  EXPECT_EQ(note_of({{0, "cat/a/1.jpg"}, {0, "cat/b/2.jpg"}, {1, "dog/a/1.jpg"}, {1, "dog/1.jpg"}}),
            "");
  // All of a class do.
  EXPECT_EQ(note_of({{0, "cat/1.jpg"}, {0, "cat/2.jpg"}, {1, "dog/a/1.jpg"}}), "");
  // Without a source path the key is one.
  std::vector<TestSample> keys;
  for (const char* key : {"cat/1", "cat/2", "dog/1", "dog/x/2"})
    keys.push_back(Sample(key, key[0] == 'd' ? 1 : 0, key, ""));
  EXPECT_NE(Find(*GatherStats(Write(keys, 1, 1), {}), NoteKind::kDeeperFolder), nullptr);
}

TEST_F(DatasetStatsTest, ImagesOfHardlyAPixel) {
  const auto sized = [](uint32_t width, uint32_t height) {
    return ImageInfo{.width = width, .height = height, .format = ImageFormat::kPng};
  };
  const Dataset dataset = Write({Sample("dot", 0, "1", "cat/dot.png", sized(1, 1)),
                                 Sample("line", 0, "2", "cat/line.png", sized(15, 1)),
                                 Sample("small", 1, "3", "dog/small.png", sized(4, 4)),
                                 Sample("long", 1, "4", "dog/long.png", sized(1, 60000))},
                                2, 2);
  const absl::StatusOr<DatasetStats> stats = GatherStats(dataset, {});
  const StatsNote* const note = Find(*stats, NoteKind::kTinyImage);
  ASSERT_NE(note, nullptr);
  EXPECT_EQ(note->count, 2u);
  EXPECT_EQ(note->names, (std::vector<std::string>{"dot", "line"}));
}

TEST_F(DatasetStatsTest, JsonHasTheSameNumbers) {
  TestSample odd = Sample("a\xFF", 0, "1", "cat/a.jpg");
  const Dataset dataset = Write({odd, Sample("b", 1, "22", "dog/b.jpg")}, 1, 1, {"<b>\xFE"});
  const absl::StatusOr<DatasetStats> stats = GatherStats(dataset, {.folder = folder_});
  ASSERT_TRUE(stats.ok()) << stats.status();
  const nlohmann::json json = nlohmann::json::parse(ToJson(*stats));
  EXPECT_EQ(json["schema"], "shardpack.stats/1");
  EXPECT_EQ(json["samples"], 2);
  EXPECT_EQ(json["classes"][2]["name"], "<b>%FE");
  EXPECT_EQ(json["classes"][1]["splits"]["train"], 1);
  EXPECT_EQ(json["bytes"]["quantiles"]["100"], 2);
  EXPECT_EQ(json["skipped_inputs"]["by_reason"]["empty"], 1);
  EXPECT_EQ(json["notes"][0]["id"], "empty-class");
  EXPECT_EQ(json["dataset"], IdentityText(dataset.identity()));
}

TEST_F(DatasetStatsTest, ForeignShardsAreScanned) {
  const std::vector<TestSample> samples = {Sample("a", 3, "\x89PNG\r\n\x1a\n, and no more", ""),
                                           Sample("b", -1, "not an image", "")};
  const std::string path = folder_ + "/x.toy";
  testing::WriteTestShard(path, testing::ToyFormat(), samples);
  const Format* const formats[] = {&testing::ToyFormat()};
  const absl::StatusOr<Dataset> dataset = Dataset::OpenShards({&path, 1}, formats);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  const absl::StatusOr<DatasetStats> stats = GatherStats(*dataset, {});
  ASSERT_TRUE(stats.ok()) << stats.status();
  EXPECT_FALSE(stats->has_manifest);
  ASSERT_EQ(stats->classes.size(), 1u);
  EXPECT_EQ(stats->classes[0].name, "3");
  EXPECT_EQ(stats->unlabelled.samples, 1u);
  EXPECT_EQ(stats->without_facts, 2u);
}

TEST_F(DatasetStatsTest, DamageIsAnErrorOrNamed) {
  const Dataset whole =
      Write({Sample("a", 0, "1", "cat/a.jpg"), Sample("b", 1, "22", "dog/b.jpg")}, 2, 2);
  const Manifest manifest = *whole.manifest();
  std::string index = testing::ReadTestFile(folder_ + "/" + manifest.shards[1].index.name);
  index[index.size() / 2] ^= 1;
  testing::WriteTestFile(folder_ + "/" + manifest.shards[1].index.name, index);
  testing::WriteTestFile(folder_ + "/skipped.jsonl", "{}\n");
  const Dataset damaged = *Dataset::Open(folder_);
  EXPECT_EQ(GatherStats(damaged, {}).status().code(), absl::StatusCode::kDataLoss);
  const absl::StatusOr<DatasetStats> stats =
      GatherStats(damaged, {.folder = folder_, .in_spite_of_damage = true});
  ASSERT_TRUE(stats.ok()) << stats.status();
  EXPECT_EQ(stats->not_looked_at.size(), 2u);
  EXPECT_EQ(stats->classes[0].samples, 1u);
  EXPECT_EQ(stats->classes[1].samples, 0u);
  // Neither an empty class nor one of a single sample: nobody knows.
  EXPECT_EQ(stats->unread_shards, 1u);
  EXPECT_TRUE(stats->notes.empty());
  EXPECT_TRUE(stats->damaged());
  const nlohmann::json json = nlohmann::json::parse(ToJson(*stats));
  EXPECT_EQ(json["damaged"], true);
  EXPECT_EQ(json["not_looked_at"].size(), 2u);
  EXPECT_TRUE(json["damaged_files"].empty());
}

TEST_F(DatasetStatsTest, CopiesAreCountedThoughTheSkippedListIsDamaged) {
  Write({Sample("a", 0, "1", "cat/a.jpg"), Sample("b", 1, "1", "dog/b.jpg")}, 1, 1);
  testing::WriteTestFile(folder_ + "/skipped.jsonl", "{}\n");
  const absl::StatusOr<DatasetStats> stats =
      GatherStats(*Dataset::Open(folder_), {.folder = folder_, .in_spite_of_damage = true});
  ASSERT_TRUE(stats.ok()) << stats.status();
  EXPECT_EQ(stats->not_looked_at.size(), 1u);
  EXPECT_EQ(stats->unread_shards, 0u);
  EXPECT_EQ(stats->copies.label_conflicts, 1u);
  EXPECT_NE(Find(*stats, NoteKind::kSingleSampleClass), nullptr);
}

TEST(SkippedList, LinesOfOtherProgramsAreCounted) {
  const SkippedList list = ParseSkippedList(
      "{\"path\":\"a%0Ab\",\"reason\":\"empty\",\"detail\":\"x\"}\nnonsense\n[[[[\n{\"path\":3}");
  EXPECT_EQ(list.count, 4u);
  EXPECT_EQ(list.by_reason.at("empty"), 1u);
  EXPECT_EQ(list.by_reason.at("unknown"), 3u);
  EXPECT_EQ(list.first[0].path, "a\nb");
}

TEST(StatsNotes, SayWhatIsMeant) {
  const auto as_is = [](std::string_view text) { return std::string(text); };
  EXPECT_EQ(NoteText({.kind = NoteKind::kEmptyClass, .count = 1, .names = {"a"}}, as_is),
            "1 class without samples: a");
  EXPECT_EQ(
      NoteText({.kind = NoteKind::kMissingInSplit, .count = 7, .split = "val", .names = {"a", "b"}},
               as_is),
      "7 classes without samples in split val: a, b, ...");
  EXPECT_EQ(NoteText({.kind = NoteKind::kMisplacedFolder, .count = 2, .names = {"a", "b"}}, as_is),
            "2 samples of class a lie in a folder called b");
  EXPECT_EQ(NoteText({.kind = NoteKind::kLeak, .count = 1}, as_is), "1 image is in several splits");
}

}  // namespace
}  // namespace shardpack
