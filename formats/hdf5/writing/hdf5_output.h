// Hdf5Output: a new HDF5 file, made with the HDF5 library: the kinds of groups, datasets and
// attributes that the layouts need, without time stamps.
//
//   absl::StatusOr<std::unique_ptr<Hdf5Output>> file = Hdf5Output::Create(out);
//   absl::StatusOr<uint64_t> offset = (*file)->MakeBytes("images/data", images_bytes);
//   absl::Status closed = (*file)->Close();
//
// All library calls happen here, under one lock per process: keep them few.
//
// Lifetime: borrows the output. The destructor closes without reporting.
// Thread-safety: one caller at a time per object; several objects at once.
// Errors: the output's own (such as no space left), else Internal with the library's message.
// Units: bytes from the start of the file.
#ifndef SHARDPACK_FORMATS_HDF5_WRITING_HDF5_OUTPUT_H_
#define SHARDPACK_FORMATS_HDF5_WRITING_HDF5_OUTPUT_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/hdf5/writing/positioned_output.h"
#include "formats/io/bytes.h"

namespace shardpack {

// The linked library, such as "hdf5 1.10.8".
std::string Hdf5LibraryVersion();

class Hdf5Output {
 public:
  // Data of at least kDataAlignment bytes begins at a multiple of it.
  static absl::StatusOr<std::unique_ptr<Hdf5Output>> Create(PositionedOutput& out);
  ~Hdf5Output();
  Hdf5Output(const Hdf5Output&) = delete;
  Hdf5Output& operator=(const Hdf5Output&) = delete;

  absl::Status MakeGroup(std::string_view name);
  // Makes a contiguous dataset of `count` uint8, and returns the offset at which the caller writes
  // them (0 if the count is 0). Bytes that are not written are zero.
  absl::StatusOr<uint64_t> MakeBytes(std::string_view name, uint64_t count) {
    return MakeBytes(name, std::span(&count, 1));
  }
  absl::StatusOr<uint64_t> MakeBytes(std::string_view name, std::span<const uint64_t> dims);
  // The names of a dataset's dimensions, as H5DSget_label returns them (h5py: dims[i].label).
  absl::Status LabelDimensions(std::string_view name, std::span<const std::string> labels);
  // Write contiguous datasets of one dimension.
  absl::Status WriteUint64(std::string_view name, std::span<const uint64_t> values);
  absl::Status WriteInt64(std::string_view name, std::span<const int64_t> values);
  // Fixed-length UTF-8 strings, padded with NUL to `width` bytes; `cells` is their concatenation.
  absl::Status WriteStrings(std::string_view name, size_t width, std::string_view cells);

  // A chunked dataset of `count` variable-length runs of uint8, all empty at first.
  absl::Status MakeByteLists(std::string_view name, uint64_t count, uint64_t chunk);
  absl::Status WriteByteLists(std::string_view name, uint64_t first, std::span<const Bytes> lists);
  absl::Status ShrinkByteLists(std::string_view name, uint64_t count);

  // Attributes of the root group, as variable-length UTF-8 strings.
  absl::Status SetText(std::string_view name, std::string_view value);
  absl::Status SetTexts(std::string_view name, std::span<const std::string> values);
  absl::Status SetInteger(std::string_view name, int64_t value);

  // Nothing can be added afterwards.
  absl::Status Close();

 private:
  explicit Hdf5Output(PositionedOutput& out) : out_(out) {}
  absl::Status Result(bool ok, std::string_view operation, std::string_view name) const;
  absl::Status WriteArray(std::string_view name, int64_t type, uint64_t count, const void* values);

  PositionedOutput& out_;
  int64_t file_ = -1;  // a hid_t
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_HDF5_WRITING_HDF5_OUTPUT_H_
