#include "formats/tar/tar_walker.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/io/status_macros.h"
#include "formats/tar/header_reader.h"

namespace shardpack {
namespace {

// The amount that CheckRest and Resync examine at once; fits SequentialReader's window.
constexpr uint64_t kLookBytes = 64 << 10;
// Old GNU sparse: this byte says that another block of the sparse map follows (GNU tar src/tar.h:
// oldgnu_header at 345 with isextended at 482, sparse_header with isextended at 504).
constexpr size_t kSparseExtendedAt = 482, kSparseBlockExtendedAt = 504;

// Types without data, whatever their size field says (as in Python's tarfile: all types it knows,
// except regular ones).
bool HasNoData(char type) { return type >= '1' && type <= '6'; }

bool IsRegular(char type) {
  return type == kTarRegular || type == kTarRegularV7 || type == kTarContiguous;
}

bool IsExtension(char type) {
  return type == kTarPaxNext || type == kTarPaxGlobal || type == kTarGnuLongName ||
         type == kTarGnuLongLink;
}

// A header of V7 has too little that could be wrong.
bool IsCertainlyHeader(Bytes block) {
  TarHeader header;
  return block.size() == kTarBlockBytes &&
         DecodeTarHeader(block.data(), header) == TarHeaderFault::kNone &&
         header.dialect != TarDialect::kV7;
}

}  // namespace

template <typename Reader>
Finding BasicTarWalker<Reader>::At(FindingId id, uint64_t offset) const {
  Finding finding = MakeFinding(id, shard_);
  finding.offset = offset;
  return finding;
}

template <typename Reader>
typename BasicTarWalker<Reader>::Step BasicTarWalker<Reader>::Truncated(uint64_t offset,
                                                                        std::string detail) {
  Finding finding = At(FindingId::kContainerTruncated, offset);
  finding.detail = std::move(detail);
  findings_.Report(std::move(finding));
  ++gaps_;
  return Step::kEnd;
}

template <typename Reader>
absl::StatusOr<bool> BasicTarWalker<Reader>::Next() {
  if (done_) return false;
  if (in_member_) {
    in_member_ = false;
    RETURN_IF_ERROR(FinishData(member_.data_offset + member_.size_bytes));
    if (done_) return false;
  }
  next_.Clear();
  has_long_name_ = false;
  member_.has_extension_record = false;
  member_.offset = in_.position();
  for (;;) {
    ASSIGN_OR_RETURN(Step step, ReadHeader());
    if (step == Step::kMember) return true;
    if (step == Step::kEnd) {
      done_ = true;
      return false;
    }
  }
}

template <typename Reader>
absl::StatusOr<typename BasicTarWalker<Reader>::Step> BasicTarWalker<Reader>::ReadHeader() {
  const uint64_t at = in_.position();
  ASSIGN_OR_RETURN(Bytes block, in_.Peek(kTarBlockBytes));
  if (at == 0) {
    RETURN_IF_ERROR(RefuseCompressed(block));
    if (block.empty()) return Truncated(0, "the file is empty");
  }
  if (block.empty()) {
    if (member_.has_extension_record) return Truncated(at, "no member after an extension record");
    findings_.Report(At(FindingId::kTarNoEnd, at));
    no_end_ = true;
    return Step::kEnd;
  }
  if (block.size() < kTarBlockBytes) return Truncated(at, "part of a header");
  TarHeader header;
  const TarHeaderFault fault = DecodeTarHeader(block.data(), header);
  if (fault != TarHeaderFault::kNone) return OnFault(fault, block);
  if (!header.usual_checksum && thorough_) {
    Finding finding = At(FindingId::kTarFieldStyle, at);
    finding.detail = absl::StrCat("checksum field ", TarChecksumField(block.data()));
    findings_.Report(std::move(finding));
  }
  return OnHeader(header);
}

template <typename Reader>
absl::StatusOr<typename BasicTarWalker<Reader>::Step> BasicTarWalker<Reader>::OnHeader(
    const TarHeader& header) {
  const uint64_t at = in_.position();
  if (IsExtension(header.type)) return ReadExtension(header.type, header.size_bytes);

  uint64_t size_bytes = header.size_bytes;
  const PaxOverrides& sized = next_.has_size ? next_ : global_;
  if (sized.has_size) {
    size_bytes = sized.size_bytes;
    // The record is meant for sizes that eleven octal digits cannot hold.
    if (size_bytes != header.size_bytes && size_bytes <= kTarMaxOctalSize) {
      Finding finding = At(FindingId::kTarPaxSize, at);
      finding.expected = absl::StrCat(header.size_bytes);
      finding.actual = absl::StrCat(size_bytes);
      findings_.Report(std::move(finding));
    }
  }
  ApplyNames(header);
  member_.name = name_;
  member_.header_offset = at;
  member_.type = header.type;
  if (IsRegular(header.type)) {
    // Before ustar, a folder was a regular file with a trailing slash (POSIX.1-2017, pax,
    // typeflag).
    const bool folder = header.type == kTarRegularV7 && name_.ends_with('/');
    member_.type = folder ? kTarFolder : kTarRegular;
  }
  member_.size_bytes = HasNoData(member_.type) ? 0 : size_bytes;

  const bool map_follows = header.type == kTarGnuSparse &&
                           in_.Peek(kTarBlockBytes)->data()[kSparseExtendedAt] != std::byte{0};
  RETURN_IF_ERROR(in_.Skip(kTarBlockBytes));
  member_.data_offset = in_.position();
  if (header.type == kTarGnuSparse || header.type == kTarGnuMultiVolume || next_.sparse ||
      global_.sparse) {
    return RejectSparse(map_follows, member_.size_bytes);
  }
  if (member_.size_bytes > in_.remaining()) {
    return Truncated(at, absl::StrCat("the member has ", member_.size_bytes, " bytes, the file ",
                                      in_.remaining(), " after its header"));
  }
  in_member_ = true;
  return Step::kMember;
}

template <typename Reader>
void BasicTarWalker<Reader>::ApplyNames(const TarHeader& header) {
  if (next_.has_path) {
    name_.assign(next_.path);
  } else if (has_long_name_) {
    name_.assign(long_name_);
  } else if (global_.has_path) {
    name_.assign(global_.path);
  } else {
    name_.assign(header.prefix);
    if (!header.prefix.empty()) name_.push_back('/');
    name_.append(header.name);
  }
}

template <typename Reader>
absl::StatusOr<typename BasicTarWalker<Reader>::Step> BasicTarWalker<Reader>::OnFault(
    TarHeaderFault fault, Bytes block) {
  const uint64_t at = in_.position();
  if (fault == TarHeaderFault::kChecksum && IsAllZero(block)) {
    if (member_.has_extension_record) Truncated(at, "no member after an extension record");
    RETURN_IF_ERROR(End());
    ASSIGN_OR_RETURN(const Bytes next, in_.Peek(kTarBlockBytes));
    if (!IsCertainlyHeader(next)) return Step::kEnd;
    ++archives_;
    next_.Clear();
    global_.Clear();
    has_long_name_ = false;
    member_.has_extension_record = false;
    member_.offset = in_.position();
    return Step::kAgain;
  }
  Finding finding =
      At(fault == TarHeaderFault::kSize ? FindingId::kTarField : FindingId::kTarChecksum, at);
  if (fault == TarHeaderFault::kSize) {
    finding.detail = "the size is negative, out of range or no number";
  } else {
    finding.expected = absl::StrFormat("%06o", TarChecksum(block.data()));
    finding.actual = TarChecksumField(block.data());
  }
  findings_.Report(std::move(finding));
  return Resync();
}

template <typename Reader>
absl::StatusOr<typename BasicTarWalker<Reader>::Step> BasicTarWalker<Reader>::ReadExtension(
    char type, uint64_t size_bytes) {
  const uint64_t at = in_.position();
  member_.has_extension_record = true;
  RETURN_IF_ERROR(in_.Skip(kTarBlockBytes));
  if (size_bytes > in_.remaining()) return Truncated(at, "an extension record");
  const uint64_t data_end = in_.position() + size_bytes;
  bool good = size_bytes <= kMaxTarExtensionBytes;
  if (good) {
    ASSIGN_OR_RETURN(Bytes body, in_.Peek(size_bytes));
    if (type == kTarPaxNext) {
      good = ParsePaxRecords(body, next_);
    } else if (type == kTarPaxGlobal) {
      good = ParsePaxRecords(body, global_);
    } else if (type == kTarGnuLongName) {
      const std::string_view text = AsText(body);
      long_name_.assign(text.substr(0, text.find('\0')));
      has_long_name_ = true;
    }
  }
  if (!good) {
    Finding finding = At(FindingId::kTarField, at);
    finding.detail = "a malformed or oversized extension record";
    findings_.Report(std::move(finding));
    ++gaps_;
  }
  RETURN_IF_ERROR(FinishData(data_end));
  return done_ ? Step::kEnd : Step::kAgain;
}

template <typename Reader>
absl::StatusOr<typename BasicTarWalker<Reader>::Step> BasicTarWalker<Reader>::RejectSparse(
    bool gnu_map_follows, uint64_t size_bytes) {
  Finding finding = At(FindingId::kTarSparse, member_.header_offset);
  finding.detail = name_;
  findings_.Report(std::move(finding));
  ++gaps_;
  while (gnu_map_follows) {
    ASSIGN_OR_RETURN(Bytes map, in_.Peek(kTarBlockBytes));
    if (map.size() < kTarBlockBytes) return Truncated(in_.position(), "a sparse map");
    gnu_map_follows = map[kSparseBlockExtendedAt] != std::byte{0};
    RETURN_IF_ERROR(in_.Skip(kTarBlockBytes));
  }
  if (size_bytes > in_.remaining()) return Truncated(member_.header_offset, "a sparse member");
  RETURN_IF_ERROR(FinishData(in_.position() + size_bytes));
  if (done_) return Step::kEnd;
  next_.Clear();
  has_long_name_ = false;
  member_.has_extension_record = false;
  member_.offset = in_.position();
  return Step::kAgain;
}

// Skips the rest of the data and its padding, which must be zero.
template <typename Reader>
absl::Status BasicTarWalker<Reader>::FinishData(uint64_t data_end) {
  if (data_end > in_.position()) {
    RETURN_IF_ERROR(in_.Skip(data_end - in_.position()));
  }
  const uint64_t padding_bytes = PaddedToTarBlock(data_end) - data_end;
  if (padding_bytes == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(Bytes padding, in_.Peek(padding_bytes));
  const size_t stray = FirstNonZero(padding);
  if (stray < padding.size()) findings_.Report(At(FindingId::kTarPadding, data_end + stray));
  if (padding.size() < padding_bytes) {
    Truncated(data_end, "the padding after a member");
    done_ = true;
    return absl::OkStatus();
  }
  return in_.Skip(padding_bytes);
}

// Skips the current block and moves to the next one that is certainly a header.
template <typename Reader>
absl::StatusOr<typename BasicTarWalker<Reader>::Step> BasicTarWalker<Reader>::Resync() {
  ++gaps_;
  next_.Clear();
  has_long_name_ = false;
  member_.has_extension_record = false;
  do {
    RETURN_IF_ERROR(in_.Skip(kTarBlockBytes));
    ASSIGN_OR_RETURN(Bytes block, in_.Peek(kTarBlockBytes));
    if (block.size() < kTarBlockBytes) {
      // Nothing more can be detected; the finding that led here covers the rest.
      RETURN_IF_ERROR(in_.Skip(block.size()));
      return Step::kEnd;
    }
    if (IsCertainlyHeader(block)) break;
  } while (true);
  member_.offset = in_.position();
  return Step::kAgain;
}

template <typename Reader>
absl::Status BasicTarWalker<Reader>::End() {
  const uint64_t at = in_.position();
  RETURN_IF_ERROR(in_.Skip(kTarBlockBytes));
  ASSIGN_OR_RETURN(Bytes second, in_.Peek(kTarBlockBytes));
  if (second.size() < kTarBlockBytes || !IsAllZero(second)) {
    Finding finding = At(FindingId::kTarNoEnd, at);
    finding.detail = "one zero block only";
    findings_.Report(std::move(finding));
  }
  return CheckRest();
}

// Goes to another archive after the end, as `cat a.tar b.tar` leaves it. Every other reader stops
// at the first end, so this is said; but what is certainly a header begins samples that would
// otherwise be lost.
template <typename Reader>
absl::Status BasicTarWalker<Reader>::CheckRest() {
  const uint64_t begin = in_.position();
  while (in_.remaining() > 0) {
    ASSIGN_OR_RETURN(Bytes look, in_.Peek(kLookBytes));
    const size_t stray = FirstNonZero(look);
    if (stray < look.size()) {
      Finding finding = At(FindingId::kTrailingData, in_.position() + stray);
      finding.length = in_.remaining() - stray;
      if ((in_.position() + stray) % kTarBlockBytes == 0) {  // archives end with a block
        RETURN_IF_ERROR(in_.Skip(stray));
        ASSIGN_OR_RETURN(const Bytes block, in_.Peek(kTarBlockBytes));
        if (IsCertainlyHeader(block))
          finding.detail = "another archive, whose members are read here";
      }
      findings_.Report(std::move(finding));
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(in_.Skip(look.size()));
  }
  // One more zero block ends the archive; a writer that pads further pads to whole records of
  // several blocks.
  if (thorough_ && in_.size() != begin + kTarBlockBytes && in_.size() != begin &&
      in_.size() % kTarBlockingBytes != 0) {
    Finding finding = At(FindingId::kTarEndPadding, in_.size());
    finding.expected = absl::StrCat("a multiple of ", kTarBlockingBytes);
    finding.actual = absl::StrCat(in_.size());
    findings_.Report(std::move(finding));
  }
  return absl::OkStatus();
}

// A shard that is compressed as a whole has no extents (the magic numbers of gzip, RFC 1952; bzip2;
// xz; zstd, RFC 8878).
template <typename Reader>
absl::Status BasicTarWalker<Reader>::RefuseCompressed(Bytes head) const {
  static constexpr std::array<std::string_view, 4> kMagics = {
      "\x1f\x8b", "BZh", std::string_view("\xfd\x37zXZ\0", 6), "\x28\xb5\x2f\xfd"};
  for (const std::string_view magic : kMagics) {
    TarHeader header;
    if (AsText(head).starts_with(magic) &&
        (head.size() < kTarBlockBytes ||
         DecodeTarHeader(head.data(), header) == TarHeaderFault::kChecksum)) {
      return absl::UnimplementedError(
          absl::StrCat(std::string(shard_), " is compressed as a whole; unpack it first"));
    }
  }
  return absl::OkStatus();
}

template class BasicTarWalker<SequentialReader>;
template class BasicTarWalker<HeaderReader>;

}  // namespace shardpack
