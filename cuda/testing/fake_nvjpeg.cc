#include "cuda/testing/fake_nvjpeg.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "cuda/device/host_device.h"
#include "formats/io/status_macros.h"
#include "images/codecs/decode.h"
#include "images/probe/probe.h"

namespace shardpack {

// What the library's opaque objects are here.
struct NvjpegHandleTag {
  int backend;
  NvjpegAllocator* allocator = nullptr;  // on the device
};
// Memory on the device that grows, and whose content does not matter.
struct Scratch {
  NvjpegAllocator* allocator = nullptr;
  void* memory = nullptr;
  size_t bytes = 0;
  void* stream = nullptr;
};
struct NvjpegStreamTag {
  std::span<const std::byte> file;
  ImageInfo info;
  std::thread::id parsed_by;
};
struct NvjpegPinnedTag {
  std::vector<uint8_t> bytes;
  uint64_t used_until = 0;  // of the queue
};
struct NvjpegDeviceTag {
  std::vector<uint8_t> bytes;
  Scratch scratch;
};
struct NvjpegStateTag {
  NvjpegPinned pinned = nullptr;
  NvjpegDevice memory = nullptr;
  PixelRegion part;
  uint8_t channels = 0;
  int batch_size = 0;
  uint64_t used_until = 0;
  Scratch scratch;
};
struct NvjpegDecoderTag {};
struct NvjpegParamsTag {
  int format = 0;
  PixelRegion part;  // empty: all
};

namespace {

FakeNvjpeg* fake = nullptr;

uint8_t ChannelsOf(int format) { return format == kNvjpegOutputY ? 1 : 3; }

// Pixels without gaps, or none from a damaged file.
std::vector<uint8_t> Pixels(std::span<const std::byte> file, uint8_t channels) {
  ImageDecoder decoder;
  DecodeOptions options;
  options.max_pixels = UINT64_MAX;  // it has no limit that we know
  options.channels = channels;
  options.orient = false;
  const auto image = decoder.Decode(file, ImageInfo(), options);
  std::vector<uint8_t> pixels;
  if (!image.ok()) return pixels;
  for (uint32_t y = 0; y < image->view.height; ++y) {
    const uint8_t* row = image->view.Row(y);
    pixels.insert(pixels.end(), row, row + size_t{image->view.width} * channels);
  }
  return pixels;
}

PixelRegion PartOf(NvjpegParams params, const ImageInfo& info) {
  return params == nullptr || params->part.empty() ? PixelRegion{0, 0, info.width, info.height}
                                                   : params->part;
}

RegionFault FaultOf(const PixelRegion& part, const ImageInfo& info, bool engines) {
  const bool whole = part.width == info.width && part.height == info.height;
  if (whole || (fake->options().engine_regions_only && !engines)) return RegionFault::kNone;
  return fake->options().region_fault;
}

// Of the whole image's, what is given for the part, and in `part` what that is.
std::vector<uint8_t> CutOut(const std::vector<uint8_t>& pixels, const ImageInfo& info,
                            uint8_t channels, RegionFault fault, PixelRegion& part) {
  if (pixels.empty()) return pixels;
  PixelRegion from = part;
  if (fault == RegionFault::kIgnored) from = part = {0, 0, info.width, info.height};
  if (fault == RegionFault::kElsewhere) {
    from.left = part.left == 0 ? info.width - part.width : 0;
    from.top = part.top == 0 ? info.height - part.height : 0;
  }
  if (fault == RegionFault::kBeside) ++from.left;
  if (fault == RegionFault::kBelow) ++from.top;
  std::vector<uint8_t> cut;
  for (uint32_t y = 0; y < part.height; ++y) {
    for (uint32_t x = 0; x < part.width; ++x) {
      const uint32_t column = std::min(from.left + x, info.width - 1);
      const uint32_t row = std::min(from.top + y, info.height - 1);
      const uint8_t* const pixel = &pixels[(size_t{row} * info.width + column) * channels];
      const bool edge = (x == 0 && column > 0) || (y == 0 && row > 0) ||
                        (x + 1 == part.width && column + 1 < info.width) ||
                        (y + 1 == part.height && row + 1 < info.height);
      for (uint32_t c = 0; c < channels; ++c) {
        const bool wrong = edge && fault == RegionFault::kEdges;
        cut.push_back(static_cast<uint8_t>(wrong ? ~pixel[c] : pixel[c]));
      }
    }
  }
  return cut;
}

void PutPixels(const std::vector<uint8_t>& pixels, size_t row_bytes, const NvjpegImage& out) {
  for (size_t y = 0; y * row_bytes < pixels.size(); ++y) {
    std::memcpy(out.channel[0] + y * out.pitch[0], pixels.data() + y * row_bytes, row_bytes);
  }
}

void Drop(Scratch& scratch) {
  if (scratch.bytes == 0) return;
  if (scratch.allocator == nullptr) {
    fake->TookOwn(-static_cast<int64_t>(scratch.bytes));
  } else {
    (void)scratch.allocator->free(scratch.allocator->context, scratch.memory, scratch.bytes,
                                  scratch.stream);
  }
  scratch.bytes = 0;
}

// Whether there is as much memory now. Sizes are powers of two, so that few batches take more.
bool Grow(Scratch& scratch, size_t bytes, void* stream) {
  bytes = std::bit_ceil(bytes);
  if (bytes <= scratch.bytes) return true;
  Drop(scratch);
  scratch.stream = stream;
  if (scratch.allocator == nullptr) {
    fake->TookOwn(static_cast<int64_t>(bytes));
  } else if (scratch.allocator->allocate(scratch.allocator->context, &scratch.memory, bytes,
                                         stream) != 0) {
    return false;
  }
  scratch.bytes = bytes;
  return true;
}

template <typename Object>
int Make(const char* name, Object* to, std::remove_pointer_t<Object> made = {}) {
  if (const int code = fake->Enter(name)) return code;
  *to = new std::remove_pointer_t<Object>(std::move(made));
  fake->Born();
  return 0;
}

// Even when the call is to fail: nothing else could free the object.
template <typename Object>
int End(const char* name, Object object) {
  delete object;
  fake->Died();
  return fake->Enter(name);
}

int CreateExV2(int backend, NvjpegAllocator* allocator, NvjpegAllocator*, unsigned flags,
               NvjpegHandle* handle) {
  if (backend == kNvjpegHardware && fake->options().engines == 0) {
    fake->Enter("CreateEx");
    return kNvjpegArchMismatch;
  }
  if (flags != 0 && !fake->options().knows_interpolation) {
    fake->Enter("CreateEx");
    return kNvjpegInvalidParameter;
  }
  return Make("CreateEx", handle, {backend, allocator});
}

int CreateEx(int backend, void*, void*, unsigned flags, NvjpegHandle* handle) {
  return CreateExV2(backend, nullptr, nullptr, flags, handle);
}

int GetHardwareDecoderInfo(NvjpegHandle, unsigned* engines, unsigned* cores) {
  *engines = static_cast<unsigned>(fake->options().engines);
  *cores = 1;
  return fake->Enter("GetHardwareDecoderInfo");
}

int JpegStreamParse(NvjpegHandle, const unsigned char* data, size_t length, int, int,
                    NvjpegStream stream) {
  if (const int code = fake->Enter("JpegStreamParse")) return code;
  stream->file = {reinterpret_cast<const std::byte*>(data), length};
  stream->parsed_by = std::this_thread::get_id();
  fake->BeginParse();
  std::this_thread::sleep_for(std::chrono::microseconds(fake->options().parse_us));
  fake->EndParse();
  if (stream->parsed_by != std::this_thread::get_id()) fake->Misused();
  const auto known = KnownImageInfo(stream->file, ImageInfo(), UINT64_MAX);
  if (!known.ok() || known->format != ImageFormat::kJpeg) return kNvjpegBadJpeg;
  stream->info = *known;
  return 0;
}

int JpegStreamGetFrameDimensions(NvjpegStream stream, unsigned* width, unsigned* height) {
  *width = stream->info.width;
  *height = stream->info.height;
  return fake->Enter("JpegStreamGetFrameDimensions");
}

int DecodeBatchedSupported(NvjpegHandle handle, NvjpegStream stream, int* unsupported) {
  if (handle->backend != kNvjpegHardware) fake->Misused();
  if (stream->parsed_by != std::this_thread::get_id()) fake->Misused();
  *unsupported = stream->info.progressive() ? 1 : 0;
  return fake->Enter("DecodeBatchedSupported");
}

int DecodeBatchedSupportedEx(NvjpegHandle handle, NvjpegStream stream, NvjpegParams params,
                             int* unsupported) {
  if (const int code = DecodeBatchedSupported(handle, stream, unsupported)) return code;
  const PixelRegion part = PartOf(params, stream->info);
  if (FaultOf(part, stream->info, true) == RegionFault::kNotSupported) *unsupported = 1;
  return 0;
}

int DecodeParamsSetROI(NvjpegParams params, int left, int top, int width, int height) {
  params->part = {};
  if (width > 0) {
    params->part = {static_cast<uint32_t>(left), static_cast<uint32_t>(top),
                    static_cast<uint32_t>(width), static_cast<uint32_t>(height)};
    if (fake->options().region_fault == RegionFault::kNoParams) return kNvjpegInvalidParameter;
  }
  return fake->Enter("DecodeParamsSetROI");
}

int DecodeBatchedPreAllocate(NvjpegHandle, NvjpegState state, int batch_size, int width, int height,
                             int, int format) {
  if (fake->IsPending(state->used_until)) fake->Misused();
  if (batch_size < 1 || width < 1 || height < 1) fake->Misused();
  if (const int code = fake->Enter("DecodeBatchedPreAllocate")) return code;
  const size_t bytes = static_cast<size_t>(batch_size) * static_cast<size_t>(width) *
                       static_cast<size_t>(height) * ChannelsOf(format);
  return Grow(state->scratch, bytes, nullptr) ? 0 : kNvjpegAllocatorFailure;
}

int DecodeBatchedInitialize(NvjpegHandle, NvjpegState state, int batch_size, int, int format) {
  if (fake->IsPending(state->used_until)) fake->Misused();
  state->batch_size = batch_size;
  state->channels = ChannelsOf(format);
  return fake->Enter("DecodeBatchedInitialize");
}

// What engines write to images of a batch that they refuse once they have begun it.
void WriteRubbishLater(NvjpegState state, size_t row_bytes, uint32_t height, const NvjpegImage& out,
                       void* stream) {
  state->used_until = fake->Enqueue(stream, [=] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    for (uint32_t y = 0; y < height; ++y) {
      std::memset(out.channel[0] + y * out.pitch[0], 0xEE, row_bytes);
    }
  });
}

// For the whole batch before any image of it: nvJPEG reports one status for all.
int CheckBatch(NvjpegState state, const unsigned char* const* data, const size_t* lengths,
               const NvjpegImage* images, const NvjpegParams* params, void* stream) {
  size_t bytes = 0;
  for (int i = 0; i < state->batch_size; ++i) {
    const std::span file(reinterpret_cast<const std::byte*>(data[i]), lengths[i]);
    const auto info = KnownImageInfo(file, ImageInfo(), UINT64_MAX);
    if (!info.ok()) return kNvjpegBadJpeg;
    const auto& status = fake->options().engine_status;
    const PixelRegion part = PartOf(params == nullptr ? nullptr : params[i], *info);
    int code = status == nullptr ? 0 : status(file);
    if (FaultOf(part, *info, true) == RegionFault::kRefused) code = kNvjpegJpegNotSupported;
    if (code != 0) {
      if (fake->options().refuses_late) {
        WriteRubbishLater(state, size_t{part.width} * state->channels, part.height, images[i],
                          stream);
      }
      return code;
    }
    bytes += size_t{info->width} * info->height * state->channels;
  }
  return Grow(state->scratch, bytes, stream) ? 0 : kNvjpegAllocatorFailure;
}

int DecodeBatchedEx(NvjpegHandle, NvjpegState state, const unsigned char* const* data,
                    const size_t* lengths, NvjpegImage* images, NvjpegParams* params,
                    void* stream) {
  if (const int code = fake->Enter(params == nullptr ? "DecodeBatched" : "DecodeBatchedEx"))
    return code;
  if (const int code = CheckBatch(state, data, lengths, images, params, stream)) return code;
  const FakeNvjpegOptions& options = fake->options();
  const auto part_of = [&](int i, const ImageInfo& info) {
    return PartOf(params == nullptr ? nullptr : params[i], info);
  };
  uint64_t all_pixels = 0;
  for (int i = 0; i < state->batch_size; ++i) {
    const std::span file(reinterpret_cast<const std::byte*>(data[i]), lengths[i]);
    const PixelRegion part = part_of(i, *KnownImageInfo(file, ImageInfo(), UINT64_MAX));
    all_pixels += uint64_t{part.width} * part.height;
  }
  fake->Wrote(all_pixels);
  const auto time = std::chrono::nanoseconds(
      static_cast<int64_t>((1000.0 * options.engine_us * state->batch_size +
                            options.engine_ns_a_pixel * static_cast<double>(all_pixels)) /
                           std::max(options.engines, 1)));
  if (time.count() > 0) {
    fake->Enqueue(stream, [time] {
      const std::lock_guard busy(fake->engines());
      std::this_thread::sleep_for(time);
    });
  }
  if (options.engine_work != nullptr) {
    fake->Enqueue(stream, options.engine_work);
  }
  for (int i = 0; i < state->batch_size; ++i) {
    const std::span file(reinterpret_cast<const std::byte*>(data[i]), lengths[i]);
    if (options.skips != nullptr && options.skips(file)) continue;
    const auto info = KnownImageInfo(file, ImageInfo(), UINT64_MAX);
    const ImageInfo known = *info;
    const PixelRegion part = part_of(i, known);
    const RegionFault fault = FaultOf(part, known, true);
    const NvjpegImage out = images[i];
    const uint8_t channels = state->channels;
    const bool is_wrong = options.is_wrong != nullptr && options.is_wrong(file);
    const auto put = [=] {
      PixelRegion put_part = part;
      std::vector<uint8_t> pixels =
          CutOut(Pixels(file, channels), known, channels, fault, put_part);
      if (is_wrong) std::reverse(pixels.begin(), pixels.end());
      PutPixels(pixels, size_t{put_part.width} * channels, out);
    };
    // The engines write when they are called, whatever the stream still has to do, as was measured
    // (torchcodec, pull request 1634). And later too, so that memory that is freed early is found.
    put();
    state->used_until = fake->Enqueue(stream, put);
  }
  return 0;
}

int DecodeBatched(NvjpegHandle handle, NvjpegState state, const unsigned char* const* data,
                  const size_t* lengths, NvjpegImage* images, void* stream) {
  return DecodeBatchedEx(handle, state, data, lengths, images, nullptr, stream);
}

int DecodeJpegHost(NvjpegHandle, NvjpegDecoder, NvjpegState state, NvjpegParams params,
                   NvjpegStream stream) {
  if (const int code = fake->Enter("DecodeJpegHost")) return code;
  if (fake->IsPending(state->pinned->used_until)) fake->Misused();
  state->part = PartOf(params, stream->info);
  state->channels = ChannelsOf(params->format);
  const RegionFault fault = FaultOf(state->part, stream->info, false);
  if (fault == RegionFault::kRefused) return kNvjpegJpegNotSupported;
  fake->Wrote(uint64_t{state->part.width} * state->part.height);
  state->pinned->bytes = CutOut(Pixels(stream->file, state->channels), stream->info,
                                state->channels, fault, state->part);
  return state->pinned->bytes.empty() ? kNvjpegBadJpeg : 0;
}

int DecodeJpegTransferToDevice(NvjpegHandle, NvjpegDecoder, NvjpegState state, NvjpegStream,
                               void* stream) {
  if (const int code = fake->Enter("DecodeJpegTransferToDevice")) return code;
  if (!Grow(state->memory->scratch, state->pinned->bytes.size(), stream)) {
    return kNvjpegAllocatorFailure;
  }
  state->pinned->used_until = fake->Enqueue(
      stream, [pinned = state->pinned, memory = state->memory] { memory->bytes = pinned->bytes; });
  return 0;
}

int DecodeJpegDevice(NvjpegHandle, NvjpegDecoder, NvjpegState state, NvjpegImage* image,
                     void* stream) {
  if (const int code = fake->Enter("DecodeJpegDevice")) return code;
  const size_t row_bytes = size_t{state->part.width} * state->channels;
  state->used_until = fake->Enqueue(stream, [memory = state->memory, row_bytes, out = *image] {
    PutPixels(memory->bytes, row_bytes, out);
  });
  return 0;
}

NvjpegFunctions MakeFunctions() {
  NvjpegFunctions f;
  f.GetProperty = [](int, int* value) { return *value = 13, 0; };
  f.CreateEx = CreateEx;
  f.CreateExV2 = CreateExV2;
  f.Destroy = [](NvjpegHandle h) { return End("Destroy", h); };
  f.GetHardwareDecoderInfo = GetHardwareDecoderInfo;
  f.JpegStreamCreate = [](NvjpegHandle, NvjpegStream* s) { return Make("JpegStreamCreate", s); };
  f.JpegStreamDestroy = [](NvjpegStream s) { return End("JpegStreamDestroy", s); };
  f.JpegStreamParse = JpegStreamParse;
  f.JpegStreamGetFrameDimensions = JpegStreamGetFrameDimensions;
  f.JpegStateCreate = [](NvjpegHandle handle, NvjpegState* s) {
    const int code = Make("JpegStateCreate", s);
    if (code == 0) (*s)->scratch.allocator = handle->allocator;
    return code;
  };
  f.JpegStateDestroy = [](NvjpegState s) {
    if (fake->IsPending(s->used_until)) fake->Misused();
    Drop(s->scratch);
    return End("JpegStateDestroy", s);
  };
  f.DecodeBatchedSupported = DecodeBatchedSupported;
  f.DecodeBatchedSupportedEx = DecodeBatchedSupportedEx;
  f.DecodeBatchedEx = DecodeBatchedEx;
  f.DecodeParamsSetROI = DecodeParamsSetROI;
  f.DecodeBatchedPreAllocate = DecodeBatchedPreAllocate;
  f.DecodeBatchedInitialize = DecodeBatchedInitialize;
  f.DecodeBatched = DecodeBatched;
  f.DecoderCreate = [](NvjpegHandle, int, NvjpegDecoder* d) { return Make("DecoderCreate", d); };
  f.DecoderDestroy = [](NvjpegDecoder d) { return End("DecoderDestroy", d); };
  f.DecoderStateCreate = [](NvjpegHandle, NvjpegDecoder, NvjpegState* s) {
    return Make("DecoderStateCreate", s);
  };
  f.DecodeParamsCreate = [](NvjpegHandle, NvjpegParams* p) {
    return Make("DecodeParamsCreate", p);
  };
  f.DecodeParamsDestroy = [](NvjpegParams p) { return End("DecodeParamsDestroy", p); };
  f.DecodeParamsSetOutputFormat = [](NvjpegParams p, int format) {
    p->format = format;
    return fake->Enter("DecodeParamsSetOutputFormat");
  };
  f.BufferPinnedCreate = [](NvjpegHandle, void*, NvjpegPinned* b) {
    return Make("BufferPinnedCreate", b);
  };
  f.BufferPinnedDestroy = [](NvjpegPinned b) {
    if (fake->IsPending(b->used_until)) fake->Misused();
    return End("BufferPinnedDestroy", b);
  };
  f.BufferDeviceCreate = [](NvjpegHandle, void*, NvjpegDevice* b) {
    return Make("BufferDeviceCreate", b);
  };
  f.BufferPinnedCreateV2 = [](NvjpegHandle, NvjpegAllocator*, NvjpegPinned* b) {
    return Make("BufferPinnedCreate", b);
  };
  f.BufferDeviceCreateV2 = [](NvjpegHandle, NvjpegAllocator* allocator, NvjpegDevice* b) {
    const int code = Make("BufferDeviceCreate", b);
    if (code == 0) (*b)->scratch.allocator = allocator;
    return code;
  };
  f.BufferDeviceDestroy = [](NvjpegDevice b) {
    Drop(b->scratch);
    return End("BufferDeviceDestroy", b);
  };
  f.StateAttachPinnedBuffer = [](NvjpegState s, NvjpegPinned b) {
    s->pinned = b;
    return fake->Enter("StateAttachPinnedBuffer");
  };
  f.StateAttachDeviceBuffer = [](NvjpegState s, NvjpegDevice b) {
    s->memory = b;
    return fake->Enter("StateAttachDeviceBuffer");
  };
  f.DecodeJpegHost = DecodeJpegHost;
  f.DecodeJpegTransferToDevice = DecodeJpegTransferToDevice;
  f.DecodeJpegDevice = DecodeJpegDevice;
  return f;
}

// An event: how much of the queue was before it.
using Recorded = uint64_t;

}  // namespace

