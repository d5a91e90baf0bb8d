// What a DLPack export says, and who releases the batch when.
#include "cuda/loading/dlpack_export.h"

#include <utility>
#include <vector>

#include "cuda/loading/device_loader.h"
#include "cuda/testing/fake_api.h"
#include "cuda/testing/loader_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::ElementsAre;

std::vector<int64_t> Row(const int64_t* values, int32_t count) { return {values, values + count}; }

TEST(DlpackExport, SaysTypeShapeStridesAndDevice) {
  int owners = 0;
  const struct {
    TensorType type;
    DlpackTypeCode code;
    uint8_t bits;
  } kTypes[] = {{TensorType::kU8, kDlpackUInt, 8},
                {TensorType::kF16, kDlpackFloat, 16},
                {TensorType::kBf16, kDlpackBfloat, 16},
                {TensorType::kF32, kDlpackFloat, 32},
                {TensorType::kI64, kDlpackInt, 64}};
  for (const auto& [type, code, bits] : kTypes) {
    ++owners;
    std::shared_ptr<const void> owner(&owners, [&](const void*) { --owners; });
    const DeviceTensor tensor{.data = &owners,
                              .kind = DeviceKind::kCuda,
                              .device = 3,
                              .type = type,
                              .shape = {2, 3, 4, 5},
                              .dimensions = 4};
    DlpackManagedTensorVersioned* const managed = ExportVersioned(tensor, owner, true);
    DlpackManagedTensor* const legacy = ExportLegacy(tensor, std::move(owner));
    for (const DlpackTensor* const each : {&managed->tensor, &legacy->tensor}) {
      EXPECT_EQ(each->data, &owners);
      EXPECT_EQ(each->device.type, kDlpackCuda);
      EXPECT_EQ(each->device.id, 3);
      EXPECT_EQ(each->type.code, code);
      EXPECT_EQ(each->type.bits, bits);
      EXPECT_EQ(each->type.lanes, 1);
      EXPECT_THAT(Row(each->shape, each->dimensions), ElementsAre(2, 3, 4, 5));
      EXPECT_THAT(Row(each->strides, each->dimensions), ElementsAre(60, 20, 5, 1));
      EXPECT_EQ(each->byte_offset, 0u);
    }
    EXPECT_EQ(managed->version.major, 1u);
    EXPECT_EQ(managed->flags, kDlpackReadOnly);
    managed->deleter(managed);
    EXPECT_EQ(owners, 1);
    legacy->deleter(legacy);
    EXPECT_EQ(owners, 0);
  }
}

TEST(DlpackExport, TheLastTensorReleasesTheBatch) {
  const LoaderFixture data("TheLastTensorReleasesTheBatch", {});
  FakeApi fake;
  PinnedMemory memory(fake.api(), {.log = nullptr});
  auto loader = DeviceLoader::Open(
      data.Open(memory, data.Options(0)),
      {.prefetch_batches = 0, .patience = std::chrono::milliseconds(60), .log = nullptr},
      fake.api());
  ASSERT_TRUE(loader.ok()) << loader.status();
  std::vector<DlpackManagedTensorVersioned*> exported;
  for (int i = 0; i < 2; ++i) {
    auto batch = std::make_shared<DeviceBatch>(**loader->Next());
    ASSERT_TRUE(batch->WaitOn(nullptr).ok());
    exported.push_back(ExportVersioned(*batch->pixels(), batch));
    exported.push_back(ExportVersioned(*batch->labels(), batch));
  }
  EXPECT_EQ(loader->Next().status().code(), absl::StatusCode::kDeadlineExceeded);
  exported[0]->deleter(exported[0]);
  EXPECT_EQ(loader->Next().status().code(), absl::StatusCode::kDeadlineExceeded);
  const uint64_t records = fake.calls("event_record");
  exported[1]->deleter(exported[1]);
  EXPECT_GT(fake.calls("event_record"), records) << "released on the stream that waited";
  EXPECT_TRUE(loader->Next().ok());
  for (int i = 2; i < 4; ++i) exported[i]->deleter(exported[i]);
}

TEST(DlpackExport, HostBatchesToo) {
  const LoaderFixture data("HostBatchesToo", {});
  PageableMemory memory;
  LoaderOptions options = data.Options();
  options.decode->output = {.type = PixelType::kF32, .layout = PixelLayout::kNchw};
  Loader loader = data.Open(memory, options);
  const auto batch = std::make_shared<HostBatch>(**loader.Next());
  const DeviceTensor pixels = HostPixels(*batch);
  EXPECT_EQ(pixels.type, TensorType::kF32);
  EXPECT_THAT(pixels.shape, ElementsAre(8, 3, LoaderFixture::kHeight, LoaderFixture::kWidth));
  EXPECT_EQ(DlpackDeviceOf(pixels).type, kDlpackCpu);
  EXPECT_EQ(HostLabels(*batch).shape[0], 8);
  DlpackManagedTensorVersioned* const managed = ExportVersioned(pixels, batch, true);
  EXPECT_EQ(batch.use_count(), 2);
  managed->deleter(managed);
  EXPECT_EQ(batch.use_count(), 1);
}

}  // namespace
}  // namespace shardpack
