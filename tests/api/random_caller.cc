#include "tests/api/random_caller.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "cuda/loading/dlpack_export.h"
#include "gtest/gtest.h"

namespace shardpack::testing {
namespace {

constexpr size_t kMostHeld = 6, kRemembered = 25;

}  // namespace

shardpack_error** RandomCaller::Noting(const char* call) {
  history_.push_back(call);
  if (history_.size() > kRemembered) history_.pop_front();
  wants_error_ = !Chance(4);
  return wants_error_ ? &error_ : nullptr;
}

std::string RandomCaller::History() const {
  std::string all = "the last calls:";
  for (const std::string& call : history_) all += " " + call;
  return all;
}

bool RandomCaller::Ok(shardpack_code code, Codes others) {
  const std::string why = shardpack_error_message(error_);
  EXPECT_TRUE(code == SHARDPACK_OK || std::find(others.begin(), others.end(), code) != others.end())
      << shardpack_code_name(code) << " " << why << "; " << History();
  if (wants_error_) {
    EXPECT_EQ(error_ != nullptr, code >= SHARDPACK_INVALID) << History();
    if (error_ != nullptr) {
      EXPECT_EQ(shardpack_error_code(error_), code);
      EXPECT_FALSE(why.empty());
    }
    shardpack_error_free(error_);
    error_ = nullptr;
  }
  return code == SHARDPACK_OK;
}

void RandomCaller::Call() {
  ReleaseSome();
  HeldLoader* const loader = Pick(loaders_);
  switch (Below(19)) {
    case 0:
      return OpenDataset();
    case 1:
      return MakeDataset();
    case 2:
      return InspectDataset();
    case 3:
      return ReadSamples();
    case 4:
      return MakeOrder();
    case 5:
      return InspectOrder();
    case 6:
      return OpenLoader();
    case 7:
    case 8:
    case 9:
      return loader == nullptr ? OpenLoader() : NextBatch(*loader);
    case 10:
      return loader == nullptr ? OpenLoader() : UseLoader(*loader);
    case 11:
      return InspectBatch();
    case 12:
      return ExportBatch();
    case 13:
      return UseDevice();
    case 14:
      return CheckDecode();
    case 15:
    case 16:
      return Misuse();
    case 17:
      return DecodeImage();
    default:
      return Share();
  }
}

std::vector<uint64_t> RandomCaller::RandomIds(uint64_t samples, uint64_t most) {
  std::vector<uint64_t> ids(Below(most));
  // Now and then one that is not there.
  for (uint64_t& id : ids) id = Below(samples + (Chance(40) ? 1 : 0) + (samples == 0 ? 1 : 0));
  return ids;
}

void RandomCaller::OpenDataset() {
  HeldDataset made;
  if (!Ok(shardpack_dataset_open(disk_.folder.c_str(), &made.handle, Noting("dataset_open"))))
    return;
  made.samples.resize(disk_.samples.size());
  for (uint64_t id = 0; id < made.samples.size(); ++id) made.samples[id] = id;
  datasets_.push_back(std::move(made));
}

// Of those that there are.
void RandomCaller::MakeDataset() {
  if (datasets_.empty()) return OpenDataset();
  const HeldDataset& one = *Pick(datasets_);
  const HeldDataset& other = *Pick(datasets_);
  HeldDataset made;
  switch (Below(4)) {
    case 0: {
      const char* const name = Chance(4) ? "test" : "train";
      const shardpack_code code =
          shardpack_dataset_split(one.handle, name, &made.handle, Noting("dataset_split"));
      if (!Ok(code, {SHARDPACK_NOT_FOUND})) return;
      made.samples = one.samples;
      break;
    }
    case 1: {
      const shardpack_dataset* const parts[] = {one.handle, other.handle};
      if (one.samples.size() + other.samples.size() > 500) return;
      if (!Ok(shardpack_dataset_join(parts, 2, &made.handle, Noting("dataset_join")))) return;
      made.samples = one.samples;
      made.samples.insert(made.samples.end(), other.samples.begin(), other.samples.end());
      break;
    }
    case 2: {
      made.handle = shardpack_dataset_retain(one.handle);
      made.samples = one.samples;
      break;
    }
    default: {
      const std::vector<uint64_t> ids = RandomIds(one.samples.size(), 60);
      const shardpack_code code = shardpack_dataset_select(one.handle, ids.data(), ids.size(),
                                                           &made.handle, Noting("dataset_select"));
      const bool there =
          std::all_of(ids.begin(), ids.end(), [&](uint64_t id) { return id < one.samples.size(); });
      EXPECT_EQ(code == SHARDPACK_OK, there) << History();
      if (!Ok(code, {SHARDPACK_OUT_OF_RANGE})) return;
      for (const uint64_t id : ids) made.samples.push_back(one.samples[id]);
    }
  }
  datasets_.push_back(std::move(made));
}

void RandomCaller::InspectDataset() {
  if (datasets_.empty()) return OpenDataset();
  const HeldDataset& dataset = *Pick(datasets_);
  if (Chance(2)) return FindSample(dataset);
  auto info = Sized<shardpack_dataset_info>();
  if (!Ok(shardpack_dataset_info_of(dataset.handle, &info, Noting("dataset_info_of")))) return;
  EXPECT_EQ(info.samples, dataset.samples.size()) << History();
  shardpack_text name = {};
  const auto n = static_cast<uint32_t>(Below(3));
  if (Ok(shardpack_dataset_name(dataset.handle, static_cast<uint32_t>(Below(2)), n, &name,
                                Noting("dataset_name")),
         {SHARDPACK_OUT_OF_RANGE})) {
    EXPECT_GT(name.size, 0u);
  }
  auto shard = Sized<shardpack_shard_info>();
  const auto number = static_cast<uint32_t>(Below(info.shards + 1));
  const shardpack_code code =
      shardpack_dataset_shard(dataset.handle, number, &shard, Noting("dataset_shard"));
  EXPECT_EQ(code == SHARDPACK_OK, number < info.shards) << History();
  if (Ok(code, {SHARDPACK_OUT_OF_RANGE})) InspectColumn(dataset);
}

void RandomCaller::InspectColumn(const HeldDataset& dataset) {
  shardpack_text names[2];
  size_t count = 0;
  if (Ok(shardpack_dataset_fields(dataset.handle, 0, names, 2, &count, Noting("dataset_fields")),
         {SHARDPACK_OUT_OF_RANGE})) {
    EXPECT_EQ(std::string_view(names[0].data, names[0].size), "image");
  }
  const char* const fields[] = {nullptr, "mask", "none"};
  const uint64_t field = Below(3);
  shardpack_column column = {};
  const shardpack_code code = shardpack_dataset_column(
      dataset.handle, static_cast<uint32_t>(Below(3)), static_cast<uint32_t>(Below(12)),
      fields[field], &column, Noting("dataset_column"));
  if (!Ok(code, {SHARDPACK_INVALID, SHARDPACK_NOT_FOUND, SHARDPACK_OUT_OF_RANGE})) return;
  uint64_t sum = 0;  // every byte can be read
  const auto* const bytes = static_cast<const uint8_t*>(column.data);
  for (uint64_t i = 0; i < column.count * column.item_bytes; ++i) sum += bytes[i];
  EXPECT_LE(sum, column.count * column.item_bytes * 255);
}

void RandomCaller::FindSample(const HeldDataset& dataset) {
  const uint64_t samples = dataset.samples.size(), id = Below(samples + 1);
  shardpack_text key = {};
  const shardpack_code code =
      shardpack_dataset_key(dataset.handle, id, &key, Noting("dataset_key"));
  EXPECT_EQ(code == SHARDPACK_OK, id < samples) << History();
  if (!Ok(code, {SHARDPACK_OUT_OF_RANGE})) return;
  const std::string_view expected = disk_.samples[dataset.samples[id]].key;
  EXPECT_EQ(std::string_view(key.data, key.size), expected) << History();
  uint64_t found = 0, record = 0;
  uint32_t shard = 0;
  if (Ok(shardpack_dataset_find_key(dataset.handle, key.data, key.size, &found,
                                    Noting("dataset_find_key")))) {
    EXPECT_EQ(dataset.samples[found], dataset.samples[id]) << History();
    EXPECT_LE(found, id);
  }
  Ok(shardpack_dataset_locate(dataset.handle, id, &shard, &record, Noting("dataset_locate")));
}

void RandomCaller::ReadSamples() {
  if (datasets_.empty()) return OpenDataset();
  const HeldDataset& dataset = *Pick(datasets_);
  const std::vector<uint64_t> ids = RandomIds(dataset.samples.size(), 20);
  const char* const fields[] = {"image", Chance(8) ? "none" : "mask"};
  const size_t field_count = Below(3);
  if (Chance(4))
    Ok(shardpack_dataset_map_shards(dataset.handle, Below(2), Noting("dataset_map_shards")));
  HeldBatch made = {.samples = dataset.samples};
  const shardpack_code code =
      shardpack_dataset_read(dataset.handle, ids.data(), ids.size(), fields, field_count,
                             &made.handle, Noting("dataset_read"));
  if (Ok(code, {SHARDPACK_OUT_OF_RANGE, SHARDPACK_NOT_FOUND, SHARDPACK_DATA_LOSS}))
    batches_.push_back(std::move(made));
}

void RandomCaller::MakeOrder() {
  auto options = Sized<shardpack_order_options>();
  options.seed = Below(3);
  options.global_batch = static_cast<uint32_t>(Below(9));
  options.mode = static_cast<uint32_t>(Below(3));
  options.tail = static_cast<uint32_t>(Below(2));
  const uint64_t samples =
      datasets_.empty() || Chance(5) ? Below(40) : Pick(datasets_)->samples.size();
  const std::vector<uint64_t> subset = RandomIds(samples, 30);
  if (Chance(3)) {
    options.subset = subset.data();
    options.subset_count = subset.size();
  }
  shardpack_order* order = nullptr;
  const shardpack_code code = shardpack_order_make(samples, &options, &order, Noting("order_make"));
  if (Ok(code, {SHARDPACK_INVALID, SHARDPACK_OUT_OF_RANGE})) orders_.push_back(order);
}

void RandomCaller::InspectOrder() {
  if (orders_.empty()) return MakeOrder();
  shardpack_order* const order = *Pick(orders_);
  EXPECT_GT(shardpack_order_steps(order), 0u);
  EXPECT_GT(std::strlen(shardpack_order_explain(order)), 0u);
  std::vector<uint64_t> ids(Below(9));
  const shardpack_code code =
      shardpack_order_ids(order, Below(3), Below(5), static_cast<uint32_t>(Below(4)), ids.data(),
                          ids.size(), Noting("order_ids"));
  Ok(code, {SHARDPACK_OUT_OF_RANGE, SHARDPACK_INVALID});
  if (Chance(3)) orders_.push_back(shardpack_order_retain(order));
}

void RandomCaller::InspectBatch() {
  if (batches_.empty()) return ReadSamples();
  const HeldBatch& batch = *Pick(batches_);
  auto view = Sized<shardpack_batch_view>();
  if (!Ok(shardpack_batch_view_of(batch.handle, &view, Noting("batch_view_of")))) return;
  for (uint64_t slot = 0; slot < view.slots; ++slot) {
    if (view.ids[slot] == SHARDPACK_PADDING_ID) continue;
    EXPECT_EQ(view.labels[slot], disk_.samples[batch.samples.at(view.ids[slot])].label)
        << History();
  }
  if (batch.readable) InspectSpans(batch, view);
  std::vector<shardpack_crop> crops(view.slots);
  Ok(shardpack_batch_crops(batch.handle, crops.data(), crops.size(), Noting("batch_crops")),
     {SHARDPACK_UNSUPPORTED, SHARDPACK_INVALID, SHARDPACK_STATE});
  uint8_t* masks = nullptr;
  uint64_t bytes = 0, wanted = 0;
  if (Ok(shardpack_batch_masks(batch.handle, "mask", &masks, &bytes, Noting("batch_masks")),
         {SHARDPACK_NOT_FOUND})) {
    EXPECT_EQ(bytes, view.slots * view.width * view.height);
  }
  auto decoded = Sized<shardpack_decoded_field>();
  Ok(shardpack_batch_decoded(batch.handle, "mask", &decoded, Noting("batch_decoded")),
     {SHARDPACK_NOT_FOUND});
  auto objects = Sized<shardpack_objects>();
  Ok(shardpack_batch_objects(batch.handle, &objects, Noting("batch_objects")),
     {SHARDPACK_NOT_FOUND});
  std::vector<double> affine(6 * view.slots);
  Ok(shardpack_batch_affine(batch.handle, affine.data(), view.slots, Noting("batch_affine")),
     {SHARDPACK_UNSUPPORTED});
  std::vector<double> projection(9 * view.slots);
  Ok(shardpack_batch_projection(batch.handle, projection.data(), view.slots,
                                Noting("batch_projection")),
     {SHARDPACK_UNSUPPORTED});
  shardpack_text text = {};
  const uint64_t slot = Below(view.slots + 1);
  const shardpack_code code =
      shardpack_batch_why(batch.handle, slot, &wanted, &text, Noting("batch_why"));
  EXPECT_EQ(code == SHARDPACK_OK, slot < view.slots) << History();
  Ok(code, {SHARDPACK_OUT_OF_RANGE});
  if (Chance(6)) {
    HeldBatch again = batch;
    again.handle = shardpack_batch_retain(batch.handle);
    batches_.push_back(std::move(again));
  }
}

void RandomCaller::InspectSpans(const HeldBatch& batch, const shardpack_batch_view& view) {
  const char* const fields[] = {"image", "mask"};
  const uint64_t field = Below(2);
  std::vector<shardpack_span> spans(view.slots);
  if (!Ok(shardpack_batch_spans(batch.handle, fields[field], spans.data(), spans.size(),
                                Noting("batch_spans")),
          {SHARDPACK_NOT_FOUND})) {
    return;
  }
  for (uint64_t slot = 0; slot < view.slots; ++slot) {
    if (view.ids[slot] == SHARDPACK_PADDING_ID || spans[slot].data == nullptr) continue;
    const uint64_t number = batch.samples.at(view.ids[slot]);
    const TestSample& sample = disk_.samples[number];
    const std::string& expected = field == 0 ? sample.image : sample.more_fields.at(0).second;
    if (number == disk_.damaged) continue;  // perhaps not verified
    EXPECT_EQ(std::string_view(static_cast<const char*>(spans[slot].data), spans[slot].bytes),
              expected)
        << History();
  }
}

void RandomCaller::ExportBatch() {
  if (!exports_.empty() && Chance(2)) {
    auto* const managed = static_cast<DlpackManagedTensor*>(Take(exports_));
    managed->deleter(managed);
    return;
  }
  if (batches_.empty()) return ReadSamples();
  HeldBatch& batch = *Pick(batches_);
  void* managed = nullptr;
  const shardpack_code code = shardpack_batch_dlpack(batch.handle, static_cast<uint32_t>(Below(3)),
                                                     0, &managed, Noting("batch_dlpack"));
  if (Ok(code, {SHARDPACK_NOT_FOUND, SHARDPACK_INVALID, SHARDPACK_STATE}))
    exports_.push_back(managed);
}

void RandomCaller::ReleaseLoader(HeldLoader loader) {
  Noting("loader_release");
  shardpack_loader_release(loader.handle);
}

void RandomCaller::ReleaseSome() {
  const auto too_many = [this](size_t held) {
    return held > kMostHeld || (held > 0 && Chance(30));
  };
  if (too_many(datasets_.size())) shardpack_dataset_release(Take(datasets_).handle);
  if (too_many(orders_.size())) shardpack_order_release(Take(orders_));
  if (too_many(batches_.size())) shardpack_batch_release(Take(batches_).handle);
  if (too_many(loaders_.size())) ReleaseLoader(Take(loaders_));
  if (cursors_.size() > kMostHeld) cursors_.erase(cursors_.begin());
}

void RandomCaller::ReleaseAll() {
  while (!datasets_.empty() || !orders_.empty() || !batches_.empty() || !loaders_.empty()) {
    ReleaseSome();
  }
  for (void* const managed : exports_) {
    auto* const tensor = static_cast<DlpackManagedTensor*>(managed);
    tensor->deleter(tensor);
  }
  exports_.clear();
}

void RandomCaller::SetForked() {
  forked_ = true;
  for (HeldLoader& loader : loaders_) loader.before_fork = true;
  for (HeldBatch& batch : batches_) batch.readable = batch.readable && !batch.page_locked;
  choices_ = Choices(Below(1 << 30));
}

}  // namespace shardpack::testing
