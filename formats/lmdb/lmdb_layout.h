// The layouts of an LMDB shard: what a key and a value are in each, and the limits of the format.
//
//   AppendCaffeKey(7, "cat/1.jpg", key);                        // 00000007_cat/1.jpg
//   ValueFrame frame = MakeValueFrame(LmdbLayout::kCaffe, image.size(), label);
//   uint64_t value_bytes = frame.head().size() + image.size() + frame.tail().size();
//
// FORMAT.md has the sources of each fact.
//
// Lifetime: plain values; what a ValueFrame hands out lies in it.
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

// The layout of that name, the default one for "".
std::optional<LmdbLayout> FindLmdbLayout(std::string_view name);

// MDB_MAXKEYSIZE of a stock liblmdb 0.9.
inline constexpr size_t kMaxLmdbKeyBytes = 511;
// A Datum and the pickled bytes object are read by readers that count in int32.
inline constexpr uint64_t kMaxValueBytes = (uint64_t{1} << 31) - 1 - 16;
// A caffe key has eight digits; one more would no longer sort as a number.
inline constexpr uint64_t kMaxCaffeNumber = 99'999'999;

// The entries of the pickle layout that are not samples. Both sort after every number.
inline constexpr std::string_view kPickleKeysKey = "__keys__";
inline constexpr std::string_view kPickleLengthKey = "__len__";

// "%08d_<source path>", as convert_imageset of Caffe names its entries, cut to kMaxLmdbKeyBytes:
// the number keeps it unique.
void AppendCaffeKey(uint64_t number, std::string_view source_path, std::string& key);
// What follows the number and its underscore; empty for a key of another form.
std::string_view SourcePathOfCaffeKey(std::string_view key);

// What a value has before and after the image's bytes.
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
// The most that head and tail have together: tag, length, tag, label (an int32 below 0 has ten
// bytes), tag, flag; PROTO, BINBYTES, BININT, TUPLE2, STOP.
inline constexpr uint64_t kMaxDatumFrameBytes = 1 + 5 + 1 + 10 + 2;
inline constexpr uint64_t kMaxPickleFrameBytes = 2 + 5 + 5 + 2;

// The value of kPickleKeysKey for that many samples: the list of their keys, as bytes objects.
std::string MakePickleKeys(uint64_t records);
// The value of kPickleLengthKey.
std::string MakePickleLength(uint64_t records);
// What one sample adds to the value of kPickleKeysKey beside the digits of its key, at most.
inline constexpr uint64_t kMaxPickleListBytes = 2 + 1;

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_LMDB_LMDB_LAYOUT_H_
