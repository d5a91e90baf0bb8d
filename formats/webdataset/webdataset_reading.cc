#include "formats/webdataset/webdataset_reading.h"

#include <string_view>

#include "formats/tar/tar_header.h"
#include "formats/webdataset/webdataset_scanner.h"

namespace shardpack {
namespace {

bool Sniff(Bytes head, std::string_view file_name) {
  if (file_name.ends_with(".tar")) return true;
  if (head.size() < kTarBlockBytes) return false;
  TarHeader header;
  return DecodeTarHeader(head.data(), header) != TarHeaderFault::kChecksum;
}

constinit const WebdatasetScanner kScanner;

}  // namespace

constinit const Format kWebDatasetReading = {
    .name = "webdataset",
    .doc = "tar files of samples",
    .layouts = {},
    .traits = {},
    .shard_name = nullptr,
    .record_bound = nullptr,
    .sniff = &Sniff,
    .create = nullptr,
    .scanner = &kScanner,
    .sidecars = {},
};

}  // namespace shardpack
