// Hdf5Reader: bounded reads of an HDF5 file's structures by address, and its superblock.
//
//   Hdf5Reader reader(file, size, "train-00000-of-00001.h5");
//   absl::Status opened = reader.Open();                            // superblocks 0 to 3
//   absl::StatusOr<Bytes> node = reader.Read(address, 24, "a B-tree node");
//
// It requests no byte outside the file and allocates nothing larger than the file. The total of all
// bytes fetched is bounded by a multiple of the file's size, so that circular references end.
//
// Lifetime: borrows the file; what Read returns is valid until the next call.
// Thread-safety: one caller at a time.
// Errors: DataLoss for damage and for unsupported structures, described by problem(); any other
// status is a read error.
// Units: addresses are relative to the superblock, offsets to the start of the file (HDF5 File
// Format Specification 3.0, II.A).
#ifndef SHARDPACK_FORMATS_HDF5_READING_HDF5_READER_H_
#define SHARDPACK_FORMATS_HDF5_READING_HDF5_READER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/core/finding.h"
#include "formats/io/bytes.h"
#include "formats/io/file.h"

namespace shardpack {

// The address for "nowhere".
inline constexpr uint64_t kUndefinedAddress = ~uint64_t{0};

class Hdf5Reader {
 public:
  Hdf5Reader(const File& file, uint64_t size, std::string_view shard_name)
      : file_(file), size_(size), shard_name_(shard_name) {}

  // Finds and reads the superblock.
  absl::Status Open();
  uint64_t size() const { return size_; }
  std::string_view shard_name() const { return shard_name_; }
  uint64_t base() const { return base_; }          // the superblock's offset
  uint64_t end() const { return end_; }            // offset after the last used byte
  uint64_t root_address() const { return root_; }  // of the root group's object header

  // `what` is used in the message: "the header of object 800".
  absl::StatusOr<Bytes> Read(uint64_t address, uint64_t bytes, std::string_view what);
  // True if these bytes lie within the file.
  bool Holds(uint64_t address, uint64_t bytes) const;
  uint64_t OffsetOf(uint64_t address) const { return base_ + address; }

  // Returns DataLoss for a finding at an address, and stores it in problem().
  absl::Status Damage(FindingId id, uint64_t address, std::string_view detail,
                      std::string_view expected = "", std::string_view actual = "");
  absl::Status Malformed(uint64_t address, std::string_view detail, std::string_view expected = "",
                         std::string_view actual = "") {
    return Damage(FindingId::kHdf5Structure, address, detail, expected, actual);
  }
  // The same for what the format allows but this reader does not support. Not Unimplemented,
  // because a flipped bit can turn supported structures into unsupported ones.
  absl::Status Unsupported(std::string_view what, uint64_t address = 0) {
    return Damage(FindingId::kHdf5Layout, address, what);
  }
  // The last Damage.
  const Finding& problem() const { return problem_; }

 private:
  absl::Status FindSuperblock();
  absl::Status ReadOldSuperblock(uint8_t version);
  absl::Status ReadNewSuperblock();
  absl::Status CheckWidths(std::byte offsets, std::byte lengths);
  absl::Status SetEnd(uint64_t stored_base, uint64_t stored_end);

  const File& file_;
  const uint64_t size_;
  const std::string_view shard_name_;
  uint64_t base_ = 0, end_ = 0, root_ = 0;
  uint64_t spent_ = 0;
  std::vector<std::byte> window_;  // bytes of the file from window_offset_ on
  uint64_t window_offset_ = 0;
  uint64_t next_window_bytes_ = 0;
  Finding problem_;
};

// The checksum of all metadata since superblock version 2: Bob Jenkins's lookup3, hashlittle with
// initial value 0 (HDFGroup/hdf5: src/H5checksum.c).
uint32_t Lookup3(Bytes bytes);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_HDF5_READING_HDF5_READER_H_
