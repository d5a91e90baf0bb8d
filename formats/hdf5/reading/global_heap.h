// GlobalHeap: finds the variable-length elements of an HDF5 file.
//
//   GlobalHeap heap(reader, findings);
//   absl::StatusOr<HeapObject> jpeg = heap.Find(collection_address, index);
//
// Collections are walked once and kept (HDF5 File Format Specification 3.0, III.E). In a damaged
// one the objects before the damage are found, and the damage is a finding.
//
// Lifetime: borrows the reader and the findings.
// Thread-safety: one caller at a time.
// Errors: as Hdf5Reader.
// Memory: 24 bytes per object; each takes at least 16 bytes of the file.
// Units: bytes; addresses as Hdf5Reader.
#ifndef SHARDPACK_FORMATS_HDF5_READING_GLOBAL_HEAP_H_
#define SHARDPACK_FORMATS_HDF5_READING_GLOBAL_HEAP_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "formats/core/finding.h"
#include "formats/hdf5/reading/hdf5_reader.h"

namespace shardpack {

// The header before an object's bytes, which are padded to a multiple of 8.
inline constexpr uint64_t kHeapObjectHeadBytes = 16;

struct HeapObject {
  uint64_t address = 0;  // of its bytes
  uint64_t bytes = 0;
};

class GlobalHeap {
 public:
  GlobalHeap(Hdf5Reader& reader, FindingSink& findings) : reader_(reader), findings_(findings) {}

  absl::StatusOr<HeapObject> Find(uint64_t collection, uint32_t index);

 private:
  struct Entry {
    uint16_t index;
    HeapObject object;
  };
  using Collection = std::vector<Entry>;  // ascending by index

  absl::StatusOr<const Collection*> Load(uint64_t address);
  absl::Status Walk(uint64_t address, Collection& objects);

  Hdf5Reader& reader_;
  FindingSink& findings_;
  absl::flat_hash_map<uint64_t, Collection> collections_;
  uint64_t walked_bytes_ = 0;
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_HDF5_READING_GLOBAL_HEAP_H_
