#include "formats/hdf5/reading/group_links.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr uint64_t kGroupNodeHeadBytes = 24, kSymbolHeadBytes = 8, kSymbolBytes = 40;
constexpr uint64_t kHeapHeadBytes = 32;
constexpr int kMaxGroupLevel = 16;
constexpr uint32_t kSoftLinkCache = 2;  // of a symbol table entry
constexpr int kHardLink = 0, kExternalLink = 64;

// A group in the old format.
class SymbolTable {
 public:
  SymbolTable(Hdf5Reader& reader, std::vector<GroupLink>& links) : reader_(reader), links_(links) {}

  absl::Status Run(uint64_t tree, uint64_t heap);

 private:
  absl::Status ReadHeap(uint64_t address);
  absl::Status ReadNode(uint64_t address, int parent_level);
  absl::Status ReadSymbols(uint64_t address);

  Hdf5Reader& reader_;
  std::vector<GroupLink>& links_;
  std::string names_;        // the local heap's data
  uint64_t name_bytes_ = 0;  // of the links so far, including their terminators
};

absl::Status SymbolTable::Run(uint64_t tree, uint64_t heap) {
  absl::Status read = ReadHeap(heap);
  return read.ok() ? ReadNode(tree, kMaxGroupLevel + 1) : read;
}

absl::Status SymbolTable::ReadHeap(uint64_t address) {
  ASSIGN_OR_RETURN(Bytes head, reader_.Read(address, kHeapHeadBytes, "a local heap"));
  if (AsText(head.first(4)) != "HEAP" || head[4] != std::byte{0}) {
    return reader_.Malformed(address, "no local heap of version 0");
  }
  const auto bytes = LoadLittle<uint64_t>(head.data() + 8);
  const auto data = LoadLittle<uint64_t>(head.data() + 24);
  ASSIGN_OR_RETURN(Bytes names, reader_.Read(data, bytes, "the data of a local heap"));
  names_ = std::string(AsText(names));
  return absl::OkStatus();
}

absl::Status SymbolTable::ReadNode(uint64_t address, int parent_level) {
  ASSIGN_OR_RETURN(Bytes head,
                   reader_.Read(address, kGroupNodeHeadBytes, "a B-tree node of a group"));
  if (AsText(head.first(4)) != "TREE" || head[4] != std::byte{0}) {
    return reader_.Malformed(address, "no B-tree node of a group");
  }
  const auto level = std::to_integer<int>(head[5]);
  const auto entries = LoadLittle<uint16_t>(head.data() + 6);
  if (level >= parent_level || (parent_level <= kMaxGroupLevel && level != parent_level - 1)) {
    return reader_.Malformed(address, "a B-tree node of the wrong level", "", absl::StrCat(level));
  }
  // A key before each child and one at the end, 8 bytes each.
  ASSIGN_OR_RETURN(Bytes body,
                   reader_.Read(address + kGroupNodeHeadBytes, entries * uint64_t{16} + 8,
                                "a B-tree node of a group"));
  std::vector<uint64_t> children;
  for (uint16_t i = 0; i < entries; ++i) {
    children.push_back(LoadLittle<uint64_t>(body.data() + 16 * i + 8));
  }
  for (const uint64_t child : children) {
    RETURN_IF_ERROR(level == 0 ? ReadSymbols(child) : ReadNode(child, level));
  }
  return absl::OkStatus();
}

absl::Status SymbolTable::ReadSymbols(uint64_t address) {
  ASSIGN_OR_RETURN(Bytes head, reader_.Read(address, kSymbolHeadBytes, "a symbol table node"));
  if (AsText(head.first(4)) != "SNOD" || head[4] != std::byte{1}) {
    return reader_.Malformed(address, "no symbol table node of version 1");
  }
  const auto count = LoadLittle<uint16_t>(head.data() + 6);
  ASSIGN_OR_RETURN(Bytes body, reader_.Read(address + kSymbolHeadBytes, count * kSymbolBytes,
                                            "a symbol table node"));
  for (uint16_t i = 0; i < count; ++i) {
    const std::byte* entry = body.data() + i * kSymbolBytes;
    const auto name_at = LoadLittle<uint64_t>(entry);
    const size_t end = name_at < names_.size() ? names_.find('\0', name_at) : std::string::npos;
    if (end == std::string::npos) {
      return reader_.Malformed(address + kSymbolHeadBytes + i * kSymbolBytes,
                               "a link's name lies outside the group's heap",
                               absl::StrCat("below ", names_.size()), absl::StrCat(name_at));
    }
    // Names do not overlap in a heap, nor symbols in a file.
    name_bytes_ += end - name_at + 1;
    if (name_bytes_ > names_.size() || links_.size() >= reader_.size() / kSymbolBytes) {
      return reader_.Malformed(address + kSymbolHeadBytes + i * kSymbolBytes,
                               "the links of a group are more than its heap and the file hold",
                               absl::StrCat("at most ", names_.size(), " bytes of names"),
                               absl::StrCat(name_bytes_, " or more"));
    }
    GroupLink& link = links_.emplace_back();
    link.name = names_.substr(name_at, end - name_at);
    link.address = LoadLittle<uint64_t>(entry + 8);
    if (LoadLittle<uint32_t>(entry + 16) == kSoftLinkCache) link.kind = LinkKind::kSoft;
  }
  return absl::OkStatus();
}

