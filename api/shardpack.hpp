// shardpack.hpp: the C interface of shardpack.h for C++17 and later, header-only.
//
//   shardpack_api::Dataset data("shards");
//   shardpack_api::Loader loader(data, {.global_batch = 256, .seed = 7}, {.decode = {224, 224}});
//   for (const auto& batch : loader.epoch())
//     Train(batch.pixels().data(), batch.labels(), batch.slots());
//
// That is C++20. C++17 has no designated initialisers, but each member of an options struct has a
// setter: OrderOptions().set_global_batch(256).set_seed(7).
//
// Handles (Dataset, Order, Loader, Batch, Device, Job, Writer) move; those that may be shared also
// copy, as a further reference to the same thing. A default-constructed or moved-from handle is
// empty: it can be assigned to and destroyed, and its functions fail.
//
// Text that is given to it must not have a NUL in it, but for keys: INVALID.
//
// Errors: an exception of the class Error. With SHARDPACK_NO_EXCEPTIONS (which -fno-exceptions
// implies) there are none: what the header calls Returned<T> is then a Result<T> instead of a T,
// handles are made by their static functions Open, Make and Start (which exist either way), and the
// items of epoch() are Result<Batch>, the last of which may be an error.
//
// Lifetime, threads, units: those of shardpack.h. Views (Span, std::string_view) live as long as
// one handle of what they were taken from, so a temporary handle gives none. Through the -> of an
// optional or a Result it would: give the batch of next() a name before you look at it.
//
// With the C interface: a handle's constructor takes a reference from it, and get() shows it.
#ifndef SHARDPACK_HPP_
#define SHARDPACK_HPP_

#if __cplusplus < 201703L
#error "shardpack.hpp needs C++17: compile with -std=c++17 or later"
#endif

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "shardpack.h"

#if __cplusplus >= 202002L && __has_include(<span>)
#include <span>
#endif

#if !defined(SHARDPACK_NO_EXCEPTIONS) && !defined(__cpp_exceptions)
#define SHARDPACK_NO_EXCEPTIONS
#endif

