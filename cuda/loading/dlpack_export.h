// DLPack: hands a tensor of a batch to another library without a copy.
//
//   auto batch = std::make_shared<DeviceBatch>(*std::move(next));
//   batch->WaitOn(consumer_stream);
//   DlpackManagedTensorVersioned* managed = ExportVersioned(*batch->pixels(), batch);
//
// The structures are those of DLPack 1.1, include/dlpack/dlpack.h of github.com/dmlc/dlpack (Apache
// License 2.0), of which these are our own definitions.
//
// Lifetime: an export shares the owner until its consumer calls its deleter, once; the last share
// of a DeviceBatch releases it, on the stream of its last WaitOn.
// Thread-safety: exports from any thread; deleters from any thread, but not while another one uses
// the batch.
// Units: elements; strides are in elements too.
#ifndef SHARDPACK_CUDA_LOADING_DLPACK_EXPORT_H_
#define SHARDPACK_CUDA_LOADING_DLPACK_EXPORT_H_

#include <cstdint>
#include <memory>

#include "cuda/loading/device_batch.h"

namespace shardpack {

struct DlpackVersion {
  uint32_t major, minor;
};

inline constexpr DlpackVersion kDlpackVersion = {1, 1};

enum DlpackDeviceType : int32_t { kDlpackCpu = 1, kDlpackCuda = 2 };

struct DlpackDevice {
  DlpackDeviceType type;
  int32_t id;
};

enum DlpackTypeCode : uint8_t {
  kDlpackInt = 0,
  kDlpackUInt = 1,
  kDlpackFloat = 2,
  kDlpackBfloat = 4,
};

struct DlpackDataType {
  uint8_t code, bits;
  uint16_t lanes;
};

struct DlpackTensor {
  void* data;
  DlpackDevice device;
  int32_t dimensions;
  DlpackDataType type;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};

// DLManagedTensor, for consumers that do not ask for a version.
struct DlpackManagedTensor {
  DlpackTensor tensor;
  void* context;
  void (*deleter)(DlpackManagedTensor* self);
};

inline constexpr uint64_t kDlpackReadOnly = 1;

struct DlpackManagedTensorVersioned {
  DlpackVersion version;
  void* context;
  void (*deleter)(DlpackManagedTensorVersioned* self);
  uint64_t flags;
  DlpackTensor tensor;
};

static_assert(sizeof(DlpackTensor) == 48 && sizeof(DlpackManagedTensor) == 64 &&
              sizeof(DlpackManagedTensorVersioned) == 80);

// For __dlpack_device__.
DlpackDevice DlpackDeviceOf(const DeviceTensor& tensor);

// `owner` keeps the tensor's memory. The legacy form cannot say that a tensor is read-only.
DlpackManagedTensorVersioned* ExportVersioned(const DeviceTensor& tensor,
                                              std::shared_ptr<const void> owner,
                                              bool read_only = false);
DlpackManagedTensor* ExportLegacy(const DeviceTensor& tensor, std::shared_ptr<const void> owner);

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_LOADING_DLPACK_EXPORT_H_
