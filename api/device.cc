// Devices, and loaders whose batches are on one.
#include <algorithm>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "api/any_loader.h"
#include "api/errors.h"
#include "api/handles.h"
#include "api/host_loader.h"
#include "api/loader_on_device.h"
#include "api/options.h"
#include "api/shardpack.h"
#include "api/structs.h"
#include "cuda/device/open_device.h"
#include "formats/io/status_macros.h"

namespace shardpack::api {
namespace {

Stream StreamOf(void* stream) { return static_cast<Stream>(stream); }

// Devices are static, and so are their texts.
absl::StatusOr<const DeviceInfo*> InfoOf(Device& device) {
  static std::mutex mutex;
  static auto* const known = new std::map<const Device*, DeviceInfo>();
  const std::lock_guard lock(mutex);
  const auto found = known->find(&device);
  if (found != known->end()) return &found->second;
  ASSIGN_OR_RETURN(DeviceInfo info, device.Info());
  return &known->emplace(&device, info).first->second;
}

// 0: by something else.
absl::Status CheckPixelSize(uint32_t width, uint32_t height) {
  CropOptions crop = {.kind = CropKind::kResize};
  if (width != 0) crop.width = width;
  if (height != 0) crop.height = height;
  return CheckCropOptions(crop);
}

absl::StatusOr<DevicePreprocess> PreprocessOf(const shardpack_device_options& options) {
  ASSIGN_OR_RETURN(const OutputFormat output,
                   OutputOf(options.type, options.layout, options.mean, options.std));
  ASSIGN_OR_RETURN(const ResizeFilter filter, FilterOf(options.filter));
  RETURN_IF_ERROR(CheckPixelSize(options.width, options.height));
  return DevicePreprocess{
      .output = output, .width = options.width, .height = options.height, .filter = filter};
}

// Whether the numbers are as where nobody has set them.
bool AreDefaults(const float (&mean)[3], const float (&std)[3]) {
  return std::ranges::all_of(mean, [](float number) { return number == 0; }) &&
         std::ranges::all_of(std, [](float number) { return number == 0 || number == 1; });
}

// Of a decode that says what is done on a device; who does the rest has options of its own.
absl::StatusOr<PixelPipelineOptions> DecodeOnDeviceOf(const shardpack_decode* given) {
  ASSIGN_OR_RETURN(const PixelPipelineOptions decode, DecodeOf(given));
  if (decode.output.type != PixelType::kU8 || decode.output.layout != PixelLayout::kNhwc ||
      !AreDefaults(given->mean, given->std)) {
    return absl::InvalidArgumentError(
        "give type, layout, mean and std in the options of the device, not in their decode");
  }
  if (decode.fast)
    return absl::InvalidArgumentError("fast applies only to a loader's own decoding");
  return decode;
}

// With the Loader's seed, threads and handling of bad images.
absl::Status SetDecode(const shardpack_device_options& given, const LoaderOptions& host,
                       shardpack::DeviceOptions& options) {
  ASSIGN_OR_RETURN(const PixelPipelineOptions decode, DecodeOnDeviceOf(given.decode));
  if (given.filter != 0 && given.filter != given.decode->filter)
    return absl::InvalidArgumentError("give filter in the decode of the device options");
  options.decode = DeviceDecode{.crop = decode.crop,
                                .augment_seed = host.augment_seed,
                                .channels = decode.channels,
                                .orient = decode.orient,
                                .max_pixels = decode.max_pixels,
                                .max_scans = decode.max_scans,
                                .threads = host.threads,
                                .use_hardware = given.decode_by <= SHARDPACK_DECODE_BY_AUTO,
                                .use_hybrid = given.decode_by != SHARDPACK_DECODE_BY_CPU,
                                // Else which decoder takes an image would depend on time, and a run
                                // that is resumed is to see the same pixels.
                                .share = given.share_decoding == 1,
                                .choose = given.decode_by == SHARDPACK_DECODE_BY_AUTO,
                                .regions = given.decode_regions == 1};
  if (given.augment != nullptr) {
    ASSIGN_OR_RETURN(options.decode->augment, AugmentPlan::Parse(given.augment));
    RETURN_IF_ERROR(options.decode->augment.CheckReady());
  }
  options.decode->augment_on_device_only = given.augment_on_device_only == 1;
  options.bad_images = {.policy = host.bad_samples, .most = host.max_bad_samples};
  if (!options.preprocess) options.preprocess = DevicePreprocess{.output = OutputFormat()};
  options.preprocess->filter = decode.filter;
  return absl::OkStatus();
}

absl::StatusOr<DeviceOptions> DeviceOptionsOf(const shardpack_device_options& from,
                                              const LoaderOptions& host) {
  DeviceOptions options;
  options.log = [](const std::string&) {};
  options.labels = from.no_labels == 0;
  options.raw_bytes = from.raw_bytes;
  if (from.prefetch_batches != 0) options.prefetch_batches = from.prefetch_batches;
  if (from.patience_ms != 0) {
    options.patience = EndedFlag::LimitedWait(static_cast<int64_t>(
        std::min<uint64_t>(from.patience_ms, std::numeric_limits<int64_t>::max())));
  }
  if (from.preprocess > 1 || from.no_labels > 1)
    return absl::InvalidArgumentError("preprocess and no_labels must be 0 or 1");
  if (from.preprocess == 1 || from.decode != nullptr) {
    ASSIGN_OR_RETURN(options.preprocess, PreprocessOf(from));
  } else if (from.type != 0 || from.layout != 0 || from.width != 0 || from.height != 0 ||
             from.filter != 0 || !AreDefaults(from.mean, from.std)) {
    return absl::InvalidArgumentError(
        "type, layout, width, height, filter, mean and std need preprocess or decode");
  }
  if (from.decode_by > SHARDPACK_DECODE_BY_CPU) {
    return absl::InvalidArgumentError(
        absl::StrCat("decode_by is ", from.decode_by, ", where 0 to 3 have a meaning"));
  }
  if (from.share_decoding > 1 || from.augment_on_device_only > 1 || from.decode_regions > 1) {
    return absl::InvalidArgumentError(
        "share_decoding, augment_on_device_only and decode_regions are 0 or 1");
  }
  if (from.decode != nullptr) {
    RETURN_IF_ERROR(SetDecode(from, host, options));
  } else if (from.decode_by != 0 || from.share_decoding != 0 || from.augment != nullptr ||
             from.augment_on_device_only != 0 || from.decode_regions != 0) {
    return absl::InvalidArgumentError(
        "decode_by, share_decoding, augment, augment_on_device_only and decode_regions need "
        "decode");
  }
  return options;
}

// The layout of what comes out.
PixelLayout LayoutOf(const DeviceOptions& options, const LoaderOptions& host) {
  if (options.preprocess) return options.preprocess->output.layout;
  return host.decode ? host.decode->output.layout : PixelLayout::kNhwc;
}

absl::StatusOr<shardpack_loader*> ToDevice(shardpack_loader* from, shardpack_device* to,
                                           const shardpack_device_options* given) {
  ASSIGN_OR_RETURN(const shardpack_device_options known, Known(given, "device options"));
  ASSIGN_OR_RETURN(const OpenedDevice* const device, UseDevice(to));
  ASSIGN_OR_RETURN(auto* const state, ContentOf(from, "loader"));
  ASSIGN_OR_RETURN(const std::shared_ptr<AnyLoader> used, (*state)->Use());
  const auto host = std::dynamic_pointer_cast<HostLoader>(used);
  if (host == nullptr) {
    return absl::UnimplementedError("the batches of this loader are on a device already");
  }
  const HostLoaderPlan& plan = host->plan();
  if (!plan.options.mask_fields.empty() || !plan.options.decode_fields.empty()) {
    return absl::UnimplementedError(
        "masks and other decoded fields are not copied to a device: use the batches of this "
        "loader, or leave out decode_fields");
  }
  if (plan.options.views > 1 || plan.options.mix) {
    return absl::UnimplementedError(
        "several views and mixed samples are not copied to a device: use the batches of this "
        "loader");
  }
  if (plan.device != device->device) {
    return absl::InvalidArgumentError(
        plan.device == nullptr
            ? "the loader has to be opened with this device in its options: its memory is not "
              "page-locked"
            : "the loader was opened for another device");
  }
  ASSIGN_OR_RETURN(const DeviceOptions options, DeviceOptionsOf(known, plan.options));
  auto common = std::make_shared<const BatchesOnDevice>(
      BatchesOnDevice{*plan.device, plan.options.fields, LayoutOf(options, plan.options)});
  ASSIGN_OR_RETURN(const Cursor start,
                   options.decode ? host->CursorOf(options.decode->augment) : host->cursor());
  // The new loader is there, with its thread, before anything is taken from this one: what the
  // system refuses leaves this one as it is. Without parts the thread ends.
  std::unique_ptr<shardpack_loader, decltype(&shardpack_loader_release)> made(
      nullptr, shardpack_loader_release);
  std::shared_ptr<LoaderOnDevice> loader;
  // Goes before the loader, whose thread waits for it.
  std::promise<absl::StatusOr<HostLoaderParts>> parts;
  const auto coming =
      std::make_shared<std::future<absl::StatusOr<HostLoaderParts>>>(parts.get_future());
  loader = std::make_shared<LoaderOnDevice>(
      [coming, options, target = plan.device](
          const Interrupted& interrupted) -> absl::StatusOr<std::unique_ptr<DeviceSource>> {
        ASSIGN_OR_RETURN(HostLoaderParts taken, coming->get());
        ASSIGN_OR_RETURN(DeviceLoader loader, DeviceLoader::Open(std::move(taken.loader), options,
                                                                 *target, interrupted));
        return SourceOf(std::move(loader), taken.memory);
      },
      std::move(common), start);
  made.reset(NewLoader(loader));
  // Of two threads that come here, one gets the parts.
  absl::StatusOr<HostLoaderParts> taken = host->TakeParts();
  const absl::Status status = taken.ok() ? (*state)->Take(kTakenOver) : taken.status();
  if (status.ok()) {
    loader->SetBadSamples(host->TakeBadSamples());
  } else {
    taken = status;
  }
  parts.set_value(std::move(taken));
  RETURN_IF_ERROR(status);
  return made.release();
}

absl::StatusOr<ResidentOptions> ResidentOptionsOf(const shardpack_resident_options& from) {
  ResidentOptions options;
  options.log = [](const std::string&) {};
  RETURN_IF_ERROR(CheckPixelSize(from.width, from.height));
  options.width = from.width;
  options.height = from.height;
  if (from.channels != 0) options.channels = static_cast<uint8_t>(std::min(from.channels, 255u));
  if (options.channels != 1 && options.channels != 3)
    return absl::InvalidArgumentError("channels must be 1 or 3");
  ASSIGN_OR_RETURN(options.filter, FilterOf(from.filter));
  if (from.crop != nullptr) {
    ASSIGN_OR_RETURN(const PixelPipelineOptions crop, DecodeOnDeviceOf(from.crop));
    if ((from.crop->channels != 0 && crop.channels != options.channels) ||
        (from.crop->filter != 0 && crop.filter != options.filter)) {
      return absl::InvalidArgumentError(
          "the crop has other channels, or another filter, than the images that are kept");
    }
    if (!crop.orient || from.crop->max_pixels != 0 || from.crop->max_scans != 0) {
      return absl::InvalidArgumentError(
          "the crop is of the images that are kept, so it has no ignore_orientation, max_pixels "
          "and max_scans");
    }
    options.crop = crop.crop;
  }
  ASSIGN_OR_RETURN(options.output, OutputOf(from.type, from.layout, from.mean, from.std));
  options.augment_seed = from.augment_seed;
  options.epochs = from.epochs;
  RETURN_IF_ERROR(CheckThreads(from.threads, "threads", 0));
  options.threads = from.threads;
  if (from.buffers != 0) options.buffers = from.buffers;
  if (from.share_of_memory != 0) options.share_of_memory = from.share_of_memory;
  if (!(options.share_of_memory > 0 && options.share_of_memory <= 1))
    return absl::InvalidArgumentError("share_of_memory must be above 0 and at most 1");
  return options;
}

absl::StatusOr<shardpack_loader*> Resident(const shardpack_dataset* of,
                                           const shardpack_order* in_order, shardpack_device* on,
                                           const shardpack_resident_options* given) {
  ASSIGN_OR_RETURN(const shardpack_resident_options known, Known(given, "resident options"));
  ASSIGN_OR_RETURN(const Dataset* const dataset, ContentOf(of, "dataset"));
  ASSIGN_OR_RETURN(const Order* const order, ContentOf(in_order, "order"));
  ASSIGN_OR_RETURN(const OpenedDevice* const device, UseDevice(on));
  ASSIGN_OR_RETURN(const ResidentOptions options, ResidentOptionsOf(known));
  ASSIGN_OR_RETURN(const std::optional<Cursor> cursor, CursorOf(known.cursor));
  const Rank rank = {.rank = known.rank,
                     .world_size = known.world_size == 0 ? 1 : known.world_size};
  RETURN_IF_ERROR(CheckRank(rank, order->spec().global_batch));
  if (cursor) RETURN_IF_ERROR(CheckCursor(*cursor, dataset->identity(), *order));
  Device& target = *device->device;
  auto common =
      std::make_shared<const BatchesOnDevice>(BatchesOnDevice{target, {}, options.output.layout});
  return NewLoader(std::make_shared<LoaderOnDevice>(
      [dataset = *dataset, order = *order, rank, options, &target,
       cursor](const Interrupted& interrupted) -> absl::StatusOr<std::unique_ptr<DeviceSource>> {
        ASSIGN_OR_RETURN(ResidentLoader loader, ResidentLoader::Open(dataset, order, rank, options,
                                                                     target, cursor, interrupted));
        return SourceOf(std::move(loader));
      },
      std::move(common), cursor.value_or(MakeCursor(dataset->identity(), *order))));
}

}  // namespace
}  // namespace shardpack::api

