#include "formats/testing/datasets/test_dataset.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/core/index_name.h"
#include "formats/io/bytes.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/io/sequential_reader.h"

namespace shardpack::testing {
namespace {

void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "cannot set up the test: %s\n", status.ToString().c_str());
  std::abort();
}
template <typename T>
T Require(absl::StatusOr<T> value) {
  Require(value.status());
  return *std::move(value);
}

class IndexRows : public RecordSink {
 public:
  IndexRows(const std::vector<TestSample>& samples, ShardIndexBuilder& builder)
      : samples_(samples), builder_(builder) {}
  void OnRecord(const ScannedRecord& record) override {
    const TestSample& sample = samples_.at(builder_.records());
    builder_.Add(record, sample.key, sample.source_path, sample.label, sample.info);
  }

 private:
  const std::vector<TestSample>& samples_;
  ShardIndexBuilder& builder_;
};

std::string DataPath(const std::string& path, const Format& format) {
  return format.traits.data_file.empty()
             ? path
             : absl::StrCat(path, "/", std::string(format.traits.data_file));
}

FileEntry EntryOf(const std::string& folder, const std::string& name) {
  const std::string bytes = ReadTestFile(absl::StrCat(folder, "/", name));
  return {name, bytes.size(), Xxh3_128(AsBytes(bytes))};
}

// For a format with one fixed shape, any sample becomes an image of its first bytes as pixels.
constexpr ImageInfo kRawTestImage = RawImageInfo(16, 12, 3);

std::string RawPixelsOf(const TestSample& sample) {
  std::string pixels = sample.image;
  pixels.resize(RawImageBytes(kRawTestImage));
  return pixels;
}

}  // namespace

void WriteTestFile(const std::string& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) Require(absl::UnavailableError(absl::StrCat("write ", path)));
}

std::string ReadTestFile(const std::string& path) {
  return Require(ReadWholeFile(path, uint64_t{1} << 32));
}

std::string MakeTestFolder(std::string_view name) {
  const char* root = std::getenv("TEST_TMPDIR");
  const std::string path =
      absl::StrCat(root != nullptr ? root : "/tmp", "/", std::string(name), ".", ::getpid());
  Require(RemoveTree(path));
  std::filesystem::create_directories(path);
  return path;
}

std::vector<TestSample> MakeTestSamples(const TestDatasetOptions& options) {
  std::mt19937_64 sizes(99), bytes(options.seed);
  std::vector<TestSample> samples(options.shards * options.records_per_shard);
  for (size_t i = 0; i < samples.size(); ++i) {
    TestSample& sample = samples[i];
    char number[24];
    std::snprintf(number, sizeof(number), "%06zu", i);
    sample.label = static_cast<int64_t>(i % 2);
    sample.key = absl::StrCat(sample.label == 0 ? "cat/" : "dog/", number);
    sample.source_path = absl::StrCat(sample.key, ".JPEG");
    const size_t span = options.max_image_bytes - options.min_image_bytes + 1;
    sample.image.resize(options.min_image_bytes + sizes() % span);
    for (size_t b = 0; b < sample.image.size(); b += 8) {
      const uint64_t random = bytes();
      std::memcpy(sample.image.data() + b, &random, std::min<size_t>(8, sample.image.size() - b));
    }
    sample.image.replace(0, 10, std::string_view("\xFF\xD8\xFF\xE0\0\x10JFIF", 10));
  }
  return samples;
}

void WriteTestShard(const std::string& path, const Format& format,
                    const std::vector<TestSample>& samples) {
  if (!format.traits.data_file.empty()) std::filesystem::create_directories(path);
  const std::string data = DataPath(path, format);
  Require(RemoveFile(data));
  Require(RemoveFile(data + ".stage"));
  std::unique_ptr<StagedFile> file = Require(StagedFile::Create(data + ".stage"));
  ShardSpec spec{.layout = format.layouts[0].name, .image_field = {}, .split = "train"};
  spec.max_records = samples.size();
  spec.fields = {{std::string(kImageField), 0}};
  const bool raw = format.layouts[0].fixed_shape;
  if (raw) spec.raw_image = kRawTestImage;
  for (const TestSample& sample : samples) {
    spec.longest_key_bytes = std::max(spec.longest_key_bytes, sample.key.size());
    spec.fields[0].max_bytes += raw ? RawImageBytes(kRawTestImage) : sample.image.size();
  }
  std::unique_ptr<ShardWriter> writer = Require(format.create(*file, spec));
  for (const TestSample& sample : samples) {
    const std::string pixels = raw ? RawPixelsOf(sample) : std::string();
    std::vector<FieldView> fields = {{kImageField, AsBytes(raw ? pixels : sample.image)}};
    for (const auto& [name, bytes] : sample.more_fields) fields.push_back({name, AsBytes(bytes)});
    Require(writer->Append({.number = static_cast<uint64_t>(&sample - samples.data()),
                            .key = sample.key,
                            .source_path = sample.source_path,
                            .label = sample.label,
                            .class_name = sample.label == 0 ? "cat" : "dog",
                            .image = raw ? kRawTestImage : sample.info,
                            .fields = fields}));
  }
  Require(writer->Finish());
  writer.reset();
  Require(file->Publish(data));
}