// A GPU whose work waits in the queue of the FakeNvjpeg: what a decoder calls.
class FakeNvjpeg::LazyDevice final : public HostDevice {
 public:
  explicit LazyDevice(FakeNvjpeg& owner) : owner_(owner) {}

  absl::StatusOr<void*> AllocateHost(size_t bytes) override {
    RETURN_IF_ERROR(Enter("AllocateHost"));
    void* const memory = std::malloc(bytes);
    const std::lock_guard lock(mutex_);
    pinned_[static_cast<std::byte*>(memory)] = bytes;
    owner_.Born();
    return memory;
  }
  absl::Status FreeHost(void* memory) override {
    {
      const std::lock_guard lock(mutex_);
      pinned_.erase(static_cast<std::byte*>(memory));
    }
    std::free(memory);
    owner_.Died();
    return Enter("FreeHost");
  }
  absl::StatusOr<void*> Allocate(size_t bytes, std::string_view purpose) override {
    RETURN_IF_ERROR(Enter("Allocate"));
    owner_.Born();
    return HostDevice::Allocate(bytes, purpose);
  }
  absl::Status Free(void* memory) override {
    owner_.Finish();
    owner_.Died();
    (void)HostDevice::Free(memory);
    return Enter("Free");
  }
  absl::StatusOr<Event> CreateEvent() override {
    RETURN_IF_ERROR(Enter("CreateEvent"));
    owner_.Born();
    return reinterpret_cast<Event>(new Recorded(0));
  }
  absl::Status DestroyEvent(Event event) override {
    delete reinterpret_cast<Recorded*>(event);
    owner_.Died();
    return Enter("DestroyEvent");
  }
  absl::Status RecordEvent(Event event, Stream) override {
    RETURN_IF_ERROR(Enter("RecordEvent"));
    *reinterpret_cast<Recorded*>(event) = owner_.enqueued();
    return absl::OkStatus();
  }
  // Asking waits: the queue runs until the event.
  absl::StatusOr<bool> IsDone(Event event) override {
    RETURN_IF_ERROR(Enter("IsDone"));
    owner_.RunUntil(*reinterpret_cast<Recorded*>(event));
    return true;
  }
  absl::Status CopyToDevice(void* to, const void* from, size_t bytes, Stream) override {
    RETURN_IF_ERROR(Enter("CopyToDevice"));
    owner_.Enqueue(nullptr, [=] { std::memcpy(to, from, bytes); });
    // The device copies other memory before it returns.
    if (!IsPageLocked(from)) owner_.Finish();
    return absl::OkStatus();
  }

