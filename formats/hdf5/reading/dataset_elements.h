// ReadElements: the raw bytes of all elements of a dataset, put together, for labels, offsets and
// references.
//
//   absl::StatusOr<std::string> references = ReadElements(reader, images);
//
// Chunks by B-tree of version 1 (all that HDF5 1.8 writes), a single chunk, chunks one after the
// other, and fixed arrays (HDF5 File Format Specification 3.0, III.A.1, VII).
//
// Lifetime: owns the bytes.
// Thread-safety: a pure function but for the reader.
// Errors: as Hdf5Reader; a chunk that is not there is damage.
// Memory: never more than the file's size, whatever the dimensions say.
// Units: bytes; addresses as Hdf5Reader.
#ifndef SHARDPACK_FORMATS_HDF5_READING_DATASET_ELEMENTS_H_
#define SHARDPACK_FORMATS_HDF5_READING_DATASET_ELEMENTS_H_

#include <string>

#include "absl/status/statusor.h"
#include "formats/hdf5/reading/hdf5_dataset.h"
#include "formats/hdf5/reading/hdf5_reader.h"

namespace shardpack {

// In order. Chunks of several dimensions are not read.
absl::StatusOr<std::string> ReadElements(Hdf5Reader& reader, const Hdf5Dataset& dataset);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_HDF5_READING_DATASET_ELEMENTS_H_
