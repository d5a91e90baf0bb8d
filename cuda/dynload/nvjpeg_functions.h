// NvjpegFunctions: what is used of nvJPEG, as a table of pointers. Own prototypes: nvJPEG is opened
// at run time and its header is not needed; //cuda/dynload:nvjpeg_header_test compares the two.
//
//   NvjpegHandle handle = nullptr;
//   const int status = functions.CreateEx(kNvjpegHybrid, nullptr, nullptr, 0, &handle);
//
// Every pointer may be null: libraries differ in what they have. Names are the library's without
// their "nvjpeg".
//
// Lifetime: that of the library.
// Thread-safety and errors: the library's (handles from any thread, states from one at a time; 0 is
// success).
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

// F(name, (parameters)). A cudaStream_t is a void*.
#define SHARDPACK_NVJPEG_FUNCTIONS(F)                                                             \
  F(GetProperty, (int property, int* value))                                                      \
  F(CreateEx, (int backend, void* dev_allocator, void* pinned_allocator, unsigned flags,          \
               NvjpegHandle* handle))                                                             \
  F(Destroy, (NvjpegHandle handle))                                                               \
  F(GetHardwareDecoderInfo, (NvjpegHandle handle, unsigned* engines, unsigned* cores))            \
  F(JpegStreamCreate, (NvjpegHandle handle, NvjpegStream * stream))                               \
  F(JpegStreamDestroy, (NvjpegStream stream))                                                     \
  F(JpegStreamParse, (NvjpegHandle handle, const unsigned char* data, size_t length,              \
                      int save_metadata, int save_stream, NvjpegStream stream))                   \
  F(JpegStreamGetFrameDimensions, (NvjpegStream stream, unsigned* width, unsigned* height))       \
  F(JpegStateCreate, (NvjpegHandle handle, NvjpegState * state))                                  \
  F(JpegStateDestroy, (NvjpegState state))                                                        \
  F(DecodeBatchedSupported, (NvjpegHandle handle, NvjpegStream stream, int* unsupported))         \
  F(DecodeBatchedInitialize,                                                                      \
    (NvjpegHandle handle, NvjpegState state, int batch_size, int max_cpu_threads, int format))    \
  F(DecodeBatchedPreAllocate, (NvjpegHandle handle, NvjpegState state, int batch_size, int width, \
                               int height, int chroma_subsampling, int format))                   \
  F(DecodeBatched, (NvjpegHandle handle, NvjpegState state, const unsigned char* const* data,     \
                    const size_t* lengths, NvjpegImage* images, void* cuda_stream))               \
  F(DecoderCreate, (NvjpegHandle handle, int backend, NvjpegDecoder* decoder))                    \
  F(DecoderDestroy, (NvjpegDecoder decoder))                                                      \
  F(DecoderStateCreate, (NvjpegHandle handle, NvjpegDecoder decoder, NvjpegState * state))        \
  F(DecodeParamsCreate, (NvjpegHandle handle, NvjpegParams * params))                             \
  F(DecodeParamsDestroy, (NvjpegParams params))                                                   \
  F(DecodeParamsSetOutputFormat, (NvjpegParams params, int format))                               \
  F(BufferPinnedCreate, (NvjpegHandle handle, void* allocator, NvjpegPinned* buffer))             \
  F(BufferPinnedDestroy, (NvjpegPinned buffer))                                                   \
  F(BufferDeviceCreate, (NvjpegHandle handle, void* allocator, NvjpegDevice* buffer))             \
  F(BufferDeviceDestroy, (NvjpegDevice buffer))                                                   \
  F(StateAttachPinnedBuffer, (NvjpegState state, NvjpegPinned buffer))                            \
  F(StateAttachDeviceBuffer, (NvjpegState state, NvjpegDevice buffer))                            \
  F(DecodeJpegHost, (NvjpegHandle handle, NvjpegDecoder decoder, NvjpegState state,               \
                     NvjpegParams params, NvjpegStream stream))                                   \
  F(DecodeJpegTransferToDevice, (NvjpegHandle handle, NvjpegDecoder decoder, NvjpegState state,   \
                                 NvjpegStream stream, void* cuda_stream))                         \
  F(DecodeJpegDevice, (NvjpegHandle handle, NvjpegDecoder decoder, NvjpegState state,             \
                       NvjpegImage * image, void* cuda_stream))

struct NvjpegFunctions {
#define SHARDPACK_NVJPEG_MEMBER(name, parameters) int(*name) parameters = nullptr;
  SHARDPACK_NVJPEG_FUNCTIONS(SHARDPACK_NVJPEG_MEMBER)
#undef SHARDPACK_NVJPEG_MEMBER
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_DYNLOAD_NVJPEG_FUNCTIONS_H_
