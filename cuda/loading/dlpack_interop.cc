// A shared library for dlpack_interop.py: batches in host memory (HostDevice) as DLPack capsules
// are made of them, without a Python module.
#include <cstdio>

#include "cuda/device/host_device.h"
#include "cuda/loading/device_loader.h"
#include "cuda/loading/dlpack_export.h"
#include "cuda/testing/loader_fixture.h"

namespace shardpack {
namespace {

struct State {
  LoaderFixture data{"dlpack_interop", {}};
  PinnedMemory memory{HostDevice::Get(), {.log = nullptr}};
  std::optional<DeviceLoader> loader;
  std::shared_ptr<DeviceBatch> batch;
};
State* state = nullptr;

constexpr PixelType kTypes[] = {PixelType::kU8, PixelType::kF32, PixelType::kF16, PixelType::kBf16};

}  // namespace

extern "C" {

// `type` is an index of kTypes; without `nchw`, NHWC. Returns 0 on success.
int ShardpackOpen(int type, int nchw) {
  if (state == nullptr) state = new State();
  state->batch.reset();
  state->loader.reset();
  DeviceOptions options{.patience = std::chrono::milliseconds(200), .log = nullptr};
  options.preprocess =
      DevicePreprocess{.output = {.type = kTypes[type],
                                  .layout = nchw != 0 ? PixelLayout::kNchw : PixelLayout::kNhwc}};
  auto loader = DeviceLoader::Open(state->data.Open(state->memory, state->data.Options(0)), options,
                                   HostDevice::Get());
  if (!loader.ok()) return 1;
  state->loader = *std::move(loader);
  return 0;
}

// Returns 0 if there is a batch, 1 if all buffers are held.
int ShardpackNext() {
  state->batch.reset();
  auto batch = state->loader->Next();
  while (batch.ok() && !batch->has_value()) batch = state->loader->Next();
  if (!batch.ok()) return 1;
  state->batch = std::make_shared<DeviceBatch>(**std::move(batch));
  return 0;
}

void* ShardpackVersioned(int labels) {
  return ExportVersioned(labels != 0 ? *state->batch->labels() : *state->batch->pixels(),
                         state->batch);
}
void* ShardpackLegacy(int labels) {
  return ExportLegacy(labels != 0 ? *state->batch->labels() : *state->batch->pixels(),
                      state->batch);
}
const void* ShardpackData(int labels) {
  return (labels != 0 ? state->batch->labels() : state->batch->pixels())->data;
}
int64_t ShardpackLabel(int slot) { return state->batch->info().labels[slot]; }
// Lets go of the batch; exports keep it.
void ShardpackDrop() { state->batch.reset(); }
void ShardpackDelete(void* managed, int versioned) {
  if (versioned != 0) {
    auto* const tensor = static_cast<DlpackManagedTensorVersioned*>(managed);
    tensor->deleter(tensor);
  } else {
    auto* const tensor = static_cast<DlpackManagedTensor*>(managed);
    tensor->deleter(tensor);
  }
}
void ShardpackClose() {
  delete state;
  state = nullptr;
}

}  // extern "C"
}  // namespace shardpack
