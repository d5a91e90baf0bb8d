#include "formats/hdf5/writing/hdf5_output.h"

#include <hdf5/serial/hdf5.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/hdf5/hdf5_layout.h"
#include "formats/hdf5/writing/staged_vfd.h"
#include "formats/io/file.h"

namespace shardpack {
namespace {

static_assert(sizeof(hid_t) == sizeof(int64_t));

// A library identifier, closed at the end of the scope.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  bool ok() const { return id_ >= 0; }
  operator hid_t() const { return id_; }

 private:
  const hid_t id_;
  herr_t (*const close_)(hid_t);
};

// Takes the innermost message of the library's error stack.
herr_t TakeMessage(unsigned, const H5E_error2_t* error, void* into) {
  *static_cast<std::string*>(into) = error->desc == nullptr ? "" : error->desc;
  return 0;
}

// Called when a library call has failed, because a later call would clear the stack.
herr_t KeepMessage(hid_t stack, void* into) {
  return H5Ewalk2(stack, H5E_WALK_DOWNWARD, &TakeMessage, into);
}

// Held during all library calls. Makes sure that the library never loads a plugin, prints nothing,
// and has no work left when the process exits.
class LibraryLock {
 public:
  LibraryLock() : guard_(mutex_) {
    static const bool ready = [] {
      H5dont_atexit();
      return H5open() >= 0 && H5PLset_loading_state(0) >= 0;
    }();
    (void)ready;
    last_message_.clear();
    H5Eset_auto2(H5E_DEFAULT, &KeepMessage, &last_message_);  // per-thread setting
  }
  ~LibraryLock() { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

  // The message of the last call that failed under this lock.
  static const std::string& last_message() { return last_message_; }

 private:
  static inline std::mutex mutex_;
  static inline std::string last_message_;  // guarded by mutex_
  std::lock_guard<std::mutex> guard_;
};

Handle DatasetProperties() {
  const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_obj_track_times(list, false);  // otherwise the bytes depend on the clock
  return Handle(list, &H5Pclose);
}

bool SetContiguous(hid_t list) {
  return H5Pset_layout(list, H5D_CONTIGUOUS) >= 0 &&
         H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY) >= 0 &&
         H5Pset_fill_time(list, H5D_FILL_TIME_NEVER) >= 0;
}

Handle Line(uint64_t count) {
  const hsize_t dims[] = {count};
  return Handle(H5Screate_simple(1, dims, nullptr), &H5Sclose);
}

Handle StringType(size_t bytes, H5T_str_t padding) {
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, bytes);
  H5Tset_strpad(type, padding);
  H5Tset_cset(type, H5T_CSET_UTF8);
  return Handle(type, &H5Tclose);
}

bool WriteAttribute(hid_t file, std::string_view name, hid_t type, hid_t memory_type, hid_t space,
                    const void* value) {
  Handle attribute(
      H5Acreate2(file, std::string(name).c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT),
      &H5Aclose);
  return attribute.ok() &&
         (H5Sget_simple_extent_npoints(space) == 0 || H5Awrite(attribute, memory_type, value) >= 0);
}

// Writes one dimension of variable-length strings.
bool WriteTexts(hid_t object, std::string_view name, hid_t type,
                std::span<const std::string> values) {
  Handle space = Line(values.size());
  std::vector<const char*> pointers;
  for (const std::string& value : values) pointers.push_back(value.c_str());
  return WriteAttribute(object, name, type, type, space, pointers.data());
}

}  // namespace

std::string Hdf5LibraryVersion() {
  const LibraryLock lock;
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return absl::StrCat("hdf5 ", major, ".", minor, ".", release);
}

absl::Status Hdf5Output::Result(bool ok, std::string_view operation, std::string_view name) const {
  if (!out_.status().ok()) return out_.status();
  if (ok) return absl::OkStatus();
  const std::string& why = LibraryLock::last_message();
  return absl::InternalError(absl::StrCat("hdf5: ", std::string(operation), " ",
                                          EscapeForTerminal(name), ": ",
                                          why.empty() ? "failed" : why));
}