using namespace shardpack;       // NOLINT: the functions below are those of the C interface
using namespace shardpack::api;  // NOLINT

shardpack_code shardpack_device_open(const char* name, shardpack_device** device,
                                     shardpack_error** error) {
  return Making(device, error, [&]() -> absl::StatusOr<shardpack_device*> {
    RETURN_IF_ERROR(NotNull(name, "name"));
    ASSIGN_OR_RETURN(OpenedDevice opened, OpenDevice(name));
    return new shardpack_device(std::move(opened));
  });
}

shardpack_device* shardpack_device_retain(shardpack_device* device) { return Retain(device); }

void shardpack_device_release(shardpack_device* device) { Release(device); }

shardpack_code shardpack_device_info_of(const shardpack_device* device, shardpack_device_info* info,
                                        shardpack_error** error) {
  return Guarded(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const OpenedDevice* const opened, UseDevice(device));
    ASSIGN_OR_RETURN(const DeviceInfo* const facts, InfoOf(*opened->device));
    ASSIGN_OR_RETURN(const DeviceMemory memory, opened->device->Memory());
    const bool cuda = opened->device->kind() == DeviceKind::kCuda;
    return Fill(info, "device info", [&](shardpack_device_info& all) {
      all.kind = cuda ? SHARDPACK_CUDA : SHARDPACK_HOST;
      all.number = cuda ? opened->device->number() : -1;
      all.why_not = TextOf(opened->why_not);
      all.name = TextOf(facts->name);
      all.pci_bus_id = TextOf(facts->pci_bus_id);
      all.memory_bytes = memory.total_bytes;
      all.free_bytes = memory.free_bytes;
      all.compute_major = facts->major;
      all.compute_minor = facts->minor;
    });
  });
}

