#include "cuda/jpeg/nvjpeg_backends.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

int FormatOf(uint8_t channels) {
  return channels == 1 ? kNvjpegOutputY : kNvjpegOutputRgbInterleaved;
}

const unsigned char* BytesOf(const JpegImage& image) {
  return reinterpret_cast<const unsigned char*>(image.file.data());
}

NvjpegImage OutOf(const JpegImage& image) {
  NvjpegImage out = {};
  out.channel[0] = image.out;
  out.pitch[0] = image.pitch_bytes;
  return out;
}

// OK, or a refusal, as "nvjpegDecodeJpegHost: bad JPEG".
absl::Status NvjpegResult(const char* call, int status) {
  if (status == kNvjpegSuccess) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(call, ": ", NvjpegStatusName(status)));
}

// Whether the library has all that these users need (kNvjpegForHybrid and others).
absl::Status CheckPresent(const NvjpegFunctions& functions, unsigned needed_for) {
  std::string absent;
#define SHARDPACK_NVJPEG_CHECK(name, users, parameters)                   \
  if ((needed_for & (users)) != 0 && functions.name == nullptr) {         \
    absl::StrAppend(&absent, absent.empty() ? "" : ", ", "nvjpeg" #name); \
  }
  SHARDPACK_NVJPEG_FUNCTIONS(SHARDPACK_NVJPEG_CHECK)
#undef SHARDPACK_NVJPEG_CHECK
  if (absent.empty()) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("this nvJPEG lacks ", absent));
}

// The handle that interpolates chroma as libjpeg does, and takes its memory from ours, if the
// library can.
absl::StatusOr<NvjpegSharedHandle> NewHandle(const NvjpegFunctions& functions, int backend,
                                             NvjpegMemory& memory) {
  NvjpegHandle handle = nullptr;
  const bool counted = functions.CreateExV2 != nullptr;
  const auto create = [&](unsigned flags) {
    return counted ? functions.CreateExV2(backend, memory.device(), memory.pinned(), flags, &handle)
                   : functions.CreateEx(backend, nullptr, nullptr, flags, &handle);
  };
  int status = create(kNvjpegInterpolateChroma);
  if (status == kNvjpegInvalidParameter) status = create(0);
  RETURN_IF_ERROR(NvjpegResult(counted ? "nvjpegCreateExV2" : "nvjpegCreateEx", status));
  return NvjpegSharedHandle(handle, functions.Destroy);
}

// Parses the headers and compares the size: decoding writes as many pixels as they say.
absl::Status ParseHeaders(const NvjpegFunctions& functions, NvjpegHandle handle,
                          const JpegImage& image, NvjpegStream headers) {
  RETURN_IF_ERROR(NvjpegResult(
      "nvjpegJpegStreamParse",
      functions.JpegStreamParse(handle, BytesOf(image), image.file.size(), 0, 0, headers)));
  unsigned width = 0, height = 0;
  RETURN_IF_ERROR(NvjpegResult("nvjpegJpegStreamGetFrameDimensions",
                               functions.JpegStreamGetFrameDimensions(headers, &width, &height)));
  if (width != image.info.width || height != image.info.height) {
    return absl::DataLossError(absl::StrCat("the image is ", width, "x", height, ", expected ",
                                            image.info.width, "x", image.info.height));
  }
  return absl::OkStatus();
}

absl::StatusOr<NvjpegOwned<NvjpegParams>> MakeParams(const NvjpegFunctions& functions,
                                                     NvjpegHandle handle, int format) {
  NvjpegParams params = nullptr;
  RETURN_IF_ERROR(
      NvjpegResult("nvjpegDecodeParamsCreate", functions.DecodeParamsCreate(handle, &params)));
  NvjpegOwned<NvjpegParams> owned(params, {functions.DecodeParamsDestroy});
  RETURN_IF_ERROR(NvjpegResult("nvjpegDecodeParamsSetOutputFormat",
                               functions.DecodeParamsSetOutputFormat(params, format)));
  return owned;
}

// A refusal.
absl::Status NoRegions(const absl::Status& why) {
  return absl::FailedPreconditionError(why.message());
}

