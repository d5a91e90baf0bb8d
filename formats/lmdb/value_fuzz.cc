// Arbitrary bytes as a Datum, as TensorProtos and as a pickle: everything found lies within them.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "formats/lmdb/reading/datum_scan.h"
#include "formats/lmdb/reading/pickle_scan.h"

namespace shardpack {
namespace {

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "value_fuzz: %s\n", what);
  std::abort();
}

void ScanValue(Bytes value) {
  Datum datum;
  if (ScanDatum(value, datum) && datum.has_data) {
    Require(
        datum.data_offset <= value.size() && datum.data_bytes <= value.size() - datum.data_offset,
        "the data of a Datum passes its end");
  }
  (void)LooksLikeTensorProtos(value);
  uint64_t items = 0;
  const PickleValue pickle = ScanPickle(value, [&](uint64_t number, Bytes item) {
    Require(number <= items && item.size() <= value.size(), "an item of a list");
    items = number + 1;
  });
  if (pickle.kind == PickleValue::Kind::kPair || pickle.kind == PickleValue::Kind::kBytes) {
    Require(pickle.offset <= value.size() && pickle.length <= value.size() - pickle.offset,
            "the bytes of a pickle pass its end");
  }
  Require((pickle.kind == PickleValue::Kind::kNone) == !pickle.problem.empty(),
          "no reason is given");
}

}  // namespace
}  // namespace shardpack

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  shardpack::ScanValue({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