 private:
  absl::Status Enter(const char* call) {
    const int code = owner_.Enter(call);
    return code == 0 ? absl::OkStatus() : Failure(code, "fake", call);
  }

  bool IsPageLocked(const void* from) const {
    const std::lock_guard lock(mutex_);
    const auto found = pinned_.upper_bound(static_cast<std::byte*>(const_cast<void*>(from)));
    return found != pinned_.begin() && std::prev(found)->first + std::prev(found)->second > from;
  }

  FakeNvjpeg& owner_;
  mutable std::mutex mutex_;
  std::map<std::byte*, size_t> pinned_;
};

FakeNvjpeg::FakeNvjpeg(const FakeNvjpegOptions& options, FakeDevice* device)
    : options_(options),
      functions_(MakeFunctions()),
      fake_device_(device),
      lazy_device_(std::make_unique<LazyDevice>(*this)) {
  fake = this;
}

FakeNvjpeg::~FakeNvjpeg() { fake = nullptr; }

Device& FakeNvjpeg::device() const {
  if (fake_device_ != nullptr) return *fake_device_;
  return *lazy_device_;
}

void FakeNvjpeg::FailAt(int64_t call, int code) {
  const std::lock_guard lock(mutex_);
  fail_in_ = call;
  code_ = code;
}

