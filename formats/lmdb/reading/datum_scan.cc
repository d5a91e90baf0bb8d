#include "formats/lmdb/reading/datum_scan.h"

#include <optional>

namespace shardpack {
namespace {

// The nesting limit of protobuf's parser.
constexpr int kMaxGroups = 100;

enum WireType : uint32_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,
  kGroup = 3,
  kGroupEnd = 4,
  kFixed32 = 5
};

// Iterates over the fields of one message.
class Fields {
 public:
  explicit Fields(Bytes bytes) : bytes_(bytes) {}

  // Returns false at the end, and if the message is malformed.
  bool Next() {
    if (at_ == bytes_.size()) return false;
    ok_ = ReadField();
    return ok_;
  }
  bool ok() const { return ok_; }

  uint64_t number = 0, wire_type = 0;
  uint64_t value = 0;               // if a varint
  uint64_t offset = 0, length = 0;  // if length-delimited

 private:
  bool ReadField() {
    if (!ReadTag()) return false;
    if (wire_type != kGroup) return wire_type != kGroupEnd && ReadPayload();
    const uint64_t outer = number;
    const bool skipped = SkipGroup();
    number = outer;
    wire_type = kGroup;
    return skipped;
  }

  bool ReadTag() {
    uint64_t tag = 0;
    if (!ReadVarint(tag) || tag > UINT32_MAX) return false;
    number = tag >> 3;
    wire_type = tag & 7;
    return number != 0;
  }

  bool ReadPayload() {
    switch (wire_type) {
      case kVarint:
        return ReadVarint(value);
      case kFixed64:
        return Skip(8);
      case kFixed32:
        return Skip(4);
      case kBytes:
        if (!ReadVarint(length)) return false;
        offset = at_;
        return Skip(length);
      default:
        return false;
    }
  }

  // Without recursion: only the numbers of the open groups have to be remembered.
  bool SkipGroup() {
    uint64_t open[kMaxGroups];
    int depth = 0;
    open[depth++] = number;
    while (depth > 0) {
      if (!ReadTag()) return false;
      if (wire_type == kGroup) {
        if (depth == kMaxGroups) return false;
        open[depth++] = number;
      } else if (wire_type == kGroupEnd) {
        if (open[--depth] != number) return false;
      } else if (!ReadPayload()) {
        return false;
      }
    }
    return true;
  }

  bool ReadVarint(uint64_t& out) {
    out = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (at_ == bytes_.size()) return false;
      const auto byte = std::to_integer<uint64_t>(bytes_[at_++]);
      if (shift < 64) out |= (byte & 0x7F) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  bool Skip(uint64_t bytes) {
    if (bytes > bytes_.size() - at_) return false;
    at_ += bytes;
    return true;
  }

  const Bytes bytes_;
  size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace

bool ScanDatum(Bytes value, Datum& datum) {
  constexpr uint64_t kData = 4, kLabel = 5, kEncoded = 7;
  datum = {};
  Fields fields(value);
  while (fields.Next()) {
    if (fields.number == kData && fields.wire_type == kBytes) {
      datum.has_data = true;
      datum.data_offset = fields.offset;
      datum.data_bytes = fields.length;
    } else if (fields.number == kLabel && fields.wire_type == kVarint) {
      datum.has_label = true;
      datum.label = static_cast<int32_t>(static_cast<uint32_t>(fields.value));
    } else if (fields.number == kEncoded && fields.wire_type == kVarint) {
      datum.has_encoded = true;
      datum.encoded = fields.value != 0;
    }
  }
  return fields.ok();
}

bool LooksLikeTensorProtos(Bytes value) {
  constexpr uint64_t kProtos = 1, kDataType = 2;
  Fields outer(value);
  bool any = false;
  while (outer.Next()) {
    if (outer.number != kProtos || outer.wire_type != kBytes) return false;
    Fields inner(value.subspan(outer.offset, outer.length));
    bool has_type = false;
    while (inner.Next())
      has_type = has_type || (inner.number == kDataType && inner.wire_type == kVarint);
    if (!inner.ok() || !has_type) return false;
    any = true;
  }
  return outer.ok() && any;
}

}  // namespace shardpack
