#include "formats/hdf5/reading/object_header.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr size_t kMaxBlocks = 1024;
// The old format counts them in 16 bits; the new one stores no more links than that outside a heap.
constexpr size_t kMaxMessages = 65536;
constexpr uint64_t kOldPrefixBytes = 16;  // 12, and 4 to align what follows
constexpr uint64_t kHeaderChecksumBytes = 4;

bool IsOfUse(MessageType type) {
  switch (type) {
    case MessageType::kDataspace:
    case MessageType::kLinkInfo:
    case MessageType::kDatatype:
    case MessageType::kLink:
    case MessageType::kExternalFiles:
    case MessageType::kLayout:
    case MessageType::kFilters:
    case MessageType::kContinuation:
    case MessageType::kSymbolTable:
      return true;
    default:
      return false;
  }
}

struct Block {
  uint64_t address = 0, bytes = 0;
};

// The state of one ReadObjectHeader.
class HeaderParser {
 public:
  HeaderParser(Hdf5Reader& reader, uint64_t address) : reader_(reader) {
    header_.address = address;
  }

  absl::StatusOr<ObjectHeader> Run();

 private:
  absl::Status ReadOldPrefix();
  absl::Status ReadNewPrefix();
  absl::Status ReadBlock(const Block& block, bool first);
  absl::Status ReadMessages(const std::string& bytes, uint64_t address);
  absl::Status AddContinuation(const HeaderMessage& message);

  Hdf5Reader& reader_;
  ObjectHeader header_;
  bool new_style_ = false;
  bool creation_order_ = false;
  uint64_t prefix_bytes_ = 0;
  std::vector<Block> blocks_;
  uint64_t continued_bytes_ = 0;
};

absl::StatusOr<ObjectHeader> HeaderParser::Run() {
  ASSIGN_OR_RETURN(Bytes head, reader_.Read(header_.address, 4, "an object header"));
  new_style_ = AsText(head) == "OHDR";
  absl::Status read = new_style_ ? ReadNewPrefix() : ReadOldPrefix();
  for (size_t i = 0; read.ok() && i < blocks_.size(); ++i) {
    const Block block = blocks_[i];
    read = ReadBlock(block, i == 0);
  }
  if (!read.ok()) return read;
  return std::move(header_);
}

absl::Status HeaderParser::ReadOldPrefix() {
  ASSIGN_OR_RETURN(Bytes prefix,
                   reader_.Read(header_.address, kOldPrefixBytes, "an object header"));
  const std::byte* at = prefix.data();
  const auto version = std::to_integer<int>(at[0]);
  const auto bytes = LoadLittle<uint32_t>(at + 8);
  if (version != 1) {
    return reader_.Malformed(header_.address, "no object header", "version 1 or OHDR",
                             absl::StrCat("version ", version));
  }
  blocks_.push_back({header_.address + kOldPrefixBytes, bytes});
  return absl::OkStatus();
}

absl::Status HeaderParser::ReadNewPrefix() {
  ASSIGN_OR_RETURN(Bytes head, reader_.Read(header_.address, 6, "an object header"));
  const auto version = std::to_integer<int>(head[4]), flags = std::to_integer<int>(head[5]);
  if (version != 2) {
    return reader_.Malformed(header_.address, "an object header of unknown version", "2",
                             absl::StrCat(version));
  }
  creation_order_ = (flags & 0x04) != 0;
  const uint64_t size_at = 6 + ((flags & 0x20) != 0 ? 16 : 0) + ((flags & 0x10) != 0 ? 4 : 0);
  const uint64_t width = uint64_t{1} << (flags & 3);
  prefix_bytes_ = size_at + width;
  ASSIGN_OR_RETURN(Bytes prefix, reader_.Read(header_.address, prefix_bytes_, "an object header"));
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < width; ++i) {
    bytes |= std::to_integer<uint64_t>(prefix[size_at + i]) << (8 * i);
  }
  if (!reader_.Holds(header_.address, prefix_bytes_) || !reader_.Holds(header_.address, bytes)) {
    return reader_.Malformed(header_.address, "an object header passes the end of the file", "",
                             absl::StrCat(bytes, " bytes"));
  }
  blocks_.push_back({header_.address, prefix_bytes_ + bytes + kHeaderChecksumBytes});
  return absl::OkStatus();
}

