#include "converters/testing/made_up.h"

#include <algorithm>
#include <span>
#include <utility>

namespace shardpack::testing {
namespace {

constexpr LayoutSpec kLayouts[] = {{.name = "plain", .doc = "the default", .max_key_bytes = 60},
                                   {.name = "fancy", .doc = "another", .max_key_bytes = 60}};
constexpr LayoutSpec kOrderedLayouts[] = {
    {.name = "plain", .doc = "the default", .key_ordered = true, .max_key_bytes = 60}};

constexpr Format MakeFormat(std::string_view name, std::span<const LayoutSpec> layouts) {
  return {
      .name = name,
      .doc = "",
      .layouts = layouts,
      .traits = {.max_record_bytes = 1'000'000, .shard_overhead_bytes = 100},
      .shard_name =
          [](std::string_view split, uint32_t number, uint32_t total) {
            return std::string(split) + "-" + std::to_string(number) + "-of-" +
                   std::to_string(total);
          },
      .record_bound =
          [](const ShardSpec&, const RecordShape& shape) {
            uint64_t bytes = 10 + shape.key_bytes;
            for (const uint64_t field : shape.field_bytes) bytes += field;
            return bytes;
          },
      .sniff = nullptr,
      .create = nullptr,
      .scanner = nullptr,
      .sidecars = {},
  };
}

constexpr Format kPlain = MakeFormat("plain-format", kLayouts);
constexpr Format kKeyOrdered = MakeFormat("key-ordered", kOrderedLayouts);

}  // namespace

Listing MakeListing(std::vector<std::string> paths, uint64_t bytes) {
  std::vector<std::pair<std::string, std::string>> files;
  for (const std::string& path : paths) {
    const size_t slash = path.rfind('/');
    const bool top = slash == std::string::npos;
    files.emplace_back(top ? "" : path.substr(0, slash), top ? path : path.substr(slash + 1));
  }
  std::sort(files.begin(), files.end());
  Listing listing;
  listing.root = "/source";
  for (const auto& [folder, name] : files) {
    if (listing.folders.empty() || listing.folders.back() != folder) {
      listing.folders.push_back(folder);
      const std::string top = folder.substr(0, folder.find('/'));
      if (!folder.empty() && (listing.classes.empty() || listing.classes.back() != top)) {
        listing.classes.push_back(top);
      }
    }
    listing.folder.push_back(static_cast<uint32_t>(listing.folders.size() - 1));
    listing.names += name;
    listing.name_ends.push_back(listing.names.size());
    listing.bytes.push_back(bytes);
    listing.mtime_ns.push_back(1'700'000'000'000'000'000);
    listing.label.push_back(folder.empty() ? -1 : static_cast<int32_t>(listing.classes.size() - 1));
  }
  return listing;
}

Listing MakeListing(uint64_t files) {
  std::vector<std::string> paths;
  for (uint64_t i = 0; i < files; ++i) {
    paths.push_back("class" + std::to_string(i % 4) + "/" + std::to_string(i) + ".jpg");
  }
  Listing listing = MakeListing(std::move(paths));
  for (uint64_t row = 0; row < files; ++row) {
    const uint64_t dice = row * 2654435761u % 4093;
    listing.bytes[row] = dice % 97 == 0 ? 20'000 : 1 + dice % 2000;
  }
  return listing;
}

const Format& PlainFormat() { return kPlain; }
const Format& KeyOrderedFormat() { return kKeyOrdered; }

const Format* FindMadeUpFormat(std::string_view name) {
  for (const Format* format : {&kPlain, &kKeyOrdered}) {
    if (format->name == name) return format;
  }
  return nullptr;
}

}  // namespace shardpack::testing
