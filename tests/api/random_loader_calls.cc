// The calls of RandomCaller about loaders and devices, and what callers share.
#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/api/random_caller.h"

namespace shardpack::testing {

shardpack_decode RandomCaller::RandomDecode() {
  auto decode = Sized<shardpack_decode>();
  decode.width = 1 + static_cast<uint32_t>(Below(40));
  decode.height = 1 + static_cast<uint32_t>(Below(40));
  decode.crop = static_cast<uint32_t>(Below(3));
  decode.flip_probability = 0.5;
  decode.type = static_cast<uint32_t>(Below(4));
  decode.layout = static_cast<uint32_t>(Below(2));
  if (Chance(10)) decode.min_scale = 3;
  return decode;
}

void RandomCaller::CheckDecode() {
  const shardpack_decode decode = RandomDecode();
  const bool good = decode.min_scale <= 1 || decode.crop != SHARDPACK_RANDOM_RESIZED;
  const shardpack_code code = shardpack_decode_check(&decode, Noting("decode_check"));
  EXPECT_EQ(code == SHARDPACK_OK, good) << History();
  Ok(code, {SHARDPACK_INVALID});
}

// Of a sample, with some bytes of it changed, or less of it, or facts of another one.
void RandomCaller::DecodeImage() {
  std::string bytes = disk_.samples[Below(disk_.samples.size())].image;
  auto info = Sized<shardpack_image_info>();
  const shardpack_code sound =
      shardpack_image_info_of(bytes.data(), bytes.size(), 0, &info, Noting("image_info_of"));
  if (!Ok(sound)) return;
  const size_t changes = Below(4);
  for (size_t i = 0; i < changes; ++i) bytes[Below(bytes.size())] = static_cast<char>(Below(256));
  if (Chance(4)) bytes.resize(1 + Below(bytes.size()));
  if (Chance(8)) info.stored.format = static_cast<uint8_t>(Below(256));
  if (Chance(8)) info.stored.channels = static_cast<uint8_t>(Below(256));
  if (Chance(8)) info.stored.orientation = static_cast<uint8_t>(Below(256));
  const uint32_t channels = Chance(2) ? 1 : 3;
  const size_t wanted = size_t{info.width} * info.height * channels;
  std::vector<uint8_t> pixels(wanted + 1, 77);
  const size_t given = Chance(8) ? wanted - Below(2) * wanted / 2 : wanted;
  const shardpack_code code =
      shardpack_image_decode(bytes.data(), bytes.size(), Chance(3) ? nullptr : &info.stored,
                             channels, pixels.data(), given, Noting("image_decode"));
  EXPECT_EQ(pixels.back(), 77) << History();
  Ok(code, {SHARDPACK_DATA_LOSS, SHARDPACK_INVALID, SHARDPACK_UNSUPPORTED, SHARDPACK_NO_MEMORY});
}

void RandomCaller::OpenLoader() {
  if (datasets_.empty()) return OpenDataset();
  if (orders_.empty()) return MakeOrder();
  const HeldDataset& dataset = *Pick(datasets_);
  auto options = Sized<shardpack_loader_options>();
  const shardpack_decode decode = RandomDecode();
  const char* const mask[] = {"mask"};
  const char* const fields[] = {"image", "mask"};
  if (Chance(2)) options.decode = &decode;
  if (Chance(3)) options.decode_fields = mask;
  options.decode_field_count = options.decode_fields == nullptr ? 0 : 1;
  if (Chance(2)) options.fields = fields;
  options.field_count = options.fields == nullptr ? 0 : 1 + Below(2);
  if (!cursors_.empty() && Chance(4)) options.cursor = Pick(cursors_)->c_str();
  options.threads = 1 + static_cast<int32_t>(Below(3));
  options.io_threads = static_cast<int32_t>(Below(3)) - 1;
  options.epochs = Below(3);
  options.memory_bytes = Chance(2) ? 100'000 : 0;
  options.bad_samples = static_cast<uint32_t>(Below(2));
  options.no_verify = Chance(5) ? 1 : 0;
  options.world_size = 1 + static_cast<uint32_t>(Below(2));
  options.rank = static_cast<uint32_t>(Below(options.world_size));
  shardpack_device* device = nullptr;
  if (!forked_ && Chance(4)) {
    if (!Ok(shardpack_device_open("cpu", &device, Noting("device_open")))) return;
    options.device = device;
    options.memory_bytes = 0;  // page-locked memory is no more than this, whatever is needed
  }
  HeldLoader made = {.samples = dataset.samples, .page_locked = device != nullptr};
  const shardpack_code code = shardpack_loader_open(dataset.handle, *Pick(orders_), &options,
                                                    &made.handle, Noting("loader_open"));
  shardpack_device_release(device);
  if (Ok(code, {SHARDPACK_INVALID})) loaders_.push_back(std::move(made));
}

void RandomCaller::NextBatch(const HeldLoader& loader) {
  const int64_t waits[] = {0, 1, 20, -1};
  const int64_t wait_ms = waits[Below(loader.device ? 3 : 4)];
  HeldBatch made = {
      .samples = loader.samples, .readable = !loader.device, .page_locked = loader.page_locked};
  const shardpack_code code =
      shardpack_loader_next(loader.handle, wait_ms, &made.handle, Noting("loader_next"));
  EXPECT_EQ(made.handle != nullptr, code == SHARDPACK_OK) << History();
  if (forked_ && loader.before_fork) {
    EXPECT_EQ(code, SHARDPACK_STATE) << History();
    Ok(code, {SHARDPACK_STATE});
  } else {
    Ok(code, {SHARDPACK_END, SHARDPACK_WAIT, SHARDPACK_DATA_LOSS, SHARDPACK_CANCELLED,
              SHARDPACK_STATE, SHARDPACK_TIMEOUT, SHARDPACK_INVALID, SHARDPACK_UNSUPPORTED});
  }
  if (made.handle != nullptr) batches_.push_back(std::move(made));
}

void RandomCaller::UseLoader(const HeldLoader& loader) {
  switch (Below(6)) {
    case 0:
      if (loader.next == nullptr) {
        Ok(shardpack_loader_seek(loader.handle, Below(3), Below(6), Noting("loader_seek")),
           {SHARDPACK_INVALID, SHARDPACK_UNSUPPORTED, SHARDPACK_STATE, SHARDPACK_CANCELLED});
      }
      return;
    case 1:
      return End(loader);
    case 2:
      Ok(shardpack_loader_opened(loader.handle, static_cast<int64_t>(Below(3)),
                                 Noting("loader_opened")),
         {SHARDPACK_WAIT, SHARDPACK_STATE, SHARDPACK_CANCELLED, SHARDPACK_DATA_LOSS,
          SHARDPACK_INVALID, SHARDPACK_UNSUPPORTED});
      return;
    default:
      return Watch(loader);
  }
}

void RandomCaller::Watch(const HeldLoader& loader) {
  char* text = nullptr;
  uint64_t epoch = 0, step = 0;
  switch (Below(5)) {
    case 0:
      Ok(shardpack_loader_position(loader.handle, &epoch, &step, Noting("loader_position")),
         {SHARDPACK_STATE});
      return;
    case 1:
      if (Ok(shardpack_loader_cursor(loader.handle, &text, Noting("loader_cursor")),
             {SHARDPACK_STATE})) {
        cursors_.emplace_back(text);
      }
      break;
    case 2:
      Ok(shardpack_loader_stats_json(loader.handle, &text, Noting("loader_stats_json")),
         {SHARDPACK_STATE});
      break;
    case 3:
      Ok(shardpack_loader_explain(loader.handle, &text, Noting("loader_explain")),
         {SHARDPACK_STATE});
      break;
    default:
      Ok(shardpack_loader_take_bad_samples_json(loader.handle, &text,
                                                Noting("loader_take_bad_samples_json")),
         {SHARDPACK_STATE});
  }
  shardpack_text_free(text);
}

void RandomCaller::End(const HeldLoader& loader) {
  if (Chance(2)) {
    Noting("loader_stop");
    shardpack_loader_stop(loader.handle);
  } else {
    const int64_t wait_ms = static_cast<int64_t>(Below(3)) - 1;
    Ok(shardpack_loader_close(loader.handle, wait_ms, Noting("loader_close")),
       {SHARDPACK_WAIT, SHARDPACK_STATE});
  }
}

void RandomCaller::UseDevice() {
  if (forked_) return;
  if (!batches_.empty() && Chance(2)) {
    HeldBatch& batch = *Pick(batches_);
    if (Chance(2)) {
      Ok(shardpack_batch_wait_on(batch.handle, nullptr, Noting("batch_wait_on")),
         {SHARDPACK_STATE});
      Ok(shardpack_batch_synchronize(batch.handle, static_cast<int64_t>(Below(3)) - 1,
                                     Noting("batch_synchronize")),
         {SHARDPACK_STATE, SHARDPACK_WAIT});
    } else if (exports_.empty() && shared_ == nullptr) {  // nobody else uses it
      Ok(shardpack_batch_release_on(batch.handle, nullptr, Noting("batch_release_on")),
         {SHARDPACK_STATE, SHARDPACK_UNSUPPORTED});
    }
    return;
  }
  shardpack_device* device = nullptr;
  if (!Ok(shardpack_device_open("cpu", &device, Noting("device_open")))) return;
  auto info = Sized<shardpack_device_info>();
  Ok(shardpack_device_info_of(device, &info, Noting("device_info_of")));
  if (Chance(3)) {
    OpenResident(device);
  } else {
    ToDevice(device);
  }
  shardpack_device_release(device);
}

void RandomCaller::ToDevice(shardpack_device* device) {
  if (loaders_.empty()) return OpenLoader();
  HeldLoader& loader = *Pick(loaders_);
  auto options = Sized<shardpack_device_options>();
  options.patience_ms = 200;
  HeldLoader made = {.samples = loader.samples, .device = true};
  const shardpack_code code = shardpack_loader_to_device(loader.handle, device, &options,
                                                         &made.handle, Noting("loader_to_device"));
  if (!Ok(code, {SHARDPACK_INVALID, SHARDPACK_UNSUPPORTED, SHARDPACK_STATE})) return;
  loaders_.push_back(std::move(made));
}

void RandomCaller::OpenResident(shardpack_device* device) {
  if (datasets_.empty() || orders_.empty()) return MakeOrder();
  const HeldDataset& dataset = *Pick(datasets_);
  auto options = Sized<shardpack_resident_options>();
  options.width = options.height = 8;
  options.threads = 1;
  HeldLoader made = {.samples = dataset.samples, .device = true};
  const shardpack_code code = shardpack_resident_open(
      dataset.handle, *Pick(orders_), device, &options, &made.handle, Noting("resident_open"));
  if (Ok(code, {SHARDPACK_INVALID})) loaders_.push_back(std::move(made));
}

// Gives to other callers, takes from them, or uses what all have.
void RandomCaller::Share() {
  if (shared_ == nullptr) return;
  HeldLoader* loader = nullptr;
  {
    const std::lock_guard lock(shared_->mutex);
    if (!datasets_.empty() && Chance(2)) {
      HeldDataset& slot = *Pick(shared_->datasets);
      std::swap(slot, *Pick(datasets_));
    }
    if (!batches_.empty() && !shared_->batches.empty() && Chance(2)) {
      // A further reference: both have it now.
      HeldBatch copy = *Pick(batches_);
      shardpack_batch_retain(copy.handle);
      std::swap(copy, *Pick(shared_->batches));
      batches_.push_back(std::move(copy));
    }
    loader = Pick(shared_->loaders);
  }
  if (loader == nullptr) return;
  const std::unique_lock turn(*loader->next, std::try_to_lock);
  if (turn.owns_lock()) {
    NextBatch(*loader);
  } else {
    Watch(*loader);
  }
}

void RandomCaller::OpenShared(int loaders) {
  for (int i = 0; i < 4; ++i) {
    OpenDataset();
    shared_->datasets.push_back(Take(datasets_));
  }
  OpenDataset();
  const HeldDataset dataset = Take(datasets_);
  auto how = Sized<shardpack_order_options>();
  how.global_batch = 4;
  shardpack_order* order = nullptr;
  Ok(shardpack_order_make(dataset.samples.size(), &how, &order, Noting("order_make")));
  for (int i = 0; i < loaders; ++i) {
    HeldLoader made = {.samples = dataset.samples};
    made.next = std::make_shared<std::mutex>();
    auto options = Sized<shardpack_loader_options>();
    options.threads = 2;
    options.bad_samples = SHARDPACK_BAD_SUBSTITUTE;
    options.max_bad_samples = 1'000'000;
    Ok(shardpack_loader_open(dataset.handle, order, &options, &made.handle, Noting("loader_open")));
    HeldBatch first = {.samples = dataset.samples};
    Ok(shardpack_loader_next(made.handle, -1, &first.handle, Noting("loader_next")));
    shared_->loaders.push_back(std::move(made));
    shared_->batches.push_back(std::move(first));
  }
  shardpack_order_release(order);
  shardpack_dataset_release(dataset.handle);
}

}  // namespace shardpack::testing
