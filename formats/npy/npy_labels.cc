#include "formats/npy/npy_labels.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/bytes.h"
#include "formats/io/file.h"
#include "formats/npy/npy_layout.h"

namespace shardpack {
namespace {

std::string LabelBytes(const ShardIndex& index) {
  const uint64_t shape[] = {index.records()};
  std::string bytes = MakeNpyHeader("<i8", shape);
  const size_t begin = bytes.size();
  bytes.resize(begin + index.records() * sizeof(int64_t));
  for (uint64_t r = 0; r < index.records(); ++r) {
    StoreLittle(bytes.data() + begin + r * sizeof(int64_t), static_cast<uint64_t>(index.label(r)));
  }
  return bytes;
}

// "<i8", ">u2", "|i1": byte order, sign and width. False for everything else.
struct IntegerType {
  bool big_endian = false, is_signed = false;
  uint32_t bytes = 0;
};
bool ParseInteger(std::string_view descr, IntegerType* type) {
  if (descr.size() != 3 || (descr[1] != 'i' && descr[1] != 'u')) return false;
  if (std::string_view("<>|=").find(descr[0]) == std::string_view::npos) return false;
  if (std::string_view("1248").find(descr[2]) == std::string_view::npos) return false;
  *type = {descr[0] == '>', descr[1] == 'i', static_cast<uint32_t>(descr[2] - '0')};
  return true;
}

int64_t LoadInteger(const char* from, const IntegerType& type) {
  uint64_t value = 0;
  for (uint32_t b = 0; b < type.bytes; ++b) {
    const uint32_t at = type.big_endian ? type.bytes - 1 - b : b;
    value |= uint64_t{static_cast<uint8_t>(from[at])} << (8 * b);
  }
  const unsigned unused = 64 - 8 * type.bytes;
  return type.is_signed ? static_cast<int64_t>(value << unused) >> unused
                        : static_cast<int64_t>(value);
}

// Returns what is wrong with the labels, or "" after filling `labels`.
absl::StatusOr<std::string> Load(const File& file, uint64_t samples, std::vector<int64_t>* labels) {
  struct stat facts;
  if (::fstat(file.descriptor(), &facts) != 0) return IoStatus("look at", file.path(), errno);
  if (!S_ISREG(facts.st_mode)) return "it is not a regular file";
  const auto size = static_cast<uint64_t>(facts.st_size);
  std::string head(std::min<uint64_t>(size, kMaxNpyPrefixBytes + kMaxNpyHeaderBytes), '\0');
  absl::Status read = file.ReadExactlyAt(0, std::as_writable_bytes(std::span(head)));
  if (!read.ok()) return read;
  NpyHeader header;
  if (std::string why = ParseNpyHeader(AsBytes(head), &header); !why.empty()) return why;
  IntegerType type;
  if (!ParseInteger(header.descr, &type)) return "its elements are not integers";
  const std::vector<uint64_t>& shape = header.shape;
  const bool line = shape.size() == 1 || (shape.size() == 2 && shape[1] == 1);
  if (!line || shape[0] != samples) {
    return absl::StrCat("its shape is ", NpyShapeText(shape), ", not (", samples, ",)");
  }
  // The file really has `samples` images, so the product is small.
  std::string bytes(samples * type.bytes, '\0');
  if (size - header.data_offset < bytes.size()) return "it ends early";
  read = file.ReadExactlyAt(header.data_offset, std::as_writable_bytes(std::span(bytes)));
  if (!read.ok()) return read;
  labels->resize(samples);
  for (uint64_t i = 0; i < samples; ++i) {
    (*labels)[i] = LoadInteger(bytes.data() + i * type.bytes, type);
  }
  return "";
}

}  // namespace

absl::StatusOr<std::vector<NamedBytes>> NpyLabelFiles(const SidecarInput& input) {
  std::vector<NamedBytes> files;
  for (size_t i = 0; i < input.indexes.size(); ++i) {
    files.push_back({absl::StrCat(input.manifest.shards[i].name, "/", std::string(kLabelsFile)),
                     LabelBytes(input.indexes[i])});
  }
  return files;
}

absl::StatusOr<std::vector<int64_t>> ReadNpyLabels(const std::string& images_path, uint64_t samples,
                                                   std::string_view shard, FindingSink& findings) {
  std::vector<int64_t> labels;
  // Only next to a file with the name that readers look for.
  const size_t slash = images_path.rfind('/');
  if (slash == std::string::npos || images_path.substr(slash + 1) != kImagesFile) return labels;
  const std::string path = images_path.substr(0, slash + 1) + std::string(kLabelsFile);
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0 && errno == ENOENT) return labels;
  absl::StatusOr<std::string> why = "it cannot be opened";
  if (descriptor >= 0) {
    why = Load(File(descriptor, path), samples, &labels);
  } else if (errno != ELOOP && errno != ENXIO) {  // a link to itself, or a socket
    return IoStatus("open", path, errno);
  }
  if (!why.ok()) return why.status();
  if (why->empty()) return labels;
  Finding finding = MakeFinding(FindingId::kNpyLabels, shard);
  finding.detail = *std::move(why);
  findings.Report(std::move(finding));
  return std::vector<int64_t>();
}

}  // namespace shardpack
