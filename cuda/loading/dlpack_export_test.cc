// What a DLPack export says, and when the batch is released.
#include "cuda/loading/dlpack_export.h"

#include <utility>
#include <vector>

#include "cuda/loading/device_loader.h"
#include "cuda/testing/fake_device.h"
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
  FakeDevice fake;
  PinnedMemory memory(fake, {.log = nullptr});
  auto loader = DeviceLoader::Open(
      data.Open(memory, data.Options(0)),
      {.prefetch_batches = 0, .patience = std::chrono::milliseconds(60), .log = nullptr}, fake);
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
  const uint64_t records = fake.calls("RecordEvent");
  exported[1]->deleter(exported[1]);
  EXPECT_GT(fake.calls("RecordEvent"), records) << "released on the stream that waited";
  EXPECT_TRUE(loader->Next().ok());
  for (int i = 2; i < 4; ++i) exported[i]->deleter(exported[i]);
}

}  // namespace
}  // namespace shardpack