namespace shardpack_api {

// Objects of the two kinds have different names for the linker, so both may be in one program.
#ifdef SHARDPACK_NO_EXCEPTIONS
inline namespace returning {
#else
inline namespace throwing {
#endif

// ---------------------------------------------------------------------------- spans and errors

// A view of items in a row, as std::span, to which it converts in C++20.
template <typename T>
class Span {
 public:
  using element_type = T;
  using value_type = std::remove_cv_t<T>;

  constexpr Span() = default;
  constexpr Span(T* data, std::size_t size) : data_(data), size_(size) {}
  // Of items that may be changed, one of the same items that may not.
  template <typename U, typename = std::enable_if_t<std::is_same_v<const U, T>>>
  constexpr Span(Span<U> other) : data_(other.data()), size_(other.size()) {}

  constexpr T* data() const { return data_; }
  constexpr std::size_t size() const { return size_; }
  constexpr std::size_t size_bytes() const { return size_ * sizeof(T); }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T* begin() const { return data_; }
  constexpr T* end() const { return data_ + size_; }
  constexpr T& operator[](std::size_t n) const { return data_[n]; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

inline std::string_view View(const shardpack_text& text) { return {text.data, text.size}; }

enum class Code : shardpack_code {
  kOk = SHARDPACK_OK,
  kEnd = SHARDPACK_END,
  kWait = SHARDPACK_WAIT,
  kInvalid = SHARDPACK_INVALID,
  kNotFound = SHARDPACK_NOT_FOUND,
  kOutOfRange = SHARDPACK_OUT_OF_RANGE,
  kDataLoss = SHARDPACK_DATA_LOSS,
  kNoMemory = SHARDPACK_NO_MEMORY,
  kDenied = SHARDPACK_DENIED,
  kCancelled = SHARDPACK_CANCELLED,
  kUnsupported = SHARDPACK_UNSUPPORTED,
  kState = SHARDPACK_STATE,
  kIo = SHARDPACK_IO,
  kUnavailable = SHARDPACK_UNAVAILABLE,
  kInternal = SHARDPACK_INTERNAL,
  kExists = SHARDPACK_EXISTS,
  kTimeout = SHARDPACK_TIMEOUT,
};

// Copies share what is known.
class Error : public std::exception {
 public:
  // Takes the error.
  Error(shardpack_code code, shardpack_error* error)
      : code_(static_cast<Code>(code)), error_(error, shardpack_error_free) {
    info_.size = sizeof info_;
    shardpack_error_info_of(error_.get(), &info_);
  }
  // An error of which nothing but this is known.
  Error(Code code, std::string message)
      : code_(code), message_(std::make_shared<const std::string>(std::move(message))) {}

  Code code() const noexcept { return code_; }
  const char* what() const noexcept override {
    if (message_ != nullptr) return message_->c_str();
    return error_ != nullptr ? shardpack_error_message(error_.get())
                             : shardpack_code_name(static_cast<shardpack_code>(code_));
  }
  int system_errno() const noexcept { return info_.system_errno; }
  // Empty: unknown.
  std::string_view path() const noexcept { return View(info_.path); }
  std::string_view shard() const noexcept { return View(info_.shard); }
  std::string_view key() const noexcept { return View(info_.key); }
  std::string_view field() const noexcept { return View(info_.field); }
  std::optional<std::uint64_t> record() const noexcept { return Known(info_.record); }
  std::optional<std::uint64_t> offset() const noexcept { return Known(info_.offset); }
  std::optional<std::uint64_t> id() const noexcept { return Known(info_.id); }

 private:
  static std::optional<std::uint64_t> Known(std::int64_t number) {
    if (number < 0) return std::nullopt;
    return static_cast<std::uint64_t>(number);
  }

  Code code_;
  std::shared_ptr<shardpack_error> error_;
  std::shared_ptr<const std::string> message_;
  shardpack_error_info info_ = {
      sizeof(shardpack_error_info), 0, 0, {"", 0}, {"", 0}, {"", 0}, {"", 0}, {"", 0}, -1, -1, -1};
};

namespace internal {

[[noreturn]] inline void EndOfResult(const Error* error) {
  if (error == nullptr) {
    std::fputs("shardpack: the error was taken from a Result that is none\n", stderr);
  } else {
    std::fprintf(stderr, "shardpack: the value was taken from a Result that is an error: %s\n",
                 error->what());
  }
  std::abort();
}

}  // namespace internal

// A value or an error. Taking the one that it is not prints that, and aborts.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<1>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<0>, std::move(error)) {}

  bool ok() const { return state_.index() == 1; }
  explicit operator bool() const { return ok(); }
  T& operator*() & { return *Get(std::get_if<1>(&state_)); }
  const T& operator*() const& { return *Get(std::get_if<1>(&state_)); }
  T&& operator*() && { return std::move(*Get(std::get_if<1>(&state_))); }
  T* operator->() { return Get(std::get_if<1>(&state_)); }
  const T* operator->() const { return Get(std::get_if<1>(&state_)); }
  const Error& error() const { return *Get(std::get_if<0>(&state_)); }

 private:
  template <typename P>
  P* Get(P* pointer) const {
    if (pointer == nullptr) internal::EndOfResult(std::get_if<0>(&state_));
    return pointer;
  }

  std::variant<Error, T> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    if (ok()) internal::EndOfResult(nullptr);
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

#ifdef SHARDPACK_NO_EXCEPTIONS
template <typename T>
using Returned = Result<T>;
#else
template <typename T>
using Returned = T;
#endif

namespace internal {

inline bool Good(shardpack_code code) { return code < SHARDPACK_INVALID; }

// What a call came to: the code of the library, or that of what was refused before, with a message.
struct Outcome {
  Outcome(shardpack_code of_library) : code(of_library) {}
  Outcome(Code refused, std::string why)
      : code(static_cast<shardpack_code>(refused)), message(std::move(why)) {}

  Error MakeError(shardpack_error* error) const {
    return message.empty() ? Error(code, error) : Error(static_cast<Code>(code), message);
  }

  shardpack_code code;
  std::string message;
};

// What `finish` makes of a call that succeeded, or its error.
template <typename Call, typename Finish>
auto Do(Call call, Finish finish) -> Returned<decltype(finish(shardpack_code()))> {
  shardpack_error* error = nullptr;
  const Outcome outcome = call(&error);
  const shardpack_code code = outcome.code;
#ifdef SHARDPACK_NO_EXCEPTIONS
  if (!Good(code)) return outcome.MakeError(error);
  if constexpr (std::is_void_v<decltype(finish(code))>) {
    finish(code);
    return {};
  } else {
    return finish(code);
  }
#else
  if (!Good(code)) throw outcome.MakeError(error);
  return finish(code);
#endif
}

template <typename Call>
Returned<void> Do(Call call) {
  return Do(call, [](shardpack_code) {});
}

// Text that the library made.
template <typename Call>
Returned<std::string> Text(Call call) {
  char* text = nullptr;
  return Do([&](shardpack_error** error) { return call(&text, error); },
            [&](shardpack_code) {
              const std::unique_ptr<char, void (*)(char*)> owner(text, shardpack_text_free);
              return std::string(text);
            });
}

// Whether there was memory for it.
inline bool Resize(std::vector<std::uint8_t>* bytes, std::size_t size) {
#ifdef SHARDPACK_NO_EXCEPTIONS
  // A vector that gets none ends the program, so what it will ask for is asked for before.
  void* const room = ::operator new(size, std::nothrow);
  if (room == nullptr) return false;
  ::operator delete(room);
  bytes->resize(size);
  return true;
#else
  try {
    bytes->resize(size);
    return true;
  } catch (const std::exception&) {  // bad_alloc, or length_error
    return false;
  }
#endif
}

inline std::int64_t Milliseconds(std::chrono::milliseconds wait) {
  return wait.count() < 0 ? 0 : static_cast<std::int64_t>(wait.count());
}

inline std::vector<const char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  return pointers;
}

// Text ends at its first NUL in C, so it would be another one there.
inline bool IsWhole(const std::string& text) { return text.find('\0') == std::string::npos; }
inline bool IsWhole(const std::optional<std::string>& text) {
  return !text.has_value() || IsWhole(*text);
}
inline bool IsWhole(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    if (!IsWhole(text)) return false;
  }
  return true;
}

// `call`, unless a text cannot be given to it.
template <typename Call>
Outcome WithText(bool is_whole, Call call) {
  if (!is_whole) return Outcome(Code::kInvalid, "a text with a NUL byte in it");
  return call();
}

// Plain facts of the object of a handle, which move along with it.
template <typename T>
class Facts {
 public:
  Facts() = default;
  Facts(const Facts&) = default;
  Facts& operator=(const Facts&) = default;
  Facts(Facts&& other) noexcept : facts_(std::exchange(other.facts_, T())) {}
  Facts& operator=(Facts&& other) noexcept {
    const T taken = std::exchange(other.facts_, T());
    facts_ = taken;
    return *this;
  }

  T* get() { return &facts_; }
  const T& operator*() const { return facts_; }
  const T* operator->() const { return &facts_; }

 private:
  T facts_ = T();
};

// One reference to an object of the library.
template <typename T, void (*kRelease)(T*)>
class Owned {
 public:
  Owned() = default;
  explicit Owned(T* taken) : object_(taken) {}
  T* get() const { return object_.get(); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  struct Release {
    void operator()(T* object) const { kRelease(object); }
  };
  std::unique_ptr<T, Release> object_;
};

// The same, with a function for one more.
template <typename T, T* (*kRetain)(T*), void (*kRelease)(T*)>
class Shared : public Owned<T, kRelease> {
 public:
  Shared() = default;
  explicit Shared(T* taken) : Owned<T, kRelease>(taken) {}
  Shared(Shared&&) noexcept = default;
  Shared& operator=(Shared&&) noexcept = default;
  Shared(const Shared& other) : Shared(other ? kRetain(other.get()) : nullptr) {}
  Shared& operator=(const Shared& other) { return *this = Shared(other); }
};

}  // namespace internal

#define SHARDPACK_SETTER(type, name) \
  auto& set_##name(type value)& {    \
    name = std::move(value);         \
    return *this;                    \
  }                                  \
  auto&& set_##name(type value)&& {  \
    name = std::move(value);         \
    return std::move(*this);         \
  }

// ------------------------------------------------------------------------------------ decoding

enum class Crop : std::uint32_t {
  kRandomResized = SHARDPACK_RANDOM_RESIZED,
  kCenter = SHARDPACK_CENTER,
  kResize = SHARDPACK_RESIZE
};
enum class Type : std::uint32_t {
  kU8 = SHARDPACK_U8,
  kF32 = SHARDPACK_F32,
  kF16 = SHARDPACK_F16,
  kBf16 = SHARDPACK_BF16
};
enum class Layout : std::uint32_t { kNhwc = SHARDPACK_NHWC, kNchw = SHARDPACK_NCHW };
enum class Filter : std::uint32_t {
  kBilinear = SHARDPACK_BILINEAR,
  kBox = SHARDPACK_BOX,
  kBicubic = SHARDPACK_BICUBIC,
  kLanczos = SHARDPACK_LANCZOS
};

// To pixels of width x height. 0: the default, which shardpack.h names (shardpack_decode).
struct Decode {
  std::uint32_t width = 0, height = 0;
  Crop crop = Crop::kRandomResized;
  double flip_probability = 0;
  Type type = Type::kU8;
  Layout layout = Layout::kNhwc;
  std::array<float, 3> mean = {0, 0, 0}, std = {1, 1, 1};
  Filter filter = Filter::kBilinear;
  std::uint32_t channels = 0, shortest_side = 0;
  double min_scale = 0, max_scale = 0, min_ratio = 0, max_ratio = 0;
  bool ignore_orientation = false, fast = false;
  std::uint64_t max_pixels = 0;
  std::uint32_t max_scans = 0;
  bool off = false;  // not at all; see NoDecode

  SHARDPACK_SETTER(std::uint32_t, width)
  SHARDPACK_SETTER(std::uint32_t, height)
  SHARDPACK_SETTER(Crop, crop)
  SHARDPACK_SETTER(double, flip_probability)
  SHARDPACK_SETTER(Type, type)
  SHARDPACK_SETTER(Layout, layout)
  using Numbers = std::array<float, 3>;
  SHARDPACK_SETTER(Numbers, mean)
  SHARDPACK_SETTER(Numbers, std)
  SHARDPACK_SETTER(Filter, filter)
  SHARDPACK_SETTER(std::uint32_t, channels)
  SHARDPACK_SETTER(std::uint32_t, shortest_side)
  SHARDPACK_SETTER(double, min_scale)
  SHARDPACK_SETTER(double, max_scale)
  SHARDPACK_SETTER(double, min_ratio)
  SHARDPACK_SETTER(double, max_ratio)
  SHARDPACK_SETTER(bool, ignore_orientation)
  SHARDPACK_SETTER(bool, fast)
  SHARDPACK_SETTER(std::uint64_t, max_pixels)
  SHARDPACK_SETTER(std::uint32_t, max_scans)
  SHARDPACK_SETTER(bool, off)
};

enum class FieldAs : std::uint32_t {
  kImage = SHARDPACK_AS_IMAGE,
  kLabels = SHARDPACK_AS_LABELS,
  kCoco = SHARDPACK_AS_COCO,
  kCocoLabels = SHARDPACK_AS_COCO_LABELS
};
enum class Share : std::uint32_t {
  kAll = SHARDPACK_SHARE_ALL,
  kGeometry = SHARDPACK_SHARE_GEOMETRY,
  kNone = SHARDPACK_SHARE_NONE
};
enum class BoxFormat : std::uint32_t { kXyxy = SHARDPACK_XYXY, kXywh = SHARDPACK_XYWH };
enum class Overlap : std::uint32_t {
  kIgnore = SHARDPACK_OVERLAP_IGNORE,
  kLast = SHARDPACK_OVERLAP_LAST
};

// What a loader makes of a field beside the image, as shardpack_field_decode.
struct FieldDecode {
  std::string field;
  FieldAs as = FieldAs::kLabels;
  Share share = Share::kAll;
  bool wide_labels = false, legacy_nearest = false;
  std::uint16_t ignore = 255;
  std::uint32_t classes = 0;
  std::vector<shardpack_label_color> colors = {};
  BoxFormat box_format = BoxFormat::kXyxy;
  double min_visible = 0;
  bool box_from_polygon = false, polygons = false;
  std::uint32_t keypoints = 0;
  std::vector<std::array<std::uint32_t, 2>> pairs = {};
  Overlap overlap = Overlap::kIgnore;

  SHARDPACK_SETTER(std::string, field)
  SHARDPACK_SETTER(FieldAs, as)
  SHARDPACK_SETTER(Share, share)
  SHARDPACK_SETTER(bool, wide_labels)
  SHARDPACK_SETTER(bool, legacy_nearest)
  SHARDPACK_SETTER(std::uint16_t, ignore)
  SHARDPACK_SETTER(std::uint32_t, classes)
  SHARDPACK_SETTER(std::vector<shardpack_label_color>, colors)
  SHARDPACK_SETTER(BoxFormat, box_format)
  SHARDPACK_SETTER(double, min_visible)
  SHARDPACK_SETTER(bool, box_from_polygon)
  SHARDPACK_SETTER(bool, polygons)
  SHARDPACK_SETTER(std::uint32_t, keypoints)
  using Pairs = std::vector<std::array<std::uint32_t, 2>>;
  SHARDPACK_SETTER(Pairs, pairs)
  SHARDPACK_SETTER(Overlap, overlap)
};

// What options of loaders have until they are told to decode.
inline Decode NoDecode() {
  Decode decode;
  decode.off = true;
  return decode;
}

namespace internal {

inline shardpack_decode Plain(const Decode& from) {
  shardpack_decode to = {};
  to.size = sizeof to;
  to.width = from.width;
  to.height = from.height;
  to.crop = static_cast<std::uint32_t>(from.crop);
  to.filter = static_cast<std::uint32_t>(from.filter);
  to.min_scale = from.min_scale;
  to.max_scale = from.max_scale;
  to.min_ratio = from.min_ratio;
  to.max_ratio = from.max_ratio;
  to.shortest_side = from.shortest_side;
  to.channels = from.channels;
  to.flip_probability = from.flip_probability;
  to.type = static_cast<std::uint32_t>(from.type);
  to.layout = static_cast<std::uint32_t>(from.layout);
  for (std::size_t n = 0; n < from.mean.size(); ++n) {
    to.mean[n] = from.mean[n];
    to.std[n] = from.std[n];
  }
  to.ignore_orientation = from.ignore_orientation ? 1 : 0;
  to.fast = from.fast ? 1 : 0;
  to.max_pixels = from.max_pixels;
  to.max_scans = from.max_scans;
  return to;
}

inline shardpack_field_decode Plain(const FieldDecode& from) {
  static_assert(sizeof(from.pairs[0]) == 2 * sizeof(std::uint32_t), "pairs without gaps");
  shardpack_field_decode to = {};
  to.size = sizeof to;
  to.field = from.field.c_str();
  to.kind = static_cast<std::uint32_t>(from.as);
  to.share = static_cast<std::uint32_t>(from.share);
  to.wide_labels = from.wide_labels ? 1 : 0;
  to.legacy_nearest = from.legacy_nearest ? 1 : 0;
  to.ignore = from.ignore;
  to.ignore_zero = from.ignore == 0 ? 1 : 0;
  to.classes = from.classes;
  to.box_format = static_cast<std::uint32_t>(from.box_format);
  to.colors = from.colors.data();
  to.color_count = from.colors.size();
  to.min_visible = from.min_visible;
  to.box_from_polygon = from.box_from_polygon ? 1 : 0;
  to.polygons = from.polygons ? 1 : 0;
  to.keypoints = from.keypoints;
  to.keypoint_pairs = static_cast<std::uint32_t>(from.pairs.size());
  to.pairs = from.pairs.empty() ? nullptr : from.pairs[0].data();
  to.overlap = static_cast<std::uint32_t>(from.overlap);
  return to;
}

}  // namespace internal

// ------------------------------------------------------------------------------------- batches

enum class State : std::uint8_t {
  kOk = SHARDPACK_SAMPLE_OK,
  kPadding = SHARDPACK_SAMPLE_PADDING,
  kSubstituted = SHARDPACK_SAMPLE_SUBSTITUTED
};

// The samples of a step, or those that Dataset::read gave. Memory of the loader until the last copy
// is gone.
class Batch {
 public:
  Batch() = default;
  explicit Batch(shardpack_batch* taken) : handle_(taken) {
    view_.get()->size = sizeof(shardpack_batch_view);
    shardpack_batch_view_of(taken, view_.get(), nullptr);
  }
  shardpack_batch* get() const { return handle_.get(); }

  std::uint64_t epoch() const { return view_->epoch; }
  std::uint64_t step() const { return view_->step; }
  std::size_t slots() const { return static_cast<std::size_t>(view_->slots); }
  Span<const std::uint64_t> ids() const&& = delete;
  Span<const std::uint64_t> ids() const& { return {view_->ids, slots()}; }
  Span<const std::int64_t> labels() const&& = delete;
  Span<const std::int64_t> labels() const& { return {view_->labels, slots()}; }
  State state(std::size_t slot) const {
    return slot < slots() ? static_cast<State>(view_->states[slot]) : State::kPadding;
  }
  // All slots without gaps, as bytes or as a T of the size of their type; empty if T has another
  // size, if they were not decoded, and after release_on. On a GPU the memory is the GPU's.
  template <typename T = std::byte>
  Span<T> pixels() const&& = delete;
  template <typename T = std::byte>
  Span<T> pixels() const& {
    const shardpack_batch_view now = view();
    const std::size_t size = now.type == SHARDPACK_U8 ? 1 : now.type == SHARDPACK_F32 ? 4 : 2;
    if (sizeof(T) != 1 && sizeof(T) != size) return {};
    return {static_cast<T*>(now.pixels), static_cast<std::size_t>(now.pixel_bytes / sizeof(T))};
  }
  // Everything else, as in shardpack.h, as it is now: release_on takes away what was on a device.
  shardpack_batch_view view() const&& = delete;
  shardpack_batch_view view() const& {
    shardpack_batch_view now = {};
    now.size = sizeof now;
    shardpack_batch_view_of(get(), &now, nullptr);
    return now;
  }

  // The bytes of a field of each slot; data() is nullptr where a sample lacks it.
  Returned<std::vector<Span<const std::byte>>> bytes(const std::string& = "image") const&& = delete;
  Returned<std::vector<Span<const std::byte>>> bytes(const std::string& field = "image") const& {
    std::vector<shardpack_span> spans(slots());
    return internal::Do(
        [&](shardpack_error** error) {
          return internal::WithText(internal::IsWhole(field), [&] {
            return shardpack_batch_spans(get(), field.c_str(), spans.data(), spans.size(), error);
          });
        },
        [&](shardpack_code) {
          std::vector<Span<const std::byte>> views;
          for (const shardpack_span& span : spans) {
            views.emplace_back(static_cast<const std::byte*>(span.data),
                               static_cast<std::size_t>(span.bytes));
          }
          return views;
        });
  }
  // The decoded masks of a field, one value a pixel of all slots: [slots][height][width].
  Returned<Span<std::uint8_t>> masks(const std::string&) const&& = delete;
  Returned<Span<std::uint8_t>> masks(const std::string& field) const& {
    std::uint8_t* data = nullptr;
    std::uint64_t size = 0;
    return internal::Do(
        [&](shardpack_error** error) {
          return internal::WithText(internal::IsWhole(field), [&] {
            return shardpack_batch_masks(get(), field.c_str(), &data, &size, error);
          });
        },
        [&](shardpack_code) { return Span<std::uint8_t>(data, static_cast<std::size_t>(size)); });
  }
  // What a field of LoaderOptions::field_decodes was decoded to.
  Returned<shardpack_decoded_field> decoded(const std::string&) const&& = delete;
  Returned<shardpack_decoded_field> decoded(const std::string& field) const& {
    shardpack_decoded_field found = {};
    found.size = sizeof found;
    return internal::Do(
        [&](shardpack_error** error) {
          return internal::WithText(internal::IsWhole(field), [&] {
            return shardpack_batch_decoded(get(), field.c_str(), &found, error);
          });
        },
        [&](shardpack_code) { return found; });
  }
  // The objects of all slots, valid as long as the batch.
  Returned<shardpack_objects> objects() const&& = delete;
  Returned<shardpack_objects> objects() const& {
    shardpack_objects all = {};
    all.size = sizeof all;
    return internal::Do(
        [&](shardpack_error** error) { return shardpack_batch_objects(get(), &all, error); },
        [&](shardpack_code) { return all; });
  }
  // From each image as displayed to its slot: x' = a x + b y + c, y' = d x + e y + f.
  Returned<std::vector<std::array<double, 6>>> affine() const {
    std::vector<std::array<double, 6>> all(slots());
    return internal::Do(
        [&](shardpack_error** error) {
          return shardpack_batch_affine(get(), all.empty() ? nullptr : all[0].data(), all.size(),
                                        error);
        },
        [&](shardpack_code) { return std::move(all); });
  }
  // The same as a matrix of (x, y, 1), row by row, whose third result divides the others: of a plan
  // with perspective the only maps.
  Returned<std::vector<std::array<double, 9>>> projection() const {
    std::vector<std::array<double, 9>> all(slots());
    return internal::Do(
        [&](shardpack_error** error) {
          return shardpack_batch_projection(get(), all.empty() ? nullptr : all[0].data(),
                                            all.size(), error);
        },
        [&](shardpack_code) { return std::move(all); });
  }
  // What became of each image of a decoded batch.
  Returned<std::vector<shardpack_crop>> crops() const {
    std::vector<shardpack_crop> all(slots());
    return internal::Do(
        [&](shardpack_error** error) {
          return shardpack_batch_crops(get(), all.data(), all.size(), error);
        },
        [&](shardpack_code) { return std::move(all); });
  }
  // What an augmented slot got, as text for ApplyProgram.
  Returned<std::string> program(std::size_t slot, std::uint32_t view = 0) const {
    return internal::Text([&](char** text, shardpack_error** error) {
      return shardpack_batch_program(get(), slot, view, text, error);
    });
  }
  // Why a slot has a substitute; empty if it has none.
  Returned<std::string_view> why(std::size_t) const&& = delete;
  Returned<std::string_view> why(std::size_t slot) const& {
    shardpack_text text = {};
    return internal::Do(
        [&](shardpack_error** error) {
          return shardpack_batch_why(get(), slot, nullptr, &text, error);
        },
        [&](shardpack_code) { return View(text); });
  }
  // A DLManagedTensorVersioned* of SHARDPACK_PIXELS or SHARDPACK_LABELS, whose deleter the caller
  // calls.
  Returned<void*> dlpack(std::uint32_t what = SHARDPACK_PIXELS) const {
    void* managed = nullptr;
    return internal::Do(
        [&](shardpack_error** error) {
          return shardpack_batch_dlpack(get(), what, 1, &managed, error);
        },
        [&](shardpack_code) { return managed; });
  }
  // Of a GPU: what is enqueued on the stream from now on runs once the batch is there.
  Returned<void> wait_on(void* stream) {
    return internal::Do(
        [&](shardpack_error** error) { return shardpack_batch_wait_on(get(), stream, error); });
  }
  // Waits until it is there, for use on any stream; false if that takes longer.
  Returned<bool> synchronize(std::chrono::milliseconds wait) {
    return internal::Do(
        [&](shardpack_error** error) {
          return shardpack_batch_synchronize(get(), internal::Milliseconds(wait), error);
        },
        [](shardpack_code code) { return code == SHARDPACK_OK; });
  }
  // Gives the memory back, used until what runs on the stream by now is done; also for all copies.
  Returned<void> release_on(void* stream) {
    return internal::Do(
        [&](shardpack_error** error) { return shardpack_batch_release_on(get(), stream, error); });
  }

 private:
  internal::Shared<shardpack_batch, shardpack_batch_retain, shardpack_batch_release> handle_;
  internal::Facts<shardpack_batch_view> view_;  // of which release_on changes nothing that is used
};

// ------------------------------------------------------------------------------------ datasets

struct Location {
  std::uint32_t shard;
  std::uint64_t record;
};

class Dataset {
 public:
  Dataset() = default;
#ifndef SHARDPACK_NO_EXCEPTIONS
  explicit Dataset(const std::string& path) : Dataset(Open(path)) {}
#endif
  explicit Dataset(shardpack_dataset* taken) : handle_(taken) {
    info_.get()->size = sizeof(shardpack_dataset_info);
    shardpack_dataset_info_of(taken, info_.get(), nullptr);
  }
  // The folder that pack made, or one shard of another program.
  static Returned<Dataset> Open(const std::string& path) {
    return Made([&](shardpack_dataset** made, shardpack_error** error) {
      return internal::WithText(internal::IsWhole(path),
                                [&] { return shardpack_dataset_open(path.c_str(), made, error); });
    });
  }
  static Returned<Dataset> OpenShards(const std::vector<std::string>& paths) {
    const std::vector<const char*> pointers = internal::Pointers(paths);
    return Made([&](shardpack_dataset** made, shardpack_error** error) {
      return internal::WithText(internal::IsWhole(paths), [&] {
        return shardpack_dataset_open_shards(pointers.data(), pointers.size(), made, error);
      });
    });
  }
  // One after the other, renumbered from 0.
  static Returned<Dataset> Join(const std::vector<Dataset>& parts) {
    std::vector<const shardpack_dataset*> pointers;
    for (const Dataset& part : parts) pointers.push_back(part.get());
    return Made([&](shardpack_dataset** made, shardpack_error** error) {
      return shardpack_dataset_join(pointers.data(), pointers.size(), made, error);
    });
  }
  Returned<Dataset> split(const std::string& name) const {
    return Made([&](shardpack_dataset** made, shardpack_error** error) {
      return internal::WithText(internal::IsWhole(name), [&] {
        return shardpack_dataset_split(get(), name.c_str(), made, error);
      });
    });
  }
  // These samples, in this order, numbered from 0; its shards are those of this dataset.
  Returned<Dataset> select(const std::vector<std::uint64_t>& ids) const {
    return Made([&](shardpack_dataset** made, shardpack_error** error) {
      return shardpack_dataset_select(get(), ids.data(), ids.size(), made, error);
    });
  }
  shardpack_dataset* get() const { return handle_.get(); }

  std::uint64_t samples() const { return info_->samples; }
  std::uint64_t bytes() const { return info_->bytes; }
  std::uint32_t shards() const { return info_->shards; }
  std::array<std::uint8_t, 16> identity() const {
    std::array<std::uint8_t, 16> copy;
    for (std::size_t n = 0; n < copy.size(); ++n) copy[n] = info_->identity[n];
    return copy;
  }
  std::string_view format() const&& = delete;
  std::string_view format() const& { return View(info_->format); }
  std::vector<std::string_view> classes() const&& = delete;
  std::vector<std::string_view> classes() const& { return Names(SHARDPACK_CLASS, info_->classes); }
  std::vector<std::string_view> splits() const&& = delete;
  std::vector<std::string_view> splits() const& { return Names(SHARDPACK_SPLIT, info_->splits); }

  Returned<shardpack_shard_info> shard(std::uint32_t) const&& = delete;
  Returned<shardpack_shard_info> shard(std::uint32_t n) const& {
    shardpack_shard_info info = {};
    info.size = sizeof info;
    return internal::Do(
        [&](shardpack_error** error) { return shardpack_dataset_shard(get(), n, &info, error); },
        [&](shardpack_code) { return info; });
  }
  Returned<std::vector<std::string_view>> fields(std::uint32_t) const&& = delete;
  Returned<std::vector<std::string_view>> fields(std::uint32_t shard) const& {
    std::array<shardpack_text, 256> names;
    std::size_t count = 0;
    return internal::Do(
        [&](shardpack_error** error) {
          return shardpack_dataset_fields(get(), shard, names.data(), names.size(), &count, error);
        },
        [&](shardpack_code) {
          std::vector<std::string_view> views;
          for (std::size_t n = 0; n < count; ++n) views.push_back(View(names[n]));
          return views;
        });
  }
  // A column of a shard, whose items have the size of T: column<std::int64_t>(0,
  // SHARDPACK_COLUMN_LABEL). For text: char.
  template <typename T>
  Returned<Span<const T>> column(std::uint32_t, std::uint32_t,
                                 const std::string& = "image") const&& = delete;
  template <typename T>
  Returned<Span<const T>> column(std::uint32_t shard, std::uint32_t which,
                                 const std::string& field = "image") const& {
    shardpack_column view = {};
    return internal::Do(
        [&](shardpack_error** error) {
          internal::Outcome outcome = internal::WithText(internal::IsWhole(field), [&] {
            return shardpack_dataset_column(get(), shard, which, field.c_str(), &view, error);
          });
          if (outcome.code == SHARDPACK_OK && view.item_bytes != sizeof(T)) {
            outcome = internal::Outcome(
                Code::kInvalid, "the column's items have " + std::to_string(view.item_bytes) +
                                    " bytes, not " + std::to_string(sizeof(T)));
          }
          return outcome;
        },
        [&](shardpack_code) {
          return Span<const T>(static_cast<const T*>(view.data),
                               static_cast<std::size_t>(view.count));
        });
  }
  Returned<Span<const std::int64_t>> labels(std::uint32_t) const&& = delete;
  Returned<Span<const std::int64_t>> labels(std::uint32_t shard) const& {
    return column<std::int64_t>(shard, SHARDPACK_COLUMN_LABEL);
  }
  Returned<Location> locate(std::uint64_t id) const {
    Location at = {};
    return internal::Do(
        [&](shardpack_error** error) {
          return shardpack_dataset_locate(get(), id, &at.shard, &at.record, error);
        },
        [&](shardpack_code) { return at; });
  }
  Returned<std::string_view> key(std::uint64_t) const&& = delete;
  Returned<std::string_view> key(std::uint64_t id) const& {
    shardpack_text text = {};
    return internal::Do(
        [&](shardpack_error** error) { return shardpack_dataset_key(get(), id, &text, error); },
        [&](shardpack_code) { return View(text); });
  }
  Returned<std::uint64_t> find_key(std::string_view key) const {
    std::uint64_t id = 0;
    return internal::Do(
        [&](shardpack_error** error) {
          return shardpack_dataset_find_key(get(), key.data(), key.size(), &id, error);
        },
        [&](shardpack_code) { return id; });
  }
  // These samples, verified; without `fields`, all that they have.
  Returned<Batch> read(const std::vector<std::uint64_t>& ids,
                       const std::vector<std::string>& fields = {}) const {
    const std::vector<const char*> names = internal::Pointers(fields);
    shardpack_batch* batch = nullptr;
    return internal::Do(
        [&](shardpack_error** error) {
          return internal::WithText(internal::IsWhole(fields), [&] {
            return shardpack_dataset_read(get(), ids.data(), ids.size(),
                                          names.empty() ? nullptr : names.data(), names.size(),
                                          &batch, error);
          });
        },
        [&](shardpack_code) { return Batch(batch); });
  }
  // Of read(): as LoaderOptions::map_shards. Copies of this Dataset have the same setting, but not
  // what select(), split() and join() return.
  Returned<void> map_shards(bool on = true) const {
    return internal::Do([&](shardpack_error** error) {
      return shardpack_dataset_map_shards(get(), on ? 1 : 0, error);
    });
  }

 private:
  template <typename Call>
  static Returned<Dataset> Made(Call call) {
    shardpack_dataset* made = nullptr;
    return internal::Do([&](shardpack_error** error) { return call(&made, error); },
                        [&](shardpack_code) { return Dataset(made); });
  }
  std::vector<std::string_view> Names(std::uint32_t what, std::uint32_t count) const {
    std::vector<std::string_view> names;
    for (std::uint32_t n = 0; n < count; ++n) {
      shardpack_text name = {"", 0};
      shardpack_dataset_name(get(), what, n, &name, nullptr);
      names.push_back(View(name));
    }
    return names;
  }

  internal::Shared<shardpack_dataset, shardpack_dataset_retain, shardpack_dataset_release> handle_;
  internal::Facts<shardpack_dataset_info> info_;
};

// -------------------------------------------------------------------------------------- orders

enum class Mode : std::uint32_t {
  kShuffle = SHARDPACK_SHUFFLE,
  kSequential = SHARDPACK_SEQUENTIAL,
  kBlockShuffle = SHARDPACK_BLOCK_SHUFFLE
};
enum class Tail : std::uint32_t { kDrop = SHARDPACK_TAIL_DROP, kPad = SHARDPACK_TAIL_PAD };

// As shardpack_order_options.
struct OrderOptions {
  std::uint32_t global_batch = 1;
  std::uint64_t seed = 0;
  Mode mode = Mode::kShuffle;
  Tail tail = Tail::kDrop;
  std::uint32_t block_samples = 0, window_blocks = 0;
  std::uint64_t epoch_samples = 0;
  std::optional<std::vector<std::uint64_t>> subset = {};  // nullopt: all; empty: an error
  std::vector<shardpack_mixture_part> mixture = {};

  SHARDPACK_SETTER(std::uint32_t, global_batch)
  SHARDPACK_SETTER(std::uint64_t, seed)
  SHARDPACK_SETTER(Mode, mode)
  SHARDPACK_SETTER(Tail, tail)
  SHARDPACK_SETTER(std::uint32_t, block_samples)
  SHARDPACK_SETTER(std::uint32_t, window_blocks)
  SHARDPACK_SETTER(std::uint64_t, epoch_samples)
  SHARDPACK_SETTER(std::vector<std::uint64_t>, subset)
  SHARDPACK_SETTER(std::vector<shardpack_mixture_part>, mixture)
};

class Order {
 public:
  Order() = default;
#ifndef SHARDPACK_NO_EXCEPTIONS
  explicit Order(const Dataset& dataset, const OrderOptions& options = {})
      : Order(Make(dataset.samples(), options)) {}
#endif
  explicit Order(shardpack_order* taken) : handle_(taken) {}
#if defined(__GNUC__) && !defined(__clang__)
// With -fsanitize=address, gcc takes an optional that is empty for one that is not initialised.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
  static Returned<Order> Make(std::uint64_t samples, const OrderOptions& from) {
    shardpack_order_options options = {};
    options.size = sizeof options;
    options.seed = from.seed;
    options.global_batch = from.global_batch;
    options.mode = static_cast<std::uint32_t>(from.mode);
    options.tail = static_cast<std::uint32_t>(from.tail);
    options.block_samples = from.block_samples;
    options.window_blocks = from.window_blocks;
    options.epoch_samples = from.epoch_samples;
    const std::uint64_t none = 0;
    if (from.subset.has_value()) {
      options.subset = from.subset->empty() ? &none : from.subset->data();
      options.subset_count = from.subset->size();
    }
    options.mixture = from.mixture.empty() ? nullptr : from.mixture.data();
    options.mixture_count = from.mixture.size();
    shardpack_order* made = nullptr;
    return internal::Do(
        [&](shardpack_error** error) {
          return shardpack_order_make(samples, &options, &made, error);
        },
        [&](shardpack_code) { return Order(made); });
  }
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
  shardpack_order* get() const { return handle_.get(); }

  std::uint64_t steps() const { return shardpack_order_steps(get()); }
  std::uint64_t samples() const { return shardpack_order_samples(get()); }
  std::string_view explain() const&& = delete;
  std::string_view explain() const& { return shardpack_order_explain(get()); }
  Returned<std::vector<std::uint64_t>> ids(std::uint64_t epoch, std::uint64_t step,
                                           std::uint32_t first_slot, std::size_t count) const {
    std::vector<std::uint64_t> all(count);
    return internal::Do(
        [&](shardpack_error** error) {
          return shardpack_order_ids(get(), epoch, step, first_slot, all.data(), count, error);
        },
        [&](shardpack_code) { return std::move(all); });
  }

 private:
  internal::Shared<shardpack_order, shardpack_order_retain, shardpack_order_release> handle_;
};

// ------------------------------------------------------------------------------------- devices

class Device {
 public:
  Device() = default;
#ifndef SHARDPACK_NO_EXCEPTIONS
  explicit Device(const std::string& name) : Device(Open(name)) {}
#endif
  explicit Device(shardpack_device* taken) : handle_(taken) {}
  // "cuda:3", "3", "cuda", "cpu", "auto".
  static Returned<Device> Open(const std::string& name) {
    shardpack_device* made = nullptr;
    return internal::Do(
        [&](shardpack_error** error) {
          return internal::WithText(internal::IsWhole(name), [&] {
            return shardpack_device_open(name.c_str(), &made, error);
          });
        },
        [&](shardpack_code) { return Device(made); });
  }
  shardpack_device* get() const { return handle_.get(); }

  Returned<shardpack_device_info> info() const&& = delete;
  Returned<shardpack_device_info> info() const& {
    shardpack_device_info info = {};
    info.size = sizeof info;
    return internal::Do(
        [&](shardpack_error** error) { return shardpack_device_info_of(get(), &info, error); },
        [&](shardpack_code) { return info; });
  }

 private:
  internal::Shared<shardpack_device, shardpack_device_retain, shardpack_device_release> handle_;
};

// Who decodes images for a device: shardpack.h says what each means.
enum class DecodeBy : std::uint32_t {
  kDevice = SHARDPACK_DECODE_BY_DEVICE,
  kAuto = SHARDPACK_DECODE_BY_AUTO,
  kHybrid = SHARDPACK_DECODE_BY_HYBRID,
  kCpu = SHARDPACK_DECODE_BY_CPU
};

// Of Loader::to_device, as shardpack_device_options.
struct DeviceOptions {
  std::uint32_t prefetch_batches = 0;
  // Resize, normalise and cast on the device, by what follows.
  bool preprocess = false;
  Type type = Type::kU8;
  Layout layout = Layout::kNhwc;
  std::uint32_t width = 0, height = 0;
  Filter filter = Filter::kBilinear;
  std::array<float, 3> mean = {0, 0, 0}, std = {1, 1, 1};
  bool no_labels = false;
  Decode decode = NoDecode();  // for a loader that does not decode
  std::uint64_t raw_bytes = 0;
  std::chrono::milliseconds patience{0};
  DecodeBy decode_by = DecodeBy::kDevice;
  bool share_decoding = false;  // faster; runs no longer repeat bit for bit
  std::string augment = {};     // a plan, with `decode`
  bool augment_on_device_only = false;
  bool decode_regions = false;  // of random crops; tried by DecodeBy::kAuto in any case

  SHARDPACK_SETTER(std::uint32_t, prefetch_batches)
  SHARDPACK_SETTER(bool, preprocess)
  SHARDPACK_SETTER(Type, type)
  SHARDPACK_SETTER(Layout, layout)
  SHARDPACK_SETTER(std::uint32_t, width)
  SHARDPACK_SETTER(std::uint32_t, height)
  SHARDPACK_SETTER(Filter, filter)
  using Numbers = std::array<float, 3>;
  SHARDPACK_SETTER(Numbers, mean)
  SHARDPACK_SETTER(Numbers, std)
  SHARDPACK_SETTER(bool, no_labels)
  SHARDPACK_SETTER(Decode, decode)
  SHARDPACK_SETTER(std::uint64_t, raw_bytes)
  SHARDPACK_SETTER(std::chrono::milliseconds, patience)
  SHARDPACK_SETTER(DecodeBy, decode_by)
  SHARDPACK_SETTER(bool, share_decoding)
  SHARDPACK_SETTER(std::string, augment)
  SHARDPACK_SETTER(bool, augment_on_device_only)
  SHARDPACK_SETTER(bool, decode_regions)
};

// Of Loader::Resident, as shardpack_resident_options.
struct ResidentOptions {
  std::uint32_t width = 0, height = 0;
  Decode crop = NoDecode();  // off: whole images
  Type type = Type::kU8;
  Layout layout = Layout::kNhwc;
  std::array<float, 3> mean = {0, 0, 0}, std = {1, 1, 1};
  std::uint32_t channels = 0;
  Filter filter = Filter::kBilinear;
  std::uint64_t augment_seed = 0, epochs = 0;
  std::uint32_t rank = 0, world_size = 1;
  std::optional<std::string> cursor = {};  // nullopt: from the beginning
  std::int32_t threads = 0;
  std::uint32_t buffers = 0;
  double share_of_memory = 0;

  SHARDPACK_SETTER(std::uint32_t, width)
  SHARDPACK_SETTER(std::uint32_t, height)
  SHARDPACK_SETTER(Decode, crop)
  SHARDPACK_SETTER(Type, type)
  SHARDPACK_SETTER(Layout, layout)
  using Numbers = std::array<float, 3>;
  SHARDPACK_SETTER(Numbers, mean)
  SHARDPACK_SETTER(Numbers, std)
  SHARDPACK_SETTER(std::uint32_t, channels)
  SHARDPACK_SETTER(Filter, filter)
  SHARDPACK_SETTER(std::uint64_t, augment_seed)
  SHARDPACK_SETTER(std::uint64_t, epochs)
  SHARDPACK_SETTER(std::uint32_t, rank)
  SHARDPACK_SETTER(std::uint32_t, world_size)
  SHARDPACK_SETTER(std::string, cursor)
  SHARDPACK_SETTER(std::int32_t, threads)
  SHARDPACK_SETTER(std::uint32_t, buffers)
  SHARDPACK_SETTER(double, share_of_memory)
};

// -------------------------------------------------------------------------------- single images

// What the headers of an encoded image in memory say. `max_pixels`: NO_MEMORY for a larger one; 0:
// the limit of loaders.
inline Returned<shardpack_image_info> ImageInfoOf(const void* data, std::size_t size,
                                                  std::uint64_t max_pixels = 0) {
  shardpack_image_info info = {};
  info.size = sizeof info;
  return internal::Do(
      [&](shardpack_error** error) {
        return shardpack_image_info_of(data, size, max_pixels, &info, error);
      },
      [&](shardpack_code) { return info; });
}

// [height][width][channels], as displayed.
struct Pixels {
  std::uint32_t width = 0, height = 0, channels = 0;
  std::vector<std::uint8_t> bytes = {};
};
// Decodes an image in memory. `channels`: 3, RGB, or 1, gray.
inline Returned<Pixels> DecodeImage(const void* data, std::size_t size, std::uint32_t channels = 3,
                                    std::uint64_t max_pixels = 0) {
  Pixels made;
  return internal::Do(
      [&](shardpack_error** error) -> internal::Outcome {
        shardpack_image_info info = {};
        info.size = sizeof info;
        const shardpack_code code = shardpack_image_info_of(data, size, max_pixels, &info, error);
        if (code != SHARDPACK_OK) return code;
        // Other channels are for the library to refuse.
        const std::size_t samples = channels == 1 || channels == 3 ? channels : 0;
        made = {info.width, info.height, channels, {}};
        if (!internal::Resize(&made.bytes, std::size_t{info.width} * info.height * samples))
          return internal::Outcome(Code::kNoMemory, "no memory for the pixels");
        return shardpack_image_decode(data, size, &info.stored, channels, made.bytes.data(),
                                      made.bytes.size(), error);
      },
      [&](shardpack_code) { return std::move(made); });
}

// ------------------------------------------------------------------------------------- loaders

enum class BadSamples : std::uint32_t {
  kFail = SHARDPACK_BAD_FAIL,
  kSubstitute = SHARDPACK_BAD_SUBSTITUTE
};

// A plan's canonical text, or what is wrong with it.
inline Returned<std::string> CheckAugment(const std::string& plan) {
  return internal::Text([&](char** text, shardpack_error** error) {
    return internal::WithText(internal::IsWhole(plan), [&] {
      return shardpack_augment_check(plan.c_str(), text, nullptr, error);
    });
  });
}
// What the plan draws for a sample.
inline Returned<std::string> DrawProgram(const std::string& plan, std::uint64_t seed,
                                         std::uint64_t epoch, std::uint64_t id, std::uint32_t width,
                                         std::uint32_t height, std::uint32_t view = 0) {
  return internal::Text([&](char** text, shardpack_error** error) {
    return internal::WithText(internal::IsWhole(plan), [&] {
      return shardpack_augment_draw(plan.c_str(), seed, epoch, id, view, width, height, text,
                                    error);
    });
  });
}
// In place, on [height, width, channels] without gaps, which `pixels` has at least.
inline Returned<void> ApplyProgram(const std::string& program, Span<std::uint8_t> pixels,
                                   std::uint32_t width, std::uint32_t height,
                                   std::uint32_t channels) {
  return internal::Do([&](shardpack_error** error) -> internal::Outcome {
    if (pixels.size() < std::uint64_t{width} * height * channels)
      return internal::Outcome(Code::kInvalid, "fewer pixels than width x height x channels");
    return internal::WithText(internal::IsWhole(program), [&] {
      return shardpack_program_apply(program.c_str(), pixels.data(), width, height, channels, 0,
                                     error);
    });
  });
}

// As shardpack_own_operation: a plug-in, or a function of shardpack_op.h with its name.
struct OwnOperation {
  std::string plugin = {}, parameters = {}, name = {};
  const void* run = nullptr;
  void* self = nullptr;

  SHARDPACK_SETTER(std::string, plugin)
  SHARDPACK_SETTER(std::string, parameters)
  SHARDPACK_SETTER(std::string, name)
  SHARDPACK_SETTER(const void*, run)
  SHARDPACK_SETTER(void*, self)
};

// As shardpack_mix.
struct Mix {
  double mixup = 0, cutmix = 0, probability = 0, cutmix_share = 0, smoothing = 0;
  std::uint32_t group = 0, classes = 0;

  SHARDPACK_SETTER(double, mixup)
  SHARDPACK_SETTER(double, cutmix)
  SHARDPACK_SETTER(double, probability)
  SHARDPACK_SETTER(double, cutmix_share)
  SHARDPACK_SETTER(double, smoothing)
  SHARDPACK_SETTER(std::uint32_t, group)
  SHARDPACK_SETTER(std::uint32_t, classes)
};

// As shardpack_loader_options.
struct LoaderOptions {
  Decode decode = NoDecode();  // off: batches have the encoded bytes
  std::uint32_t rank = 0, world_size = 1;
  std::optional<std::string> cursor = {};  // nullopt: from the beginning
  std::vector<std::string> fields = {};    // empty: "image"
  std::uint64_t epochs = 0;
  std::uint64_t augment_seed = 0;
  BadSamples bad_samples = BadSamples::kFail;
  std::uint64_t max_bad_samples = 0;
  std::uint64_t memory_bytes = 0;
  std::int32_t threads = 0, io_threads = 0;
  std::uint32_t prefetch_batches = 0;
  bool no_verify = false, map_shards = false;
  Device device = {};
  std::vector<std::string> decode_fields = {};  // masks
  std::optional<std::string> augment = {};      // a plan
  std::optional<Mix> mix = {};
  std::uint32_t views = 1;
  bool other_augment = false;
  std::vector<FieldDecode> field_decodes = {};  // label maps, further images, objects
  std::vector<OwnOperation> own_operations = {};

  SHARDPACK_SETTER(Decode, decode)
  SHARDPACK_SETTER(std::uint32_t, rank)
  SHARDPACK_SETTER(std::uint32_t, world_size)
  SHARDPACK_SETTER(std::string, cursor)
  SHARDPACK_SETTER(std::vector<std::string>, fields)
  SHARDPACK_SETTER(std::uint64_t, epochs)
  SHARDPACK_SETTER(std::uint64_t, augment_seed)
  SHARDPACK_SETTER(BadSamples, bad_samples)
  SHARDPACK_SETTER(std::uint64_t, max_bad_samples)
  SHARDPACK_SETTER(std::uint64_t, memory_bytes)
  SHARDPACK_SETTER(std::int32_t, threads)
  SHARDPACK_SETTER(std::int32_t, io_threads)
  SHARDPACK_SETTER(std::uint32_t, prefetch_batches)
  SHARDPACK_SETTER(bool, no_verify)
  SHARDPACK_SETTER(bool, map_shards)
  SHARDPACK_SETTER(Device, device)
  SHARDPACK_SETTER(std::vector<std::string>, decode_fields)
  SHARDPACK_SETTER(std::string, augment)
  SHARDPACK_SETTER(Mix, mix)
  SHARDPACK_SETTER(std::uint32_t, views)
  SHARDPACK_SETTER(bool, other_augment)
  SHARDPACK_SETTER(std::vector<FieldDecode>, field_decodes)
  SHARDPACK_SETTER(std::vector<OwnOperation>, own_operations)
};

struct Position {
  std::uint64_t epoch, step;
};

// What a wait for a batch came to: kOk with the batch, kEnd of the epoch, or kWait: ask again.
struct Polled {
  Code code = Code::kWait;
  Batch batch = {};
};

class Loader {
 public:
  class Epoch;

  Loader() = default;
#ifndef SHARDPACK_NO_EXCEPTIONS
  // A template, so that {} stands for the options of an order.
  template <typename OfOrder,
            typename = std::enable_if_t<std::is_convertible_v<const OfOrder&, const Order&>>>
  Loader(const Dataset& dataset, const OfOrder& order, const LoaderOptions& options = {})
      : Loader(Open(dataset, order, options)) {}
  Loader(const Dataset& dataset, const OrderOptions& order, const LoaderOptions& options = {})
      : Loader(Open(dataset, Order(dataset, order), options)) {}
#endif
  explicit Loader(shardpack_loader* taken) : handle_(taken) {}
  static Returned<Loader> Open(const Dataset& dataset, const Order& order,
                               const LoaderOptions& from) {
    const shardpack_decode decode = internal::Plain(from.decode);
    const std::vector<const char*> fields = internal::Pointers(from.fields);
    const std::vector<const char*> masks = internal::Pointers(from.decode_fields);
    std::vector<shardpack_field_decode> decodes;
    for (const FieldDecode& field : from.field_decodes) decodes.push_back(internal::Plain(field));
    std::vector<const shardpack_field_decode*> pointers;
    bool are_whole = true;
    for (const shardpack_field_decode& decode_of : decodes) pointers.push_back(&decode_of);
    for (const FieldDecode& field : from.field_decodes)
      are_whole = are_whole && internal::IsWhole(field.field);
    shardpack_loader_options options = {};
    options.size = sizeof options;
    options.rank = from.rank;
    options.world_size = from.world_size;
    options.cursor = from.cursor.has_value() ? from.cursor->c_str() : nullptr;
    options.fields = fields.empty() ? nullptr : fields.data();
    options.field_count = fields.size();
    options.decode = from.decode.off ? nullptr : &decode;
    options.augment_seed = from.augment_seed;
    options.epochs = from.epochs;
    options.memory_bytes = from.memory_bytes;
    options.max_bad_samples = from.max_bad_samples;
    options.bad_samples = static_cast<std::uint32_t>(from.bad_samples);
    options.threads = from.threads;
    options.io_threads = from.io_threads;
    options.prefetch_batches = from.prefetch_batches;
    options.no_verify = from.no_verify ? 1 : 0;
    options.map_shards = from.map_shards ? 1 : 0;
    options.device = from.device.get();
    options.decode_fields = masks.empty() ? nullptr : masks.data();
    options.decode_field_count = masks.size();
    shardpack_mix mix = {};
    if (from.mix.has_value()) {
      mix.size = sizeof mix;
      mix.mixup = from.mix->mixup;
      mix.cutmix = from.mix->cutmix;
      mix.probability = from.mix->probability;
      mix.cutmix_share = from.mix->cutmix_share;
      mix.smoothing = from.mix->smoothing;
      mix.group = from.mix->group;
      mix.classes = from.mix->classes;
      options.mix = &mix;
    }
    options.augment = from.augment.has_value() ? from.augment->c_str() : nullptr;
    options.views = from.views == 1 ? 0 : from.views;  // an older library knows no such member
    options.other_augment = from.other_augment ? 1 : 0;
    options.field_decodes = pointers.empty() ? nullptr : pointers.data();
    options.field_decode_count = pointers.size();
    std::vector<shardpack_own_operation> own;
    std::vector<const shardpack_own_operation*> own_pointers;
    own.reserve(from.own_operations.size());  // it is pointed into
    for (const OwnOperation& each : from.own_operations) {
      own.push_back({sizeof(shardpack_own_operation),
                     each.plugin.empty() ? nullptr : each.plugin.c_str(), each.parameters.c_str(),
                     each.name.c_str(), each.run, each.self});
      own_pointers.push_back(&own.back());
      are_whole = are_whole && internal::IsWhole(each.plugin) &&
                  internal::IsWhole(each.parameters) && internal::IsWhole(each.name);
    }
    options.own_operations = own_pointers.empty() ? nullptr : own_pointers.data();
    options.own_operation_count = own_pointers.size();
    return Made([&](shardpack_loader** made, shardpack_error** error) {
      return internal::WithText(
          internal::IsWhole(from.cursor) && internal::IsWhole(from.fields) &&
              internal::IsWhole(from.decode_fields) && internal::IsWhole(from.augment) && are_whole,
          [&] { return shardpack_loader_open(dataset.get(), order.get(), &options, made, error); });
    });
  }
  // A dataset that stays on the device. Opened in the background: the first batch, or opened(),
  // says whether it could be.
  static Returned<Loader> Resident(const Dataset& dataset, const Order& order, const Device& device,
                                   const ResidentOptions& from) {
    const shardpack_decode crop = internal::Plain(from.crop);
    shardpack_resident_options options = {};
    options.size = sizeof options;
    options.width = from.width;
    options.height = from.height;
    options.channels = from.channels;
    options.filter = static_cast<std::uint32_t>(from.filter);
    options.crop = from.crop.off ? nullptr : &crop;
    options.type = static_cast<std::uint32_t>(from.type);
    options.layout = static_cast<std::uint32_t>(from.layout);
    for (std::size_t n = 0; n < from.mean.size(); ++n) {
      options.mean[n] = from.mean[n];
      options.std[n] = from.std[n];
    }
    options.augment_seed = from.augment_seed;
    options.epochs = from.epochs;
    options.rank = from.rank;
    options.world_size = from.world_size;
    options.cursor = from.cursor.has_value() ? from.cursor->c_str() : nullptr;
    options.threads = from.threads;
    options.buffers = from.buffers;
    options.share_of_memory = from.share_of_memory;
    return Made([&](shardpack_loader** made, shardpack_error** error) {
      return internal::WithText(internal::IsWhole(from.cursor), [&] {
        return shardpack_resident_open(dataset.get(), order.get(), device.get(), &options, made,
                                       error);
      });
    });
  }
  // A loader of the batches of this one, which it takes over, copied to the device ahead. Opened in
  // the background.
  Returned<Loader> to_device(const Device& device, const DeviceOptions& from = {}) {
    const shardpack_decode decode = internal::Plain(from.decode);
    shardpack_device_options options = {};
    options.size = sizeof options;
    options.prefetch_batches = from.prefetch_batches;
    options.preprocess = from.preprocess ? 1 : 0;
    options.type = static_cast<std::uint32_t>(from.type);
    options.layout = static_cast<std::uint32_t>(from.layout);
    options.width = from.width;
    options.height = from.height;
    options.filter = static_cast<std::uint32_t>(from.filter);
    options.no_labels = from.no_labels ? 1 : 0;
    for (std::size_t n = 0; n < from.mean.size(); ++n) {
      options.mean[n] = from.mean[n];
      options.std[n] = from.std[n];
    }
    options.decode = from.decode.off ? nullptr : &decode;
    options.raw_bytes = from.raw_bytes;
    options.decode_by = static_cast<std::uint32_t>(from.decode_by);
    options.share_decoding = from.share_decoding;
    options.augment = from.augment.empty() ? nullptr : from.augment.c_str();
    options.augment_on_device_only = from.augment_on_device_only;
    options.decode_regions = from.decode_regions;
    options.patience_ms = static_cast<std::uint64_t>(internal::Milliseconds(from.patience));
    return Made([&](shardpack_loader** made, shardpack_error** error) {
      return internal::WithText(internal::IsWhole(from.augment), [&] {
        return shardpack_loader_to_device(get(), device.get(), &options, made, error);
      });
    });
  }
  shardpack_loader* get() const { return handle_.get(); }

  // The next batch; nullopt at the end of the epoch, after which the next one begins.
  Returned<std::optional<Batch>> next() {
    shardpack_batch* batch = nullptr;
    return internal::Do(
        [&](shardpack_error** error) { return shardpack_loader_next(get(), -1, &batch, error); },
        [&](shardpack_code code) {
          return code == SHARDPACK_OK ? std::optional<Batch>(Batch(batch)) : std::nullopt;
        });
  }
  // The same, for so long at most (below 0 is 0, here and elsewhere). Nothing is lost by a wait
  // that was too short.
  Returned<Polled> poll(std::chrono::milliseconds wait) {
    shardpack_batch* batch = nullptr;
    return internal::Do(
        [&](shardpack_error** error) {
          return shardpack_loader_next(get(), internal::Milliseconds(wait), &batch, error);
        },
        [&](shardpack_code code) {
          return Polled{static_cast<Code>(code), code == SHARDPACK_OK ? Batch(batch) : Batch()};
        });
  }
  // The rest of the epoch: for (const auto& batch : loader.epoch()) ...
  Epoch epoch() &;
  Epoch epoch() && = delete;  // the loader would be gone before the first batch

  // To memory of the caller on the device. The batch has ids, labels and states; nullopt: the end
  // of the epoch.
  Returned<std::optional<Batch>> next_into(const shardpack_target& target, void* stream) {
    shardpack_batch* batch = nullptr;
    return internal::Do(
        [&](shardpack_error** error) {
          return shardpack_loader_next_into(get(), -1, &target, stream, &batch, error);
        },
        [&](shardpack_code code) {
          return code == SHARDPACK_OK ? std::optional<Batch>(Batch(batch)) : std::nullopt;
        });
  }
  // Of a resident loader, in a CUDA graph: while the stream captures, enqueue_step; then before
  // each launch of the graph, next_step with the stream of the launch. Launches put the step that
  // was named last into the target. The batch has ids, labels and states; nullopt: the end of the
  // epoch.
  Returned<void> enqueue_step(const shardpack_target& target, void* stream) {
    return internal::Do([&](shardpack_error** error) {
      return shardpack_loader_enqueue_step(get(), &target, stream, error);
    });
  }
  Returned<std::optional<Batch>> next_step(void* stream) {
    shardpack_batch* batch = nullptr;
    return internal::Do(
        [&](shardpack_error** error) {
          return shardpack_loader_next_step(get(), -1, stream, &batch, error);
        },
        [&](shardpack_code code) {
          return code == SHARDPACK_OK ? std::optional<Batch>(Batch(batch)) : std::nullopt;
        });
  }
  // Waits for the background; false if that takes longer.
  Returned<bool> opened(std::chrono::milliseconds wait) {
    return internal::Do(
        [&](shardpack_error** error) {
          return shardpack_loader_opened(get(), internal::Milliseconds(wait), error);
        },
        [](shardpack_code code) { return code == SHARDPACK_OK; });
  }
  Returned<void> seek(std::uint64_t epoch, std::uint64_t step) {
    return internal::Do(
        [&](shardpack_error** error) { return shardpack_loader_seek(get(), epoch, step, error); });
  }
  // For a checkpoint: LoaderOptions::cursor goes on there.
  Returned<std::string> cursor() const {
    return internal::Text([&](char** text, shardpack_error** error) {
      return shardpack_loader_cursor(get(), text, error);
    });
  }
  Returned<Position> position() const {
    Position at = {};
    return internal::Do(
        [&](shardpack_error** error) {
          return shardpack_loader_position(get(), &at.epoch, &at.step, error);
        },
        [&](shardpack_code) { return at; });
  }
  Returned<std::string> stats_json() const {
    return internal::Text([&](char** text, shardpack_error** error) {
      return shardpack_loader_stats_json(get(), text, error);
    });
  }
  // For people; the first line names the bottleneck.
  Returned<std::string> explain() const {
    return internal::Text([&](char** text, shardpack_error** error) {
      return shardpack_loader_explain(get(), text, error);
    });
  }
  Returned<std::string> take_bad_samples_json() {
    return internal::Text([&](char** text, shardpack_error** error) {
      return shardpack_loader_take_bad_samples_json(get(), text, error);
    });
  }
  // From any thread: a waiting next() ends with Code::kCancelled.
  void stop() { shardpack_loader_stop(get()); }
  // Stops it, and waits until its threads and memory are gone; false if that takes longer.
  Returned<bool> close(std::chrono::milliseconds wait) {
    return internal::Do(
        [&](shardpack_error** error) {
          return shardpack_loader_close(get(), internal::Milliseconds(wait), error);
        },
        [](shardpack_code code) { return code == SHARDPACK_OK; });
  }

 private:
  template <typename Call>
  static Returned<Loader> Made(Call call) {
    shardpack_loader* made = nullptr;
    return internal::Do([&](shardpack_error** error) { return call(&made, error); },
                        [&](shardpack_code) { return Loader(made); });
  }

  internal::Owned<shardpack_loader, shardpack_loader_release> handle_;
};

// A range to be walked through once. A batch is given back before the next one is fetched.
class Loader::Epoch {
 public:
  struct End {};
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Returned<Batch>;
    using difference_type = std::ptrdiff_t;
    using pointer = value_type*;
    using reference = value_type&;

    explicit Iterator(Epoch* epoch) : epoch_(epoch) {}
    reference operator*() const { return *epoch_->item_; }
    pointer operator->() const { return &*epoch_->item_; }
    Iterator& operator++() {
      epoch_->Advance();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool at_end() const { return !epoch_->item_.has_value(); }
    friend bool operator==(const Iterator& at, End) { return at.at_end(); }
    friend bool operator!=(const Iterator& at, End end) { return !(at == end); }

   private:
    Epoch* epoch_;
  };

  explicit Epoch(Loader& loader) : loader_(&loader) {}
  Iterator begin() {
    Advance();
    return Iterator(this);
  }
  End end() const { return {}; }

 private:
  void Advance() {
    item_.reset();
#ifdef SHARDPACK_NO_EXCEPTIONS
    if (failed_) return;  // the error was the last item
    Result<std::optional<Batch>> next = loader_->next();
    failed_ = !next.ok();
    if (failed_) {
      item_.emplace(next.error());
    } else if (next->has_value()) {
      item_.emplace(std::move(**next));
    }
#else
    item_ = loader_->next();
#endif
  }

  Loader* loader_;
  std::optional<Returned<Batch>> item_;
#ifdef SHARDPACK_NO_EXCEPTIONS
  bool failed_ = false;
#endif
};

inline Loader::Epoch Loader::epoch() & { return Epoch(*this); }

// ---------------------------------------------------------------------------------------- jobs

// A command of `pack` in a child process: Job({"validate", "shards", "--level=deep"}).
class Job {
 public:
  Job() = default;
#ifndef SHARDPACK_NO_EXCEPTIONS
  explicit Job(const std::vector<std::string>& arguments, const std::string& folder = "")
      : Job(Start(arguments, folder)) {}
#endif
  explicit Job(shardpack_job* taken) : handle_(taken) {}
  // `folder`: the command's working folder; empty: this process's.
  static Returned<Job> Start(const std::vector<std::string>& arguments,
                             const std::string& folder = "") {
    const std::vector<const char*> words = internal::Pointers(arguments);
    shardpack_job_options options = {};
    options.size = sizeof options;
    options.folder = folder.empty() ? nullptr : folder.c_str();
    shardpack_job* made = nullptr;
    return internal::Do(
        [&](shardpack_error** error) {
          return internal::WithText(internal::IsWhole(arguments) && internal::IsWhole(folder), [&] {
            return shardpack_job_start(words.data(), words.size(), &options, &made, error);
          });
        },
        [&](shardpack_code) { return Job(made); });
  }
  shardpack_job* get() const { return handle_.get(); }

  // Whether it has ended. Returns when there is progress, at the latest after `wait`.
  Returned<bool> poll(std::chrono::milliseconds wait, shardpack_job_progress* progress = nullptr) {
    if (progress != nullptr) progress->size = sizeof *progress;
    return internal::Do(
        [&](shardpack_error** error) {
          return shardpack_job_poll(get(), internal::Milliseconds(wait), progress, error);
        },
        [](shardpack_code code) { return code == SHARDPACK_OK; });
  }
  // Waits for its end, and gives its exit code: that of `pack`, 0 for done.
  Returned<int> wait() {
    return internal::Do(
        [&](shardpack_error** error) {
          shardpack_code code = SHARDPACK_WAIT;
          while (code == SHARDPACK_WAIT) code = shardpack_job_poll(get(), -1, nullptr, error);
          return code;
        },
        [&](shardpack_code) { return exit_code(); });
  }
  // As shardpack_job_exit_code: -1 while it runs.
  int exit_code() const { return static_cast<int>(shardpack_job_exit_code(get())); }
  // As Ctrl-C. From any thread.
  void cancel() { shardpack_job_cancel(get()); }
  // Of a job that has ended: exit code, report and messages.
  Returned<std::string> result_json() const {
    return internal::Text([&](char** text, shardpack_error** error) {
      return shardpack_job_result_json(get(), text, error);
    });
  }

 private:
  internal::Owned<shardpack_job, shardpack_job_release> handle_;
};

// ------------------------------------------------------------------------------------- writers

// As shardpack_writer_options.
struct WriterOptions {
  std::vector<std::string> arguments = {};
  std::uint32_t worker = 0, workers = 1;
  std::vector<std::string> classes = {};

  SHARDPACK_SETTER(std::vector<std::string>, arguments)
  SHARDPACK_SETTER(std::uint32_t, worker)
  SHARDPACK_SETTER(std::uint32_t, workers)
  SHARDPACK_SETTER(std::vector<std::string>, classes)
};

// Samples that a program makes: add() them in any order, then finish().wait().
class Writer {
 public:
  Writer() = default;
#ifndef SHARDPACK_NO_EXCEPTIONS
  explicit Writer(const std::string& path, const WriterOptions& options = {})
      : Writer(Open(path, options)) {}
#endif
  explicit Writer(shardpack_writer* taken) : handle_(taken) {}
  static Returned<Writer> Open(const std::string& path, const WriterOptions& from) {
    const std::vector<const char*> arguments = internal::Pointers(from.arguments);
    const std::vector<const char*> classes = internal::Pointers(from.classes);
    shardpack_writer_options options = {};
    options.size = sizeof options;
    options.arguments = arguments.data();
    options.argument_count = arguments.size();
    options.worker = from.worker;
    options.workers = from.workers;
    options.classes = classes.data();
    options.class_count = classes.size();
    shardpack_writer* made = nullptr;
    return internal::Do(
        [&](shardpack_error** error) {
          return internal::WithText(
              internal::IsWhole(path) && internal::IsWhole(from.arguments) &&
                  internal::IsWhole(from.classes),
              [&] { return shardpack_writer_open(path.c_str(), &options, &made, error); });
        },
        [&](shardpack_code) { return Writer(made); });
  }
  shardpack_writer* get() const { return handle_.get(); }

  // One of the fields is the encoded image; nullopt: no label.
  Returned<void> add(std::string_view key, const std::optional<std::string>& label,
                     const std::vector<shardpack_field>& fields) {
    return internal::Do([&](shardpack_error** error) {
      return internal::WithText(internal::IsWhole(label), [&] {
        return shardpack_writer_add(get(), key.data(), key.size(),
                                    label.has_value() ? label->c_str() : nullptr, fields.data(),
                                    fields.size(), error);
      });
    });
  }
  // No label is std::nullopt.
  template <typename T, typename = std::enable_if_t<std::is_same_v<T, std::nullptr_t>>>
  Returned<void> add(std::string_view, T, std::string_view) = delete;
  Returned<void> add(std::string_view key, const std::optional<std::string>& label,
                     std::string_view image) {
    return add(key, label, {shardpack_field{nullptr, image.data(), image.size()}});
  }
  // Samples as rows of a table.
  Returned<void> add_many(const shardpack_samples& samples) {
    return internal::Do(
        [&](shardpack_error** error) { return shardpack_writer_add_many(get(), &samples, error); });
  }
  // Whether it is safe on disk. False also for an empty handle and after a fork, where add fails.
  bool has(std::string_view key) const {
    return shardpack_writer_has(get(), key.data(), key.size(), nullptr) == SHARDPACK_OK;
  }
  Returned<void> flush() {
    return internal::Do(
        [&](shardpack_error** error) { return shardpack_writer_flush(get(), error); });
  }
  // Packs, verifies and publishes what all workers wrote.
  Returned<Job> finish() {
    shardpack_job* made = nullptr;
    return internal::Do(
        [&](shardpack_error** error) { return shardpack_writer_finish(get(), &made, error); },
        [&](shardpack_code) { return Job(made); });
  }

 private:
  internal::Owned<shardpack_writer, shardpack_writer_release> handle_;
};

// As Loader::Open would check it.
inline Returned<void> check(const Decode& from) {
  const shardpack_decode decode = internal::Plain(from);
  return internal::Do(
      [&](shardpack_error** error) { return shardpack_decode_check(&decode, error); });
}

inline std::string_view version() { return shardpack_version(); }
inline std::string_view build_json() { return shardpack_build_json(); }

#undef SHARDPACK_SETTER

}  // inline namespace
}  // namespace shardpack_api

#if __cplusplus >= 202002L && __has_include(<span>) && __has_include(<ranges>)
#include <ranges>
template <typename T>
inline constexpr bool std::ranges::enable_borrowed_range<shardpack_api::Span<T>> = true;
template <typename T>
inline constexpr bool std::ranges::enable_view<shardpack_api::Span<T>> = true;
#endif

#endif  // SHARDPACK_HPP_
