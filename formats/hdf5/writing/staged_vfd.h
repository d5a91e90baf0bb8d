// A file driver of the HDF5 library that writes through a PositionedOutput.
//
//   PositionedOutput out(staged);
//   SetStagedVfd(access_list, out);                     // then H5Fcreate(any name, ...)
//   absl::Status written = out.status();                   // after H5Fclose
//
// Unlike the library's own driver, it keeps the errno and path of an error, and after a failed
// write it continues as if nothing had happened, so that the library can always close the file and
// free its memory. Check out.status() after closing the file.
//
// Lifetime: the output must outlive the HDF5 file.
// Thread-safety: under the library's lock.
// Errors: false if the library refuses the driver.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_HDF5_WRITING_STAGED_VFD_H_
#define SHARDPACK_FORMATS_HDF5_WRITING_STAGED_VFD_H_

#include "formats/hdf5/writing/positioned_output.h"

namespace shardpack {

// `access_list` is the hid_t of a file access property list.
bool SetStagedVfd(int64_t access_list, PositionedOutput& out);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_HDF5_WRITING_STAGED_VFD_H_
