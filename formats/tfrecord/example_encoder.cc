#include "formats/tfrecord/example_encoder.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "formats/io/escape.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

// Tags of feature.proto; each is (field number << 3 | 2), one byte.
constexpr uint8_t kTagField1 =
    0x0a;  // Example.features, Features.feature, map key, *List.value, Feature.bytes_list
constexpr uint8_t kTagMapValue = 0x12;   // map value
constexpr uint8_t kTagFloatList = 0x12;  // Feature.float_list
constexpr uint8_t kTagInt64List = 0x1a;  // Feature.int64_list

constexpr uint64_t VarintBytes(uint64_t value) {
  return (static_cast<uint64_t>(std::bit_width(value | 1)) + 6) / 7;
}

// A length-delimited field whose tag is one byte.
constexpr uint64_t DelimitedBytes(uint64_t length) { return 1 + VarintBytes(length) + length; }

constexpr uint64_t EntryBytes(uint64_t name_bytes, uint64_t feature_bytes) {
  return DelimitedBytes(name_bytes) + DelimitedBytes(feature_bytes);
}

// The most that a bytes feature, or an int64 feature with an integer of this encoded size, adds to
// Features.
constexpr uint64_t BytesFeatureBound(uint64_t name_bytes, uint64_t value_bytes) {
  const uint64_t feature_bytes = DelimitedBytes(DelimitedBytes(value_bytes));
  return DelimitedBytes(EntryBytes(name_bytes, feature_bytes));
}
constexpr uint64_t IntegerFeatureBound(uint64_t name_bytes, uint64_t integer_bytes) {
  return BytesFeatureBound(name_bytes, integer_bytes);  // packed: same nesting
}

constexpr uint64_t EmptyFeatureBytes(uint64_t name_bytes) {
  return DelimitedBytes(EntryBytes(name_bytes, DelimitedBytes(0)));
}

std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

uint8_t TagOf(FeatureKind kind) {
  switch (kind) {
    case FeatureKind::kFloat:
      return kTagFloatList;
    case FeatureKind::kInt64:
      return kTagInt64List;
    case FeatureKind::kNone:
    case FeatureKind::kBytes:
      break;
  }
  return kTagField1;
}

class Out {
 public:
  explicit Out(std::byte* at) : at_(at) {}
  std::byte* at() const { return at_; }

  void Byte(uint8_t value) { *at_++ = static_cast<std::byte>(value); }
  void Varint(uint64_t value) {
    while (value >= 0x80) {
      Byte(static_cast<uint8_t>(value | 0x80));
      value >>= 7;
    }
    Byte(static_cast<uint8_t>(value));
  }
  void Header(uint8_t tag, uint64_t length) {
    Byte(tag);
    Varint(length);
  }
  void Raw(const void* from, size_t bytes) {
    if (bytes == 0) return;  // memcpy must not get a null pointer
    std::memcpy(at_, from, bytes);
    at_ += bytes;
  }

 private:
  std::byte* at_;
};

absl::Status Refuse(const SampleView& sample, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("sample ", EscapeForTerminal(sample.key), ": ", why));
}

}  // namespace

absl::Status ExampleEncoder::Check(const SampleView& sample) const {
  if (sample.fields.empty()) return Refuse(sample, "it has no image");
  if (sample.label < kNoLabel) {
    return Refuse(sample, absl::StrCat("label ", sample.label, " is negative"));
  }
  if (layout_ == TfrecordLayout::kImagenet &&
      sample.label > std::numeric_limits<int64_t>::max() - kImagenetLabelBase) {
    return Refuse(sample, absl::StrCat("label ", sample.label, " is too large"));
  }
  // The layouts store it at most twice.
  uint64_t payload_bytes = sample.source_path.size() + 2 * sample.class_name.size();
  for (size_t i = 0; i < sample.fields.size(); ++i) {
    const FieldView& field = sample.fields[i];
    // Check each term before adding it, so that the sum cannot wrap.
    if (field.bytes.size() > kMaxExampleBytes || payload_bytes > kMaxExampleBytes) {
      return Refuse(sample, absl::StrCat("field ", EscapeForTerminal(field.name), " has ",
                                         field.bytes.size(), " bytes; a tf.train.Example holds ",
                                         kMaxExampleBytes, " (protobuf's limit)"));
    }
    payload_bytes += field.bytes.size();
    if (i == 0) continue;  // always image/encoded
    if (field.name.empty() || field.name.size() > kMaxFieldNameBytes || !IsUtf8(field.name)) {
      return Refuse(sample, absl::StrCat("field name ", EscapeForTerminal(field.name),
                                         " is empty, longer than ", kMaxFieldNameBytes,
                                         " bytes or not UTF-8"));
    }
    if (field.name == kImageField || KindInLayout(field.name) || IsMetadataFeature(field.name)) {
      return Refuse(sample, absl::StrCat("field name ", EscapeForTerminal(field.name),
                                         " has a meaning of its own in this layout"));
    }
  }
  return absl::OkStatus();
}

