// ScanPickle: reads the pickles of the pickle layout and nothing else: bytes, integers, pairs of
// both, and lists of bytes.
//
//   PickleValue value = ScanPickle(bytes);
//   if (value.kind == PickleValue::Kind::kPair) image = bytes.subspan(value.offset, value.length);
//
// It accepts a closed set of opcodes of protocols 2 to 5 (python/cpython: Lib/pickletools.py). It
// never looks up, calls or constructs anything: any other opcode stops it.
//
// Lifetime: the value holds offsets only.
// Errors: kNone, and the problem.
// Memory: constant.
// Units: bytes from the start of the pickle.
#ifndef SHARDPACK_FORMATS_LMDB_READING_PICKLE_SCAN_H_
#define SHARDPACK_FORMATS_LMDB_READING_PICKLE_SCAN_H_

#include <cstdint>
#include <functional>
#include <string>

#include "formats/io/bytes.h"

namespace shardpack {

struct PickleValue {
  enum class Kind : uint8_t { kNone, kMark, kBytes, kInteger, kPair, kList };
  Kind kind = Kind::kNone;
  uint64_t offset = 0, length = 0;  // of the bytes, for kBytes and kPair
  int64_t integer = 0;              // kInteger, kPair
  uint64_t items = 0;               // kList
  std::string problem = {};         // kNone
};

// `on_item` is called for each item of a list, a bytes object.
PickleValue ScanPickle(Bytes pickle,
                       const std::function<void(uint64_t number, Bytes item)>& on_item = nullptr);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_LMDB_READING_PICKLE_SCAN_H_
