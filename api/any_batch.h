// AnyBatch: what is behind a shardpack_batch: a batch in host memory, or on a device.
//
//   ASSIGN_OR_RETURN(auto* const batch, ContentOf(handle, "batch"));    // shared_ptr<AnyBatch>
//   (*batch)->View(view);
//
// Lifetime: shared by the handle and by the exports of its tensors; views are valid as long as it.
// Thread-safety: const methods from any thread; the others from one at a time.
// Errors: Unimplemented for what a kind of batch does not have.
#ifndef SHARDPACK_API_ANY_BATCH_H_
#define SHARDPACK_API_ANY_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/shardpack.h"
#include "augment/operation.h"
#include "cuda/device/device.h"
#include "cuda/loading/device_batch.h"
#include "readers/loading/host_batch.h"

namespace shardpack::api {

class AnyBatch {
 public:
  AnyBatch() = default;
  virtual ~AnyBatch() = default;
  AnyBatch(const AnyBatch&) = delete;
  AnyBatch& operator=(const AnyBatch&) = delete;

  // Fills all members but `size`, which are zero before.
  virtual void View(shardpack_batch_view& view) const = 0;
  virtual size_t slots() const = 0;
  virtual const SampleStatus& status(size_t slot) const = 0;  // slot < slots()
  virtual uint64_t id(size_t slot) const = 0;
  // OutOfRange past the last field.
  virtual absl::StatusOr<std::string_view> Field(uint32_t n) const = 0;
  // One span a slot; NotFound for an unknown field.
  virtual absl::Status Spans(std::string_view field, std::span<shardpack_span> spans) const = 0;
  // nullopt for a field whose masks are not decoded.
  virtual std::optional<std::span<const std::byte>> Masks(std::string_view) const {
    return std::nullopt;
  }
  virtual absl::Status Crops(std::span<shardpack_crop> crops) const = 0;
  // Text; of padding it is empty. slot < slots().
  virtual absl::StatusOr<std::string> Program(size_t, uint32_t) const {
    return absl::UnimplementedError("only batches that a loader has decoded have programs");
  }
  // Whether the plan may do this operation.
  virtual bool MayDo(OperationKind) const { return false; }
  // nullptr where nothing was decoded, or not in host memory.
  virtual const HostBatch* Decoded() const { return nullptr; }
  // SHARDPACK_PIXELS or SHARDPACK_LABELS; NotFound if there are none.
  virtual absl::StatusOr<DeviceTensor> Tensor(uint32_t what) const = 0;
  virtual absl::Status WaitOn(Stream stream) = 0;
  // Whether it is there within this time; negative: without a limit.
  virtual absl::StatusOr<bool> Synchronize(int64_t wait_ms) = 0;
  virtual absl::Status ReleaseOn(Stream stream) = 0;
};

}  // namespace shardpack::api

#endif  // SHARDPACK_API_ANY_BATCH_H_
