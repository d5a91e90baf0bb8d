// Shared checks of the scanners' fuzz targets.
//
//   const File& file = MemoryFile(bytes);
//   Require(scanned.ok(), "damage became a status");
//   RequireField(field, bytes);
//
// Lifetime: MemoryFile returns the process's only such file and replaces its content on each call.
// Thread-safety: one caller.
// Errors: a violated condition is printed and ends the process, which is how a fuzz target fails.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_TESTING_FUZZ_CHECKS_H_
#define SHARDPACK_FORMATS_TESTING_FUZZ_CHECKS_H_

#include <cstdint>
#include <string_view>

#include "formats/core/shard_scanner.h"
#include "formats/io/file.h"

namespace shardpack::testing {

void Require(bool condition, const char* what);
// A file in memory with these bytes.
const File& MemoryFile(std::string_view bytes);
// [offset, offset + length) lies within [begin, end).
bool LiesWithin(uint64_t offset, uint64_t length, uint64_t begin, uint64_t end);
// Requires that the field is within the file and its hash is that of its bytes there.
void RequireField(const ScannedField& field, std::string_view bytes);

}  // namespace shardpack::testing

#endif  // SHARDPACK_FORMATS_TESTING_FUZZ_CHECKS_H_
