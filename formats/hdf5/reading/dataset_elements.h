// ReadElements: collects the raw bytes of all elements of a dataset, for labels, offsets and
// references.
//
//   absl::StatusOr<std::string> references = ReadElements(reader, images);
//
// It reads chunks indexed by a version 1 B-tree (all that HDF5 1.8 writes), a single chunk,
// consecutive chunks, and fixed arrays (HDF5 File Format Specification 3.0, III.A.1, VII).
//
// Lifetime: the result owns the bytes.
// Thread-safety: a pure function except for the reader.
// Errors: as Hdf5Reader; a missing chunk is damage.
// Memory: at most the file's size, whatever the dimensions say.
// Units: bytes; addresses as Hdf5Reader.
#ifndef SHARDPACK_FORMATS_HDF5_READING_DATASET_ELEMENTS_H_
#define SHARDPACK_FORMATS_HDF5_READING_DATASET_ELEMENTS_H_

#include <string>

#include "absl/status/statusor.h"
#include "formats/hdf5/reading/hdf5_dataset.h"
#include "formats/hdf5/reading/hdf5_reader.h"

namespace shardpack {

// In order. Chunks with several dimensions are not supported.
absl::StatusOr<std::string> ReadElements(Hdf5Reader& reader, const Hdf5Dataset& dataset);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_HDF5_READING_DATASET_ELEMENTS_H_
