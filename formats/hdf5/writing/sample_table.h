// SampleTable: what the layouts store about a shard's samples besides their fields: keys, labels,
// and the attributes of the shard.
//
//   SampleTable table(spec);
//   absl::Status fits = table.Check(sample);               // then write its fields, and
//   table.Add(sample);
//   absl::Status written = table.Write(output, layout);    // /labels, /keys, attributes
//
// Lifetime: borrows the spec, and samples during each call.
// Thread-safety: one caller at a time.
// Errors: InvalidArgument for a sample or a spec that the layouts cannot hold.
// Memory: 16 bytes per sample, plus its key.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_HDF5_WRITING_SAMPLE_TABLE_H_
#define SHARDPACK_FORMATS_HDF5_WRITING_SAMPLE_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "formats/core/format.h"
#include "formats/core/sample.h"
#include "formats/hdf5/writing/hdf5_output.h"

namespace shardpack {

class SampleTable {
 public:
  explicit SampleTable(const ShardSpec& spec) : spec_(spec) {}

  // InvalidArgument for fields that cannot be stored under their names, and for duplicate names.
  static absl::Status CheckSpec(const ShardSpec& spec);
  // OK if the sample has a key and the fields of the spec, and the spec's counts are not exceeded.
  // The writer checks the totals of the fields.
  absl::Status Check(const SampleView& sample) const;
  void Add(const SampleView& sample);
  uint64_t samples() const { return labels_.size(); }
  absl::Status Write(Hdf5Output& output, std::string_view layout) const;

  // Returns InvalidArgument with the sample's key.
  static absl::Status Refuse(const SampleView& sample, std::string_view why);

 private:
  const ShardSpec& spec_;
  std::vector<int64_t> labels_;
  std::string keys_;                // concatenated
  std::vector<uint64_t> key_ends_;  // in keys_
  size_t max_key_bytes_ = 0;
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_HDF5_WRITING_SAMPLE_TABLE_H_