absl::StatusOr<std::unique_ptr<Hdf5Output>> Hdf5Output::Create(PositionedOutput& out) {
  const LibraryLock lock;
  auto output = std::unique_ptr<Hdf5Output>(new Hdf5Output(out));
  Handle access(H5Pcreate(H5P_FILE_ACCESS), &H5Pclose);
  Handle creation(H5Pcreate(H5P_FILE_CREATE), &H5Pclose);
  // Metadata uses smaller blocks and needs no alignment. HDF5 1.8 and all later versions can read
  // the format.
  bool ok = access.ok() && creation.ok() && SetStagedVfd(access, out) &&
            H5Pset_libver_bounds(access, H5F_LIBVER_EARLIEST, H5F_LIBVER_V18) >= 0 &&
            H5Pset_alignment(access, kDataAlignment, kDataAlignment) >= 0 &&
            H5Pset_obj_track_times(creation, false) >= 0;
  if (ok) output->file_ = H5Fcreate("staged", H5F_ACC_TRUNC, creation, access);
  absl::Status created = output->Result(ok && output->file_ >= 0, "create", "file");
  if (!created.ok()) {
    if (output->file_ >= 0) H5Fclose(std::exchange(output->file_, -1));
    return created;
  }
  return output;
}

Hdf5Output::~Hdf5Output() { (void)Close(); }

absl::Status Hdf5Output::Close() {
  if (file_ < 0) return out_.status();
  const LibraryLock lock;
  const bool closed = H5Fclose(std::exchange(file_, -1)) >= 0;
  return Result(closed, "close", "file");
}

absl::Status Hdf5Output::MakeGroup(std::string_view name) {
  const LibraryLock lock;
  Handle list(H5Pcreate(H5P_GROUP_CREATE), &H5Pclose);
  H5Pset_obj_track_times(list, false);
  Handle group(H5Gcreate2(file_, std::string(name).c_str(), H5P_DEFAULT, list, H5P_DEFAULT),
               &H5Gclose);
  return Result(group.ok(), "create group", name);
}

absl::StatusOr<uint64_t> Hdf5Output::MakeBytes(std::string_view name,
                                               std::span<const uint64_t> dims) {
  const LibraryLock lock;
  Handle list = DatasetProperties();
  const std::vector<hsize_t> sizes(dims.begin(), dims.end());
  Handle space(H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr), &H5Sclose);
  const bool empty = std::find(dims.begin(), dims.end(), 0) != dims.end();
  SetContiguous(list);
  Handle dataset(H5Dcreate2(file_, std::string(name).c_str(), H5T_STD_U8LE, space, H5P_DEFAULT,
                            list, H5P_DEFAULT),
                 &H5Dclose);
  absl::Status made = Result(dataset.ok(), "create dataset", name);
  if (!made.ok()) return made;
  if (empty) return 0;  // an empty dataset has no position in the file
  const haddr_t offset = H5Dget_offset(dataset);
  made = Result(offset != HADDR_UNDEF, "find the offset of dataset", name);
  if (!made.ok()) return made;
  return offset;
}

absl::Status Hdf5Output::WriteArray(std::string_view name, int64_t type, uint64_t count,
                                    const void* values) {
  Handle list = DatasetProperties();
  Handle space = Line(count);
  SetContiguous(list);
  Handle dataset(
      H5Dcreate2(file_, std::string(name).c_str(), type, space, H5P_DEFAULT, list, H5P_DEFAULT),
      &H5Dclose);
  const bool ok = dataset.ok() && (count == 0 || H5Dwrite(dataset, type, H5S_ALL, H5S_ALL,
                                                          H5P_DEFAULT, values) >= 0);
  return Result(ok, "write dataset", name);
}

absl::Status Hdf5Output::WriteUint64(std::string_view name, std::span<const uint64_t> values) {
  const LibraryLock lock;
  return WriteArray(name, H5T_STD_U64LE, values.size(), values.data());
}

absl::Status Hdf5Output::WriteInt64(std::string_view name, std::span<const int64_t> values) {
  const LibraryLock lock;
  return WriteArray(name, H5T_STD_I64LE, values.size(), values.data());
}

absl::Status Hdf5Output::WriteStrings(std::string_view name, size_t width, std::string_view cells) {
  const LibraryLock lock;
  // HDF5 has no string type of zero bytes.
  Handle type = StringType(std::max<size_t>(width, 1), H5T_STR_NULLPAD);
  return WriteArray(name, type, width == 0 ? 0 : cells.size() / width, cells.data());
}