shardpack_code shardpack_loader_to_device(shardpack_loader* loader, shardpack_device* device,
                                          const shardpack_device_options* options,
                                          shardpack_loader** on_device, shardpack_error** error) {
  return Making(on_device, error, [&] { return ToDevice(loader, device, options); });
}

shardpack_code shardpack_resident_open(const shardpack_dataset* dataset,
                                       const shardpack_order* order, shardpack_device* device,
                                       const shardpack_resident_options* options,
                                       shardpack_loader** loader, shardpack_error** error) {
  return Making(loader, error, [&] { return Resident(dataset, order, device, options); });
}

shardpack_code shardpack_loader_opened(shardpack_loader* loader, int64_t wait_ms,
                                       shardpack_error** error) {
  return Guarded(error, [&]() -> absl::StatusOr<shardpack_code> {
    RETURN_IF_ERROR(CheckWait(wait_ms));
    ASSIGN_OR_RETURN(const std::shared_ptr<AnyLoader> used, UseLoader(loader));
    return used->Opened(wait_ms);
  });
}

shardpack_code shardpack_loader_next_into(shardpack_loader* loader, int64_t wait_ms,
                                          const shardpack_target* target, void* stream,
                                          shardpack_batch** batch, shardpack_error** error) {
  if (batch != nullptr) *batch = nullptr;
  return Guarded(error, [&]() -> absl::StatusOr<shardpack_code> {
    RETURN_IF_ERROR(CheckWait(wait_ms));
    RETURN_IF_ERROR(NotNull(target, "target"));
    ASSIGN_OR_RETURN(const shardpack_target known, Known(target, "target"));
    RETURN_IF_ERROR(NotNull(known.pixels, "pixels of the target"));
    ASSIGN_OR_RETURN(const std::shared_ptr<AnyLoader> used, UseLoader(loader));
    ASSIGN_OR_RETURN(Taken taken, used->NextInto(wait_ms, known, StreamOf(stream)));
    if (taken.batch != nullptr && batch != nullptr)
      *batch = new shardpack_batch(std::move(taken.batch));
    return taken.code;
  });
}

