// ApiTest: a small dataset of JPEGs, and the C interface with its errors as test failures.
//
//   const DatasetHandle dataset = Open();
//   const OrderHandle order = MakeOrder({.size = sizeof(shardpack_order_options)});
//   EXPECT_EQ(shardpack_loader_next(loader.get(), -1, &batch, Error()), SHARDPACK_OK) << Why();
//
// Lifetime: the dataset's folder goes with the test.
#ifndef SHARDPACK_TESTS_API_FIXTURE_H_
#define SHARDPACK_TESTS_API_FIXTURE_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/shardpack.h"
#include "formats/io/file.h"
#include "formats/testing/datasets/test_dataset.h"
#include "formats/testing/fault_injection.h"
#include "gtest/gtest.h"
#include "readers/dataset/dataset.h"
#include "tests/api/dataset_on_disk.h"

namespace shardpack::testing {

template <auto release>
struct Releaser {
  template <typename H>
  void operator()(H* handle) const {
    release(handle);
  }
};
using DatasetHandle = std::unique_ptr<shardpack_dataset, Releaser<shardpack_dataset_release>>;
using OrderHandle = std::unique_ptr<shardpack_order, Releaser<shardpack_order_release>>;
using LoaderHandle = std::unique_ptr<shardpack_loader, Releaser<shardpack_loader_release>>;
using BatchHandle = std::unique_ptr<shardpack_batch, Releaser<shardpack_batch_release>>;
using OwnedText = std::unique_ptr<char, Releaser<shardpack_text_free>>;

inline std::string_view Text(shardpack_text text) { return {text.data, text.size}; }

class ApiTest : public ::testing::Test {
 protected:
  ApiTest()
      : folder_(MakeTestFolder(::testing::UnitTest::GetInstance()->current_test_info()->name())) {}
  ~ApiTest() override {
    shardpack_error_free(error_);
    (void)RemoveTree(folder_);
  }

  void Make(size_t shards = 3, size_t records_per_shard = 10, bool masks = false) {
    samples_ = WriteJpegs(folder_, {shards, records_per_shard, masks});
    reference_.emplace(*Dataset::Open(folder_));
  }

  // For the last argument of a call; Why() is the error it left.
  shardpack_error** Error() {
    shardpack_error_free(error_);
    error_ = nullptr;
    return &error_;
  }
  std::string Why() const { return shardpack_error_message(error_); }
  shardpack_error_info Info() const {
    shardpack_error_info info = {};
    info.size = sizeof(info);
    EXPECT_EQ(shardpack_error_info_of(error_, &info), SHARDPACK_OK);
    return info;
  }

  DatasetHandle Open() {
    shardpack_dataset* dataset = nullptr;
    EXPECT_EQ(shardpack_dataset_open(folder_.c_str(), &dataset, Error()), SHARDPACK_OK) << Why();
    return DatasetHandle(dataset);
  }
  static shardpack_order_options OrderOptions(uint32_t global_batch = 8) {
    shardpack_order_options options = {};
    options.size = sizeof(options);
    options.seed = 2;
    options.global_batch = global_batch;
    options.tail = SHARDPACK_TAIL_PAD;
    return options;
  }
  OrderHandle MakeOrder(const shardpack_order_options& options = OrderOptions()) {
    shardpack_order* order = nullptr;
    EXPECT_EQ(shardpack_order_make(samples_.size(), &options, &order, Error()), SHARDPACK_OK)
        << Why();
    return OrderHandle(order);
  }
  static shardpack_loader_options LoaderOptions() {
    shardpack_loader_options options = {};
    options.size = sizeof(options);
    options.threads = 2;
    options.augment_seed = 11;
    return options;
  }
  static shardpack_decode Decode() {
    shardpack_decode decode = {};
    decode.size = sizeof(decode);
    decode.width = 32;
    decode.height = 24;
    decode.flip_probability = 0.5;
    return decode;
  }
  LoaderHandle OpenLoader(const shardpack_loader_options& options = LoaderOptions()) {
    const DatasetHandle dataset = Open();
    const OrderHandle order = MakeOrder();
    shardpack_loader* loader = nullptr;
    EXPECT_EQ(shardpack_loader_open(dataset.get(), order.get(), &options, &loader, Error()),
              SHARDPACK_OK)
        << Why();
    return LoaderHandle(loader);
  }
  // Null at the end of an epoch, and after an error.
  BatchHandle Next(const LoaderHandle& loader) {
    shardpack_batch* batch = nullptr;
    code_ = shardpack_loader_next(loader.get(), -1, &batch, Error());
    return BatchHandle(batch);
  }
  static shardpack_batch_view View(const BatchHandle& batch) {
    shardpack_batch_view view = {};
    view.size = sizeof(view);
    EXPECT_EQ(shardpack_batch_view_of(batch.get(), &view, nullptr), SHARDPACK_OK);
    return view;
  }
  static std::string Bytes(const BatchHandle& batch, size_t slot, const char* field = nullptr) {
    std::vector<shardpack_span> spans(View(batch).slots);
    EXPECT_EQ(shardpack_batch_spans(batch.get(), field, spans.data(), spans.size(), nullptr),
              SHARDPACK_OK);
    return std::string(static_cast<const char*>(spans.at(slot).data), spans.at(slot).bytes);
  }
  void Damage(uint64_t id) const { DamageImage(*reference_, id); }

  const ScopedSyscalls restored_;
  std::string folder_;
  std::vector<TestSample> samples_;
  std::optional<Dataset> reference_;
  shardpack_error* error_ = nullptr;
  shardpack_code code_ = SHARDPACK_OK;  // of Next
};

}  // namespace shardpack::testing

#endif  // SHARDPACK_TESTS_API_FIXTURE_H_