// What is decoded of the image.
absl::Status SetPart(const NvjpegFunctions& functions, const JpegImage& image,
                     NvjpegParams params) {
  const PixelRegion& room = image.room;
  const auto set = [&](int left, int top, int width, int height) {
    return NvjpegResult("nvjpegDecodeParamsSetROI",
                        functions.DecodeParamsSetROI(params, left, top, width, height));
  };
  if (room.empty()) return set(0, 0, -1, -1);
  return set(static_cast<int>(room.left), static_cast<int>(room.top), static_cast<int>(room.width),
             static_cast<int>(room.height));
}

}  // namespace

bool IsRefusal(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) || absl::IsDataLoss(status);
}

absl::StatusOr<NvjpegHardware> NvjpegHardware::Create(const NvjpegFunctions& functions,
                                                      Device& device,
                                                      const JpegDecoderOptions& options,
                                                      NvjpegMemory& memory) {
  const NvjpegFunctions& f = functions;
  RETURN_IF_ERROR(CheckPresent(f, kNvjpegForHardware));
  NvjpegHardware made(functions, FormatOf(options.channels));
  ASSIGN_OR_RETURN(made.handle_, NewHandle(f, kNvjpegHardware, memory));
  if (f.GetHardwareDecoderInfo != nullptr) {
    unsigned engines = 0, cores = 0;
    // It may fail in a part of a GPU (MIG, vGPU) that has engines all the same.
    if (f.GetHardwareDecoderInfo(made.handle_.get(), &engines, &cores) == kNvjpegSuccess) {
      if (engines == 0) return absl::UnimplementedError("this GPU has no JPEG engines");
      made.engines_ = engines;
    }
  }
  for (int i = 0; i < std::max(options.threads, 1); ++i) {
    NvjpegStream headers = nullptr;
    RETURN_IF_ERROR(
        NvjpegResult("nvjpegJpegStreamCreate", f.JpegStreamCreate(made.handle_.get(), &headers)));
    made.headers_.push_back(NvjpegOwned<NvjpegStream>(headers, {f.JpegStreamDestroy}));
  }
  made.regions_ = CheckPresent(f, kNvjpegForHardwareRegions);
  while (made.regions_.ok() && made.params_.size() < made.headers_.size()) {
    auto params = MakeParams(f, made.handle_.get(), made.format_);
    made.regions_ = params.status();
    if (params.ok()) made.params_.push_back(*std::move(params));
  }
  for (uint32_t i = 0; i < std::max(options.hardware_batches, 1u); ++i) {
    NvjpegState state = nullptr;
    RETURN_IF_ERROR(
        NvjpegResult("nvjpegJpegStateCreate", f.JpegStateCreate(made.handle_.get(), &state)));
    made.slots_.push_back({.state = NvjpegOwned<NvjpegState>(state, {f.JpegStateDestroy}),
                           .reserved = 0,
                           .files = {},
                           .sizes_bytes = {},
                           .outs = {},
                           .params = {},
                           .parts = {},
                           .done = DeviceEvent(device, options.stop)});
  }
  return made;
}

bool NvjpegHardware::Takes(const JpegImage& image, size_t lane) const {
  const NvjpegStream headers = headers_[lane].get();
  if (!ParseHeaders(*functions_, handle_.get(), image, headers).ok()) return false;
  int unsupported = 1;
  if (image.room.empty()) {
    const int status = functions_->DecodeBatchedSupported(handle_.get(), headers, &unsupported);
    return status == kNvjpegSuccess && unsupported == 0;
  }
  if (!regions_.ok()) return false;
  const NvjpegParams params = params_[lane].get();
  if (!SetPart(*functions_, image, params).ok()) return false;
  const int status =
      functions_->DecodeBatchedSupportedEx(handle_.get(), headers, params, &unsupported);
  return status == kNvjpegSuccess && unsupported == 0;
}

absl::Status NvjpegHardware::SetParts(std::span<const JpegImage* const> images, Slot& slot) {
  slot.parts.clear();
  if (!regions_.ok()) return NoRegions(regions_);
  for (const JpegImage* image : images) {
    if (slot.parts.size() == slot.params.size()) {
      ASSIGN_OR_RETURN(auto params, MakeParams(*functions_, handle_.get(), format_));
      slot.params.push_back(std::move(params));
    }
    slot.parts.push_back(slot.params[slot.parts.size()].get());
    RETURN_IF_ERROR(SetPart(*functions_, *image, slot.parts.back()));
  }
  return absl::OkStatus();
}

