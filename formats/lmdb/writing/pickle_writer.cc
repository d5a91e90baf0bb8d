#include "formats/lmdb/writing/pickle_writer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "formats/io/status_macros.h"
#include "formats/lmdb/lmdb_layout.h"
#include "formats/lmdb/writing/lmdb_writer.h"

namespace shardpack {
namespace {

// A number in its sort order among the keys.
struct DecimalKey {
  explicit DecimalKey(uint64_t number) {
    length = static_cast<size_t>(std::to_chars(text.begin(), text.end(), number).ptr - text.data());
  }
  std::string_view view() const { return {text.data(), length}; }
  std::array<char, 20> text;
  size_t length;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ShardWriter>> PickleWriter::Create(
    const std::string& path, std::unique_ptr<LmdbEnvironment> environment) {
  const std::string spool_path = path + ".values";
  absl::Status removed = RemoveFile(spool_path);  // left by a killed run
  if (!removed.ok()) return removed;
  ASSIGN_OR_RETURN(std::unique_ptr<StagedFile> spool, StagedFile::Create(spool_path));
  return std::unique_ptr<ShardWriter>(new PickleWriter(std::move(spool), std::move(environment)));
}

absl::Status PickleWriter::Append(const SampleView& sample) {
  RETURN_IF_ERROR(CheckLmdbSample(LmdbLayout::kPickle, sample));
  const Bytes image = sample.fields[0].bytes;
  const ValueFrame frame = MakeValueFrame(LmdbLayout::kPickle, image.size(), sample.label);
  const std::array<Bytes, 3> parts = {frame.head(), image, frame.tail()};
  absl::Status kept = spool_->Append(parts);
  if (kept.ok()) ends_.push_back(spool_->size());
  return kept;
}

absl::Status PickleWriter::Put(const std::string& key, std::string_view value) {
  ASSIGN_OR_RETURN(std::span<std::byte> into, environment_->Reserve(key, value.size()));
  std::memcpy(into.data(), value.data(), value.size());
  return absl::OkStatus();
}

absl::Status PickleWriter::Finish() {
  absl::Status status = spool_->Flush();
  if (!status.ok()) return status;
  std::vector<uint64_t> order(ends_.size());
  for (uint64_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [](uint64_t a, uint64_t b) { return DecimalKey(a).view() < DecimalKey(b).view(); });
  for (const uint64_t number : order) {
    const uint64_t begin = number == 0 ? 0 : ends_[number - 1];
    auto value = environment_->Reserve(DecimalKey(number).view(), ends_[number] - begin);
    if (!value.ok()) return value.status();
    status = spool_->file().ReadExactlyAt(begin, *value);
    if (!status.ok()) return status;
  }
  status = Put(std::string(kPickleKeysKey), MakePickleKeys(ends_.size()));
  if (status.ok()) status = Put(std::string(kPickleLengthKey), MakePickleLength(ends_.size()));
  return status.ok() ? environment_->Close() : status;
}

}  // namespace shardpack
