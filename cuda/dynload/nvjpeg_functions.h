// NvjpegFunctions: the functions of nvJPEG that are used, as a table of pointers. The prototypes
// are our own: nvJPEG is opened at run time and its header is not needed;
// //cuda/dynload:nvjpeg_header_test compares the two.
//
//   NvjpegHandle handle = nullptr;
//   const int status = functions.CreateEx(kNvjpegHybrid, nullptr, nullptr, 0, &handle);
//
// Every pointer may be null: libraries differ in what they have. Names are the library's without
// their "nvjpeg".
//
// Lifetime: that of the library.
// Thread-safety: the library's: handles from any thread, states from one at a time.
// Errors: the library's; 0 is success.
// Units: bytes, pixels.
#ifndef SHARDPACK_CUDA_DYNLOAD_NVJPEG_FUNCTIONS_H_
#define SHARDPACK_CUDA_DYNLOAD_NVJPEG_FUNCTIONS_H_

#include <cstddef>

namespace shardpack {

using NvjpegHandle = struct NvjpegHandleTag*;
using NvjpegState = struct NvjpegStateTag*;
using NvjpegStream = struct NvjpegStreamTag*;  // the parsed headers of one file
using NvjpegDecoder = struct NvjpegDecoderTag*;
using NvjpegParams = struct NvjpegParamsTag*;
using NvjpegPinned = struct NvjpegPinnedTag*;
using NvjpegDevice = struct NvjpegDeviceTag*;

// nvjpegImage_t.
struct NvjpegImage {
  unsigned char* channel[4];
  size_t pitch[4];
};

// nvjpegDevAllocatorV2_t and nvjpegPinnedAllocatorV2_t: what they hand out is used in the order of
// the stream. 0 is success.
struct NvjpegAllocator {
  int (*allocate)(void* context, void** memory, size_t bytes, void* cuda_stream);
  int (*free)(void* context, void* memory, size_t bytes, void* cuda_stream);
  void* context;
};

// nvjpegStatus_t.
enum NvjpegStatus : int {
  kNvjpegSuccess = 0,
  kNvjpegInvalidParameter = 2,
  kNvjpegBadJpeg = 3,
  kNvjpegJpegNotSupported = 4,
  kNvjpegAllocatorFailure = 5,
  kNvjpegExecutionFailed = 6,
  kNvjpegArchMismatch = 7,
  kNvjpegInternalError = 8,
  kNvjpegImplementationNotSupported = 9,
  kNvjpegIncompleteBitstream = 10,
};
const char* NvjpegStatusName(int status);

// nvjpegBackend_t, nvjpegOutputFormat_t, flags of CreateEx, libraryPropertyType.
inline constexpr int kNvjpegHybrid = 1, kNvjpegHardware = 3;
inline constexpr int kNvjpegChroma444 = 0;
inline constexpr int kNvjpegOutputY = 2, kNvjpegOutputRgbInterleaved = 5;
// Chroma is interpolated as libjpeg does ("fancy upsampling"); from 12.1 on.
inline constexpr unsigned kNvjpegInterpolateChroma = 32;
inline constexpr int kNvjpegMajorVersion = 0, kNvjpegMinorVersion = 1;

// The backends that cannot do without a function: a bit each.
inline constexpr unsigned kNvjpegForHybrid = 1, kNvjpegForHardware = 2, kNvjpegForBoth = 3,
                          kNvjpegForNone = 0;
// And what they need to decode parts of images.
inline constexpr unsigned kNvjpegForHybridRegions = 4, kNvjpegForHardwareRegions = 8,
                          kNvjpegForParams = kNvjpegForHybrid | kNvjpegForHardwareRegions;

// F(name, users, (parameters)). A cudaStream_t is a void*.
#define SHARDPACK_NVJPEG_FUNCTIONS(F)                                                            \
  F(GetProperty, kNvjpegForNone, (int property, int* value))                                     \
  F(CreateEx, kNvjpegForBoth,                                                                    \
    (int backend, void* dev_allocator, void* pinned_allocator, unsigned flags,                   \
     NvjpegHandle* handle))                                                                      \
  F(CreateExV2, kNvjpegForNone,                                                                  \
    (int backend, NvjpegAllocator* dev_allocator, NvjpegAllocator* pinned_allocator,             \
     unsigned flags, NvjpegHandle* handle))                                                      \
  F(Destroy, kNvjpegForBoth, (NvjpegHandle handle))                                              \
  F(GetHardwareDecoderInfo, kNvjpegForNone,                                                      \
    (NvjpegHandle handle, unsigned* engines, unsigned* cores))                                   \
  F(JpegStreamCreate, kNvjpegForBoth, (NvjpegHandle handle, NvjpegStream * stream))              \
  F(JpegStreamDestroy, kNvjpegForBoth, (NvjpegStream stream))                                    \
  F(JpegStreamParse, kNvjpegForBoth,                                                             \
    (NvjpegHandle handle, const unsigned char* data, size_t length, int save_metadata,           \
     int save_stream, NvjpegStream stream))                                                      \
  F(JpegStreamGetFrameDimensions, kNvjpegForBoth,                                                \
    (NvjpegStream stream, unsigned* width, unsigned* height))                                    \
  F(JpegStateCreate, kNvjpegForHardware, (NvjpegHandle handle, NvjpegState * state))             \
  F(JpegStateDestroy, kNvjpegForBoth, (NvjpegState state))                                       \
  F(DecodeBatchedSupported, kNvjpegForHardware,                                                  \
    (NvjpegHandle handle, NvjpegStream stream, int* unsupported))                                \
  F(DecodeBatchedInitialize, kNvjpegForHardware,                                                 \
    (NvjpegHandle handle, NvjpegState state, int batch_size, int max_cpu_threads, int format))   \
  F(DecodeBatchedPreAllocate, kNvjpegForNone,                                                    \
    (NvjpegHandle handle, NvjpegState state, int batch_size, int width, int height,              \
     int chroma_subsampling, int format))                                                        \
  F(DecodeBatched, kNvjpegForHardware,                                                           \
    (NvjpegHandle handle, NvjpegState state, const unsigned char* const* data,                   \
     const size_t* lengths, NvjpegImage* images, void* cuda_stream))                             \
  F(DecodeBatchedSupportedEx, kNvjpegForHardwareRegions,                                         \
    (NvjpegHandle handle, NvjpegStream stream, NvjpegParams params, int* unsupported))           \
  F(DecodeBatchedEx, kNvjpegForHardwareRegions,                                                  \
    (NvjpegHandle handle, NvjpegState state, const unsigned char* const* data,                   \
     const size_t* lengths, NvjpegImage* images, NvjpegParams* params, void* cuda_stream))       \
  F(DecoderCreate, kNvjpegForHybrid, (NvjpegHandle handle, int backend, NvjpegDecoder* decoder)) \
  F(DecoderDestroy, kNvjpegForHybrid, (NvjpegDecoder decoder))                                   \
  F(DecoderStateCreate, kNvjpegForHybrid,                                                        \
    (NvjpegHandle handle, NvjpegDecoder decoder, NvjpegState * state))                           \
  F(DecodeParamsCreate, kNvjpegForParams, (NvjpegHandle handle, NvjpegParams * params))          \
  F(DecodeParamsDestroy, kNvjpegForParams, (NvjpegParams params))                                \
  F(DecodeParamsSetOutputFormat, kNvjpegForParams, (NvjpegParams params, int format))            \
  F(DecodeParamsSetROI, kNvjpegForHybridRegions | kNvjpegForHardwareRegions,                     \
    (NvjpegParams params, int left, int top, int width, int height))                             \
  F(BufferPinnedCreate, kNvjpegForHybrid,                                                        \
    (NvjpegHandle handle, void* allocator, NvjpegPinned* buffer))                                \
  F(BufferPinnedCreateV2, kNvjpegForNone,                                                        \
    (NvjpegHandle handle, NvjpegAllocator * allocator, NvjpegPinned * buffer))                   \
  F(BufferPinnedDestroy, kNvjpegForHybrid, (NvjpegPinned buffer))                                \
  F(BufferDeviceCreate, kNvjpegForHybrid,                                                        \
    (NvjpegHandle handle, void* allocator, NvjpegDevice* buffer))                                \
  F(BufferDeviceCreateV2, kNvjpegForNone,                                                        \
    (NvjpegHandle handle, NvjpegAllocator * allocator, NvjpegDevice * buffer))                   \
  F(BufferDeviceDestroy, kNvjpegForHybrid, (NvjpegDevice buffer))                                \
  F(StateAttachPinnedBuffer, kNvjpegForHybrid, (NvjpegState state, NvjpegPinned buffer))         \
  F(StateAttachDeviceBuffer, kNvjpegForHybrid, (NvjpegState state, NvjpegDevice buffer))         \
  F(DecodeJpegHost, kNvjpegForHybrid,                                                            \
    (NvjpegHandle handle, NvjpegDecoder decoder, NvjpegState state, NvjpegParams params,         \
     NvjpegStream stream))                                                                       \
  F(DecodeJpegTransferToDevice, kNvjpegForHybrid,                                                \
    (NvjpegHandle handle, NvjpegDecoder decoder, NvjpegState state, NvjpegStream stream,         \
     void* cuda_stream))                                                                         \
  F(DecodeJpegDevice, kNvjpegForHybrid,                                                          \
    (NvjpegHandle handle, NvjpegDecoder decoder, NvjpegState state, NvjpegImage * image,         \
     void* cuda_stream))

struct NvjpegFunctions {
#define SHARDPACK_NVJPEG_MEMBER(name, users, parameters) int(*name) parameters = nullptr;
  SHARDPACK_NVJPEG_FUNCTIONS(SHARDPACK_NVJPEG_MEMBER)
#undef SHARDPACK_NVJPEG_MEMBER
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_DYNLOAD_NVJPEG_FUNCTIONS_H_