absl::Status NvjpegHardware::Decode(std::span<const JpegImage* const> images, Stream stream) {
  Slot& slot = slots_[next_];
  next_ = (next_ + 1) % slots_.size();
  // A state that is in use must not be initialized.
  RETURN_IF_ERROR(slot.done.Wait());
  slot.files.clear();
  slot.sizes_bytes.clear();
  slot.outs.clear();
  for (const JpegImage* image : images) {
    slot.files.push_back(BytesOf(*image));
    slot.sizes_bytes.push_back(image->file.size());
    slot.outs.push_back(OutOf(*image));
  }
  const bool by_region = std::any_of(images.begin(), images.end(),
                                     [](const JpegImage* image) { return !image->room.empty(); });
  if (by_region) RETURN_IF_ERROR(SetParts(images, slot));
  // Makes the library keep its memory instead of freeing and allocating some, which waits for the
  // device, whenever sizes differ. Of a pixel: what is reserved for is a batch of images as large
  // as the widest and the highest one ever together, a multiple of what any batch takes.
  if (images.size() > slot.reserved && functions_->DecodeBatchedPreAllocate != nullptr) {
    slot.reserved = images.size();
    // Errors do not matter: the library allocates later what it lacks.
    (void)functions_->DecodeBatchedPreAllocate(handle_.get(), slot.state.get(),
                                               static_cast<int>(images.size()), 1, 1,
                                               kNvjpegChroma444, format_);
  }
  RETURN_IF_ERROR(NvjpegResult(
      "nvjpegDecodeBatchedInitialize",
      functions_->DecodeBatchedInitialize(handle_.get(), slot.state.get(),
                                          static_cast<int>(images.size()), 1, format_)));
  const int status =
      by_region ? functions_->DecodeBatchedEx(handle_.get(), slot.state.get(), slot.files.data(),
                                              slot.sizes_bytes.data(), slot.outs.data(),
                                              slot.parts.data(), stream)
                : functions_->DecodeBatched(handle_.get(), slot.state.get(), slot.files.data(),
                                            slot.sizes_bytes.data(), slot.outs.data(), stream);
  // Also after a failure: part of it may be under way.
  RETURN_IF_ERROR(slot.done.Record(stream));
  return NvjpegResult(by_region ? "nvjpegDecodeBatchedEx" : "nvjpegDecodeBatched", status);
}

absl::Status NvjpegHardware::Wait() {
  for (Slot& slot : slots_) RETURN_IF_ERROR(slot.done.Wait());
  return absl::OkStatus();
}

absl::StatusOr<NvjpegSharedHandle> NvjpegHybrid::MakeHandle(const NvjpegFunctions& functions,
                                                            NvjpegMemory& memory) {
  RETURN_IF_ERROR(CheckPresent(functions, kNvjpegForHybrid));
  return NewHandle(functions, kNvjpegHybrid, memory);
}

absl::StatusOr<NvjpegHybrid> NvjpegHybrid::Create(const NvjpegFunctions& functions,
                                                  NvjpegSharedHandle handle, NvjpegMemory& memory,
                                                  Device& device,
                                                  const JpegDecoderOptions& options) {
  const NvjpegFunctions& f = functions;
  NvjpegHybrid made(functions, std::move(handle));
  NvjpegDecoder decoder = nullptr;
  RETURN_IF_ERROR(NvjpegResult("nvjpegDecoderCreate",
                               f.DecoderCreate(made.handle_.get(), kNvjpegHybrid, &decoder)));
  made.decoder_ = NvjpegOwned<NvjpegDecoder>(decoder, {f.DecoderDestroy});
  ASSIGN_OR_RETURN(made.params_, MakeParams(f, made.handle_.get(), FormatOf(options.channels)));
  made.regions_ = CheckPresent(f, kNvjpegForHybridRegions);
  for (uint32_t i = 0; i < std::max(options.hybrid_pages, 1u); ++i) {
    RETURN_IF_ERROR(made.AddPage(memory, device, options.stop));
  }
  return made;
}

