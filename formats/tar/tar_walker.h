// TarWalker: iterates over the members of a tar file, and of archives joined to it, and verifies
// every byte outside the members' data.
//
//   TarWalker walker(in, "train-000000.tar", findings);
//   for (absl::StatusOr<bool> more = walker.Next(); more.ok() && *more; more = walker.Next())
//     Use(walker.member(), in.HashNext(walker.member().size_bytes));
//
// Lifetime: borrows the reader, the shard name and the sink; member() is valid until Next.
// Thread-safety: one caller at a time.
// Errors: damage is a finding, after which the walk continues at the next block that is a ustar
// header with the right checksum. Status: the file could not be read; Unimplemented: it is
// compressed as a whole.
// Memory: names and extension records, each bounded by kMaxTarExtensionBytes.
// Units: bytes from the start of the file.
#ifndef SHARDPACK_FORMATS_TAR_TAR_WALKER_H_
#define SHARDPACK_FORMATS_TAR_TAR_WALKER_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/core/finding.h"
#include "formats/io/bytes.h"
#include "formats/io/sequential_reader.h"
#include "formats/tar/pax_records.h"
#include "formats/tar/tar_header.h"

namespace shardpack {

// Larger pax headers and long names are reported and skipped.
inline constexpr uint64_t kMaxTarExtensionBytes = 1 << 20;

struct TarMember {
  std::string_view name;  // raw bytes, after applying prefix and extension records
  // kTarRegular for everything that Python's tarfile treats as a regular file.
  char type = kTarRegular;
  uint64_t offset = 0;         // of its first block, including its extension records
  uint64_t header_offset = 0;  // of the header itself
  uint64_t data_offset = 0, size_bytes = 0;
  bool has_extension_record = false;

  uint64_t end() const { return data_offset + PaddedToTarBlock(size_bytes); }
};

// Reader: has Peek, Skip, position, remaining and size like SequentialReader.
template <typename Reader>
class BasicTarWalker {
 public:
  // `thorough`: also warns about what all readers accept but no current writer produces.
  BasicTarWalker(Reader& in, std::string_view shard_name, FindingSink& findings,
                 bool thorough = true)
      : in_(in), shard_(shard_name), findings_(findings), thorough_(thorough) {}

  // Moves to the next member of any type except sparse and multi-volume; false after the last one.
  // The reader is then at the member's data, all of which is there, and may be moved up to its end.
  // Goes on into an archive that follows an end (`cat a.tar b.tar`), for which global pax records
  // of the one before do not count; a finding says that most readers stop there.
  absl::StatusOr<bool> Next();
  const TarMember& member() const { return member_; }
  // How many gaps there were in which members may have been lost. A sample may lack fields if this
  // number changes within it or next to it.
  uint64_t gaps() const { return gaps_; }
  // How many archives ended before this one. A sample does not extend over an end.
  uint64_t archives() const { return archives_; }
  // The file ended without a zero block, so it may have been cut between two members.
  bool no_end() const { return no_end_; }

 private:
  enum class Step : uint8_t { kMember, kAgain, kEnd };

  absl::StatusOr<Step> ReadHeader();
  absl::StatusOr<Step> OnHeader(const TarHeader& header);
  absl::StatusOr<Step> OnFault(TarHeaderFault fault, Bytes block);
  absl::StatusOr<Step> ReadExtension(char type, uint64_t size_bytes);
  absl::StatusOr<Step> RejectSparse(bool gnu_map_follows, uint64_t size_bytes);
  void ApplyNames(const TarHeader& header);
  absl::Status FinishData(uint64_t data_end);
  absl::StatusOr<Step> Resync();
  absl::Status End();
  absl::Status CheckRest();
  absl::Status RefuseCompressed(Bytes head) const;
  Finding At(FindingId id, uint64_t offset) const;
  Step Truncated(uint64_t offset, std::string detail);

  Reader& in_;
  const std::string_view shard_;
  FindingSink& findings_;
  const bool thorough_;
  TarMember member_;
  std::string name_;
  PaxOverrides next_, global_;
  std::string long_name_;
  bool has_long_name_ = false;
  bool in_member_ = false, done_ = false, no_end_ = false;
  uint64_t gaps_ = 0, archives_ = 0;
};

using TarWalker = BasicTarWalker<SequentialReader>;

extern template class BasicTarWalker<SequentialReader>;

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_TAR_TAR_WALKER_H_