void ExampleEncoder::AddBytes(std::string_view name, Bytes bytes, bool borrowed) {
  Entry& entry = entries_.emplace_back();
  entry.name = name;
  entry.bytes = bytes;
  entry.borrowed = borrowed;
  entry.list_bytes = DelimitedBytes(bytes.size());
  entry.feature_bytes = DelimitedBytes(entry.list_bytes);
  entry.entry_bytes = EntryBytes(name.size(), entry.feature_bytes);
}

void ExampleEncoder::AddInteger(std::string_view name, int64_t value) {
  Entry& entry = entries_.emplace_back();
  entry.name = name;
  entry.integer = value;
  entry.kind = FeatureKind::kInt64;
  entry.list_bytes = DelimitedBytes(VarintBytes(static_cast<uint64_t>(value)));
  entry.feature_bytes = DelimitedBytes(entry.list_bytes);
  entry.entry_bytes = EntryBytes(name.size(), entry.feature_bytes);
}

void ExampleEncoder::AddEmpty(std::string_view name, FeatureKind kind) {
  Entry& entry = entries_.emplace_back();
  entry.name = name;
  entry.kind = kind;
  entry.empty = true;
  entry.feature_bytes = DelimitedBytes(0);
  entry.entry_bytes = EntryBytes(name.size(), entry.feature_bytes);
}

// Each adds the features in byte order of their names; only further fields can break the order.
void ExampleEncoder::CollectClassification(const SampleView& sample) {
  AddInteger(kFeatureChannels, sample.image.channels);
  if (sample.label != kNoLabel) {
    AddInteger(kFeatureLabel, sample.label);
    AddBytes(kFeatureClassText, AsBytes(sample.class_name));
  }
  AddBytes(kFeatureColorspace, AsBytes(FeatureColorspaceName(sample.image)));
  AddBytes(kFeatureEncoded, sample.fields[0].bytes, /*borrowed=*/true);
  AddBytes(kFeatureFilename, AsBytes(sample.source_path));
  AddBytes(kFeatureFormat, AsBytes(FeatureFormatName(sample.image.format)));
  AddInteger(kFeatureHeight, sample.image.height);
  AddInteger(kFeatureWidth, sample.image.width);
}

// Describes the stored image. The original program instead converts every image to RGB JPEG.
void ExampleEncoder::CollectImagenet(const SampleView& sample) {
  AddInteger(kFeatureChannels, sample.image.channels);
  if (sample.label != kNoLabel) {
    AddInteger(kFeatureLabel, sample.label + kImagenetLabelBase);
    AddBytes(kFeatureSynset, AsBytes(sample.class_name));
    AddBytes(kFeatureClassText, AsBytes(sample.class_name));
  }
  AddBytes(kFeatureColorspace, AsBytes(FeatureColorspaceName(sample.image)));
  AddBytes(kFeatureEncoded, sample.fields[0].bytes, /*borrowed=*/true);
  AddBytes(kFeatureFilename, AsBytes(BaseName(sample.source_path)));
  AddBytes(kFeatureFormat, AsBytes(FeatureFormatNameInCapitals(sample.image.format)));
  AddInteger(kFeatureHeight, sample.image.height);
  AddEmpty(kFeatureBoxLabel, FeatureKind::kInt64);
  for (const std::string_view edge : kFeatureBoxEdges) AddEmpty(edge, FeatureKind::kFloat);
  AddInteger(kFeatureWidth, sample.image.width);
}

// Always adds a label: TensorFlow Datasets expects one in each Example of a dataset with classes,
// and stores -1 for unlabeled samples.
void ExampleEncoder::CollectTfds(const SampleView& sample) {
  AddBytes(kFeatureTfdsImage, sample.fields[0].bytes, /*borrowed=*/true);
  AddBytes(kFeatureFilename, AsBytes(sample.source_path));
  AddInteger(kFeatureTfdsLabel, sample.label);
}

void ExampleEncoder::Collect(const SampleView& sample) {
  entries_.clear();
  switch (layout_) {
    case TfrecordLayout::kClassification:
      CollectClassification(sample);
      break;
    case TfrecordLayout::kImagenet:
      CollectImagenet(sample);
      break;
    case TfrecordLayout::kTfds:
      CollectTfds(sample);
      break;
  }
  if (sample.fields.size() == 1) return;
  for (const FieldView& field : sample.fields.subspan(1)) {
    AddBytes(field.name, field.bytes, /*borrowed=*/true);
  }
  std::sort(entries_.begin(), entries_.end(),
            [](const Entry& a, const Entry& b) { return a.name < b.name; });
}