absl::Status ReadLinkMessage(Hdf5Reader& reader, const HeaderMessage& message,
                             std::vector<GroupLink>& links) {
  Bytes left = message.view();
  bool short_of_bytes = false;
  const auto take = [&](size_t bytes) -> uint64_t {
    uint64_t value = 0;
    if (left.size() < bytes) {
      short_of_bytes = true;
      return 0;
    }
    for (size_t i = 0; i < bytes && i < 8; ++i) {
      value |= std::to_integer<uint64_t>(left[i]) << (8 * i);
    }
    left = left.subspan(bytes);
    return value;
  };
  const uint64_t version = take(1), flags = take(1);
  const uint64_t type = (flags & 0x08) != 0 ? take(1) : kHardLink;
  if ((flags & 0x04) != 0) take(8);
  if ((flags & 0x10) != 0) take(1);
  const uint64_t name_bytes = take(size_t{1} << (flags & 3));
  if (version != 1 || short_of_bytes || name_bytes > left.size()) {
    return reader.Malformed(message.address, "a link message is malformed");
  }
  GroupLink& link = links.emplace_back();
  link.name = std::string(AsText(left.first(name_bytes)));
  left = left.subspan(name_bytes);
  if (type == kHardLink) {
    link.address = take(8);
    if (short_of_bytes) return reader.Malformed(message.address, "a link message is too short");
  } else {
    link.kind = type == kExternalLink ? LinkKind::kExternal : LinkKind::kSoft;
  }
  return absl::OkStatus();
}

// Links in the newest format may be stored in a heap of their own.
absl::Status CheckLinkInfo(Hdf5Reader& reader, const HeaderMessage& message) {
  const Bytes bytes = message.view();
  if (bytes.size() < 2)
    return reader.Malformed(message.address, "a link info message is too short");
  const size_t heap_at = 2 + ((bytes[1] & std::byte{1}) != std::byte{0} ? 8 : 0);
  if (bytes.size() < heap_at + 8) {
    return reader.Malformed(message.address, "a link info message is too short");
  }
  if (LoadLittle<uint64_t>(bytes.data() + heap_at) == kUndefinedAddress) return absl::OkStatus();
  return reader.Unsupported(
      "a group with its links in a fractal heap is not read; copy the file "
      "with `h5repack -c 8 -d 6` first");
}

}  // namespace

bool IsGroup(const ObjectHeader& object) {
  return object.Find(MessageType::kSymbolTable) != nullptr ||
         object.Find(MessageType::kLinkInfo) != nullptr;
}

absl::StatusOr<std::vector<GroupLink>> ReadLinks(Hdf5Reader& reader, const ObjectHeader& group) {
  std::vector<GroupLink> links;
  absl::Status read;
  if (const HeaderMessage* table = group.Find(MessageType::kSymbolTable); table != nullptr) {
    if (table->bytes.size() < 16) {
      return reader.Malformed(table->address, "a symbol table message is too short");
    }
    read = SymbolTable(reader, links)
               .Run(LoadLittle<uint64_t>(table->bytes.data()),
                    LoadLittle<uint64_t>(table->bytes.data() + 8));
  } else if (const HeaderMessage* info = group.Find(MessageType::kLinkInfo); info != nullptr) {
    read = CheckLinkInfo(reader, *info);
    for (const HeaderMessage& message : group.messages) {
      if (!read.ok()) break;
      if (message.type == MessageType::kLink) read = ReadLinkMessage(reader, message, links);
    }
  } else {
    read = reader.Malformed(group.address, "the object is not a group");
  }
  if (!read.ok()) return read;
  return links;
}

const GroupLink* FindLink(std::span<const GroupLink> links, std::string_view name) {
  for (const GroupLink& link : links) {
    if (link.name == name) return &link;
  }
  return nullptr;
}

}  // namespace shardpack
