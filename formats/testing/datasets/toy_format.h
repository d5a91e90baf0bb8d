// ToyFormat: a minimal format: a magic number, records, an end mark. For tests of the code above
// the formats.
//
//   const Format& format = ToyFormat();
//   std::string name = format.shard_name("train", 0, 1);   // train-0.toy
//   format.scanner->Scan(in, {}, records, findings);
//
// A record is {"REC1", key bytes u32, label i64, fields u32, payload bytes u64 per field, name
// bytes u32 per field, key, names, payloads}. It has no checksums, so only the dataset's own hashes
// detect a flipped payload bit.
//
// Errors: as formats/core/format.h.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_TESTING_DATASETS_TOY_FORMAT_H_
#define SHARDPACK_FORMATS_TESTING_DATASETS_TOY_FORMAT_H_

#include "formats/core/format.h"

namespace shardpack::testing {

const Format& ToyFormat();

}  // namespace shardpack::testing

#endif  // SHARDPACK_FORMATS_TESTING_DATASETS_TOY_FORMAT_H_
