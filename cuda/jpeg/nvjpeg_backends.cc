#include "cuda/jpeg/nvjpeg_backends.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

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

// Names of the functions of `names` that are null, or nothing.
struct Needed {
  const char* name;
  bool present;
};
absl::Status CheckPresent(std::initializer_list<Needed> needed) {
  std::string absent;
  for (const Needed& function : needed) {
    if (!function.present) absl::StrAppend(&absent, absent.empty() ? "" : ", ", function.name);
  }
  if (absent.empty()) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("this nvJPEG lacks ", absent));
}

// The handle with chroma as libjpeg makes it, where the library knows how.
absl::Status MakeHandle(const NvjpegFunctions& functions, int backend,
                        NvjpegOwned<NvjpegHandle>* owned) {
  NvjpegHandle handle = nullptr;
  int status = functions.CreateEx(backend, nullptr, nullptr, kNvjpegInterpolateChroma, &handle);
  if (status == kNvjpegInvalidParameter) {
    status = functions.CreateEx(backend, nullptr, nullptr, 0, &handle);
  }
  if (status != kNvjpegSuccess) return NvjpegRefusal("nvjpegCreateEx", status);
  *owned = NvjpegOwned<NvjpegHandle>(handle, {functions.Destroy});
  return absl::OkStatus();
}