absl::Status Hdf5Output::MakeByteLists(std::string_view name, uint64_t count, uint64_t chunk) {
  const LibraryLock lock;
  Handle list = DatasetProperties();
  Handle space = Line(count);
  Handle type(H5Tvlen_create(H5T_STD_U8LE), &H5Tclose);
  const hsize_t chunk_dims[] = {chunk};
  if (count > 0) H5Pset_chunk(list, 1, chunk_dims);
  Handle dataset(
      H5Dcreate2(file_, std::string(name).c_str(), type, space, H5P_DEFAULT, list, H5P_DEFAULT),
      &H5Dclose);
  return Result(dataset.ok(), "create dataset", name);
}

absl::Status Hdf5Output::WriteByteLists(std::string_view name, uint64_t first,
                                        std::span<const Bytes> lists) {
  if (lists.empty()) return absl::OkStatus();
  std::vector<hvl_t> elements;
  elements.reserve(lists.size());
  // The library does not modify the lists that it writes.
  for (const Bytes list : lists) {
    elements.push_back({list.size(), const_cast<std::byte*>(list.data())});
  }
  const LibraryLock lock;
  Handle dataset(H5Dopen2(file_, std::string(name).c_str(), H5P_DEFAULT), &H5Dclose);
  Handle type(H5Tvlen_create(H5T_STD_U8LE), &H5Tclose);
  Handle file_space(H5Dget_space(dataset), &H5Sclose);
  Handle memory_space = Line(lists.size());
  const hsize_t start[] = {first}, count[] = {lists.size()};
  const bool ok =
      dataset.ok() &&
      H5Sselect_hyperslab(file_space, H5S_SELECT_SET, start, nullptr, count, nullptr) >= 0 &&
      H5Dwrite(dataset, type, memory_space, file_space, H5P_DEFAULT, elements.data()) >= 0;
  return Result(ok, "write dataset", name);
}

absl::Status Hdf5Output::ShrinkByteLists(std::string_view name, uint64_t count) {
  const LibraryLock lock;
  Handle dataset(H5Dopen2(file_, std::string(name).c_str(), H5P_DEFAULT), &H5Dclose);
  const hsize_t dims[] = {count};
  return Result(dataset.ok() && H5Dset_extent(dataset, dims) >= 0, "resize dataset", name);
}

absl::Status Hdf5Output::SetText(std::string_view name, std::string_view value) {
  const LibraryLock lock;
  Handle type = StringType(H5T_VARIABLE, H5T_STR_NULLTERM);
  Handle space(H5Screate(H5S_SCALAR), &H5Sclose);
  const std::string text(value);
  const char* const pointer = text.c_str();
  return Result(WriteAttribute(file_, name, type, type, space, &pointer), "write attribute", name);
}

absl::Status Hdf5Output::SetTexts(std::string_view name, std::span<const std::string> values) {
  const LibraryLock lock;
  Handle type = StringType(H5T_VARIABLE, H5T_STR_NULLTERM);
  return Result(WriteTexts(file_, name, type, values), "write attribute", name);
}

// As HDFGroup/hdf5: hl/src/H5DS.c, H5DSset_label; strings of its type, H5T_C_S1.
absl::Status Hdf5Output::LabelDimensions(std::string_view name,
                                         std::span<const std::string> labels) {
  const LibraryLock lock;
  Handle type(H5Tcopy(H5T_C_S1), &H5Tclose);
  Handle dataset(H5Dopen2(file_, std::string(name).c_str(), H5P_DEFAULT), &H5Dclose);
  const bool ok = H5Tset_size(type, H5T_VARIABLE) >= 0 && dataset.ok() &&
                  WriteTexts(dataset, "DIMENSION_LABELS", type, labels);
  return Result(ok, "label the dimensions of dataset", name);
}

absl::Status Hdf5Output::SetInteger(std::string_view name, int64_t value) {
  const LibraryLock lock;
  Handle space(H5Screate(H5S_SCALAR), &H5Sclose);
  return Result(WriteAttribute(file_, name, H5T_STD_I64LE, H5T_STD_I64LE, space, &value),
                "write attribute", name);
}

}  // namespace shardpack
