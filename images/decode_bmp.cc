#include <climits>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "images/decode_internal.h"
#include "images/probe.h"

// Only BMP is compiled of it, and nothing that opens files.
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_BMP
#define STBI_NO_STDIO
#define STBI_NO_LINEAR
#define STBI_NO_HDR
#define STBI_FAILURE_USERMSG
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb/stb_image.h>
#pragma GCC diagnostic pop

namespace shardpack::decode_internal {

absl::Status DecodeBmp(Bytes file, const CodecRequest& request, PixelBuffer* buffer) {
  if (file.size() > INT_MAX) return absl::ResourceExhaustedError("BMP: more than 2 GiB");
  const auto* data = reinterpret_cast<const stbi_uc*>(file.data());
  const int size_bytes = static_cast<int>(file.size());
  // stb_image reads zeros behind the end of a file.
  const ProbeResult probe = ProbeImage(file, {.max_pixels = UINT64_MAX});
  if (probe.verdict != ProbeVerdict::kOk) return Damaged("BMP", probe.detail);
  int width = 0, height = 0, channels = 0;
  if (!stbi_info_from_memory(data, size_bytes, &width, &height, &channels)) {
    return absl::UnimplementedError(absl::StrCat("BMP: ", stbi_failure_reason()));
  }
  // Rows from the top are told by a negative height.
  const auto rows = static_cast<uint32_t>(height < 0 ? -int64_t{height} : height);
  if (static_cast<uint32_t>(width) != request.width || rows != request.height) {
    return OtherSize(static_cast<uint32_t>(width), rows, request);
  }
  if (!buffer->Reserve(WholeImageBytes(request))) return NoMemory();
  stbi_uc* decoded = stbi_load_from_memory(data, size_bytes, &width, &height, &channels, 3);
  if (decoded == nullptr) return Damaged("BMP", stbi_failure_reason());
  std::memcpy(buffer->data(), decoded, WholeImageBytes(request));
  stbi_image_free(decoded);
  return absl::OkStatus();
}

}  // namespace shardpack::decode_internal
