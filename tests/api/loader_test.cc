// Loaders and batches of the C interface give what those of the C++ libraries give.
#include "readers/loading/loader.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cuda/loading/dlpack_export.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "images/augment/pixel_pipeline.h"
#include "tests/api/fixture.h"

namespace shardpack::testing {
namespace {

using ::testing::HasSubstr;

class ApiLoaderTest : public ApiTest {
 protected:
  // The same loader by the C++ interface.
  Loader Reference(const std::optional<PixelPipelineOptions>& decode = std::nullopt) {
    shardpack::LoaderOptions options;
    options.threads = 2;
    options.augment_seed = 11;
    options.decode = decode;
    const Order order = *Order::Make(
        {.samples = samples_.size(), .seed = 2, .global_batch = 8, .tail = Tail::kPad});
    return *Loader::Open(*reference_, order, {}, options, memory_);
  }
  static PixelPipelineOptions ReferenceDecode() {
    PixelPipelineOptions decode;
    decode.crop = {.width = 32, .height = 24, .flip_probability = 0.5};
    return decode;
  }

  PageableMemory memory_;
};

TEST_F(ApiLoaderTest, GivesTheSamplesOfTheCxxLoader) {
  Make();
  Loader reference = Reference();
  const LoaderHandle loader = OpenLoader();
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (;;) {
      const std::optional<HostBatch> expected = *reference.Next();
      const BatchHandle batch = Next(loader);
      ASSERT_EQ(batch == nullptr, !expected) << Why();
      if (!expected) break;
      const shardpack_batch_view view = View(batch);
      EXPECT_EQ(view.epoch, expected->epoch());
      EXPECT_EQ(view.step, expected->step());
      ASSERT_EQ(view.slots, expected->size());
      EXPECT_EQ(view.pixels, nullptr);
      EXPECT_EQ(view.fields, 1u);
      for (size_t slot = 0; slot < view.slots; ++slot) {
        EXPECT_EQ(view.ids[slot], expected->ids()[slot]);
        EXPECT_EQ(view.labels[slot], expected->labels()[slot]);
        EXPECT_EQ(view.states[slot], static_cast<uint8_t>(expected->status()[slot].state));
        if (view.ids[slot] == SHARDPACK_PADDING_ID) continue;
        EXPECT_EQ(Bytes(batch, slot), samples_[view.ids[slot]].image);
      }
    }
    EXPECT_EQ(code_, SHARDPACK_END);
  }
}

TEST_F(ApiLoaderTest, GivesThePixelsAndCropsOfTheCxxLoader) {
  Make();
  Loader reference = Reference(ReferenceDecode());
  const shardpack_decode decode = Decode();
  shardpack_loader_options options = LoaderOptions();
  options.decode = &decode;
  const LoaderHandle loader = OpenLoader(options);
  for (int step = 0; step < 4; ++step) {
    const std::optional<HostBatch> expected = *reference.Next();
    const BatchHandle batch = Next(loader);
    ASSERT_NE(batch, nullptr) << Why();
    const shardpack_batch_view view = View(batch);
    ASSERT_EQ(view.pixel_bytes, expected->pixels()->bytes.size());
    EXPECT_EQ(std::memcmp(view.pixels, expected->pixels()->bytes.data(), view.pixel_bytes), 0);
    EXPECT_EQ(view.height, 24u);
    EXPECT_EQ(view.width, 32u);
    EXPECT_EQ(view.channels, 3u);
    std::vector<shardpack_crop> crops(view.slots);
    ASSERT_EQ(shardpack_batch_crops(batch.get(), crops.data(), crops.size(), Error()), SHARDPACK_OK)
        << Why();
    for (size_t slot = 0; slot < view.slots; ++slot) {
      if (view.states[slot] == SHARDPACK_SAMPLE_PADDING) {
        EXPECT_EQ(crops[slot].width, 0u);
        continue;
      }
      const ImageInfo& info = samples_[view.ids[slot]].info;
      EXPECT_EQ(view.images[slot].width, info.width);
      EXPECT_EQ(crops[slot].width, info.width);
      EXPECT_EQ(crops[slot].height, info.height);
      const Crop crop = ChooseCrop(ReferenceDecode().crop, info.width, info.height,
                                   {.seed = 11, .epoch = 0, .id = view.ids[slot]});
      EXPECT_EQ(crops[slot].left, crop.box.left);
      EXPECT_EQ(crops[slot].bottom, crop.box.bottom);
      EXPECT_EQ(crops[slot].flip, static_cast<uint32_t>(crop.flip));
    }
  }
}

TEST_F(ApiLoaderTest, ResumesByCursorAndSeeks) {
  Make();
  const LoaderHandle whole = OpenLoader();
  std::vector<std::vector<uint64_t>> ids;
  for (BatchHandle batch = Next(whole); batch != nullptr; batch = Next(whole)) {
    const shardpack_batch_view view = View(batch);
    ids.emplace_back(view.ids, view.ids + view.slots);
  }
  for (uint64_t at = 0; at < ids.size(); ++at) {
    const LoaderHandle before = OpenLoader();
    for (uint64_t step = 0; step < at; ++step) ASSERT_NE(Next(before), nullptr);
    char* cursor = nullptr;
    ASSERT_EQ(shardpack_loader_cursor(before.get(), &cursor, Error()), SHARDPACK_OK) << Why();
    const OwnedText owned(cursor);
    uint64_t epoch = 99, step = 99;
    ASSERT_EQ(shardpack_loader_position(before.get(), &epoch, &step, Error()), SHARDPACK_OK);
    EXPECT_EQ(epoch, 0u);
    EXPECT_EQ(step, at);
    shardpack_loader_options options = LoaderOptions();
    options.cursor = cursor;
    const LoaderHandle resumed = OpenLoader(options);
    const LoaderHandle sought = OpenLoader();
    ASSERT_NE(Next(sought), nullptr);
    ASSERT_EQ(shardpack_loader_seek(sought.get(), 0, at, Error()), SHARDPACK_OK) << Why();
    for (const LoaderHandle* const loader : {&resumed, &sought}) {
      for (uint64_t rest = at; rest < ids.size(); ++rest) {
        const BatchHandle batch = Next(*loader);
        ASSERT_NE(batch, nullptr) << Why();
        const shardpack_batch_view view = View(batch);
        EXPECT_EQ(std::vector<uint64_t>(view.ids, view.ids + view.slots), ids[rest]);
      }
      EXPECT_EQ(Next(*loader), nullptr);
      EXPECT_EQ(code_, SHARDPACK_END);
    }
  }
  EXPECT_EQ(shardpack_loader_seek(whole.get(), 0, ids.size() + 1, Error()), SHARDPACK_INVALID);
  EXPECT_EQ(Why(), absl::StrCat("step ", ids.size() + 1, " is beyond the ", ids.size(),
                                " steps of an epoch"));
}

TEST_F(ApiLoaderTest, RefusesTheCursorOfAnotherOrder) {
  Make();
  const LoaderHandle loader = OpenLoader();
  char* cursor = nullptr;
  ASSERT_EQ(shardpack_loader_cursor(loader.get(), &cursor, nullptr), SHARDPACK_OK);
  const OwnedText owned(cursor);
  const DatasetHandle dataset = Open();
  const OrderHandle other = MakeOrder(OrderOptions(16));
  shardpack_loader_options options = LoaderOptions();
  for (const char* const text : {static_cast<const char*>(cursor), "", "nonsense"}) {
    options.cursor = text;
    shardpack_loader* opened = nullptr;
    EXPECT_EQ(shardpack_loader_open(dataset.get(), other.get(), &options, &opened, Error()),
              SHARDPACK_INVALID)
        << text;
    EXPECT_EQ(opened, nullptr);
  }
}

TEST_F(ApiLoaderTest, AnExportOutlivesEverything) {
  Make();
  const shardpack_decode decode = Decode();
  shardpack_loader_options options = LoaderOptions();
  options.decode = &decode;
  LoaderHandle loader = OpenLoader(options);
  BatchHandle batch = Next(loader);
  ASSERT_NE(batch, nullptr) << Why();
  const shardpack_batch_view view = View(batch);
  const std::string pixels(static_cast<const char*>(view.pixels), view.pixel_bytes);
  const std::vector<int64_t> labels(view.labels, view.labels + view.slots);
  void *versioned = nullptr, *legacy = nullptr;
  ASSERT_EQ(shardpack_batch_dlpack(batch.get(), SHARDPACK_PIXELS, 1, &versioned, Error()),
            SHARDPACK_OK)
      << Why();
  ASSERT_EQ(shardpack_batch_dlpack(batch.get(), SHARDPACK_LABELS, 0, &legacy, Error()),
            SHARDPACK_OK)
      << Why();
  batch.reset();
  ASSERT_EQ(shardpack_loader_close(loader.get(), -1, Error()), SHARDPACK_OK) << Why();
  loader.reset();
  auto* const managed = static_cast<DlpackManagedTensorVersioned*>(versioned);
  EXPECT_EQ(managed->version.major, 1u);
  ASSERT_EQ(managed->tensor.dimensions, 4);
  EXPECT_EQ(std::vector<int64_t>(managed->tensor.shape, managed->tensor.shape + 4),
            (std::vector<int64_t>{8, 24, 32, 3}));
  EXPECT_EQ(managed->tensor.data, view.pixels) << "it was copied";
  EXPECT_EQ(std::memcmp(managed->tensor.data, pixels.data(), pixels.size()), 0);
  auto* const second = static_cast<DlpackManagedTensor*>(legacy);
  EXPECT_EQ(std::memcmp(second->tensor.data, labels.data(), 8 * labels.size()), 0);
  std::thread([&] { managed->deleter(managed); }).join();
  EXPECT_EQ(std::memcmp(second->tensor.data, labels.data(), 8 * labels.size()), 0);
  second->deleter(second);
}

TEST_F(ApiLoaderTest, EncodedBatchesHaveNoPixelsToExport) {
  Make();
  const LoaderHandle loader = OpenLoader();
  const BatchHandle batch = Next(loader);
  void* managed = this;
  EXPECT_EQ(shardpack_batch_dlpack(batch.get(), SHARDPACK_PIXELS, 1, &managed, Error()),
            SHARDPACK_NOT_FOUND);
  EXPECT_EQ(managed, nullptr);
  EXPECT_EQ(shardpack_batch_dlpack(batch.get(), 7, 1, &managed, Error()), SHARDPACK_INVALID);
  std::vector<shardpack_crop> crops(8);
  EXPECT_EQ(shardpack_batch_crops(batch.get(), crops.data(), 8, Error()), SHARDPACK_UNSUPPORTED);
}

TEST_F(ApiLoaderTest, AnErrorSaysWhere) {
  Make();
  Damage(17);
  const LoaderHandle loader = OpenLoader();
  while (Next(loader) != nullptr) {
  }
  ASSERT_EQ(code_, SHARDPACK_DATA_LOSS);
  const shardpack_error_info info = Info();
  EXPECT_EQ(info.code, SHARDPACK_DATA_LOSS);
  EXPECT_EQ(Text(info.shard), "train-1.toy");
  EXPECT_EQ(Text(info.path), folder_ + "/train-1.toy");
  EXPECT_EQ(Text(info.key), samples_[17].key);
  EXPECT_EQ(Text(info.field), "image");
  EXPECT_EQ(info.record, 7);
  EXPECT_EQ(info.id, 17);
  EXPECT_EQ(info.offset, static_cast<int64_t>(reference_->index(1)->field(7, 0).offset));
  EXPECT_EQ(Text(info.message), Why());
  // Again, with each call.
  EXPECT_EQ(Next(loader), nullptr);
  EXPECT_EQ(code_, SHARDPACK_DATA_LOSS);
}

TEST_F(ApiLoaderTest, SubstitutesAreReported) {
  Make();
  Damage(17);
  shardpack_loader_options options = LoaderOptions();
  options.bad_samples = SHARDPACK_BAD_SUBSTITUTE;
  const LoaderHandle loader = OpenLoader(options);
  size_t substituted = 0;
  for (BatchHandle batch = Next(loader); batch != nullptr; batch = Next(loader)) {
    const shardpack_batch_view view = View(batch);
    for (size_t slot = 0; slot < view.slots; ++slot) {
      uint64_t wanted = 0;
      shardpack_text why;
      ASSERT_EQ(shardpack_batch_why(batch.get(), slot, &wanted, &why, Error()), SHARDPACK_OK);
      if (view.states[slot] != SHARDPACK_SAMPLE_SUBSTITUTED) {
        EXPECT_EQ(wanted, view.ids[slot]);
        EXPECT_EQ(Text(why), "");
        continue;
      }
      ++substituted;
      EXPECT_EQ(wanted, 17u);
      EXPECT_NE(view.ids[slot], 17u);
      EXPECT_THAT(std::string(Text(why)), HasSubstr("train-1.toy"));
      EXPECT_EQ(Bytes(batch, slot), samples_[view.ids[slot]].image);
    }
  }
  EXPECT_EQ(code_, SHARDPACK_END) << Why();
  EXPECT_EQ(substituted, 1u);
  char* json = nullptr;
  ASSERT_EQ(shardpack_loader_take_bad_samples_json(loader.get(), &json, Error()), SHARDPACK_OK);
  const OwnedText owned(json);
  const nlohmann::json rows = nlohmann::json::parse(json);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["id"], 17);
  ASSERT_EQ(shardpack_loader_take_bad_samples_json(loader.get(), &json, Error()), SHARDPACK_OK);
  EXPECT_STREQ(OwnedText(json).get(), "[]");
}

