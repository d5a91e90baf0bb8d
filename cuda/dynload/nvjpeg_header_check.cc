// Compiles if the prototypes of nvjpeg_functions.h are those of NVIDIA's own header. Not linked.
#include <stddef.h>

// It takes size_t from the toolkit's headers, hence <stddef.h> before it.
#include <nvjpeg.h>

#include <type_traits>

#include "cuda/dynload/nvjpeg_functions.h"

// Whether arguments of both types are passed in the same way.
template <typename Ours, typename Theirs>
inline constexpr bool kSame =
    std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> && sizeof(Ours) == sizeof(Theirs) &&
    std::is_floating_point_v<Ours> == std::is_floating_point_v<Theirs>&& std::is_class_v<Ours> ==
        std::is_class_v<Theirs>;

template <typename Ours, typename Theirs>
inline constexpr bool kSameCall = false;
template <typename... Ours, typename... Theirs>
inline constexpr bool kSameCall<int (*)(Ours...), nvjpegStatus_t (*)(Theirs...)> = [] {
  if constexpr (sizeof...(Ours) == sizeof...(Theirs)) {
    return (kSame<Ours, Theirs> && ...);
  } else {
    return false;
  }
}();
static_assert(!kSameCall<int (*)(int), nvjpegStatus_t (*)(void*)>);
static_assert(!kSameCall<int (*)(int), nvjpegStatus_t (*)(int, int)>);

#define SHARDPACK_COMPARE(name, users, parameters)                                              \
  static_assert(kSameCall<decltype(shardpack::NvjpegFunctions::name), decltype(&nvjpeg##name)>, \
                #name);
SHARDPACK_NVJPEG_FUNCTIONS(SHARDPACK_COMPARE)

static_assert(sizeof(nvjpegStatus_t) == sizeof(int));
static_assert(sizeof(shardpack::NvjpegImage) == sizeof(nvjpegImage_t));
static_assert(offsetof(shardpack::NvjpegImage, pitch) == offsetof(nvjpegImage_t, pitch));
static_assert(sizeof(shardpack::NvjpegAllocator) == sizeof(nvjpegDevAllocatorV2_t));
static_assert(sizeof(shardpack::NvjpegAllocator) == sizeof(nvjpegPinnedAllocatorV2_t));
static_assert(offsetof(shardpack::NvjpegAllocator, free) ==
              offsetof(nvjpegDevAllocatorV2_t, dev_free));
static_assert(offsetof(shardpack::NvjpegAllocator, context) ==
              offsetof(nvjpegPinnedAllocatorV2_t, pinned_ctx));

#define SHARDPACK_EQUAL(ours, theirs) \
  static_assert(static_cast<long>(shardpack::ours) == static_cast<long>(theirs))
SHARDPACK_EQUAL(kNvjpegSuccess, NVJPEG_STATUS_SUCCESS);
SHARDPACK_EQUAL(kNvjpegInvalidParameter, NVJPEG_STATUS_INVALID_PARAMETER);
SHARDPACK_EQUAL(kNvjpegBadJpeg, NVJPEG_STATUS_BAD_JPEG);
SHARDPACK_EQUAL(kNvjpegJpegNotSupported, NVJPEG_STATUS_JPEG_NOT_SUPPORTED);
SHARDPACK_EQUAL(kNvjpegAllocatorFailure, NVJPEG_STATUS_ALLOCATOR_FAILURE);
SHARDPACK_EQUAL(kNvjpegExecutionFailed, NVJPEG_STATUS_EXECUTION_FAILED);
SHARDPACK_EQUAL(kNvjpegArchMismatch, NVJPEG_STATUS_ARCH_MISMATCH);
SHARDPACK_EQUAL(kNvjpegInternalError, NVJPEG_STATUS_INTERNAL_ERROR);
SHARDPACK_EQUAL(kNvjpegImplementationNotSupported, NVJPEG_STATUS_IMPLEMENTATION_NOT_SUPPORTED);
SHARDPACK_EQUAL(kNvjpegIncompleteBitstream, NVJPEG_STATUS_INCOMPLETE_BITSTREAM);
SHARDPACK_EQUAL(kNvjpegHybrid, NVJPEG_BACKEND_HYBRID);
SHARDPACK_EQUAL(kNvjpegHardware, NVJPEG_BACKEND_HARDWARE);
SHARDPACK_EQUAL(kNvjpegChroma444, NVJPEG_CSS_444);
SHARDPACK_EQUAL(kNvjpegOutputY, NVJPEG_OUTPUT_Y);
SHARDPACK_EQUAL(kNvjpegOutputRgbInterleaved, NVJPEG_OUTPUT_RGBI);
SHARDPACK_EQUAL(kNvjpegInterpolateChroma, NVJPEG_FLAGS_UPSAMPLING_WITH_INTERPOLATION);
SHARDPACK_EQUAL(kNvjpegMajorVersion, MAJOR_VERSION);
SHARDPACK_EQUAL(kNvjpegMinorVersion, MINOR_VERSION);
