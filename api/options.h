// Options of the C interface as those of the C++ libraries; zeros are defaults.
//
//   ASSIGN_OR_RETURN(const PixelPipelineOptions decode, DecodeOf(options.decode));
//   ASSIGN_OR_RETURN(const OrderSpec spec, OrderSpecOf(samples, options));
//
// Lifetime: nothing is borrowed after a call.
// Thread-safety: pure functions.
// Errors: InvalidArgument for numbers that are not in the enumeration and reserved members that are
// not zero; other checks are those of the libraries.
#ifndef SHARDPACK_API_OPTIONS_H_
#define SHARDPACK_API_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "api/shardpack.h"
#include "images/augment/pixel_pipeline.h"
#include "images/pixels/pixel_output.h"
#include "images/resize/resize_weights.h"
#include "readers/loading/loader.h"
#include "readers/order/cursor.h"
#include "readers/order/order.h"

namespace shardpack::api {

absl::StatusOr<OutputFormat> OutputOf(uint32_t type, uint32_t layout, const float mean[3],
                                      const float std[3]);
absl::StatusOr<ResizeFilter> FilterOf(uint32_t filter);
// `decode` is not null.
absl::StatusOr<PixelPipelineOptions> DecodeOf(const shardpack_decode* decode);
absl::StatusOr<OrderSpec> OrderSpecOf(uint64_t samples, const shardpack_order_options& options);
// `decode`, names of fields and numbers; the device and the cursor are the caller's.
absl::StatusOr<LoaderOptions> LoaderOptionsOf(const shardpack_loader_options& options);
// `mix` is not null.
absl::StatusOr<MixOptions> MixOf(const shardpack_mix* mix);
// From `least` to kMostThreads. `name` is that of the member.
inline constexpr int32_t kMostThreads = 4096;
absl::Status CheckThreads(int32_t threads, const char* name, int32_t least);
// nullopt for null.
absl::StatusOr<std::optional<Cursor>> CursorOf(const char* text);
// Also after the working folder has changed. `path` is not null.
absl::StatusOr<std::string> AbsolutePath(const char* path);
// Copies of terminated texts; InvalidArgument if one is null. `what` is for messages: "a path".
absl::StatusOr<std::vector<std::string>> TextsOf(const char* const* texts, size_t count,
                                                 const char* what);

}  // namespace shardpack::api

#endif  // SHARDPACK_API_OPTIONS_H_
