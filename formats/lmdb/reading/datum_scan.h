// ScanDatum: finds the fields of a caffe.Datum by its wire format, without copying.
//
//   Datum datum;
//   if (ScanDatum(value, datum)) image = value.subspan(datum.data_offset, datum.data_bytes);
//
// BVLC/caffe: src/caffe/proto/caffe.proto; the wire format:
// https://protobuf.dev/programming-guides/encoding/. As protobuf has it, the last of several wins,
// a known number with another wire type is an unknown field, and unknown fields and groups are
// skipped.
//
// Lifetime, errors: false for what protobuf refuses.
// Units: bytes from the start of the value.
#ifndef SHARDPACK_FORMATS_LMDB_READING_DATUM_SCAN_H_
#define SHARDPACK_FORMATS_LMDB_READING_DATUM_SCAN_H_

#include <cstdint>

#include "formats/io/bytes.h"

namespace shardpack {

struct Datum {
  bool has_data = false, has_label = false, has_encoded = false;
  bool encoded = false;
  int32_t label = 0;
  uint64_t data_offset = 0, data_bytes = 0;
};

bool ScanDatum(Bytes value, Datum& datum);

// True when `value` is a caffe2.TensorProtos (pytorch/pytorch: caffe2/proto/caffe2.proto): nothing
// but field 1, each a message that says its data_type.
bool LooksLikeTensorProtos(Bytes value);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_LMDB_READING_DATUM_SCAN_H_
