#include "converters/building/sample_spool.h"

#include <cstddef>
#include <numeric>

#include "formats/io/status_macros.h"

namespace shardpack {

absl::Status SampleSpool::Add(const PreparedSample& sample, std::span<const uint64_t> hashes) {
  if (names_.empty()) {
    for (const FieldView& field : sample.fields) names_.emplace_back(field.name);
  }
  samples_.push_back(sample);
  for (size_t f = 0; f < sample.fields.size(); ++f) {
    sizes_.push_back(sample.fields[f].bytes.size());
    hashes_.push_back(hashes[f]);
    RETURN_IF_ERROR(file_->Append(sample.fields[f].bytes));
  }
  return absl::OkStatus();
}

std::vector<FieldTotal> SampleSpool::Totals() const {
  std::vector<FieldTotal> totals;
  for (const std::string& name : names_) totals.push_back({name, 0});
  for (size_t i = 0; i < sizes_.size(); ++i) totals[i % names_.size()].max_bytes += sizes_[i];
  return totals;
}

absl::Status SampleSpool::ForEach(
    const std::function<absl::Status(const PreparedSample&, std::span<const uint64_t>)>& append) {
  RETURN_IF_ERROR(file_->Flush());
  std::vector<std::byte> bytes;
  std::vector<FieldView> fields(names_.size());
  uint64_t offset = 0;
  for (size_t i = 0; i < samples_.size(); ++i) {
    const std::span<const uint64_t> sizes =
        std::span(sizes_).subspan(i * fields.size(), fields.size());
    bytes.resize(std::accumulate(sizes.begin(), sizes.end(), uint64_t{0}));
    RETURN_IF_ERROR(file_->file().ReadExactlyAt(offset, std::span(bytes)));
    offset += bytes.size();
    for (size_t f = 0, at = 0; f < fields.size(); at += sizes[f++]) {
      fields[f] = {names_[f], std::span(bytes).subspan(at, sizes[f])};
    }
    PreparedSample sample = samples_[i];
    sample.fields = fields;
    RETURN_IF_ERROR(append(sample, std::span(hashes_).subspan(i * fields.size(), fields.size())));
  }
  return absl::OkStatus();
}

}  // namespace shardpack