// Parses the headers and compares the size: decoding writes as many pixels as they say.
absl::Status ParseHeaders(const NvjpegFunctions& functions, NvjpegHandle handle,
                          const JpegImage& image, NvjpegStream headers) {
  int status = functions.JpegStreamParse(handle, BytesOf(image), image.file.size(), 0, 0, headers);
  if (status != kNvjpegSuccess) return NvjpegRefusal("nvjpegJpegStreamParse", status);
  unsigned width = 0, height = 0;
  status = functions.JpegStreamGetFrameDimensions(headers, &width, &height);
  if (status != kNvjpegSuccess) {
    return NvjpegRefusal("nvjpegJpegStreamGetFrameDimensions", status);
  }
  if (width != image.info.width || height != image.info.height) {
    return absl::DataLossError(absl::StrCat("the image is ", width, "x", height, ", expected ",
                                            image.info.width, "x", image.info.height));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status NvjpegRefusal(const char* call, int status) {
  return absl::FailedPreconditionError(absl::StrCat(call, ": ", NvjpegStatusName(status)));
}

bool IsRefusal(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) || absl::IsDataLoss(status);
}

absl::StatusOr<NvjpegHardware> NvjpegHardware::Create(const NvjpegFunctions& functions,
                                                      const DeviceApi& device,
                                                      const JpegDecoderOptions& options) {
  const NvjpegFunctions& f = functions;
  if (auto status = CheckPresent(
          {{"nvjpegCreateEx", f.CreateEx != nullptr},
           {"nvjpegDestroy", f.Destroy != nullptr},
           {"nvjpegJpegStreamCreate", f.JpegStreamCreate != nullptr},
           {"nvjpegJpegStreamDestroy", f.JpegStreamDestroy != nullptr},
           {"nvjpegJpegStreamParse", f.JpegStreamParse != nullptr},
           {"nvjpegJpegStreamGetFrameDimensions", f.JpegStreamGetFrameDimensions != nullptr},
           {"nvjpegJpegStateCreate", f.JpegStateCreate != nullptr},
           {"nvjpegJpegStateDestroy", f.JpegStateDestroy != nullptr},
           {"nvjpegDecodeBatchedSupported", f.DecodeBatchedSupported != nullptr},
           {"nvjpegDecodeBatchedInitialize", f.DecodeBatchedInitialize != nullptr},
           {"nvjpegDecodeBatched", f.DecodeBatched != nullptr}});
      !status.ok()) {
    return status;
  }
  NvjpegHardware made(functions, FormatOf(options.channels));
  if (auto status = MakeHandle(f, kNvjpegHardware, &made.handle_); !status.ok()) return status;
  if (f.GetHardwareDecoderInfo != nullptr) {
    unsigned cores = 0;
    const int status = f.GetHardwareDecoderInfo(made.handle_.get(), &made.engines_, &cores);
    if (status != kNvjpegSuccess) return NvjpegRefusal("nvjpegGetHardwareDecoderInfo", status);
    if (made.engines_ == 0) return absl::UnimplementedError("this GPU has no JPEG engines");
  }
  NvjpegStream headers = nullptr;
  if (const int status = f.JpegStreamCreate(made.handle_.get(), &headers); status != 0) {
    return NvjpegRefusal("nvjpegJpegStreamCreate", status);
  }
  made.headers_ = NvjpegOwned<NvjpegStream>(headers, {f.JpegStreamDestroy});
  for (uint32_t i = 0; i < std::max(options.hardware_batches, 1u); ++i) {
    NvjpegState state = nullptr;
    if (const int status = f.JpegStateCreate(made.handle_.get(), &state); status != 0) {
      return NvjpegRefusal("nvjpegJpegStateCreate", status);
    }
    made.slots_.push_back({.state = NvjpegOwned<NvjpegState>(state, {f.JpegStateDestroy}),
                           .batch = 0,
                           .width = 0,
                           .height = 0,
                           .files = {},
                           .sizes_bytes = {},
                           .outs = {},
                           .done = DeviceEvent(device, options.stop)});
  }
  return made;
}

bool NvjpegHardware::Takes(const JpegImage& image) {
  if (!ParseHeaders(*functions_, handle_.get(), image, headers_.get()).ok()) return false;
  int unsupported = 1;
  const int status =
      functions_->DecodeBatchedSupported(handle_.get(), headers_.get(), &unsupported);
  return status == kNvjpegSuccess && unsupported == 0;
}

// For the largest so far: left to itself the library frees and allocates memory, which waits for
// the device, whenever sizes differ.
void NvjpegHardware::Reserve(std::span<const JpegImage* const> images, Slot& slot) {
  if (functions_->DecodeBatchedPreAllocate == nullptr) return;
  int batch = std::max(slot.batch, static_cast<int>(images.size()));
  int width = slot.width, height = slot.height;
  for (const JpegImage* image : images) {
    width = std::max(width, static_cast<int>(image->info.width));
    height = std::max(height, static_cast<int>(image->info.height));
  }
  if (batch == slot.batch && width == slot.width && height == slot.height) return;
  // An answer is not needed: what it does not have, it allocates later.
  (void)functions_->DecodeBatchedPreAllocate(handle_.get(), slot.state.get(), batch, width, height,
                                             kNvjpegChroma444, format_);
  slot.batch = batch;
  slot.width = width;
  slot.height = height;
}

absl::Status NvjpegHardware::Decode(std::span<const JpegImage* const> images, Stream stream) {
  Slot& slot = slots_[next_];
  next_ = (next_ + 1) % slots_.size();
  // A state that is in use must not be initialized.
  if (auto status = slot.done.Wait(); !status.ok()) return status;
  slot.files.clear();
  slot.sizes_bytes.clear();
  slot.outs.clear();
  for (const JpegImage* image : images) {
    slot.files.push_back(BytesOf(*image));
    slot.sizes_bytes.push_back(image->file.size());
    slot.outs.push_back(OutOf(*image));
  }
  Reserve(images, slot);
  int status = functions_->DecodeBatchedInitialize(handle_.get(), slot.state.get(),
                                                   static_cast<int>(images.size()), 1, format_);
  if (status != kNvjpegSuccess) return NvjpegRefusal("nvjpegDecodeBatchedInitialize", status);
  status = functions_->DecodeBatched(handle_.get(), slot.state.get(), slot.files.data(),
                                     slot.sizes_bytes.data(), slot.outs.data(), stream);
  // Also after a failure: part of it may be under way.
  if (auto recorded = slot.done.Record(stream); !recorded.ok()) return recorded;
  if (status != kNvjpegSuccess) return NvjpegRefusal("nvjpegDecodeBatched", status);
  return absl::OkStatus();
}

absl::StatusOr<NvjpegHybrid> NvjpegHybrid::Create(const NvjpegFunctions& functions,
                                                  const DeviceApi& device,
                                                  const JpegDecoderOptions& options) {
  const NvjpegFunctions& f = functions;
  if (auto status = CheckPresent(
          {{"nvjpegCreateEx", f.CreateEx != nullptr},
           {"nvjpegDestroy", f.Destroy != nullptr},
           {"nvjpegJpegStreamCreate", f.JpegStreamCreate != nullptr},
           {"nvjpegJpegStreamDestroy", f.JpegStreamDestroy != nullptr},
           {"nvjpegJpegStreamParse", f.JpegStreamParse != nullptr},
           {"nvjpegJpegStreamGetFrameDimensions", f.JpegStreamGetFrameDimensions != nullptr},
           {"nvjpegDecoderCreate", f.DecoderCreate != nullptr},
           {"nvjpegDecoderDestroy", f.DecoderDestroy != nullptr},
           {"nvjpegDecoderStateCreate", f.DecoderStateCreate != nullptr},
           {"nvjpegJpegStateDestroy", f.JpegStateDestroy != nullptr},
           {"nvjpegDecodeParamsCreate", f.DecodeParamsCreate != nullptr},
           {"nvjpegDecodeParamsDestroy", f.DecodeParamsDestroy != nullptr},
           {"nvjpegDecodeParamsSetOutputFormat", f.DecodeParamsSetOutputFormat != nullptr},
           {"nvjpegBufferPinnedCreate", f.BufferPinnedCreate != nullptr},
           {"nvjpegBufferPinnedDestroy", f.BufferPinnedDestroy != nullptr},
           {"nvjpegBufferDeviceCreate", f.BufferDeviceCreate != nullptr},
           {"nvjpegBufferDeviceDestroy", f.BufferDeviceDestroy != nullptr},
           {"nvjpegStateAttachPinnedBuffer", f.StateAttachPinnedBuffer != nullptr},
           {"nvjpegStateAttachDeviceBuffer", f.StateAttachDeviceBuffer != nullptr},
           {"nvjpegDecodeJpegHost", f.DecodeJpegHost != nullptr},
           {"nvjpegDecodeJpegTransferToDevice", f.DecodeJpegTransferToDevice != nullptr},
           {"nvjpegDecodeJpegDevice", f.DecodeJpegDevice != nullptr}});
      !status.ok()) {
    return status;
  }
  NvjpegHybrid made(functions);
  if (auto status = MakeHandle(f, kNvjpegHybrid, &made.handle_); !status.ok()) return status;
  NvjpegDecoder decoder = nullptr;
  if (const int status = f.DecoderCreate(made.handle_.get(), kNvjpegHybrid, &decoder)) {
    return NvjpegRefusal("nvjpegDecoderCreate", status);
  }
  made.decoder_ = NvjpegOwned<NvjpegDecoder>(decoder, {f.DecoderDestroy});
  NvjpegParams params = nullptr;
  if (const int status = f.DecodeParamsCreate(made.handle_.get(), &params)) {
    return NvjpegRefusal("nvjpegDecodeParamsCreate", status);
  }
  made.params_ = NvjpegOwned<NvjpegParams>(params, {f.DecodeParamsDestroy});
  if (const int status = f.DecodeParamsSetOutputFormat(params, FormatOf(options.channels))) {
    return NvjpegRefusal("nvjpegDecodeParamsSetOutputFormat", status);
  }
  for (uint32_t i = 0; i < std::max(options.hybrid_pages, 1u); ++i) {
    if (auto status = made.AddPage(device, options.stop); !status.ok()) return status;
  }
  return made;
}

absl::Status NvjpegHybrid::AddPage(const DeviceApi& device, const std::atomic<bool>* stop) {
  const NvjpegFunctions& f = *functions_;
  Page page = {
      .pinned = {}, .memory = {}, .headers = {}, .state = {}, .done = DeviceEvent(device, stop)};
  NvjpegPinned pinned = nullptr;
  if (const int status = f.BufferPinnedCreate(handle_.get(), nullptr, &pinned)) {
    return NvjpegRefusal("nvjpegBufferPinnedCreate", status);
  }
  page.pinned = NvjpegOwned<NvjpegPinned>(pinned, {f.BufferPinnedDestroy});
  NvjpegDevice memory = nullptr;
  if (const int status = f.BufferDeviceCreate(handle_.get(), nullptr, &memory)) {
    return NvjpegRefusal("nvjpegBufferDeviceCreate", status);
  }
  page.memory = NvjpegOwned<NvjpegDevice>(memory, {f.BufferDeviceDestroy});
  NvjpegStream headers = nullptr;
  if (const int status = f.JpegStreamCreate(handle_.get(), &headers)) {
    return NvjpegRefusal("nvjpegJpegStreamCreate", status);
  }
  page.headers = NvjpegOwned<NvjpegStream>(headers, {f.JpegStreamDestroy});
  NvjpegState state = nullptr;
  if (const int status = f.DecoderStateCreate(handle_.get(), decoder_.get(), &state)) {
    return NvjpegRefusal("nvjpegDecoderStateCreate", status);
  }
  page.state = NvjpegOwned<NvjpegState>(state, {f.JpegStateDestroy});
  if (const int status = f.StateAttachPinnedBuffer(state, pinned)) {
    return NvjpegRefusal("nvjpegStateAttachPinnedBuffer", status);
  }
  if (const int status = f.StateAttachDeviceBuffer(state, memory)) {
    return NvjpegRefusal("nvjpegStateAttachDeviceBuffer", status);
  }
  pages_.push_back(std::move(page));
  return absl::OkStatus();
}

absl::Status NvjpegHybrid::Decode(const JpegImage& image, Stream stream) {
  const NvjpegFunctions& f = *functions_;
  Page& page = pages_[next_];
  if (auto status = page.done.Wait(); !status.ok()) return status;
  if (auto status = ParseHeaders(f, handle_.get(), image, page.headers.get()); !status.ok()) {
    return status;
  }
  int status = f.DecodeJpegHost(handle_.get(), decoder_.get(), page.state.get(), params_.get(),
                                page.headers.get());
  if (status != kNvjpegSuccess) return NvjpegRefusal("nvjpegDecodeJpegHost", status);
  next_ = (next_ + 1) % pages_.size();
  const char* call = "nvjpegDecodeJpegTransferToDevice";
  status = f.DecodeJpegTransferToDevice(handle_.get(), decoder_.get(), page.state.get(),
                                        page.headers.get(), stream);
  if (status == kNvjpegSuccess) {
    call = "nvjpegDecodeJpegDevice";
    NvjpegImage out = OutOf(image);
    status = f.DecodeJpegDevice(handle_.get(), decoder_.get(), page.state.get(), &out, stream);
  }
  // Also after a failure: part of it may be under way.
  if (auto recorded = page.done.Record(stream); !recorded.ok()) return recorded;
  return status == kNvjpegSuccess ? absl::OkStatus() : NvjpegRefusal(call, status);
}

}  // namespace shardpack
