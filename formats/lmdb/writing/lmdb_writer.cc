#include "formats/lmdb/writing/lmdb_writer.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/status_macros.h"
#include "formats/lmdb/map_size_bound.h"
#include "formats/lmdb/writing/pickle_writer.h"

namespace shardpack {
namespace {

absl::Status Refused(const SampleView& sample, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("lmdb: key ", EscapeForTerminal(sample.key), ": ", why));
}

}  // namespace

absl::Status CheckLmdbSample(LmdbLayout layout, const SampleView& sample) {
  if (sample.fields.size() != 1) {
    return Refused(sample, absl::StrCat(sample.fields.size(), " fields, expected the image alone"));
  }
  const uint64_t image_bytes = sample.fields[0].bytes.size();
  if (image_bytes > kMaxValueBytes - kMaxDatumFrameBytes) {
    return Refused(sample, absl::StrCat("the image has ", image_bytes, " bytes, expected at most ",
                                        kMaxValueBytes - kMaxDatumFrameBytes));
  }
  if (sample.label < std::numeric_limits<int32_t>::min() ||
      sample.label > std::numeric_limits<int32_t>::max()) {
    return Refused(sample, absl::StrCat("label ", sample.label, ", expected one of 32 bits"));
  }
  if (layout == LmdbLayout::kCaffe && sample.number > kMaxCaffeNumber) {
    return Refused(sample, absl::StrCat("number ", sample.number, "; keys of this layout go to ",
                                        kMaxCaffeNumber, ", use the layout raw"));
  }
  if (layout == LmdbLayout::kRaw && image_bytes == 0) {
    return Refused(sample, "an empty value, which readers of this layout take for a missing one");
  }
  return absl::OkStatus();
}

absl::Status LmdbWriter::Append(const SampleView& sample) {
  RETURN_IF_ERROR(CheckLmdbSample(layout_, sample));
  key_.clear();
  if (layout_ == LmdbLayout::kCaffe) {
    AppendCaffeKey(sample.number, sample.source_path, key_);
  } else {
    key_.append(sample.key);
  }
  const Bytes image = sample.fields[0].bytes;
  const ValueFrame frame = MakeValueFrame(layout_, image.size(), sample.label);
  const Bytes head = frame.head(), tail = frame.tail();
  ASSIGN_OR_RETURN(std::span<std::byte> value,
                   environment_->Reserve(key_, head.size() + image.size() + tail.size()));
  std::byte* out = value.data();
  for (const Bytes part : {head, image, tail}) {
    if (!part.empty()) std::memcpy(out, part.data(), part.size());
    out += part.size();
  }
  return absl::OkStatus();
}

absl::Status LmdbWriter::Finish() { return environment_->Close(); }

absl::StatusOr<std::unique_ptr<ShardWriter>> CreateLmdbWriter(StagedFile& file,
                                                              const ShardSpec& spec) {
  const std::optional<LmdbLayout> layout = FindLmdbLayout(spec.layout);
  if (!layout) {
    return absl::InvalidArgumentError(absl::StrCat(
        "lmdb has no layout ", std::string(spec.layout), "; it has ", std::string(kCaffeLayout),
        ", ", std::string(kRawLayout), ", ", std::string(kPickleLayout)));
  }
  if (!spec.image_field.empty()) {
    return absl::InvalidArgumentError(
        "an LMDB entry has no name for its image; an image field name cannot be chosen");
  }
  uint64_t payload_bytes = 0;
  for (const FieldTotal& field : spec.fields) payload_bytes += field.max_bytes;
  auto environment =
      LmdbEnvironment::Create(file.path(), MapBytes(spec.max_records, payload_bytes));
  if (!environment.ok()) return environment.status();
  if (*layout == LmdbLayout::kPickle) {
    return PickleWriter::Create(file.path(), *std::move(environment));
  }
  return std::make_unique<LmdbWriter>(*layout, *std::move(environment));
}

}  // namespace shardpack
