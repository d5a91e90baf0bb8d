// Masks of the C interface: those that MaskPipeline makes, and what cannot have any.
#include <cstring>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "images/augment/mask_pipeline.h"
#include "tests/api/fixture.h"

namespace shardpack::testing {
namespace {

using ::testing::HasSubstr;

class ApiMasksTest : public ApiTest {
 protected:
  ApiMasksTest() {
    Make(3, 10, /*masks=*/true);
    options_.decode = &decode_;
    options_.decode_fields = fields_;
    options_.decode_field_count = 1;
  }
  shardpack_code TryLoader() {
    const DatasetHandle dataset = Open();
    const OrderHandle order = MakeOrder();
    shardpack_loader* loader = nullptr;
    const shardpack_code code =
        shardpack_loader_open(dataset.get(), order.get(), &options_, &loader, Error());
    shardpack_loader_release(loader);
    return code;
  }
  std::vector<uint8_t> Expected(uint64_t epoch, uint64_t id) const {
    PixelPipelineOptions options;
    options.crop = {.width = decode_.width, .height = decode_.height};
    options.crop.flip_probability = decode_.flip_probability;
    MaskPipeline pipeline(options);
    std::vector<uint8_t> mask(pipeline.output_bytes());
    if (id == SHARDPACK_PADDING_ID || samples_[id].more_fields.empty()) return mask;
    ShownImage image;
    image.width = samples_[id].info.width;
    image.height = samples_[id].info.height;
    EXPECT_TRUE(pipeline
                    .Run(AsBytes(samples_[id].more_fields[0].second), image,
                         {.seed = options_.augment_seed, .epoch = epoch, .id = id}, mask.data())
                    .ok());
    return mask;
  }

