#include "formats/lmdb/lmdb_layout.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace shardpack {
namespace {

// The opcodes of the pickle protocol (python/cpython: Lib/pickletools.py).
constexpr uint8_t kProto = 0x80, kProtocol = 3, kBinBytes = 'B', kShortBinBytes = 'C';
constexpr uint8_t kBinInt1 = 'K', kBinInt2 = 'M', kBinInt = 'J', kTuple2 = 0x86, kStop = '.';
constexpr uint8_t kEmptyList = ']', kMark = '(', kAppends = 'e';
// CPython appends to a list in batches of this size (Lib/pickle.py, _BATCHSIZE).
constexpr uint64_t kListRun = 1000;

// The fields of caffe.Datum (BVLC/caffe: src/caffe/proto/caffe.proto) as tag and wire type.
constexpr uint8_t kDatumData = 0x22, kDatumLabel = 0x28, kDatumEncoded = 0x38;

template <typename Add>
void AddVarint(uint64_t value, Add add) {
  for (; value >= 0x80; value >>= 7) add(static_cast<uint8_t>(value | 0x80));
  add(static_cast<uint8_t>(value));
}

template <typename Add>
void AddPickledInteger(int64_t value, Add add) {
  const auto bits = static_cast<uint32_t>(value);
  const int bytes = value < 0 || value > 0xFFFF ? 4 : value > 0xFF ? 2 : 1;
  add(bytes == 4 ? kBinInt : bytes == 2 ? kBinInt2 : kBinInt1);
  for (int i = 0; i < bytes; ++i) add(static_cast<uint8_t>(bits >> (8 * i)));
}

ValueFrame MakeDatumFrame(uint64_t image_bytes, int64_t label) {
  ValueFrame frame;
  const auto head = [&](uint8_t byte) { frame.AddToHead(byte); };
  const auto tail = [&](uint8_t byte) { frame.AddToTail(byte); };
  head(kDatumData);
  AddVarint(image_bytes, head);
  tail(kDatumLabel);
  AddVarint(static_cast<uint64_t>(label), tail);  // a negative int32 takes ten bytes
  tail(kDatumEncoded);
  tail(1);
  return frame;
}

ValueFrame MakePickleFrame(uint64_t image_bytes, int64_t label) {
  ValueFrame frame;
  frame.AddToHead(kProto);
  frame.AddToHead(kProtocol);
  const bool is_short = image_bytes <= 0xFF;
  frame.AddToHead(is_short ? kShortBinBytes : kBinBytes);
  for (int i = 0; i < (is_short ? 1 : 4); ++i) {
    frame.AddToHead(static_cast<uint8_t>(image_bytes >> (8 * i)));
  }
  AddPickledInteger(label, [&](uint8_t byte) { frame.AddToTail(byte); });
  frame.AddToTail(kTuple2);
  frame.AddToTail(kStop);
  return frame;
}

}  // namespace

std::optional<LmdbLayout> FindLmdbLayout(std::string_view name) {
  if (name.empty() || name == kCaffeLayout) return LmdbLayout::kCaffe;
  if (name == kRawLayout) return LmdbLayout::kRaw;
  if (name == kPickleLayout) return LmdbLayout::kPickle;
  return std::nullopt;
}

void AppendCaffeKey(uint64_t number, std::string_view source_path, std::string& key) {
  absl::StrAppendFormat(&key, "%08d_", number);
  key.append(source_path.substr(0, kMaxLmdbKeyBytes - std::min(key.size(), kMaxLmdbKeyBytes)));
}

std::string_view SourcePathOfCaffeKey(std::string_view key) {
  const size_t digits = std::min(key.find_first_not_of("0123456789"), key.size());
  return digits > 0 && digits < key.size() && key[digits] == '_' ? key.substr(digits + 1)
                                                                 : std::string_view();
}

ValueFrame MakeValueFrame(LmdbLayout layout, uint64_t image_bytes, int64_t label) {
  switch (layout) {
    case LmdbLayout::kCaffe:
      return MakeDatumFrame(image_bytes, label);
    case LmdbLayout::kPickle:
      return MakePickleFrame(image_bytes, label);
    case LmdbLayout::kRaw:
      break;
  }
  return {};
}

std::string MakePickleKeys(uint64_t records) {
  std::string out = {static_cast<char>(kProto), static_cast<char>(kProtocol),
                     static_cast<char>(kEmptyList)};
  for (uint64_t i = 0; i < records; ++i) {
    if (i % kListRun == 0) out.push_back(static_cast<char>(kMark));
    const std::string key = absl::StrCat(i);
    out.push_back(static_cast<char>(kShortBinBytes));
    out.push_back(static_cast<char>(key.size()));
    out.append(key);
    if (i % kListRun == kListRun - 1 || i + 1 == records)
      out.push_back(static_cast<char>(kAppends));
  }
  out.push_back(static_cast<char>(kStop));
  return out;
}

std::string MakePickleLength(uint64_t records) {
  std::string out = {static_cast<char>(kProto), static_cast<char>(kProtocol)};
  AddPickledInteger(static_cast<int64_t>(records),
                    [&](uint8_t byte) { out.push_back(static_cast<char>(byte)); });
  out.push_back(static_cast<char>(kStop));
  return out;
}

}  // namespace shardpack
