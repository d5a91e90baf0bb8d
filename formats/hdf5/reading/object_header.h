// ReadObjectHeader: reads the messages of one object of an HDF5 file.
//
//   absl::StatusOr<ObjectHeader> object = ReadObjectHeader(reader, reader.root_address());
//   const HeaderMessage* layout = object->Find(MessageType::kLayout);      // nullptr: none
//
// It reads versions 1 and 2 with their continuation blocks (HDF5 File Format Specification 3.0,
// IV.A).
//
// Lifetime: the result owns the messages' bytes.
// Errors: as Hdf5Reader.
// Memory: the header's bytes.
// Units: bytes; addresses as Hdf5Reader.
#ifndef SHARDPACK_FORMATS_HDF5_READING_OBJECT_HEADER_H_
#define SHARDPACK_FORMATS_HDF5_READING_OBJECT_HEADER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/hdf5/reading/hdf5_reader.h"
#include "formats/io/bytes.h"

namespace shardpack {

enum class MessageType : uint16_t {
  kNil = 0x00,
  kDataspace = 0x01,
  kLinkInfo = 0x02,
  kDatatype = 0x03,
  kLink = 0x06,
  kExternalFiles = 0x07,
  kLayout = 0x08,
  kFilters = 0x0B,
  kContinuation = 0x10,
  kSymbolTable = 0x11,
};

struct HeaderMessage {
  MessageType type = MessageType::kNil;
  bool shared = false;  // the bytes are a reference to the message
  uint64_t address = 0;
  std::string bytes;

  Bytes view() const { return AsBytes(bytes); }
};

struct ObjectHeader {
  uint64_t address = 0;
  std::vector<HeaderMessage> messages;  // of the types above, without empty ones

  const HeaderMessage* Find(MessageType type) const;  // the first of this type
};

absl::StatusOr<ObjectHeader> ReadObjectHeader(Hdf5Reader& reader, uint64_t address);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_HDF5_READING_OBJECT_HEADER_H_
