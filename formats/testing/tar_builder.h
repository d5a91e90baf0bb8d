// TarBuilder: tar files for tests, including malformed and unusual ones.
//
//   TarBuilder tar;
//   tar.Add("cat/1.jpg", jpeg).Add("link.jpg", "", '1');
//   std::string bytes = tar.Finish();
//
// Lifetime: owns its bytes.
// Thread-safety: one caller at a time.
// Errors: none; the caller ensures that names fit.
#ifndef SHARDPACK_FORMATS_TESTING_TAR_BUILDER_H_
#define SHARDPACK_FORMATS_TESTING_TAR_BUILDER_H_

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "formats/tar/tar_header.h"

namespace shardpack {

class TarBuilder {
 public:
  // Header, data, padding. `change` may modify the header; its checksum is computed afterwards.
  template <typename Change>
  TarBuilder& AddChanged(std::string_view name, std::string_view data, char type, Change change) {
    const size_t at = bytes_.size();
    bytes_.append(kTarBlockBytes, '\0');
    EncodeTarHeader({{}, name}, data.size(), type, reinterpret_cast<std::byte*>(&bytes_[at]));
    change(&bytes_[at]);
    Seal(&bytes_[at]);
    bytes_.append(data);
    bytes_.resize(PaddedToTarBlock(bytes_.size()), '\0');
    return *this;
  }
  TarBuilder& Add(std::string_view name, std::string_view data, char type = kTarRegular) {
    return AddChanged(name, data, type, [](char*) {});
  }
  // A pax header of type x or g with one record "keyword=value".
  TarBuilder& AddPax(std::string_view keyword, std::string_view value, char type = kTarPaxNext) {
    return Add("././@PaxHeader", PaxRecord(keyword, value), type);
  }
  TarBuilder& AddRaw(std::string_view bytes) {
    bytes_.append(bytes);
    return *this;
  }

  uint64_t size() const { return bytes_.size(); }
  // Without the zero blocks at the end.
  const std::string& bytes() const { return bytes_; }
  // With two zero blocks, as bsdtar ends a file.
  std::string Finish() const { return bytes_ + std::string(kTarEndBytes, '\0'); }

  static std::string PaxRecord(std::string_view keyword, std::string_view value) {
    const std::string body = " " + std::string(keyword) + "=" + std::string(value) + "\n";
    size_t length = body.size();
    while (std::to_string(length).size() + body.size() != length) ++length;
    return std::to_string(length) + body;
  }
  // Computes the checksum of the header at `header`.
  static void Seal(char* header) {
    const uint32_t sum = TarChecksum(reinterpret_cast<const std::byte*>(header));
    std::snprintf(header + 148, 8, "%06o", sum);
    header[155] = ' ';
  }

 private:
  std::string bytes_;
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_TESTING_TAR_BUILDER_H_
