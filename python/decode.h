// Converts Python names to values of images/: types, layouts, filters.
//
//   options.output = OutputOf("float16", "nchw", mean, std);
//
// Thread-safety: with the GIL held.
// Errors: a Python ValueError that lists the valid names.
#ifndef SHARDPACK_PYTHON_DECODE_H_
#define SHARDPACK_PYTHON_DECODE_H_

#include <array>
#include <string>

#include "images/pixels/pixel_output.h"
#include "images/resize/resize_weights.h"

namespace shardpack::python {

// Includes bfloat16, which NumPy does not have: only tensors can use it.
OutputFormat OutputOf(const std::string& dtype, const std::string& layout,
                      const std::array<float, 3>& mean, const std::array<float, 3>& std);
ResizeFilter FilterOf(const std::string& name);

}  // namespace shardpack::python

#endif  // SHARDPACK_PYTHON_DECODE_H_