void ExampleEncoder::WriteParts(uint64_t features_bytes, uint64_t scratch_bytes) {
  if (scratch_.size() < scratch_bytes) scratch_.resize(scratch_bytes);
  Out out(scratch_.data());
  const std::byte* part = scratch_.data();
  out.Header(kTagField1, features_bytes);
  for (const Entry& entry : entries_) {
    out.Header(kTagField1, entry.entry_bytes);
    out.Header(kTagField1, entry.name.size());
    out.Raw(entry.name.data(), entry.name.size());
    out.Header(kTagMapValue, entry.feature_bytes);
    out.Header(TagOf(entry.kind), entry.list_bytes);
    if (entry.empty) continue;
    if (entry.kind == FeatureKind::kInt64) {
      out.Header(kTagField1, VarintBytes(static_cast<uint64_t>(entry.integer)));
      out.Varint(static_cast<uint64_t>(entry.integer));
      continue;
    }
    out.Header(kTagField1, entry.bytes.size());
    if (!entry.borrowed) {
      out.Raw(entry.bytes.data(), entry.bytes.size());
      continue;
    }
    parts_.emplace_back(part, out.at());
    parts_.push_back(entry.bytes);
    part = out.at();
  }
  parts_.emplace_back(part, out.at());
}

absl::Status ExampleEncoder::Encode(const SampleView& sample) {
  parts_.clear();
  size_bytes_ = 0;
  RETURN_IF_ERROR(Check(sample));
  Collect(sample);
  uint64_t features_bytes = 0, borrowed_bytes = 0;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (i > 0 && entries_[i].name == entries_[i - 1].name) {
      return Refuse(sample,
                    absl::StrCat("two fields are named ", EscapeForTerminal(entries_[i].name)));
    }
    features_bytes += DelimitedBytes(entries_[i].entry_bytes);
    if (entries_[i].borrowed) borrowed_bytes += entries_[i].bytes.size();
  }
  const uint64_t example_bytes = DelimitedBytes(features_bytes);
  if (example_bytes > kMaxExampleBytes) {
    return Refuse(sample, absl::StrCat("its record would have ", example_bytes,
                                       " bytes; a tf.train.Example holds ", kMaxExampleBytes,
                                       " (protobuf's limit)"));
  }
  WriteParts(features_bytes, example_bytes - borrowed_bytes);
  size_bytes_ = example_bytes;
  return absl::OkStatus();
}

uint64_t ExampleBound(TfrecordLayout layout, size_t source_path_bytes, size_t class_name_bytes,
                      bool has_label, std::span<const uint64_t> field_bytes) {
  constexpr uint64_t kChannelsBytes = VarintBytes(std::numeric_limits<uint8_t>::max());
  constexpr uint64_t kEdgeBytes = VarintBytes(std::numeric_limits<uint32_t>::max());
  constexpr uint64_t kLabelBytes = VarintBytes(std::numeric_limits<int64_t>::max());
  constexpr uint64_t kAnyLabelBytes = VarintBytes(std::numeric_limits<uint64_t>::max());  // -1
  constexpr uint64_t kNameBytes = 4;  // "jpeg", "RGBA" are the longest
  uint64_t features_bytes = BytesFeatureBound(kFeatureFilename.size(), source_path_bytes);
  size_t image_name_bytes = kFeatureEncoded.size();
  if (layout == TfrecordLayout::kTfds) {
    image_name_bytes = kFeatureTfdsImage.size();
    features_bytes += IntegerFeatureBound(kFeatureTfdsLabel.size(), kAnyLabelBytes);
  } else {
    features_bytes += IntegerFeatureBound(kFeatureChannels.size(), kChannelsBytes) +
                      BytesFeatureBound(kFeatureColorspace.size(), kNameBytes) +
                      BytesFeatureBound(kFeatureFormat.size(), kNameBytes) +
                      IntegerFeatureBound(kFeatureHeight.size(), kEdgeBytes) +
                      IntegerFeatureBound(kFeatureWidth.size(), kEdgeBytes);
    if (has_label) {
      features_bytes += IntegerFeatureBound(kFeatureLabel.size(), kLabelBytes) +
                        BytesFeatureBound(kFeatureClassText.size(), class_name_bytes);
    }
  }
  if (layout == TfrecordLayout::kImagenet) {
    if (has_label) features_bytes += BytesFeatureBound(kFeatureSynset.size(), class_name_bytes);
    features_bytes += EmptyFeatureBytes(kFeatureBoxLabel.size());
    for (const std::string_view edge : kFeatureBoxEdges) {
      features_bytes += EmptyFeatureBytes(edge.size());
    }
  }
  for (size_t i = 0; i < field_bytes.size(); ++i) {
    const size_t name_bytes = i == 0 ? image_name_bytes : kMaxFieldNameBytes;
    features_bytes += BytesFeatureBound(name_bytes, field_bytes[i]);
  }
  return DelimitedBytes(features_bytes);
}

}  // namespace shardpack