absl::Status HeaderParser::ReadBlock(const Block& block, bool first) {
  ASSIGN_OR_RETURN(Bytes read, reader_.Read(block.address, block.bytes, "an object header"));
  if (!new_style_) return ReadMessages(std::string(AsText(read)), block.address);
  const uint64_t prefix = first ? prefix_bytes_ : 4;
  if (block.bytes < prefix + kHeaderChecksumBytes || (!first && AsText(read.first(4)) != "OCHK")) {
    return reader_.Malformed(block.address, "no continuation of an object header");
  }
  const uint64_t covered = block.bytes - kHeaderChecksumBytes;
  const uint32_t computed = Lookup3(read.first(covered));
  const auto stored = LoadLittle<uint32_t>(read.data() + covered);
  if (computed != stored) {
    return reader_.Malformed(block.address, "the checksum of an object header is wrong",
                             absl::StrFormat("%08x", computed), absl::StrFormat("%08x", stored));
  }
  return ReadMessages(std::string(AsText(read.subspan(prefix, covered - prefix))),
                      block.address + prefix);
}

absl::Status HeaderParser::ReadMessages(const std::string& bytes, uint64_t address) {
  const size_t head_bytes = !new_style_ ? 8 : creation_order_ ? 6 : 4;
  // The rest at the end is a gap.
  for (size_t at = 0; bytes.size() - at >= head_bytes;) {
    const char* head = bytes.data() + at;
    HeaderMessage message;
    message.address = address + at;
    const uint16_t type = new_style_ ? static_cast<uint8_t>(head[0]) : LoadLittle<uint16_t>(head);
    const auto length = LoadLittle<uint16_t>(head + (new_style_ ? 1 : 2));
    const auto flags = static_cast<uint8_t>(head[new_style_ ? 3 : 4]);
    at += head_bytes;
    if (length > bytes.size() - at) {
      return reader_.Malformed(message.address, "a message passes the end of its object header",
                               absl::StrCat("at most ", bytes.size() - at, " bytes"),
                               absl::StrCat(length, " bytes"));
    }
    message.type = static_cast<MessageType>(type);
    message.shared = (flags & 0x02) != 0;
    if (IsOfUse(message.type)) {
      message.bytes = bytes.substr(at, length);
      if (message.type == MessageType::kContinuation) {
        RETURN_IF_ERROR(AddContinuation(message));
      } else if (header_.messages.size() == kMaxMessages) {
        return reader_.Malformed(message.address, "an object header has too many messages",
                                 absl::StrCat("at most ", kMaxMessages), "more");
      } else {
        header_.messages.push_back(std::move(message));
      }
    }
    at += length;
  }
  return absl::OkStatus();
}

absl::Status HeaderParser::AddContinuation(const HeaderMessage& message) {
  if (message.bytes.size() < 16) {
    return reader_.Malformed(message.address, "a continuation message is too short");
  }
  const Block block = {LoadLittle<uint64_t>(message.bytes.data()),
                       LoadLittle<uint64_t>(message.bytes.data() + 8)};
  for (const Block& known : blocks_) {
    if (known.address == block.address) {
      return reader_.Malformed(message.address, "an object header continues in itself", "",
                               absl::StrCat("block ", block.address));
    }
  }
  if (blocks_.size() == kMaxBlocks || block.bytes > reader_.size() - continued_bytes_) {
    return reader_.Malformed(
        message.address, "an object header goes on and on",
        absl::StrCat("at most ", kMaxBlocks, " blocks of ", reader_.size(), " bytes"),
        absl::StrCat("block ", blocks_.size() + 1, " of ", block.bytes, " bytes"));
  }
  continued_bytes_ += block.bytes;
  blocks_.push_back(block);
  return absl::OkStatus();
}

}  // namespace

const HeaderMessage* ObjectHeader::Find(MessageType type) const {
  for (const HeaderMessage& message : messages) {
    if (message.type == type) return &message;
  }
  return nullptr;
}

absl::StatusOr<ObjectHeader> ReadObjectHeader(Hdf5Reader& reader, uint64_t address) {
  return HeaderParser(reader, address).Run();
}

}  // namespace shardpack
