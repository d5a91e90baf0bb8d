// The calls of RandomCaller that are wrong in a way that the header defines: what is missing, of no
// size, past what there is, or of no meaning is refused, whatever the handle is doing meanwhile.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "tests/api/random_caller.h"

namespace shardpack::testing {

void RandomCaller::Refused(shardpack_code code, Codes codes) {
  EXPECT_NE(code, SHARDPACK_OK) << History();
  Ok(code, codes.size() > 0 ? codes : Codes{SHARDPACK_INVALID});
}

void RandomCaller::Misuse() {
  switch (Below(5)) {
    case 0:
      return MisuseDataset();
    case 1:
      return MisuseOrder();
    case 2:
      return MisuseLoader();
    case 3:
      return MisuseBatch();
    default:
      return MisuseNothing();
  }
}

// A size of which no version had a struct.
size_t RandomCaller::WrongSize(size_t right) {
  const size_t sizes[] = {0, 4, right - 1, SIZE_MAX};
  return sizes[Below(4)];
}

void RandomCaller::MisuseDataset() {
  if (datasets_.empty()) return OpenDataset();
  const HeldDataset& dataset = *Pick(datasets_);
  const uint64_t past[] = {0, dataset.samples.size() + Below(3)};
  shardpack_dataset* made = nullptr;
  shardpack_batch* batch = nullptr;
  auto info = Sized<shardpack_dataset_info>();
  switch (Below(6)) {
    case 0:
      Refused(shardpack_dataset_select(dataset.handle, nullptr, 1 + Below(3), &made,
                                       Noting("dataset_select(NULL)")));
      break;
    case 1:
      Refused(shardpack_dataset_read(dataset.handle, past, 2, nullptr, 0, &batch,
                                     Noting("dataset_read(past the end)")),
              {SHARDPACK_OUT_OF_RANGE});
      break;
    case 2:
      Refused(shardpack_dataset_read(dataset.handle, past, 1, nullptr, 1 + Below(2), &batch,
                                     Noting("dataset_read(no fields)")));
      break;
    case 3: {
      const shardpack_dataset* const parts[] = {dataset.handle, nullptr};
      Refused(shardpack_dataset_join(parts, 2, &made, Noting("dataset_join(NULL)")));
      break;
    }
    case 4:
      info.size = WrongSize(info.size);
      Refused(shardpack_dataset_info_of(dataset.handle, &info, Noting("dataset_info_of(size)")));
      break;
    default:
      Refused(shardpack_dataset_split(dataset.handle, "no such split", &made,
                                      Noting("dataset_split(unknown)")),
              {SHARDPACK_NOT_FOUND});
  }
  EXPECT_EQ(made, nullptr) << History();
  EXPECT_EQ(batch, nullptr) << History();
}

void RandomCaller::MisuseOrder() {
  auto options = Sized<shardpack_order_options>();
  options.global_batch = 4;
  switch (Below(3)) {
    case 0:
      options.size = WrongSize(options.size);
      break;
    case 1:
      options.tail = 77;
      break;
    default:
      options.mode = UINT32_MAX;
  }
  shardpack_order* made = nullptr;
  Refused(shardpack_order_make(20, &options, &made, Noting("order_make(wrong)")));
  EXPECT_EQ(made, nullptr) << History();
}

void RandomCaller::MisuseLoader() {
  if (datasets_.empty() || orders_.empty()) return MakeOrder();
  auto options = Sized<shardpack_loader_options>();
  shardpack_loader* made = nullptr;
  shardpack_batch* batch = nullptr;
  HeldLoader* const loader = Pick(loaders_);
  switch (Below(loader == nullptr ? 3 : 5)) {
    case 0:
      options.size = WrongSize(options.size);
      break;
    case 1:
      options.cursor = "no cursor";
      break;
    case 2:
      options.world_size = 2;
      options.rank = 2;
      break;
    case 3:
      return Refused(
          shardpack_loader_next(loader->handle, -2, &batch, Noting("loader_next(wait -2)")));
    default:
      return Refused(
          shardpack_loader_next(loader->handle, 0, nullptr, Noting("loader_next(NULL)")));
  }
  Refused(shardpack_loader_open(Pick(datasets_)->handle, *Pick(orders_), &options, &made,
                                Noting("loader_open(wrong)")));
  EXPECT_EQ(made, nullptr) << History();
}

void RandomCaller::MisuseBatch() {
  if (batches_.empty()) return ReadSamples();
  const HeldBatch& batch = *Pick(batches_);
  auto view = Sized<shardpack_batch_view>();
  if (!Ok(shardpack_batch_view_of(batch.handle, &view, Noting("batch_view_of")))) return;
  // One more than there are slots: nothing may be written to the last one.
  std::vector<shardpack_span> spans(view.slots + 1, {&view, 77});
  shardpack_text text = {};
  void* managed = nullptr;
  switch (Below(5)) {
    case 0:
      view.size = WrongSize(view.size);
      return Refused(shardpack_batch_view_of(batch.handle, &view, Noting("batch_view_of(size)")));
    case 1:
      Refused(shardpack_batch_spans(batch.handle, nullptr, spans.data(), spans.size(),
                                    Noting("batch_spans(count)")),
              {SHARDPACK_INVALID, SHARDPACK_NOT_FOUND, SHARDPACK_STATE});
      EXPECT_EQ(spans.back().bytes, 77u) << History();
      return;
    case 2:
      return Refused(shardpack_batch_field(batch.handle, view.fields + 1, &text,
                                           Noting("batch_field(past the end)")),
                     {SHARDPACK_OUT_OF_RANGE});
    case 3:
      return Refused(shardpack_batch_dlpack(batch.handle, 2 + static_cast<uint32_t>(Below(9)), 1,
                                            &managed, Noting("batch_dlpack(unknown)")),
                     {SHARDPACK_INVALID, SHARDPACK_NOT_FOUND});
    default:
      return Refused(
          shardpack_batch_dlpack(batch.handle, 0, 1, nullptr, Noting("batch_dlpack(NULL)")));
  }
}

// Of handles that are not there.
void RandomCaller::MisuseNothing() {
  shardpack_dataset* dataset = nullptr;
  shardpack_batch* batch = nullptr;
  switch (Below(5)) {
    case 0:
      return Refused(shardpack_loader_next(nullptr, 0, &batch, Noting("loader_next(no loader)")));
    case 1:
      return Refused(shardpack_dataset_read(nullptr, nullptr, 0, nullptr, 0, &batch,
                                            Noting("dataset_read(no dataset)")));
    case 2:
      return Refused(
          shardpack_dataset_open("/no/such/folder", &dataset, Noting("dataset_open(nowhere)")),
          {SHARDPACK_NOT_FOUND});
    case 3:
      return Refused(
          shardpack_dataset_map_shards(nullptr, 1, Noting("dataset_map_shards(no dataset)")));
    default:
      shardpack_batch_release(nullptr);
      shardpack_loader_release(nullptr);
      shardpack_order_release(nullptr);
      shardpack_dataset_release(nullptr);
      shardpack_error_free(nullptr);
  }
}

}  // namespace shardpack::testing