  const char* const fields_[1] = {"mask"};
  shardpack_decode decode_ = Decode();
  shardpack_loader_options options_ = LoaderOptions();
};

TEST_F(ApiMasksTest, ComeWithEveryBatch) {
  const LoaderHandle loader = OpenLoader(options_);
  ASSERT_NE(loader, nullptr);
  const uint64_t mask_bytes = uint64_t{decode_.width} * decode_.height;
  for (int step = 0; step < 4; ++step) {
    const BatchHandle batch = Next(loader);
    ASSERT_NE(batch, nullptr) << Why();
    const shardpack_batch_view view = View(batch);
    EXPECT_EQ(view.fields, 2u);
    uint8_t* masks = nullptr;
    uint64_t bytes = 0;
    ASSERT_EQ(shardpack_batch_masks(batch.get(), "mask", &masks, &bytes, Error()), SHARDPACK_OK)
        << Why();
    ASSERT_EQ(bytes, view.slots * mask_bytes);
    std::vector<shardpack_span> spans(view.slots);
    ASSERT_EQ(shardpack_batch_spans(batch.get(), "mask", spans.data(), spans.size(), Error()),
              SHARDPACK_OK);
    for (uint64_t slot = 0; slot < view.slots; ++slot) {
      const uint8_t* const mask = masks + slot * mask_bytes;
      EXPECT_EQ(std::vector<uint8_t>(mask, mask + mask_bytes), Expected(0, view.ids[slot]));
      const bool absent = view.ids[slot] == SHARDPACK_PADDING_ID || view.ids[slot] % 3 == 0;
      EXPECT_EQ(spans[slot].data == nullptr, absent);
    }
    std::memset(masks, 7, bytes);  // the caller's
  }
}

TEST_F(ApiMasksTest, OtherFieldsHaveNone) {
  const LoaderHandle loader = OpenLoader(options_);
  const BatchHandle batch = Next(loader);
  uint8_t* masks = nullptr;
  uint64_t bytes = 0;
  EXPECT_EQ(shardpack_batch_masks(batch.get(), "image", &masks, &bytes, Error()),
            SHARDPACK_NOT_FOUND);
  EXPECT_EQ(Text(Info().field), "image");
  EXPECT_EQ(shardpack_batch_masks(batch.get(), nullptr, &masks, &bytes, Error()),
            SHARDPACK_INVALID);
  EXPECT_EQ(shardpack_batch_masks(batch.get(), "mask", nullptr, &bytes, Error()),
            SHARDPACK_INVALID);
  EXPECT_EQ(shardpack_batch_masks(batch.get(), "mask", &masks, nullptr, Error()),
            SHARDPACK_INVALID);
  const DatasetHandle dataset = Open();
  const uint64_t id = 1;
  shardpack_batch* read = nullptr;
  ASSERT_EQ(shardpack_dataset_read(dataset.get(), &id, 1, nullptr, 0, &read, Error()),
            SHARDPACK_OK);
  const BatchHandle encoded(read);
  EXPECT_EQ(shardpack_batch_masks(encoded.get(), "mask", &masks, &bytes, Error()),
            SHARDPACK_NOT_FOUND);
}

TEST_F(ApiMasksTest, OptionsThatCannotBeAreRefused) {
  EXPECT_EQ(TryLoader(), SHARDPACK_OK) << Why();
  options_.decode = nullptr;
  EXPECT_EQ(TryLoader(), SHARDPACK_INVALID);
  EXPECT_THAT(Why(), HasSubstr("masks"));
  options_.decode = &decode_;
  const char* const unknown[] = {"msak"};
  options_.decode_fields = unknown;
  EXPECT_EQ(TryLoader(), SHARDPACK_INVALID);
  EXPECT_THAT(Why(), HasSubstr("msak"));
  const char* const null[] = {nullptr};
  options_.decode_fields = null;
  EXPECT_EQ(TryLoader(), SHARDPACK_INVALID);
  options_.decode_fields = nullptr;
  EXPECT_EQ(TryLoader(), SHARDPACK_INVALID);
}

TEST_F(ApiMasksTest, AreNotCopiedToADevice) {
  shardpack_device* device = nullptr;
  ASSERT_EQ(shardpack_device_open("cpu", &device, Error()), SHARDPACK_OK) << Why();
  options_.device = device;
  const LoaderHandle loader = OpenLoader(options_);
  shardpack_loader* on_device = nullptr;
  EXPECT_EQ(shardpack_loader_to_device(loader.get(), device, nullptr, &on_device, Error()),
            SHARDPACK_UNSUPPORTED);
  EXPECT_THAT(Why(), HasSubstr("decode_fields"));
  // The loader is still there.
  EXPECT_NE(Next(loader), nullptr) << Why();
  shardpack_device_release(device);
}

// What a loader would refuse is refused before.
TEST_F(ApiMasksTest, DecodingOptionsAreChecked) {
  EXPECT_EQ(shardpack_decode_check(&decode_, Error()), SHARDPACK_OK) << Why();
  EXPECT_EQ(shardpack_decode_check(nullptr, Error()), SHARDPACK_INVALID);
  const auto refused = [&](auto change) {
    decode_ = Decode();
    change(decode_);
    const shardpack_code code = shardpack_decode_check(&decode_, Error());
    EXPECT_EQ(TryLoader(), code);
    return code == SHARDPACK_INVALID;
  };
  EXPECT_TRUE(refused([](shardpack_decode& decode) { decode.width = 70'000; }));
  EXPECT_TRUE(refused([](shardpack_decode& decode) { decode.std[1] = -1; }));
  EXPECT_THAT(Why(), HasSubstr("std must be a finite number above 0, not -1"));
  EXPECT_TRUE(refused([](shardpack_decode& decode) { decode.min_scale = 2; }));
  EXPECT_TRUE(refused([](shardpack_decode& decode) { decode.channels = 2; }));
  EXPECT_TRUE(refused([](shardpack_decode& decode) { decode.flip_probability = -1; }));
  EXPECT_TRUE(refused([](shardpack_decode& decode) { decode.size = 8; }));
  EXPECT_TRUE(refused([](shardpack_decode& decode) {
    decode.crop = SHARDPACK_CENTER;
    decode.shortest_side = 10;
  }));
  EXPECT_FALSE(refused([](shardpack_decode& decode) { decode.width = 0; }));
}

// A loader of a selection has its ids, and crops by them.
TEST_F(ApiMasksTest, ALoaderOfASelection) {
  const DatasetHandle dataset = Open();
  const std::vector<uint64_t> ids = {20, 1, 1, 8, 29, 4, 7, 13};
  shardpack_dataset* made = nullptr;
  ASSERT_EQ(shardpack_dataset_select(dataset.get(), ids.data(), ids.size(), &made, Error()),
            SHARDPACK_OK);
  const DatasetHandle selected(made);
  shardpack_order_options sequential = OrderOptions(4);
  sequential.mode = SHARDPACK_SEQUENTIAL;
  shardpack_order* sequence = nullptr;
  ASSERT_EQ(shardpack_order_make(ids.size(), &sequential, &sequence, Error()), SHARDPACK_OK);
  const OrderHandle order(sequence);
  options_.decode = nullptr;
  options_.decode_field_count = 0;
  shardpack_loader* opened = nullptr;
  ASSERT_EQ(shardpack_loader_open(selected.get(), order.get(), &options_, &opened, Error()),
            SHARDPACK_OK)
      << Why();
  const LoaderHandle loader(opened);
  for (uint64_t step = 0; step < 2; ++step) {
    const BatchHandle batch = Next(loader);
    ASSERT_NE(batch, nullptr) << Why();
    for (uint64_t slot = 0; slot < 4; ++slot) {
      EXPECT_EQ(View(batch).ids[slot], step * 4 + slot);
      EXPECT_EQ(Bytes(batch, slot), samples_[ids[step * 4 + slot]].image);
      EXPECT_EQ(View(batch).labels[slot], samples_[ids[step * 4 + slot]].label);
    }
  }
  // A cursor of it is none of another one.
  char* cursor = nullptr;
  ASSERT_EQ(shardpack_loader_cursor(loader.get(), &cursor, Error()), SHARDPACK_OK);
  const OwnedText owner(cursor);
  options_.cursor = cursor;
  options_.decode_fields = nullptr;
  const std::vector<uint64_t> turned(ids.rbegin(), ids.rend());
  ASSERT_EQ(shardpack_dataset_select(dataset.get(), turned.data(), turned.size(), &made, Error()),
            SHARDPACK_OK);
  const DatasetHandle other(made);
  EXPECT_EQ(shardpack_loader_open(other.get(), order.get(), &options_, &opened, Error()),
            SHARDPACK_INVALID);
  EXPECT_EQ(shardpack_loader_open(selected.get(), order.get(), &options_, &opened, Error()),
            SHARDPACK_OK)
      << Why();
  shardpack_loader_release(opened);
}

}  // namespace
}  // namespace shardpack::testing