TEST_F(ApiLoaderTest, ASeekForgetsNoSubstitutes) {
  Make();
  Damage(17);
  shardpack_loader_options options = LoaderOptions();
  options.bad_samples = SHARDPACK_BAD_SUBSTITUTE;
  options.max_bad_samples = 2;
  options.epochs = 1;  // what is read ahead counts too
  const LoaderHandle loader = OpenLoader(options);
  const auto epoch = [&] {
    while (Next(loader) != nullptr) {
    }
    return code_;
  };
  const auto reported = [&] {
    char* json = nullptr;
    EXPECT_EQ(shardpack_loader_take_bad_samples_json(loader.get(), &json, Error()), SHARDPACK_OK);
    return nlohmann::json::parse(OwnedText(json).get()).size();
  };
  ASSERT_EQ(epoch(), SHARDPACK_END) << Why();
  ASSERT_EQ(shardpack_loader_seek(loader.get(), 0, 0, Error()), SHARDPACK_OK) << Why();
  EXPECT_EQ(reported(), 1u);
  ASSERT_EQ(epoch(), SHARDPACK_END) << Why();
  ASSERT_EQ(shardpack_loader_seek(loader.get(), 0, 0, Error()), SHARDPACK_OK) << Why();
  EXPECT_EQ(epoch(), SHARDPACK_DATA_LOSS);  // the third
  EXPECT_EQ(reported(), 1u);
}

