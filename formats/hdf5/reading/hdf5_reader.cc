#include "formats/hdf5/reading/hdf5_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/hdf5/hdf5_layout.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

// A smaller read fetches this many bytes for its neighbours: the minimum after a jump, doubled with
// each sequential read up to the maximum.
constexpr uint64_t kMinWindowBytes = 512, kMaxWindowBytes = 16 << 10;
// The cost of a read in addition to the bytes fetched, and the limit for all of them. Small objects
// in random order, of 56 bytes with their references, fetch ten times the size of their file.
constexpr uint64_t kReadCost = 16;
constexpr uint64_t kBudgetFactor = 16;
constexpr uint64_t kBudgetBase = 1 << 20;

constexpr size_t kOldSuperblockBytes = 96;  // version 0; version 1 has 4 more
constexpr size_t kNewSuperblockBytes = 48;

uint32_t Rotate(uint32_t value, int bits) { return std::rotl(value, bits); }

}  // namespace

bool Hdf5Reader::Holds(uint64_t address, uint64_t bytes) const {
  return address <= size_ - base_ && bytes <= size_ - base_ - address;
}

absl::StatusOr<Bytes> Hdf5Reader::Read(uint64_t address, uint64_t bytes, std::string_view what) {
  if (!Holds(address, bytes)) {
    return Damage(FindingId::kHdf5Structure, std::min(address, size_ - base_),
                  absl::StrCat(std::string(what), " lies outside the file"),
                  absl::StrCat("within ", size_ - base_, " bytes"),
                  absl::StrCat(bytes, " bytes at address ", address));
  }
  const uint64_t offset = base_ + address, window_end = window_offset_ + window_.size();
  const bool held = offset >= window_offset_ && offset + bytes <= window_end;
  if (!held) {
    const bool follows = offset >= window_offset_ && offset <= window_end + next_window_bytes_;
    next_window_bytes_ =
        std::clamp(follows ? 2 * next_window_bytes_ : 0, kMinWindowBytes, kMaxWindowBytes);
  }
  const uint64_t fetched =
      held ? bytes : std::min(std::max(bytes, next_window_bytes_), size_ - offset);
  spent_ += fetched + kReadCost;
  if (spent_ > kBudgetFactor * size_ + kBudgetBase) {
    return Malformed(address, "its structures refer to each other again and again");
  }
  if (!held) {
    if (window_.size() > kMaxWindowBytes) window_ = {};  // after a single large read
    window_.resize(fetched);
    window_offset_ = offset;
    absl::Status read = file_.ReadExactlyAt(offset, window_);
    if (!read.ok()) {
      window_.clear();
      return read;
    }
  }
  return Bytes(window_).subspan(offset - window_offset_, bytes);
}

absl::Status Hdf5Reader::Damage(FindingId id, uint64_t address, std::string_view detail,
                                std::string_view expected, std::string_view actual) {
  problem_ = MakeFinding(id, shard_name_);
  problem_.offset = address == kUndefinedAddress ? size_ : base_ + address;
  problem_.detail = std::string(detail);
  problem_.expected = std::string(expected);
  problem_.actual = std::string(actual);
  return absl::DataLossError(ToText(problem_));
}

absl::Status Hdf5Reader::Open() {
  RETURN_IF_ERROR(FindSuperblock());
  ASSIGN_OR_RETURN(Bytes version, Read(kHdf5Signature.size(), 1, "the superblock's version"));
  const auto number = std::to_integer<uint8_t>(version[0]);
  if (number <= 1) return ReadOldSuperblock(number);
  if (number <= 3) return ReadNewSuperblock();
  return Malformed(0, "the superblock has an unknown version", "0 to 3", absl::StrCat(number));
}

// Tries 0, then user blocks of 512 bytes and larger powers of two.
absl::Status Hdf5Reader::FindSuperblock() {
  for (uint64_t at = 0; at < size_; at = at == 0 ? 512 : at * 2) {
    base_ = at;
    if (size_ - at < kHdf5Signature.size()) break;
    ASSIGN_OR_RETURN(Bytes head, Read(0, kHdf5Signature.size(), "the signature"));
    if (AsText(head) == kHdf5Signature) return absl::OkStatus();
  }
  base_ = 0;
  return Malformed(0, "no HDF5 signature");
}