shardpack_code shardpack_loader_enqueue_step(shardpack_loader* loader,
                                             const shardpack_target* target, void* stream,
                                             shardpack_error** error) {
  return Guarded(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(NotNull(target, "target"));
    ASSIGN_OR_RETURN(const shardpack_target known, Known(target, "target"));
    ASSIGN_OR_RETURN(const std::shared_ptr<AnyLoader> used, UseLoader(loader));
    return used->EnqueueStep(known, StreamOf(stream));
  });
}

shardpack_code shardpack_loader_next_step(shardpack_loader* loader, int64_t wait_ms, void* stream,
                                          shardpack_batch** batch, shardpack_error** error) {
  if (batch != nullptr) *batch = nullptr;
  return Guarded(error, [&]() -> absl::StatusOr<shardpack_code> {
    RETURN_IF_ERROR(CheckWait(wait_ms));
    ASSIGN_OR_RETURN(const std::shared_ptr<AnyLoader> used, UseLoader(loader));
    ASSIGN_OR_RETURN(Taken taken, used->NextStep(wait_ms, StreamOf(stream)));
    if (taken.batch != nullptr && batch != nullptr)
      *batch = new shardpack_batch(std::move(taken.batch));
    return taken.code;
  });
}

shardpack_code shardpack_batch_wait_on(shardpack_batch* batch, void* stream,
                                       shardpack_error** error) {
  return Guarded(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(auto* const content, ContentOf(batch, "batch"));
    return (*content)->WaitOn(StreamOf(stream));
  });
}

shardpack_code shardpack_batch_synchronize(shardpack_batch* batch, int64_t wait_ms,
                                           shardpack_error** error) {
  return Guarded(error, [&]() -> absl::StatusOr<shardpack_code> {
    RETURN_IF_ERROR(CheckWait(wait_ms));
    ASSIGN_OR_RETURN(auto* const content, ContentOf(batch, "batch"));
    ASSIGN_OR_RETURN(const bool there, (*content)->Synchronize(wait_ms));
    return there ? SHARDPACK_OK : SHARDPACK_WAIT;
  });
}

shardpack_code shardpack_batch_release_on(shardpack_batch* batch, void* stream,
                                          shardpack_error** error) {
  return Guarded(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(auto* const content, ContentOf(batch, "batch"));
    return (*content)->ReleaseOn(StreamOf(stream));
  });
}
