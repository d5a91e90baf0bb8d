#include "cuda/loading/dlpack_export.h"

#include <array>
#include <utility>

namespace shardpack {
namespace {

// An export with what it points to.
template <typename Managed>
struct Exported {
  Managed managed = {};
  std::array<int64_t, 5> shape = {}, strides = {};
  std::shared_ptr<const void> owner;
};

DlpackDataType DataTypeOf(TensorType type) {
  switch (type) {
    case TensorType::kU8:
      return {kDlpackUInt, 8, 1};
    case TensorType::kF16:
      return {kDlpackFloat, 16, 1};
    case TensorType::kBf16:
      return {kDlpackBfloat, 16, 1};
    case TensorType::kF32:
      return {kDlpackFloat, 32, 1};
    case TensorType::kI64:
      return {kDlpackInt, 64, 1};
  }
  return {kDlpackUInt, 8, 1};
}

template <typename Managed>
Managed* Export(const DeviceTensor& tensor, std::shared_ptr<const void> owner) {
  auto* const made = new Exported<Managed>();
  made->owner = std::move(owner);
  made->shape = tensor.shape;
  int64_t stride = 1;
  for (uint32_t i = tensor.dimensions; i-- > 0;) {
    made->strides[i] = stride;
    stride *= tensor.shape[i];
  }
  made->managed.tensor = {.data = tensor.data,
                          .device = DlpackDeviceOf(tensor),
                          .dimensions = static_cast<int32_t>(tensor.dimensions),
                          .type = DataTypeOf(tensor.type),
                          .shape = made->shape.data(),
                          .strides = made->strides.data(),
                          .byte_offset = 0};
  made->managed.context = made;
  made->managed.deleter = [](Managed* self) {
    if (self != nullptr) delete static_cast<Exported<Managed>*>(self->context);
  };
  return &made->managed;
}

}  // namespace

DlpackDevice DlpackDeviceOf(const DeviceTensor& tensor) {
  if (tensor.kind == DeviceKind::kCuda) return {kDlpackCuda, tensor.device};
  return {kDlpackCpu, 0};
}

DlpackManagedTensorVersioned* ExportVersioned(const DeviceTensor& tensor,
                                              std::shared_ptr<const void> owner, bool read_only) {
  auto* const managed = Export<DlpackManagedTensorVersioned>(tensor, std::move(owner));
  managed->version = kDlpackVersion;
  managed->flags = read_only ? kDlpackReadOnly : 0;
  return managed;
}

DlpackManagedTensor* ExportLegacy(const DeviceTensor& tensor, std::shared_ptr<const void> owner) {
  return Export<DlpackManagedTensor>(tensor, std::move(owner));
}

}  // namespace shardpack