absl::Status Hdf5Reader::CheckWidths(std::byte offsets, std::byte lengths) {
  if (offsets == std::byte{8} && lengths == std::byte{8}) return absl::OkStatus();
  const auto number = [](std::byte b) { return absl::StrCat(std::to_integer<int>(b)); };
  const std::string actual = absl::StrCat(number(offsets), " and ", number(lengths));
  for (const std::byte width : {offsets, lengths}) {
    if (width != std::byte{2} && width != std::byte{4} && width != std::byte{8}) {
      return Malformed(0, "the widths of addresses and lengths", "8 and 8", actual);
    }
  }
  return Unsupported(absl::StrCat("addresses and lengths of ", actual, " bytes are not read"));
}

// Stored addresses are relative to the superblock's position according to the stored base.
absl::Status Hdf5Reader::SetEnd(uint64_t stored_base, uint64_t stored_end) {
  if (stored_end < stored_base) return Malformed(0, "the end of the file is before its base");
  const uint64_t used = stored_end - stored_base;
  if (used > size_ - base_) {
    return Damage(FindingId::kContainerTruncated, size_ - base_, "the superblock tells its size",
                  absl::StrCat(used, " bytes"), absl::StrCat(size_ - base_, " bytes"));
  }
  end_ = base_ + used;
  return absl::OkStatus();
}

absl::Status Hdf5Reader::ReadOldSuperblock(uint8_t version) {
  const size_t shift = version == 1 ? 4 : 0;
  ASSIGN_OR_RETURN(Bytes block, Read(0, kOldSuperblockBytes + shift, "the superblock"));
  const std::byte* at = block.data();
  const auto stored_base = LoadLittle<uint64_t>(at + 24 + shift);
  const auto stored_end = LoadLittle<uint64_t>(at + 40 + shift);
  root_ = LoadLittle<uint64_t>(at + 64 + shift);
  absl::Status checked = CheckWidths(at[13], at[14]);
  return checked.ok() ? SetEnd(stored_base, stored_end) : checked;
}

absl::Status Hdf5Reader::ReadNewSuperblock() {
  ASSIGN_OR_RETURN(Bytes block, Read(0, kNewSuperblockBytes, "the superblock"));
  const std::byte* at = block.data();
  const uint32_t computed = Lookup3(block.first(44)), stored = LoadLittle<uint32_t>(at + 44);
  const auto stored_base = LoadLittle<uint64_t>(at + 12);
  const auto stored_end = LoadLittle<uint64_t>(at + 28);
  root_ = LoadLittle<uint64_t>(at + 36);
  if (computed != stored) {
    return Malformed(0, "the superblock's checksum is wrong", absl::StrFormat("%08x", computed),
                     absl::StrFormat("%08x", stored));
  }
  absl::Status checked = CheckWidths(at[9], at[10]);
  return checked.ok() ? SetEnd(stored_base, stored_end) : checked;
}

uint32_t Lookup3(Bytes bytes) {
  uint32_t a = 0xdeadbeef + static_cast<uint32_t>(bytes.size()), b = a, c = a;
  while (bytes.size() > 12) {
    a += LoadLittle<uint32_t>(bytes.data());
    b += LoadLittle<uint32_t>(bytes.data() + 4);
    c += LoadLittle<uint32_t>(bytes.data() + 8);
    a -= c;
    a ^= Rotate(c, 4);
    c += b;
    b -= a;
    b ^= Rotate(a, 6);
    a += c;
    c -= b;
    c ^= Rotate(b, 8);
    b += a;
    a -= c;
    a ^= Rotate(c, 16);
    c += b;
    b -= a;
    b ^= Rotate(a, 19);
    a += c;
    c -= b;
    c ^= Rotate(b, 4);
    b += a;
    bytes = bytes.subspan(12);
  }
  if (bytes.empty()) return c;
  std::byte last[12] = {};
  std::copy(bytes.begin(), bytes.end(), last);
  a += LoadLittle<uint32_t>(last);
  b += LoadLittle<uint32_t>(last + 4);
  c += LoadLittle<uint32_t>(last + 8);
  c ^= b;
  c -= Rotate(b, 14);
  a ^= c;
  a -= Rotate(c, 11);
  b ^= a;
  b -= Rotate(a, 25);
  c ^= b;
  c -= Rotate(b, 16);
  a ^= c;
  a -= Rotate(c, 4);
  b ^= a;
  b -= Rotate(a, 14);
  c ^= b;
  c -= Rotate(b, 24);
  return c;
}

}  // namespace shardpack