std::string IndexTestShard(const std::string& path, const Format& format,
                           const std::vector<TestSample>& samples) {
  const File file = Require(File::OpenRead(DataPath(path, format)));
  const uint64_t size = Require(file.Size());
  SequentialReader in(file, size);
  ShardIndexBuilder builder;
  IndexRows rows(samples, builder);
  FindingList findings;
  Require(format.scanner->Scan(in, {.shard_name = path, .strict = false}, rows, findings));
  for (const Finding& finding : findings.findings()) Require(absl::DataLossError(ToText(finding)));
  return builder.Finish(size);
}

std::string ResealedManifest(std::string json) {
  constexpr std::string_view kSelf = "\n \"self\": \"";
  const size_t at = json.find(kSelf), line_bytes = kSelf.size() + 32 + 2;  // digits, quote, comma
  if (at == json.npos) Require(absl::NotFoundError("the manifest has no self"));
  json.erase(at, line_bytes);
  const std::string self = Xxh3_128(AsBytes(json)).ToHex();
  return json.insert(at, std::string(kSelf) + self + "\",");
}

std::string ResealedIndex(std::string bytes) {
  const size_t at = bytes.size() - 24;  // the hash and the magic
  const Digest digest = Xxh3_128(AsBytes(std::string_view(bytes).substr(0, at)));
  StoreLittle(bytes.data() + at, digest.high);
  StoreLittle(bytes.data() + at + 8, digest.low);
  return bytes;
}

void Reseal(const std::string& folder, Manifest& manifest) {
  for (FileEntry& file : manifest.files) file = EntryOf(folder, file.name);
  std::sort(manifest.files.begin(), manifest.files.end(),
            [](const FileEntry& a, const FileEntry& b) { return a.name < b.name; });
  for (ManifestShard& shard : manifest.shards) {
    for (const FileEntry& file : manifest.files) {
      if (file.name == shard.name || file.name.starts_with(shard.name + "/")) {
        shard.bytes = file.bytes;
        shard.xxh3_128 = file.xxh3_128;
      }
      if (file.name == shard.index.name) shard.index = file;
    }
  }
  WriteTestFile(absl::StrCat(folder, "/", std::string(kManifestName)), manifest.ToJson());
}

Manifest WriteTestDataset(const std::string& folder, const Format& format,
                          const TestDatasetOptions& options) {
  std::vector<TestSample> samples = options.samples;
  if (samples.empty()) samples = MakeTestSamples(options);
  Manifest m;
  m.format = std::string(format.name);
  m.layout = std::string(format.layouts[0].name);
  m.tool = {{"version", "test"}};
  m.source_root = "/source";
  m.classes = {"cat", "dog"};
  const size_t each = (samples.size() + options.shards - 1) / options.shards;
  for (size_t i = 0; i < options.shards; ++i) {
    const size_t begin = std::min(i * each, samples.size());
    const size_t end = std::min(begin + each, samples.size());
    const std::vector<TestSample> rows(samples.begin() + static_cast<ptrdiff_t>(begin),
                                       samples.begin() + static_cast<ptrdiff_t>(end));
    ManifestShard shard;
    shard.name =
        format.shard_name("train", static_cast<uint32_t>(i), static_cast<uint32_t>(options.shards));
    shard.split = "train";
    shard.records = rows.size();
    const std::string path = absl::StrCat(folder, "/", shard.name);
    WriteTestShard(path, format, rows);
    shard.index.name = IndexName(shard.name);
    WriteTestFile(absl::StrCat(folder, "/", shard.index.name), IndexTestShard(path, format, rows));
    m.files.push_back({DataPath(shard.name, format), 0, {}});
    m.files.push_back(shard.index);
    m.splits["train"] += rows.size();
    m.shards.push_back(std::move(shard));
  }
  m.counts = {.seen = samples.size(),
              .packed = samples.size(),
              .filtered = 0,
              .skipped = 0,
              .failed = 0,
              .ignored = {}};
  if (options.skipped_file) {
    ++m.counts.seen;
    ++m.counts.skipped;
    m.files.push_back({"skipped.jsonl", 0, {}});
    WriteTestFile(folder + "/skipped.jsonl",
                  "{\"detail\":\"\",\"path\":\"cat/broken.jpg\",\"reason\":\"empty\"}\n");
  }
  m.source_files = m.counts.seen;
  Reseal(folder, m);
  return m;
}

}  // namespace shardpack::testing
