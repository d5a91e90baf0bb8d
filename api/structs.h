// Structs of the C interface that may be shorter or longer than those of this library: their first
// member is `size_t size`, the bytes that the caller knows.
//
//   ASSIGN_OR_RETURN(const shardpack_order_options options, Known(given, "order options"));
//   RETURN_IF_ERROR(Fill(view, "batch view", [&](shardpack_batch_view& all) { ... }));
//
// Thread-safety: pure functions.
// Errors: InvalidArgument for a size that no version has, a null result, and options beyond what is
// known that are not zero: they ask for what this version cannot do.
#ifndef SHARDPACK_API_STRUCTS_H_
#define SHARDPACK_API_STRUCTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/errors.h"
#include "api/shardpack.h"

namespace shardpack::api {

// The bytes that each struct had in the first version, so that nobody has a shorter one. They never
// change.
template <typename T>
inline constexpr size_t kFirstSize = 0;
template <>
inline constexpr size_t kFirstSize<shardpack_error_info> = 120;
template <>
inline constexpr size_t kFirstSize<shardpack_dataset_info> = 72;
template <>
inline constexpr size_t kFirstSize<shardpack_shard_info> = 80;
template <>
inline constexpr size_t kFirstSize<shardpack_order_options> = 80;
template <>
inline constexpr size_t kFirstSize<shardpack_decode> = 128;
template <>
inline constexpr size_t kFirstSize<shardpack_image_info> = 32;
template <>
inline constexpr size_t kFirstSize<shardpack_mix> = 56;
template <>
inline constexpr size_t kFirstSize<shardpack_own_operation> = 48;
template <>
inline constexpr size_t kFirstSize<shardpack_field_decode> = 96;
template <>
inline constexpr size_t kFirstSize<shardpack_decoded_field> = 32;
template <>
inline constexpr size_t kFirstSize<shardpack_objects> = 120;
template <>
inline constexpr size_t kFirstSize<shardpack_loader_options> = 112;
template <>
inline constexpr size_t kFirstSize<shardpack_batch_view> = 120;
template <>
inline constexpr size_t kFirstSize<shardpack_device_info> = 88;
template <>
inline constexpr size_t kFirstSize<shardpack_device_options> = 88;
template <>
inline constexpr size_t kFirstSize<shardpack_resident_options> = 112;
template <>
inline constexpr size_t kFirstSize<shardpack_target> = 32;
template <>
inline constexpr size_t kFirstSize<shardpack_job_options> = 16;
template <>
inline constexpr size_t kFirstSize<shardpack_job_progress> = 72;
template <>
inline constexpr size_t kFirstSize<shardpack_writer_options> = 32;
template <>
inline constexpr size_t kFirstSize<shardpack_samples> = 56;

// A size beyond this was never set.
inline constexpr size_t kLargestStruct = 65536;

absl::Status BadStructSize(const char* what, size_t size, size_t least);
absl::Status UnknownMembers(const char* what, size_t known);

template <typename T>
absl::Status CheckSize(size_t size, const char* what) {
  static_assert(kFirstSize<T> > sizeof(size_t) && kFirstSize<T> <= sizeof(T));
  // The size of every version is a multiple of the alignment.
  if (size >= kFirstSize<T> && size <= kLargestStruct && size % alignof(T) == 0)
    return absl::OkStatus();
  return BadStructSize(what, size, kFirstSize<T>);
}

// A copy of the options with zeros for members that the caller does not know; all zeros for null.
template <typename T>
absl::StatusOr<T> Known(const T* given, const char* what) {
  static_assert(std::is_trivially_copyable_v<T> && offsetof(T, size) == 0);
  T known;
  std::memset(&known, 0, sizeof(known));
  known.size = sizeof(known);
  if (given == nullptr) return known;
  size_t size = 0;
  std::memcpy(&size, given, sizeof(size));
  if (auto good = CheckSize<T>(size, what); !good.ok()) return good;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(given);
  if (std::any_of(bytes + std::min(size, sizeof(T)), bytes + size,
                  [](unsigned char byte) { return byte != 0; })) {
    return UnknownMembers(what, sizeof(T));
  }
  std::memcpy(&known, given, std::min(size, sizeof(T)));
  known.size = sizeof(known);
  return known;
}

// Calls `fill` with a zeroed struct and copies as much of it as the caller knows; `size` stays.
template <typename T, typename FillAll>
absl::Status Fill(T* result, const char* what, const FillAll& fill) {
  static_assert(std::is_trivially_copyable_v<T> && offsetof(T, size) == 0);
  if (auto given = NotNull(result, what); !given.ok()) return given;
  size_t size = 0;
  std::memcpy(&size, result, sizeof(size));
  if (auto good = CheckSize<T>(size, what); !good.ok()) return good;
  T all;
  std::memset(&all, 0, sizeof(all));
  fill(all);
  all.size = size;
  std::memset(reinterpret_cast<unsigned char*>(result), 0, size);
  std::memcpy(result, &all, std::min(size, sizeof(T)));
  return absl::OkStatus();
}

inline shardpack_text TextOf(std::string_view text) {
  return {text.data() == nullptr ? "" : text.data(), text.size()};
}
// A terminated copy for shardpack_text_free. Throws bad_alloc.
char* CopyOf(std::string_view text);
// Gives out such a copy: the end of functions with a `char**` result.
absl::Status GiveText(std::string_view text, char** into);

}  // namespace shardpack::api

#endif  // SHARDPACK_API_STRUCTS_H_
