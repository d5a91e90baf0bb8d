#include "formats/tfrecord/example_scan.h"

#include <algorithm>
#include <array>
#include <tuple>

namespace shardpack {
namespace {

enum WireType : uint32_t {
  kVarint = 0,
  kFixed64 = 1,
  kDelimited = 2,
  kStartGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5,
};

constexpr uint32_t Tag(uint32_t field, WireType type) { return field << 3 | type; }

// Protobuf's default nesting limit (CodedInputStream::GetDefaultRecursionLimit).
constexpr size_t kMaxGroupDepth = 100;

bool Contains(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

// A range of wire bytes. Every read is bounded by its end, and returns false instead of passing it.
// The limits of each number are those of protobuf 3.21 (google/protobuf/parse_context.{h,cc}); the
// encoding: https://protobuf.dev/programming-guides/encoding/
class ExampleScan::Wire {
 public:
  explicit Wire(Bytes bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  const std::byte* at() const { return at_; }
  size_t left() const { return static_cast<size_t>(end_ - at_); }
  bool done() const { return at_ == end_; }

  // Reads at most ten bytes; drops bits above the 64th.
  bool ReadVarint(uint64_t& value) {
    if (at_ != end_ && static_cast<uint8_t>(*at_) < 0x80) [[likely]] {
      value = static_cast<uint8_t>(*at_++);
      return true;
    }
    return ReadLongVarint(value, 10);
  }

  // A tag has at most five bytes, of which 32 bits count; field number 0 is invalid.
  bool ReadTag(uint32_t& tag) {
    uint64_t value = 0;
    if (!ReadShortVarint(value)) return false;
    tag = static_cast<uint32_t>(value);
    return tag >> 3 != 0;
  }

  // Reads the content of a length-delimited field.
  bool ReadDelimited(Bytes& content) {
    uint64_t length = 0;
    if (!ReadShortVarint(length) || length > left()) return false;
    content = Bytes(at_, length);
    at_ += length;
    return true;
  }

  bool Skip(uint64_t bytes) {
    if (bytes > left()) return false;
    at_ += bytes;
    return true;
  }

  // Skips the content of an unknown field; a group is skipped as a whole.
  bool SkipField(uint32_t tag) {
    if ((tag & 7) != kStartGroup) return SkipPlainField(tag);
    std::array<uint32_t, kMaxGroupDepth> open;
    size_t depth = 0;
    open[depth++] = tag >> 3;
    while (depth > 0) {
      if (!ReadTag(tag)) return false;
      if ((tag & 7) == kStartGroup) {
        if (depth == kMaxGroupDepth) return false;
        open[depth++] = tag >> 3;
      } else if ((tag & 7) == kEndGroup) {
        if (open[--depth] != tag >> 3) return false;
      } else if (!SkipPlainField(tag)) {
        return false;
      }
    }
    return true;
  }

 private:
  bool ReadShortVarint(uint64_t& value) {
    if (at_ != end_ && static_cast<uint8_t>(*at_) < 0x80) [[likely]] {
      value = static_cast<uint8_t>(*at_++);
      return true;
    }
    return ReadLongVarint(value, 5);
  }

  bool ReadLongVarint(uint64_t& value, size_t max_bytes) {
    value = 0;
    const size_t bytes = std::min(max_bytes, left());
    for (size_t i = 0; i < bytes; ++i) {
      const auto byte = static_cast<uint8_t>(at_[i]);
      value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
      if (byte < 0x80) {
        at_ += i + 1;
        return true;
      }
    }
    return false;
  }

  bool SkipPlainField(uint32_t tag) {
    uint64_t value;
    Bytes content;
    switch (tag & 7) {
      case kVarint:
        return ReadVarint(value);
      case kFixed64:
        return Skip(8);
      case kDelimited:
        return ReadDelimited(content);
      case kFixed32:
        return Skip(4);
      default:  // the end of a group that is not open, or an invalid wire type
        return false;
    }
  }

  const std::byte* at_;
  const std::byte* end_;
};

bool ExampleScan::Fail(const Wire& wire, std::string_view problem) {
  // Keep the innermost problem, which is found first and is the most precise.
  if (problem_.empty()) {
    problem_ = problem;
    problem_offset_ = static_cast<uint64_t>(wire.at() - begin_);
  }
  return false;
}

ExampleScan::Outcome ExampleScan::Scan(Bytes payload) {
  begin_ = payload.data();
  features_.clear();
  sorted_ = true;
  has_feature_lists_ = false;
  image_ = label_ = filename_ = nullptr;
  problem_ = {};
  problem_offset_ = 0;
  const Wire wire(payload);
  if (payload.size() > kMaxExampleBytes) {
    Fail(wire, "larger than protobuf can parse");
    return Outcome::kMalformed;
  }
  if (!ParseExample(wire)) return Outcome::kMalformed;
  if (has_feature_lists_) return Outcome::kSequenceExample;
  if (!sorted_) SortAndDropDuplicates();
  if (!AreKnown()) Learn();
  image_ = At(image_at_);
  label_ = At(label_at_);
  filename_ = At(filename_at_);
  return Outcome::kExample;
}

bool ExampleScan::AreKnown() const {
  return std::equal(features_.begin(), features_.end(), known_.begin(), known_.end(),
                    [](const ScannedFeature& feature, const KnownFeature& known) {
                      return feature.name == known.name && feature.kind == known.kind &&
                             (feature.values > 0) == known.has_value;
                    });
}

void ExampleScan::Learn() {
  known_.resize(features_.size());
  for (size_t i = 0; i < features_.size(); ++i) {
    const std::string_view name = features_[i].name;
    known_[i].name.assign(name);
    known_[i].kind = features_[i].kind;
    known_[i].has_value = features_[i].values > 0;
    const FeatureKind kind = features_[i].kind;
    known_[i].is_metadata = kind == FeatureKind::kBytes && IsMetadataFeature(name);
    known_[i].is_class_name =
        known_[i].is_metadata && (name == kFeatureClassText || name == kFeatureSynset);
    known_[i].is_derived = KindInLayout(name) == kind && !known_[i].is_class_name &&
                           !Contains(FilenameFeatureNames(), name);
  }
  image_at_ = FirstOf(ImageFeatureNames(), FeatureKind::kBytes);
  label_at_ = FirstOf(LabelFeatureNames(), FeatureKind::kInt64);
  filename_at_ = FirstOf(FilenameFeatureNames(), FeatureKind::kBytes);
}

// Example { Features features = 1; }; SequenceExample { Features context = 1; FeatureLists
// feature_lists = 2; }
bool ExampleScan::ParseExample(Wire wire) {
  while (!wire.done()) {
    uint32_t tag = 0;
    Bytes content;
    if (!wire.ReadTag(tag)) return Fail(wire, "bad tag in Example");
    if (tag == Tag(1, kDelimited)) {
      if (!wire.ReadDelimited(content)) return Fail(wire, "Features exceed the record");
      if (!ParseFeatures(Wire(content))) return false;
      continue;
    }
    if (tag == Tag(2, kDelimited)) has_feature_lists_ = true;
    if (!wire.SkipField(tag)) return Fail(wire, "bad field in Example");
  }
  return true;
}

// Features { map<string, Feature> feature = 1; }
bool ExampleScan::ParseFeatures(Wire wire) {
  while (!wire.done()) {
    uint32_t tag = 0;
    Bytes content;
    if (!wire.ReadTag(tag)) return Fail(wire, "bad tag in Features");
    if (tag == Tag(1, kDelimited)) {
      if (!wire.ReadDelimited(content)) return Fail(wire, "a map entry exceeds its Features");
      if (!ParseEntry(Wire(content))) return false;
    } else if (!wire.SkipField(tag)) {
      return Fail(wire, "bad field in Features");
    }
  }
  return true;
}

// A map entry { string key = 1; Feature value = 2; }: either may be missing, the last key wins, and
// values are merged.
bool ExampleScan::ParseEntry(Wire wire) {
  if (features_.size() == kMaxFeatures) return Fail(wire, "too many features");
  ScannedFeature feature;
  feature.order = static_cast<uint32_t>(features_.size());
  while (!wire.done()) {
    uint32_t tag = 0;
    Bytes content;
    if (!wire.ReadTag(tag)) return Fail(wire, "bad tag in a map entry");
    if (tag == Tag(1, kDelimited)) {
      if (!wire.ReadDelimited(content)) return Fail(wire, "a feature's name exceeds its map entry");
      feature.name = AsText(content);
    } else if (tag == Tag(2, kDelimited)) {
      if (!wire.ReadDelimited(content)) return Fail(wire, "a Feature exceeds its map entry");
      if (!ParseFeature(Wire(content), feature)) return false;
    } else if (!wire.SkipField(tag)) {
      return Fail(wire, "bad field in a map entry");
    }
  }
  if (!features_.empty() && features_.back().name >= feature.name) sorted_ = false;
  features_.push_back(feature);
  return true;
}

// Feature { oneof kind { BytesList bytes_list = 1; FloatList float_list = 2; Int64List int64_list =
// 3; } } Equal kinds are merged; another kind replaces what came before.
bool ExampleScan::ParseFeature(Wire wire, ScannedFeature& feature) {
  while (!wire.done()) {
    uint32_t tag = 0;
    Bytes content;
    if (!wire.ReadTag(tag)) return Fail(wire, "bad tag in a Feature");
    if (tag != Tag(1, kDelimited) && tag != Tag(2, kDelimited) && tag != Tag(3, kDelimited)) {
      if (!wire.SkipField(tag)) return Fail(wire, "bad field in a Feature");
      continue;
    }
    if (!wire.ReadDelimited(content)) return Fail(wire, "a list exceeds its Feature");
    const auto kind = static_cast<FeatureKind>(tag >> 3);
    if (feature.kind != kind) {
      feature.kind = kind;
      feature.values = 0;
    }
    const bool parsed = kind == FeatureKind::kBytes   ? ParseBytesList(Wire(content), feature)
                        : kind == FeatureKind::kFloat ? ParseFloatList(Wire(content), feature)
                                                      : ParseInt64List(Wire(content), feature);
    if (!parsed) return false;
  }
  return true;
}
static_assert(static_cast<int>(FeatureKind::kBytes) == 1 &&
                  static_cast<int>(FeatureKind::kFloat) == 2 &&
                  static_cast<int>(FeatureKind::kInt64) == 3,
              "the field numbers of feature.proto");

// BytesList { repeated bytes value = 1; }
bool ExampleScan::ParseBytesList(Wire wire, ScannedFeature& feature) {
  while (!wire.done()) {
    uint32_t tag = 0;
    Bytes value;
    if (!wire.ReadTag(tag)) return Fail(wire, "bad tag in a BytesList");
    if (tag == Tag(1, kDelimited)) {
      if (!wire.ReadDelimited(value)) return Fail(wire, "a value exceeds its BytesList");
      if (feature.values++ == 0) {
        feature.offset = static_cast<uint64_t>(value.data() - begin_);
        feature.length = value.size();
      }
    } else if (!wire.SkipField(tag)) {
      return Fail(wire, "bad field in a BytesList");
    }
  }
  return true;
}

// FloatList { repeated float value = 1 [packed = true]; }
bool ExampleScan::ParseFloatList(Wire wire, ScannedFeature& feature) {
  while (!wire.done()) {
    uint32_t tag = 0;
    Bytes packed;
    if (!wire.ReadTag(tag)) return Fail(wire, "bad tag in a FloatList");
    if (tag == Tag(1, kDelimited)) {
      if (!wire.ReadDelimited(packed) || packed.size() % 4 != 0) {
        return Fail(wire, "bad packed values in a FloatList");
      }
      feature.values += packed.size() / 4;
    } else if (tag == Tag(1, kFixed32)) {
      if (!wire.Skip(4)) return Fail(wire, "a value exceeds its FloatList");
      ++feature.values;
    } else if (!wire.SkipField(tag)) {
      return Fail(wire, "bad field in a FloatList");
    }
  }
  return true;
}

// Int64List { repeated int64 value = 1 [packed = true]; }
bool ExampleScan::ParseInt64List(Wire wire, ScannedFeature& feature) {
  const auto add = [&](uint64_t value) {
    if (feature.values++ == 0) feature.first_integer = static_cast<int64_t>(value);
  };
  while (!wire.done()) {
    uint32_t tag = 0;
    uint64_t value = 0;
    Bytes content;
    if (!wire.ReadTag(tag)) return Fail(wire, "bad tag in an Int64List");
    if (tag == Tag(1, kDelimited)) {
      if (!wire.ReadDelimited(content)) return Fail(wire, "packed values exceed their Int64List");
      Wire packed(content);
      while (!packed.done()) {
        if (!packed.ReadVarint(value)) return Fail(packed, "bad packed value in an Int64List");
        add(value);
      }
    } else if (tag == Tag(1, kVarint)) {
      if (!wire.ReadVarint(value)) return Fail(wire, "a value exceeds its Int64List");
      add(value);
    } else if (!wire.SkipField(tag)) {
      return Fail(wire, "bad field in an Int64List");
    }
  }
  return true;
}

// The last of several equal names wins (https://protobuf.dev/programming-guides/encoding/#maps).
void ExampleScan::SortAndDropDuplicates() {
  std::sort(features_.begin(), features_.end(),
            [](const ScannedFeature& a, const ScannedFeature& b) {
              const int names = a.name.compare(b.name);
              return names != 0 ? names < 0 : a.order < b.order;
            });
  size_t kept = 0;
  for (size_t i = 0; i < features_.size(); ++i) {
    if (i + 1 < features_.size() && features_[i + 1].name == features_[i].name) continue;
    features_[kept++] = features_[i];
  }
  features_.resize(kept);
}

const ScannedFeature* ExampleScan::Find(std::string_view name) const {
  const auto found = std::lower_bound(
      features_.begin(), features_.end(), name,
      [](const ScannedFeature& feature, std::string_view wanted) { return feature.name < wanted; });
  return found != features_.end() && found->name == name ? &*found : nullptr;
}

std::optional<size_t> ExampleScan::FirstOf(std::span<const std::string_view> names,
                                           FeatureKind kind) const {
  for (const std::string_view name : names) {
    const ScannedFeature* feature = Find(name);
    if (feature != nullptr && feature->kind == kind && feature->values > 0)
      return static_cast<size_t>(feature - features_.data());
  }
  return std::nullopt;
}

bool ExampleScan::IsField(const ScannedFeature& feature) const {
  return feature.kind == FeatureKind::kBytes && feature.values == 1 && &feature != image_ &&
         !Known(feature).is_metadata;
}

bool ExampleScan::IsLost(const ScannedFeature& feature) const {
  if (feature.values == 0 || IsField(feature)) return false;
  if (feature.values > 1) return true;
  if (&feature == image_ || &feature == label_ || &feature == filename_) return false;
  const KnownFeature& known = Known(feature);
  // Writers leave texts empty that they do not know.
  return !known.is_derived && !(known.is_metadata && feature.length == 0);
}

bool ExampleScan::IsClassName(const ScannedFeature& feature) const {
  return Known(feature).is_class_name && feature.values == 1 && feature.length > 0;
}

}  // namespace shardpack