bool FakeNvjpeg::failed() const {
  const std::lock_guard lock(mutex_);
  return fail_in_ <= 0;
}

void FakeNvjpeg::BeginParse() {
  const int now = ++parses_;
  for (int most = most_parses_; now > most && !most_parses_.compare_exchange_weak(most, now);) {
  }
}

bool FakeNvjpeg::IsCurrent() const {
  if (options_.is_current != nullptr) return options_.is_current();
  return fake_device_ == nullptr || fake_device_->HasEntered();
}

int FakeNvjpeg::Enter(const char* name) {
  if (!IsCurrent()) Misused();
  const std::lock_guard lock(mutex_);
  ++calls_[name];
  return --fail_in_ == 0 ? code_ : 0;
}

uint64_t FakeNvjpeg::Calls(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(name);
  return found == calls_.end() ? 0 : found->second;
}

uint64_t FakeNvjpeg::Enqueue(void* stream, std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (fake_device_ == nullptr) {
    queue_.push_back(std::move(work));
  } else {
    const uint64_t number = enqueued_ + 1;
    {
      const std::lock_guard pending(pending_->mutex);
      pending_->numbers.insert(number);
    }
    fake_device_->Enqueue(static_cast<Stream>(stream),
                          [pending = pending_, number, work = std::move(work)] {
                            work();
                            const std::lock_guard done(pending->mutex);
                            pending->numbers.erase(number);
                          });
  }
  return ++enqueued_;
}

// Streams do not keep the order of what was enqueued.
bool FakeNvjpeg::IsPending(uint64_t number) const {
  if (fake_device_ == nullptr) return number > done_;
  const std::lock_guard lock(pending_->mutex);
  return pending_->numbers.count(number) > 0;
}

void FakeNvjpeg::RunUntil(uint64_t count) {
  const std::lock_guard alone(running_);
  while (done_ < count) {
    std::function<void()> work;
    {
      const std::lock_guard lock(mutex_);
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work();
    ++done_;
  }
}

}  // namespace shardpack
