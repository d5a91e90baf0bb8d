// ScanDatum: finds the fields of a caffe.Datum in its wire bytes, without copying.
//
//   Datum datum;
//   if (ScanDatum(value, datum)) image = value.subspan(datum.data_offset, datum.data_bytes);
//
// Follows protobuf: the last occurrence of a field wins, a known number with another wire type is
// an unknown field, and unknown fields and groups are skipped.
// Sources: BVLC/caffe, src/caffe/proto/caffe.proto;
// https://protobuf.dev/programming-guides/encoding/.
//
// Errors: false for what protobuf refuses.
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

// True if `value` is a caffe2.TensorProtos (pytorch/pytorch: caffe2/proto/caffe2.proto): only field
// 1, and each message has a data_type.
bool LooksLikeTensorProtos(Bytes value);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_LMDB_READING_DATUM_SCAN_H_
