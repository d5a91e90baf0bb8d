// What DeviceLoader::Open does: the sizes from the first batch, and all memory.
#include <string>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cuda/loading/device_augment.h"
#include "cuda/loading/device_loader_core.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

// Slots of the uploader: one copy runs while the next one waits. More would only keep more of the
// Loader's memory.
constexpr size_t kUploads = 2;

absl::Status NotAugmentedThere(const std::string& why) {
  return absl::UnimplementedError(absl::StrCat("augmentation on the device: ", why));
}

}  // namespace

absl::Status DeviceLoader::Core::Open(const Interrupted& interrupted) {
  if (!InOwnProcess()) return absl::FailedPreconditionError("opened across a fork");
  if (options_.decode) {
    RETURN_IF_ERROR(loader_.SetAugmentation(options_.decode->augment));
    cursor_ = loader_.cursor();
  }
  first_ = TakeFromLoader(interrupted);
  if (!first_->batch.ok()) return first_->batch.status();
  if (!first_->batch->has_value()) return absl::OkStatus();
  const HostBatch& batch = **first_->batch;
  ASSIGN_OR_RETURN(BatchShape shape, BatchShape::Of(batch, options_));
  shape_.emplace(std::move(shape));
  // The preprocessing is short, and the batch waits for it.
  ASSIGN_OR_RETURN(work_stream_, device_.CreateStream(StreamPriority::kHigh));
  RETURN_IF_ERROR(MakeRoute(batch));
  CheckPinned(batch);
  layout_.emplace(shape_->slots, route_->payload_bytes());
  ASSIGN_OR_RETURN(uploader_,
                   Uploader::Create(device_, kUploads, layout_->bytes(), staging_memory_));
  uploader_->set_patience(options_.stop_patience);
  return StartThread();
}

absl::Status DeviceLoader::Core::MakeRoute(const HostBatch& batch) {
  size_t raw_bytes = 0;
  if (shape_->has_raw) {
    const size_t first_bytes = BatchShape::RawBytes(batch);
    raw_bytes = options_.raw_bytes > 0 ? options_.raw_bytes : first_bytes + first_bytes / 4;
  }
  bool has_kernel = shape_->preprocesses(), has_to_augment = false;
  if (options_.decode && !options_.decode->augment.empty()) {
    const AugmentPlan& augment = options_.decode->augment;
    RETURN_IF_ERROR(augment.CheckReady());
    has_to_augment = options_.decode->augment_on_device_only;
    const std::string why = WhyNotOnDevice(augment);
    if (!why.empty() && has_to_augment) return NotAugmentedThere(why);
    if (!why.empty()) FellBack(absl::StrCat("decoding and augmentation by the CPU: ", why));
    // On the CPU itself ProgramRunner is faster than what stands in for kernels.
    has_kernel = has_kernel && why.empty() && !device_.is_cpu();
  }
  RETURN_IF_ERROR(MakeBuffers(raw_bytes, has_kernel));
  if (has_kernel) {
    absl::Status tried = TryKernel(device_, *shape_, *buffers_, *work_stream_);
    if (absl::IsUnimplemented(tried)) {
      if (has_to_augment) return NotAugmentedThere(std::string(tried.message()));
      FellBack(absl::StrCat("preprocessing by the CPU: ", std::string(tried.message())));
      has_kernel = false;
      buffers_.reset();
      tried = MakeBuffers(raw_bytes, has_kernel);
    }
    RETURN_IF_ERROR(tried);
  }
  route_ = MakeBatchRoute({.device = device_,
                           .options = options_,
                           .shape = *shape_,
                           .buffers = *buffers_,
                           .work_stream = *work_stream_,
                           .stop = stop_,
                           .fell_back = [this](const std::string& why) { FellBack(why); },
                           .describe = [this](uint64_t id) { return loader_.Describe(id); }},
                          has_kernel);
  return absl::OkStatus();
}

absl::Status DeviceLoader::Core::MakeBuffers(size_t raw_bytes, bool has_kernel) {
  const bool on_host = shape_->preprocesses() && !has_kernel;
  const bool augments = has_kernel && options_.decode && !options_.decode->augment.empty();
  size_t rounds = 0;
  RoundScratch scratch;
  if (augments) {
    const AugmentPlan& augment = options_.decode->augment;
    rounds = RoundsOf(augment);
    scratch = RoundScratch(
        augment, shape_->slots,
        size_t{shape_->slots} * shape_->out_width * shape_->out_height * shape_->channels);
  }
  ASSIGN_OR_RETURN(
      buffers_,
      DeviceBuffers::Create(
          device_, {.buffers = options_.prefetch_batches + DeviceBuffers::kMinBuffers,
                    .slots = shape_->slots,
                    .pixel_bytes = on_host ? shape_->pixel_bytes : shape_->host_pixel_bytes,
                    .output_bytes = has_kernel ? shape_->pixel_bytes : 0,
                    .raw_bytes = raw_bytes,
                    .samples = has_kernel,
                    .programs = augments ? rounds + 1 : 0,
                    .tails = rounds,
                    .scratch = scratch}));
  buffers_->set_patience(options_.stop_patience);
  buffers_->set_stop(&stop_);
  return absl::OkStatus();
}

void DeviceLoader::Core::CheckPinned(const HostBatch& batch) {
  Bytes memory;
  if (batch.pixels() != nullptr) {
    memory = batch.pixels()->bytes;
  } else if (!batch.slabs().empty()) {
    memory = batch.slabs()[0];
  }
  const absl::StatusOr<bool> pinned =
      memory.empty() ? absl::StatusOr<bool>(true) : device_.IsPinned(memory.data());
  stats_.pinned = pinned.ok() && *pinned;
  if (!stats_.pinned) {
    FellBack("the Loader's memory is not page-locked: copies wait for it; use PinnedMemory");
  }
}

absl::Status DeviceLoader::Core::StartThread() {
  try {
    thread_ = std::thread([this] {
      Fail(UploadAll());
      route_->End();
    });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start the thread of uploads: ", error.what()));
  }
  return absl::OkStatus();
}

}  // namespace shardpack
