// Datasets and orders of the C interface give what those of the C++ libraries give.
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "formats/formats.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "readers/order/order.h"
#include "tests/api/fixture.h"

namespace shardpack::testing {
namespace {

using ::testing::HasSubstr;

class ApiDatasetTest : public ApiTest {
 protected:
  static shardpack_dataset_info InfoOf(const DatasetHandle& dataset) {
    shardpack_dataset_info info = {};
    info.size = sizeof(info);
    EXPECT_EQ(shardpack_dataset_info_of(dataset.get(), &info, nullptr), SHARDPACK_OK);
    return info;
  }
  BatchHandle Read(const DatasetHandle& dataset, const std::vector<uint64_t>& ids,
                   const std::vector<const char*>& fields = {}) {
    shardpack_batch* batch = nullptr;
    code_ = shardpack_dataset_read(dataset.get(), ids.data(), ids.size(), fields.data(),
                                   fields.size(), &batch, Error());
    return BatchHandle(batch);
  }
};

TEST_F(ApiDatasetTest, DescribesTheDataset) {
  Make();
  const DatasetHandle dataset = Open();
  const shardpack_dataset_info info = InfoOf(dataset);
  EXPECT_EQ(info.samples, 30u);
  EXPECT_EQ(info.shards, 3u);
  EXPECT_EQ(info.splits, 1u);
  EXPECT_EQ(info.classes, reference_->classes().size());
  EXPECT_EQ(Text(info.format), reference_->format());
  std::string identity;
  for (const uint8_t byte : info.identity) {
    constexpr char kDigits[] = "0123456789abcdef";
    identity += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  EXPECT_EQ(identity, reference_->identity().ToHex());
  uint64_t bytes = 0;
  for (uint32_t s = 0; s < info.shards; ++s) {
    shardpack_shard_info shard = {};
    shard.size = sizeof(shard);
    ASSERT_EQ(shardpack_dataset_shard(dataset.get(), s, &shard, Error()), SHARDPACK_OK);
    const DatasetShard& expected = reference_->shards()[s];
    EXPECT_EQ(Text(shard.name), expected.name);
    EXPECT_EQ(Text(shard.split), expected.split);
    EXPECT_EQ(Text(shard.path), expected.data_path);
    EXPECT_EQ(shard.records, expected.records);
    EXPECT_EQ(shard.first_id, expected.first_id);
    bytes += shard.bytes;
  }
  EXPECT_EQ(bytes, info.bytes);
  shardpack_text name;
  for (uint32_t c = 0; c < info.classes; ++c) {
    ASSERT_EQ(shardpack_dataset_name(dataset.get(), SHARDPACK_CLASS, c, &name, Error()),
              SHARDPACK_OK);
    EXPECT_EQ(Text(name), reference_->classes()[c]);
  }
  EXPECT_EQ(shardpack_dataset_name(dataset.get(), SHARDPACK_CLASS, info.classes, &name, Error()),
            SHARDPACK_OUT_OF_RANGE);
  ASSERT_EQ(shardpack_dataset_name(dataset.get(), SHARDPACK_SPLIT, 0, &name, Error()),
            SHARDPACK_OK);
  EXPECT_EQ(Text(name), "train");
  size_t count = 0;
  ASSERT_EQ(shardpack_dataset_fields(dataset.get(), 0, nullptr, 0, &count, Error()), SHARDPACK_OK);
  ASSERT_EQ(count, 1u);
  ASSERT_EQ(shardpack_dataset_fields(dataset.get(), 0, &name, 1, &count, Error()), SHARDPACK_OK);
  EXPECT_EQ(Text(name), "image");
}

TEST_F(ApiDatasetTest, ColumnsAreThoseOfTheIndex) {
  Make();
  shardpack_column label, offset, hash, ends, text;
  std::string keys;
  {
    const DatasetHandle dataset = Open();
    for (const auto& [column, view] :
         {std::pair(SHARDPACK_COLUMN_LABEL, &label), std::pair(SHARDPACK_COLUMN_OFFSET, &offset),
          std::pair(SHARDPACK_COLUMN_HASH, &hash), std::pair(SHARDPACK_COLUMN_KEY_ENDS, &ends),
          std::pair(SHARDPACK_COLUMN_KEY_TEXT, &text)}) {
      ASSERT_EQ(shardpack_dataset_column(dataset.get(), 1, static_cast<uint32_t>(column), nullptr,
                                         view, Error()),
                SHARDPACK_OK)
          << Why();
      EXPECT_EQ(reinterpret_cast<uintptr_t>(view->data) % 8, 0u);
    }
    ASSERT_EQ(label.count, 10u);
    EXPECT_EQ(label.type, 'q');
    const ShardIndex index = *reference_->index(1);
    for (size_t r = 0; r < 10; ++r) {
      EXPECT_EQ(static_cast<const int64_t*>(label.data)[r], index.label(r));
      EXPECT_EQ(static_cast<const uint64_t*>(offset.data)[r], index.field(r, 0).offset);
      EXPECT_EQ(static_cast<const uint64_t*>(hash.data)[r], index.hash(r, 0));
      keys += index.key(r);
      EXPECT_EQ(static_cast<const uint64_t*>(ends.data)[r], keys.size());
    }
    EXPECT_EQ(std::string_view(static_cast<const char*>(text.data), text.count), keys);
    shardpack_column none;
    EXPECT_EQ(
        shardpack_dataset_column(dataset.get(), 0, SHARDPACK_COLUMN_BYTES, "mask", &none, Error()),
        SHARDPACK_NOT_FOUND);
    EXPECT_EQ(Text(Info().field), "mask");
    EXPECT_EQ(shardpack_dataset_column(dataset.get(), 0, 99, nullptr, &none, Error()),
              SHARDPACK_INVALID);
    EXPECT_EQ(shardpack_dataset_column(dataset.get(), 9, 0, nullptr, &none, Error()),
              SHARDPACK_OUT_OF_RANGE);
  }
}

TEST_F(ApiDatasetTest, FindsAndReadsSamples) {
  Make();
  const DatasetHandle dataset = Open();
  const std::vector<uint64_t> ids = {29, 0, 17, 0};
  const BatchHandle batch = Read(dataset, ids);
  ASSERT_NE(batch, nullptr) << Why();
  const shardpack_batch_view view = View(batch);
  ASSERT_EQ(view.slots, ids.size());
  ASSERT_EQ(view.fields, 1u);
  for (size_t slot = 0; slot < ids.size(); ++slot) {
    const TestSample& sample = samples_[ids[slot]];
    EXPECT_EQ(view.ids[slot], ids[slot]);
    EXPECT_EQ(view.labels[slot], sample.label);
    EXPECT_EQ(view.images[slot].width, sample.info.width);
    EXPECT_EQ(Bytes(batch, slot), sample.image);
    shardpack_text key;
    ASSERT_EQ(shardpack_dataset_key(dataset.get(), ids[slot], &key, Error()), SHARDPACK_OK);
    EXPECT_EQ(Text(key), sample.key);
    uint64_t id = 0, record = 0;
    uint32_t shard = 0;
    ASSERT_EQ(shardpack_dataset_find_key(dataset.get(), key.data, key.size, &id, Error()),
              SHARDPACK_OK);
    EXPECT_EQ(id, ids[slot]);
    ASSERT_EQ(shardpack_dataset_locate(dataset.get(), id, &shard, &record, Error()), SHARDPACK_OK);
    EXPECT_EQ(shard * 10 + record, id);
  }
  uint64_t id = 0;
  EXPECT_EQ(shardpack_dataset_find_key(dataset.get(), "none", 4, &id, Error()),
            SHARDPACK_NOT_FOUND);
  EXPECT_EQ(Text(Info().key), "none");
  EXPECT_EQ(Read(dataset, {3, 30}), nullptr);
  EXPECT_EQ(code_, SHARDPACK_OUT_OF_RANGE);
  EXPECT_EQ(Info().id, 30);
  const BatchHandle empty = Read(dataset, {});
  ASSERT_NE(empty, nullptr) << Why();
  EXPECT_EQ(View(empty).slots, 0u);
}

TEST_F(ApiDatasetTest, ReadsTheFieldsThatAreAskedFor) {
  Make();
  const DatasetHandle dataset = Open();
  const BatchHandle batch = Read(dataset, {5, 6}, {"image"});
  ASSERT_NE(batch, nullptr) << Why();
  std::vector<shardpack_span> spans(2);
  ASSERT_EQ(shardpack_batch_spans(batch.get(), "image", spans.data(), 2, Error()), SHARDPACK_OK);
  EXPECT_EQ(spans[1].bytes, samples_[6].image.size());
  EXPECT_EQ(shardpack_batch_spans(batch.get(), "json", spans.data(), 2, Error()),
            SHARDPACK_NOT_FOUND);
  EXPECT_EQ(shardpack_batch_spans(batch.get(), "image", spans.data(), 1, Error()),
            SHARDPACK_INVALID);
  shardpack_text name;
  ASSERT_EQ(shardpack_batch_field(batch.get(), 0, &name, Error()), SHARDPACK_OK);
  EXPECT_EQ(Text(name), "image");
  EXPECT_EQ(shardpack_batch_field(batch.get(), 1, &name, Error()), SHARDPACK_OUT_OF_RANGE);
  EXPECT_EQ(Read(dataset, {5, 6}, {"image", "imgae"}), nullptr);
  EXPECT_EQ(code_, SHARDPACK_NOT_FOUND);
  EXPECT_EQ(Text(Info().field), "imgae");
  EXPECT_EQ(View(batch).device_number, -1);
}

TEST_F(ApiDatasetTest, ReadingADamagedSampleSaysWhere) {
  Make();
  Damage(12);
  const DatasetHandle dataset = Open();
  EXPECT_EQ(Read(dataset, {11, 12}), nullptr);
  EXPECT_EQ(code_, SHARDPACK_DATA_LOSS);
  EXPECT_EQ(Info().record, 2);
  EXPECT_EQ(Info().id, 12);
  EXPECT_NE(Read(dataset, {11, 13}), nullptr);
}

TEST_F(ApiDatasetTest, SplitsAndJoins) {
  Make();
  const DatasetHandle dataset = Open();
  shardpack_dataset* made = nullptr;
  ASSERT_EQ(shardpack_dataset_split(dataset.get(), "train", &made, Error()), SHARDPACK_OK);
  const DatasetHandle train(made);
  EXPECT_EQ(InfoOf(train).samples, 30u);
  EXPECT_EQ(shardpack_dataset_split(dataset.get(), "test", &made, Error()), SHARDPACK_NOT_FOUND);
  EXPECT_EQ(made, nullptr);
  const shardpack_dataset* const parts[] = {train.get(), dataset.get()};
  ASSERT_EQ(shardpack_dataset_join(parts, 2, &made, Error()), SHARDPACK_OK) << Why();
  const DatasetHandle joined(made);
  EXPECT_EQ(InfoOf(joined).samples, 60u);
  const BatchHandle batch = Read(joined, {31});
  EXPECT_EQ(Bytes(batch, 0), samples_[1].image);
}

TEST_F(ApiDatasetTest, Selects) {
  Make();
  const std::vector<uint64_t> ids = {29, 4, 4, 11};
  shardpack_dataset* made = nullptr;
  {
    const DatasetHandle dataset = Open();
    ASSERT_EQ(shardpack_dataset_select(dataset.get(), ids.data(), ids.size(), &made, Error()),
              SHARDPACK_OK)
        << Why();
  }
  const DatasetHandle selected(made);
  const shardpack_dataset_info info = InfoOf(selected);
  EXPECT_EQ(info.samples, 4u);
  EXPECT_EQ(info.shards, 3u);
  EXPECT_NE(std::memcmp(info.identity, InfoOf(Open()).identity, 16), 0);
  const BatchHandle batch = Read(selected, {3, 0, 2});
  ASSERT_NE(batch, nullptr) << Why();
  EXPECT_EQ(View(batch).ids[0], 3u);
  EXPECT_EQ(Bytes(batch, 0), samples_[11].image);
  EXPECT_EQ(Bytes(batch, 1), samples_[29].image);
  EXPECT_EQ(Bytes(batch, 2), samples_[4].image);
  uint32_t shard = 0;
  uint64_t record = 0, id = 0;
  ASSERT_EQ(shardpack_dataset_locate(selected.get(), 0, &shard, &record, Error()), SHARDPACK_OK);
  EXPECT_EQ(shard, 2u);
  EXPECT_EQ(record, 9u);
  const std::string& key = samples_[4].key;
  ASSERT_EQ(shardpack_dataset_find_key(selected.get(), key.data(), key.size(), &id, Error()),
            SHARDPACK_OK);
  EXPECT_EQ(id, 1u);
  EXPECT_EQ(shardpack_dataset_locate(selected.get(), 4, &shard, &record, Error()),
            SHARDPACK_OUT_OF_RANGE);
  // None of it, one that is not there, and no list.
  ASSERT_EQ(shardpack_dataset_select(selected.get(), nullptr, 0, &made, Error()), SHARDPACK_OK);
  const DatasetHandle none(made);
  EXPECT_EQ(InfoOf(none).samples, 0u);
  id = 4;
  EXPECT_EQ(shardpack_dataset_select(selected.get(), &id, 1, &made, Error()),
            SHARDPACK_OUT_OF_RANGE);
  EXPECT_EQ(made, nullptr);
  EXPECT_EQ(Info().id, 4);
  EXPECT_EQ(shardpack_dataset_select(selected.get(), nullptr, 1, &made, Error()),
            SHARDPACK_INVALID);
}

TEST_F(ApiDatasetTest, WhatIsNotThereSaysSo) {
  shardpack_dataset* dataset = nullptr;
  const std::string path = folder_ + "/nothing";
  EXPECT_EQ(shardpack_dataset_open(path.c_str(), &dataset, Error()), SHARDPACK_NOT_FOUND);
  EXPECT_EQ(dataset, nullptr);
  EXPECT_EQ(Text(Info().path), path);
  EXPECT_EQ(Info().system_errno, ENOENT);
  EXPECT_EQ(shardpack_dataset_open("", &dataset, Error()), SHARDPACK_INVALID);
  EXPECT_THAT(Why(), HasSubstr("empty"));
  EXPECT_EQ(shardpack_dataset_open(folder_.c_str(), &dataset, Error()), SHARDPACK_INVALID);
  EXPECT_THAT(Why(), HasSubstr("not a packed dataset"));
  EXPECT_EQ(Text(Info().path), folder_);
  Make();
  ASSERT_TRUE(RemoveFile(folder_ + "/train-1.toy").ok());
  EXPECT_EQ(shardpack_dataset_open(folder_.c_str(), &dataset, Error()), SHARDPACK_DATA_LOSS);
  EXPECT_EQ(Text(Info().path), folder_ + "/train-1.toy");
}

// Of other programs, in the formats that need no further library.
TEST_F(ApiDatasetTest, OpensShardsOfOtherPrograms) {
  for (const char* const name : {"webdataset", "tfrecord"}) {
    const Format& format = *FindFormat(name);
    std::vector<TestSample> samples = MakeTestSamples({.shards = 1, .records_per_shard = 4});
    const std::string path = folder_ + "/" + format.shard_name("train", 0, 1);
    WriteTestShard(path, format, samples);
    const char* const paths[] = {path.c_str()};
    shardpack_dataset* made = nullptr;
    ASSERT_EQ(shardpack_dataset_open_shards(paths, 1, &made, Error()), SHARDPACK_OK) << Why();
    const DatasetHandle dataset(made);
    EXPECT_EQ(Text(InfoOf(dataset).format), name);
    ASSERT_EQ(shardpack_dataset_open(path.c_str(), &made, Error()), SHARDPACK_OK) << Why();
    shardpack_dataset_release(made);
    const BatchHandle batch = Read(dataset, {3}, {"image"});
    ASSERT_NE(batch, nullptr) << Why();
    shardpack_text key;
    ASSERT_EQ(shardpack_dataset_key(dataset.get(), 3, &key, Error()), SHARDPACK_OK);
    if (format.traits.image_field_follows_content) {
      EXPECT_EQ(Bytes(batch, 0), samples[3].image);
    }
  }
  WriteTestFile(folder_ + "/odd", "no shard at all");
  const std::string path = folder_ + "/odd";
  const char* const paths[] = {path.c_str()};
  shardpack_dataset* made = nullptr;
  EXPECT_EQ(shardpack_dataset_open_shards(paths, 1, &made, Error()), SHARDPACK_INVALID);
}

TEST_F(ApiDatasetTest, OrdersAreThoseOfTheCxxLibrary) {
  const std::vector<uint64_t> subset = {5, 3, 3, 8, 13, 21};
  const shardpack_mixture_part parts[] = {{0, 10, 1}, {10, 20, 3}};
  shardpack_order_options shuffle = OrderOptions(4), blocks = shuffle, some = shuffle,
                          mixed = shuffle;
  blocks.mode = SHARDPACK_BLOCK_SHUFFLE;
  blocks.block_samples = 2;
  blocks.window_blocks = 3;
  blocks.tail = SHARDPACK_TAIL_DROP;
  some.mode = SHARDPACK_SEQUENTIAL;
  some.subset = subset.data();
  some.subset_count = subset.size();
  mixed.mixture = parts;
  mixed.mixture_count = 2;
  mixed.epoch_samples = 16;
  const OrderSpec common = {.samples = 30, .seed = 2, .global_batch = 4, .tail = Tail::kPad};
  OrderSpec expected_blocks = common, expected_some = common, expected_mixed = common;
  expected_blocks.mode = OrderMode::kBlockShuffle;
  expected_blocks.block_samples = 2;
  expected_blocks.window_blocks = 3;
  expected_blocks.tail = Tail::kDrop;
  expected_some.mode = OrderMode::kSequential;
  expected_some.subset = std::make_shared<const std::vector<uint64_t>>(subset);
  expected_mixed.mixture = {{0, 10, 1}, {10, 20, 3}};
  expected_mixed.epoch_samples = 16;
  for (const auto& [options, spec] :
       {std::pair(shuffle, common), std::pair(blocks, expected_blocks),
        std::pair(some, expected_some), std::pair(mixed, expected_mixed)}) {
    const Order expected = *Order::Make(spec);
    shardpack_order* made = nullptr;
    ASSERT_EQ(shardpack_order_make(30, &options, &made, Error()), SHARDPACK_OK) << Why();
    const OrderHandle order(made);
    EXPECT_EQ(shardpack_order_explain(order.get()), expected.explain());
    ASSERT_EQ(shardpack_order_steps(order.get()), expected.steps());
    EXPECT_EQ(shardpack_order_samples(order.get()), expected.samples());
    for (uint64_t step = 0; step < expected.steps(); ++step) {
      std::vector<uint64_t> ids(4), wanted(4);
      expected.Ids(3, step, 0, wanted);
      ASSERT_EQ(shardpack_order_ids(order.get(), 3, step, 0, ids.data(), 4, Error()), SHARDPACK_OK);
      EXPECT_EQ(ids, wanted);
      ASSERT_EQ(shardpack_order_ids(order.get(), 3, step, 2, ids.data(), 2, Error()), SHARDPACK_OK);
      EXPECT_EQ(ids[0], wanted[2]);
    }
    uint64_t id = 0;
    EXPECT_EQ(shardpack_order_ids(order.get(), 0, expected.steps(), 0, &id, 1, Error()),
              SHARDPACK_OUT_OF_RANGE);
    EXPECT_EQ(shardpack_order_ids(order.get(), 0, 0, 4, &id, 1, Error()), SHARDPACK_OUT_OF_RANGE);
  }
  shardpack_order* made = nullptr;
  EXPECT_EQ(shardpack_order_make(3, &shuffle, &made, Error()), SHARDPACK_OK);
  shardpack_order_release(made);
  shuffle.tail = SHARDPACK_TAIL_DROP;
  EXPECT_EQ(shardpack_order_make(3, &shuffle, &made, Error()), SHARDPACK_INVALID);
  EXPECT_THAT(Why(), HasSubstr("shorter"));
}

TEST_F(ApiDatasetTest, MappingsAreAnOptionOfReads) {
  Make();
  const DatasetHandle dataset = Open();
  const std::string shard = reference_->shards()[0].data_path;
  const auto is_mapped = [&] {
    std::ifstream maps("/proc/self/maps");
    const std::string text((std::istreambuf_iterator<char>(maps)), {});
    return text.find(shard + "\n") != std::string::npos;
  };
  const std::vector<uint64_t> ids = {3, 29, 17, 3};
  const auto read = [&](const DatasetHandle& from) {
    for (int times = 0; times < 20; ++times) {
      const BatchHandle batch = Read(from, ids);
      ASSERT_NE(batch, nullptr) << Why();
      for (uint32_t slot = 0; slot < ids.size(); ++slot)
        EXPECT_EQ(Bytes(batch, slot), samples_[ids[slot]].image);
    }
  };
  for (const uint32_t on : {1, 0})  // the last one counts
    EXPECT_EQ(shardpack_dataset_map_shards(dataset.get(), on, Error()), SHARDPACK_OK);
  read(dataset);
  EXPECT_FALSE(is_mapped());
  EXPECT_EQ(shardpack_dataset_map_shards(dataset.get(), 1, Error()), SHARDPACK_OK);
  shardpack_dataset* split = nullptr;
  ASSERT_EQ(shardpack_dataset_split(dataset.get(), "train", &split, Error()), SHARDPACK_OK);
  read(DatasetHandle(split));
  EXPECT_FALSE(is_mapped()) << "what is made of a dataset begins without";
  read(dataset);
  EXPECT_TRUE(is_mapped());
  EXPECT_EQ(shardpack_dataset_map_shards(nullptr, 1, Error()), SHARDPACK_INVALID);
}

}  // namespace
}  // namespace shardpack::testing
