#include "formats/io/mapped_file.h"

#include <errno.h>
#include <sys/mman.h>

#include <utility>

#include "formats/io/status_macros.h"

namespace shardpack {

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  ASSIGN_OR_RETURN(File file, File::OpenRead(path));
  return Map(file);
}

absl::StatusOr<MappedFile> MappedFile::Map(const File& file) {
  ASSIGN_OR_RETURN(uint64_t size, file.Size());
  if (size == 0) return MappedFile(Bytes());  // mmap rejects an empty file
  void* at = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.descriptor(), 0);
  if (at == MAP_FAILED) return IoStatus("map", file.path(), errno);
  return MappedFile(Bytes(static_cast<const std::byte*>(at), size));
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    Unmap();
    bytes_ = std::exchange(other.bytes_, {});
  }
  return *this;
}

MappedFile::~MappedFile() { Unmap(); }

void MappedFile::Unmap() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace shardpack
