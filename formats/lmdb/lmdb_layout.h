// The layouts of an LMDB shard: the keys and values of each, and the limits of the format.
//
//   AppendCaffeKey(7, "cat/1.jpg", key);                        // 00000007_cat/1.jpg
//   ValueFrame frame = MakeValueFrame(LmdbLayout::kCaffe, image.size(), label);
//   uint64_t value_bytes = frame.head().size() + image.size() + frame.tail().size();
//
// FORMAT.md names the source of each fact.
//
// Lifetime: plain values; the spans of a ValueFrame point into it.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_LMDB_LMDB_LAYOUT_H_
#define SHARDPACK_FORMATS_LMDB_LMDB_LAYOUT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "formats/io/bytes.h"

namespace shardpack {

enum class LmdbLayout : uint8_t { kCaffe, kRaw, kPickle };

inline constexpr std::string_view kCaffeLayout = "caffe";
inline constexpr std::string_view kRawLayout = "raw";
inline constexpr std::string_view kPickleLayout = "pickle";

// Finds a layout by name; "" is the default layout.
std::optional<LmdbLayout> FindLmdbLayout(std::string_view name);

// MDB_MAXKEYSIZE of a stock liblmdb 0.9.
inline constexpr size_t kMaxLmdbKeyBytes = 511;
// Readers of a Datum and of the pickled bytes object use int32 lengths.
inline constexpr uint64_t kMaxValueBytes = (uint64_t{1} << 31) - 1 - 16;
// A caffe key has eight digits; with nine it would no longer sort as a number.
inline constexpr uint64_t kMaxCaffeNumber = 99'999'999;

// The entries of the pickle layout that are not samples. Both sort after every number.
inline constexpr std::string_view kPickleKeysKey = "__keys__";
inline constexpr std::string_view kPickleLengthKey = "__len__";

// "%08d_<source path>", the names that Caffe's convert_imageset gives its entries, cut to
// kMaxLmdbKeyBytes: the number keeps the key unique.
void AppendCaffeKey(uint64_t number, std::string_view source_path, std::string& key);
// The part after the number and its underscore; empty for a key of another form.
std::string_view SourcePathOfCaffeKey(std::string_view key);

// The bytes of a value before and after the image.
class ValueFrame {
 public:
  Bytes head() const { return {head_.data(), head_bytes_}; }
  Bytes tail() const { return {tail_.data(), tail_bytes_}; }
  void AddToHead(uint8_t byte) { head_[head_bytes_++] = std::byte{byte}; }
  void AddToTail(uint8_t byte) { tail_[tail_bytes_++] = std::byte{byte}; }

 private:
  std::array<std::byte, 8> head_;
  std::array<std::byte, 16> tail_;
  size_t head_bytes_ = 0, tail_bytes_ = 0;
};

// image_bytes <= kMaxValueBytes; label within int32.
ValueFrame MakeValueFrame(LmdbLayout layout, uint64_t image_bytes, int64_t label);
// The maximum of head and tail together. Datum: tag, length, tag, label (a negative int32 takes ten
// bytes), tag, flag. Pickle: PROTO, BINBYTES, BININT, TUPLE2, STOP.
inline constexpr uint64_t kMaxDatumFrameBytes = 1 + 5 + 1 + 10 + 2;
inline constexpr uint64_t kMaxPickleFrameBytes = 2 + 5 + 5 + 2;

// The value of kPickleKeysKey for this many samples: the list of their keys, as bytes objects.
std::string MakePickleKeys(uint64_t records);
// The value of kPickleLengthKey.
std::string MakePickleLength(uint64_t records);
// The most that one sample adds to the value of kPickleKeysKey, not counting the digits of its key.
inline constexpr uint64_t kMaxPickleListBytes = 2 + 1;

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_LMDB_LMDB_LAYOUT_H_
