// SampleTable: what both layouts hold of a shard's samples beside their fields: keys, labels, and
// the attributes of the shard.
//
//   SampleTable table(spec);
//   absl::Status fits = table.Check(sample);               // then write its fields, and
//   table.Add(sample);
//   absl::Status written = table.Write(output);            // /labels, /keys, attributes
//
// Lifetime: borrows the spec; samples until the call returns.
// Thread-safety: one caller at a time.
// Errors: InvalidArgument for a sample or a spec that the layouts cannot hold.
// Memory: 16 bytes and the key a sample.
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

  // InvalidArgument: fields that cannot be stored under their names, or twice the same.
  static absl::Status CheckSpec(const ShardSpec& spec);
  // OK when the sample has a key and the fields that the spec has, and the spec's counts are not
  // exceeded. Field totals are checked by the writer, not here.
  absl::Status Check(const SampleView& sample) const;
  void Add(const SampleView& sample);
  uint64_t samples() const { return labels_.size(); }
  absl::Status Write(Hdf5Output& output, std::string_view layout) const;

  // InvalidArgument that names the sample's key.
  static absl::Status Refuse(const SampleView& sample, std::string_view why);

 private:
  const ShardSpec& spec_;
  std::vector<int64_t> labels_;
  std::string keys_;                // one after the other
  std::vector<uint64_t> key_ends_;  // in keys_
  size_t max_key_bytes_ = 0;
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_HDF5_WRITING_SAMPLE_TABLE_H_
