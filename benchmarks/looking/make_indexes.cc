// Writes a dataset of any number of samples that is all index: manifest and .pidx as of ImageNet's
// size, and shards that are holes. For measuring what reads no payload.
//
//   make_indexes OUT SAMPLES [CHANGED [FOLDER]]
//
// Of CHANGED samples (default 0), spread over the dataset, the label, the bytes or the key differ
// from those of a dataset made with 0. With a FOLDER of JPEGs, the first samples of each class that
// a report chooses are real: these, each with a comment of its own.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/core/manifest.h"
#include "formats/core/shard_index.h"
#include "formats/io/bytes.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "images/codecs/decode.h"

namespace shardpack {
namespace {

constexpr uint64_t kClasses = 1000, kRecordsPerShard = 2400;
constexpr size_t kReal = 4;  // of each class; a page of 3 MB shows two, and tries a third

// SplitMix64.
uint64_t Mixed(uint64_t number) {
  number += 0x9E3779B97F4A7C15u;
  number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9u;
  number = (number ^ number >> 27) * 0x94D049BB133111EBu;
  return number ^ number >> 31;
}

// The real images, by the number of their sample.
using Pictures = std::map<uint64_t, std::string>;

std::string ClassOf(uint64_t label) { return absl::StrFormat("n%08d", 1440764 + 7 * label); }

std::string KeyOf(uint64_t n) {
  const std::string name = ClassOf(Mixed(n) % kClasses);
  return absl::StrCat(name, "/", name, "_", n);
}

// As a contact sheet chooses them: those of a class whose keys have the least hashes.
Pictures ChoosePictures(const std::string& folder, uint64_t samples) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const auto bytes = ReadWholeFile(entry.path().string(), uint64_t{1} << 30);
    if (bytes.ok() && bytes->starts_with("\xff\xd8")) files.push_back(*bytes);
  }
  if (files.empty()) std::abort();
  std::vector<std::set<std::pair<uint64_t, uint64_t>>> least(kClasses);
  for (uint64_t n = 0; n < samples; ++n) {
    auto& of_class = least[Mixed(n) % kClasses];
    of_class.emplace(Xxh3_64(AsBytes(KeyOf(n))), n);
    if (of_class.size() > kReal) of_class.erase(std::prev(of_class.end()));
  }
  Pictures pictures;
  for (const auto& of_class : least) {
    for (const auto& [hash, n] : of_class) {
      const std::string& file = files[pictures.size() % files.size()];
      const std::string comment = absl::StrFormat("%016d", n);
      pictures[n] =
          absl::StrCat("\xff\xd8\xff\xfe", std::string("\0\x12", 2), comment, file.substr(2));
    }
  }
  return pictures;
}

ManifestShard WriteShard(const std::string& out, uint64_t number, uint64_t begin, uint64_t end,
                         uint64_t samples, uint64_t changed, const Pictures& pictures,
                         Manifest& manifest) {
  ShardIndexBuilder builder;
  std::vector<std::pair<uint64_t, std::string_view>> real;  // at which offset
  uint64_t offset = 0;
  for (uint64_t n = begin; n < end; ++n) {
    const uint64_t random = Mixed(n);
    const bool odd = changed > 0 && n % (samples / changed) == 0;
    const uint64_t kind = odd ? 1 + n % 3 : 0;
    const uint64_t label = (random % kClasses + (kind == 1 ? 1 : 0)) % kClasses;
    uint64_t length = 30'000 + random % 160'000;
    const std::string key = absl::StrCat(KeyOf(n), kind == 2 ? "x" : "");
    ScannedField field{.name = "image",
                       .offset = offset + 512,
                       .length = length,
                       .hash = Mixed(random + (kind == 3 ? 1 : 0))};
    ImageInfo info;
    info.width = 500;
    info.height = static_cast<uint32_t>(300 + random % 200);
    info.format = ImageFormat::kJpeg;
    info.color_space = ColorSpace::kRgb;
    info.channels = 3;
    info.bits_per_channel = 8;
    if (const auto picture = pictures.find(n); picture != pictures.end()) {
      const Bytes bytes = AsBytes(picture->second);
      real.emplace_back(field.offset, picture->second);
      length = field.length = bytes.size();
      field.hash = Xxh3_64(bytes);
      info = *KnownImageInfo(bytes, {}, 64'000'000);
    }
    const uint64_t record = 512 + (length + 511) / 512 * 512;
    ScannedRecord scanned;
    scanned.offset = offset;
    scanned.length = record;
    scanned.fields = {&field, 1};
    builder.Add(scanned, key, absl::StrCat(key, ".JPEG"), static_cast<int64_t>(label), info);
    offset += record;
  }
  ManifestShard shard;
  shard.split = number % 26 == 25 ? "val" : "train";
  shard.name = absl::StrFormat("%s-%06d.tar", shard.split, number);
  shard.bytes = offset;
  shard.records = end - begin;
  shard.xxh3_128 = {Mixed(number), changed};
  const std::string index = builder.Finish(offset);
  shard.index = {shard.name + ".pidx", index.size(), Xxh3_128(AsBytes(index))};
  std::ofstream(out + "/" + shard.index.name, std::ios::binary) << index;
  const int file = ::open((out + "/" + shard.name).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(offset)) != 0) std::abort();
  for (const auto& [at, bytes] : real) {
    if (::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(at)) !=
        static_cast<ssize_t>(bytes.size()))
      std::abort();
  }
  ::close(file);
  manifest.files.push_back({shard.name, shard.bytes, shard.xxh3_128});
  manifest.files.push_back(shard.index);
  manifest.splits[shard.split] += shard.records;
  return shard;
}

void Make(const std::string& out, uint64_t samples, uint64_t changed, const Pictures& pictures) {
  ::mkdir(out.c_str(), 0777);
  Manifest manifest;
  manifest.format = "webdataset";
  manifest.layout = "ustar";
  manifest.tool = {{"version", "made"}};
  manifest.source_root = "/made";
  for (uint64_t label = 0; label < kClasses; ++label) manifest.classes.push_back(ClassOf(label));
  for (uint64_t begin = 0, number = 0; begin < samples; begin += kRecordsPerShard, ++number) {
    manifest.shards.push_back(WriteShard(out, number, begin,
                                         std::min(samples, begin + kRecordsPerShard), samples,
                                         changed, pictures, manifest));
  }
  manifest.counts.seen = manifest.counts.packed = samples;
  manifest.source_files = samples;
  std::sort(manifest.files.begin(), manifest.files.end(),
            [](const FileEntry& a, const FileEntry& b) { return a.name < b.name; });
  std::ofstream(out + "/manifest.json", std::ios::binary) << manifest.ToJson();
}

}  // namespace
}  // namespace shardpack

int main(int argc, char** argv) {
  uint64_t samples = 0, changed = 0;
  if (argc < 3 || argc > 5 || !absl::SimpleAtoi(argv[2], &samples) ||
      (argc >= 4 && !absl::SimpleAtoi(argv[3], &changed)) || changed > samples) {
    std::fprintf(stderr, "usage: make_indexes OUT SAMPLES [CHANGED [FOLDER]]\n");
    return 2;
  }
  shardpack::Make(argv[1], samples, changed,
                  argc == 5 ? shardpack::ChoosePictures(argv[4], samples) : shardpack::Pictures());
}