TEST_F(ApiLoaderTest, StatisticsAreJson) {
  Make();
  const LoaderHandle loader = OpenLoader();
  ASSERT_NE(Next(loader), nullptr);
  char* text = nullptr;
  ASSERT_EQ(shardpack_loader_stats_json(loader.get(), &text, Error()), SHARDPACK_OK);
  EXPECT_TRUE(nlohmann::json::accept(OwnedText(text).get()));
  ASSERT_EQ(shardpack_loader_explain(loader.get(), &text, Error()), SHARDPACK_OK);
  EXPECT_THAT(OwnedText(text).get(), HasSubstr("bottleneck"));
  EXPECT_TRUE(nlohmann::json::accept(shardpack_build_json())) << shardpack_build_json();
}

TEST_F(ApiLoaderTest, RanksShareAStep) {
  Make();
  shardpack_loader_options options = LoaderOptions();
  const LoaderHandle whole = OpenLoader();
  const BatchHandle all = Next(whole);
  std::vector<uint64_t> ids;
  for (uint32_t rank = 0; rank < 4; ++rank) {
    options.rank = rank;
    options.world_size = 4;
    const LoaderHandle loader = OpenLoader(options);
    const BatchHandle batch = Next(loader);
    const shardpack_batch_view view = View(batch);
    ids.insert(ids.end(), view.ids, view.ids + view.slots);
  }
  const shardpack_batch_view view = View(all);
  EXPECT_EQ(ids, std::vector<uint64_t>(view.ids, view.ids + view.slots));
}

}  // namespace
}  // namespace shardpack::testing
