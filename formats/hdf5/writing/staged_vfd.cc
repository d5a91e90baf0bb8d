#include "formats/hdf5/writing/staged_vfd.h"

#include <hdf5/serial/hdf5.h>

#include <algorithm>
#include <array>
#include <memory>

namespace shardpack {
namespace {

// The content of a file access property list for this driver; the library copies it.
struct DriverInfo {
  PositionedOutput* out;
};

// The library casts between H5FD_t* and this.
struct StagedVfdFile {
  H5FD_t base;  // the first member: the library's part
  PositionedOutput* out;
  haddr_t end_of_addresses, end_of_file;
};

StagedVfdFile* Of(H5FD_t* file) { return reinterpret_cast<StagedVfdFile*>(file); }
const StagedVfdFile* Of(const H5FD_t* file) { return reinterpret_cast<const StagedVfdFile*>(file); }

H5FD_t* Open(const char*, unsigned, hid_t access_list, haddr_t) {
  const auto* info = static_cast<const DriverInfo*>(H5Pget_driver_info(access_list));
  if (info == nullptr) return nullptr;
  auto* file = new StagedVfdFile{};
  file->out = info->out;
  return &file->base;
}

herr_t Close(H5FD_t* file) {
  delete Of(file);
  return 0;
}

// The same flags as the library's own POSIX driver, so that the bytes are the same.
herr_t Query(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

haddr_t GetEndOfAddresses(const H5FD_t* file, H5FD_mem_t) { return Of(file)->end_of_addresses; }

herr_t SetEndOfAddresses(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  Of(file)->end_of_addresses = address;
  return 0;
}

haddr_t GetEndOfFile(const H5FD_t* file, H5FD_mem_t) { return Of(file)->end_of_file; }

herr_t Read(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, size_t size, void* buffer) {
  const std::span into(static_cast<std::byte*>(buffer), size);
  if (!Of(file)->out->ReadAt(address, into).ok()) std::fill(into.begin(), into.end(), std::byte{});
  return 0;
}

herr_t Write(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, size_t size, const void* buffer) {
  const std::array<Bytes, 1> part = {Bytes(static_cast<const std::byte*>(buffer), size)};
  (void)Of(file)->out->WriteAt(address, part);  // the output remembers an error
  Of(file)->end_of_file = std::max<haddr_t>(Of(file)->end_of_file, address + size);
  return 0;
}

// Other code writes to the file, too, so its size is set whatever end_of_file says.
herr_t Truncate(H5FD_t* file, hid_t, hbool_t) {
  (void)Of(file)->out->Resize(Of(file)->end_of_addresses);
  Of(file)->end_of_file = Of(file)->end_of_addresses;
  return 0;
}

constexpr H5FD_class_t kStagedVfd = {
    .name = "shardpack staged file",
    .maxaddr = (haddr_t{1} << 62) - 1,
    .fc_degree = H5F_CLOSE_STRONG,
    .terminate = nullptr,
    .sb_size = nullptr,
    .sb_encode = nullptr,
    .sb_decode = nullptr,
    .fapl_size = sizeof(DriverInfo),
    .fapl_get = nullptr,
    .fapl_copy = nullptr,
    .fapl_free = nullptr,
    .dxpl_size = 0,
    .dxpl_copy = nullptr,
    .dxpl_free = nullptr,
    .open = &Open,
    .close = &Close,
    .cmp = nullptr,
    .query = &Query,
    .get_type_map = nullptr,
    .alloc = nullptr,
    .free = nullptr,
    .get_eoa = &GetEndOfAddresses,
    .set_eoa = &SetEndOfAddresses,
    .get_eof = &GetEndOfFile,
    .get_handle = nullptr,
    .read = &Read,
    .write = &Write,
    .flush = nullptr,
    .truncate = &Truncate,
    .lock = nullptr,
    .unlock = nullptr,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

}  // namespace

bool SetStagedVfd(int64_t access_list, PositionedOutput& out) {
  static const hid_t driver = H5FDregister(&kStagedVfd);
  const DriverInfo info{&out};
  return driver >= 0 && H5Pset_driver(access_list, driver, &info) >= 0;
}

}  // namespace shardpack
