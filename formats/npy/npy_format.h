// kNpyFormat: shards as NumPy arrays, each a folder with images.npy and labels.npy (FORMAT.md).
//
//   const Format* format = FindFormat("npy");   // formats/formats.h has the row
//
// Thread-safety, errors, units: as Format.
#ifndef SHARDPACK_FORMATS_NPY_NPY_FORMAT_H_
#define SHARDPACK_FORMATS_NPY_NPY_FORMAT_H_

#include "formats/core/format.h"

namespace shardpack {

extern const Format kNpyFormat;

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_NPY_NPY_FORMAT_H_
