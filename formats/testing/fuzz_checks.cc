#include "formats/testing/fuzz_checks.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "formats/io/hash.h"

namespace shardpack::testing {

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

const File& MemoryFile(std::string_view bytes) {
  static const File file(::memfd_create("fuzz", MFD_CLOEXEC), "fuzz");
  Require(::ftruncate(file.descriptor(), 0) == 0, "ftruncate");
  Require(::pwrite(file.descriptor(), bytes.data(), bytes.size(), 0) ==
              static_cast<ssize_t>(bytes.size()),
          "pwrite");
  return file;
}

bool LiesWithin(uint64_t offset, uint64_t length, uint64_t begin, uint64_t end) {
  return offset >= begin && offset <= end && length <= end - offset;
}

void RequireField(const ScannedField& field, std::string_view bytes) {
  Require(LiesWithin(field.offset, field.length, 0, bytes.size()), "a field passes the end");
  Require(field.hash == Xxh3_64(AsBytes(bytes.substr(field.offset, field.length))),
          "a field's hash is not that of its bytes");
}

}  // namespace shardpack::testing