absl::Status NvjpegHybrid::AddPage(NvjpegMemory& counted, Device& device,
                                   const std::atomic<bool>* stop) {
  const NvjpegFunctions& f = *functions_;
  Page page = {
      .pinned = {}, .memory = {}, .headers = {}, .state = {}, .done = DeviceEvent(device, stop)};
  NvjpegPinned pinned = nullptr;
  RETURN_IF_ERROR(
      NvjpegResult("nvjpegBufferPinnedCreate",
                   f.BufferPinnedCreateV2 != nullptr
                       ? f.BufferPinnedCreateV2(handle_.get(), counted.pinned(), &pinned)
                       : f.BufferPinnedCreate(handle_.get(), nullptr, &pinned)));
  page.pinned = NvjpegOwned<NvjpegPinned>(pinned, {f.BufferPinnedDestroy});
  NvjpegDevice memory = nullptr;
  RETURN_IF_ERROR(
      NvjpegResult("nvjpegBufferDeviceCreate",
                   f.BufferDeviceCreateV2 != nullptr
                       ? f.BufferDeviceCreateV2(handle_.get(), counted.device(), &memory)
                       : f.BufferDeviceCreate(handle_.get(), nullptr, &memory)));
  page.memory = NvjpegOwned<NvjpegDevice>(memory, {f.BufferDeviceDestroy});
  NvjpegStream headers = nullptr;
  RETURN_IF_ERROR(
      NvjpegResult("nvjpegJpegStreamCreate", f.JpegStreamCreate(handle_.get(), &headers)));
  page.headers = NvjpegOwned<NvjpegStream>(headers, {f.JpegStreamDestroy});
  NvjpegState state = nullptr;
  RETURN_IF_ERROR(NvjpegResult("nvjpegDecoderStateCreate",
                               f.DecoderStateCreate(handle_.get(), decoder_.get(), &state)));
  page.state = NvjpegOwned<NvjpegState>(state, {f.JpegStateDestroy});
  RETURN_IF_ERROR(
      NvjpegResult("nvjpegStateAttachPinnedBuffer", f.StateAttachPinnedBuffer(state, pinned)));
  RETURN_IF_ERROR(
      NvjpegResult("nvjpegStateAttachDeviceBuffer", f.StateAttachDeviceBuffer(state, memory)));
  pages_.push_back(std::move(page));
  return absl::OkStatus();
}

absl::Status NvjpegHybrid::Decode(const JpegImage& image, Stream stream) {
  const NvjpegFunctions& f = *functions_;
  Page& page = pages_[next_];
  RETURN_IF_ERROR(page.done.Wait());
  RETURN_IF_ERROR(ParseHeaders(f, handle_.get(), image, page.headers.get()));
  // DecodeJpegHost copies them to the state.
  if (!image.room.empty() || params_have_part_) {
    if (!regions_.ok()) return NoRegions(regions_);
    params_have_part_ = true;
    RETURN_IF_ERROR(SetPart(f, image, params_.get()));
    params_have_part_ = !image.room.empty();
  }
  RETURN_IF_ERROR(NvjpegResult("nvjpegDecodeJpegHost",
                               f.DecodeJpegHost(handle_.get(), decoder_.get(), page.state.get(),
                                                params_.get(), page.headers.get())));
  next_ = (next_ + 1) % pages_.size();
  const char* call = "nvjpegDecodeJpegTransferToDevice";
  int status = f.DecodeJpegTransferToDevice(handle_.get(), decoder_.get(), page.state.get(),
                                            page.headers.get(), stream);
  if (status == kNvjpegSuccess) {
    call = "nvjpegDecodeJpegDevice";
    NvjpegImage out = OutOf(image);
    status = f.DecodeJpegDevice(handle_.get(), decoder_.get(), page.state.get(), &out, stream);
  }
  // Also after a failure: part of it may be under way.
  RETURN_IF_ERROR(page.done.Record(stream));
  return NvjpegResult(call, status);
}

}  // namespace shardpack
