#include "api/writing/parts_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/core/manifest.h"
#include "formats/io/error_facts.h"
#include "formats/io/escape.h"
#include "formats/io/list_folder.h"
#include "formats/io/named_lock.h"
#include "formats/io/staged_file.h"
#include "formats/io/status_macros.h"
#include "formats/tfrecord/tfrecord_format.h"

namespace shardpack {
namespace {

using absl::StrCat;
using Json = nlohmann::ordered_json;

constexpr char kStage[] = ".stage", kLock[] = ".lock", kFacts[] = ".json";
constexpr char kShard[] = ".tfrecord", kIndex[] = ".pidx", kLabelledIndex[] = ".labels.pidx";
constexpr char kPublished[] = "published", kEnded[] = ".ended";
constexpr char kOptions[] = "options.json", kLabels[] = "labels.json";
// As `pack convert` reads it (converters/planning/record_order.h), which this library has not.
constexpr std::string_view kRecordOrder = "order.u32";
constexpr std::string_view kSplit = "train";
constexpr uint64_t kMostFactsBytes = uint64_t{64} << 20;
constexpr uint32_t kMostNumberedClasses = uint32_t{1} << 20;
constexpr uint64_t kMostSamples = 0xFFFFFFFF;  // records are numbered in 32 bits

std::string In(const std::string& folder, std::string_view name, std::string_view ending = "") {
  return StrCat(folder, "/", std::string(name), std::string(ending));
}

// "00003", of at least so many digits, is taken off the name.
bool TakeNumber(size_t digits, std::string_view& name) {
  const size_t end = std::min(name.find_first_not_of("0123456789"), name.size());
  name.remove_prefix(end);
  return end >= digits;
}

// Whether a file of the folder is one that these functions make.
bool IsOurs(std::string_view name) {
  if (name.ends_with(kStage)) name.remove_suffix(std::string_view(kStage).size());
  if (name == kRecordOrder || name == kManifestName) return true;
  if (!name.starts_with('w')) return false;
  name.remove_prefix(1);
  if (!TakeNumber(5, name)) return false;
  if (name == kLock) return true;
  if (!name.starts_with('-')) return false;
  name.remove_prefix(1);
  // Nothing is left of a part that is being written.
  constexpr std::string_view kEndings[] = {"", kFacts, kShard, kIndex, kLabelledIndex};
  return TakeNumber(6, name) && std::ranges::find(kEndings, name) != std::end(kEndings);
}

bool IsPart(std::string_view name) {
  return name.starts_with('w') && name.ends_with(kFacts) && IsOurs(name);
}

// A record as the scanner of its shard gave it.
ScannedRecord RecordOf(const ShardIndex& index, uint64_t record,
                       std::vector<ScannedField>& fields) {
  fields.clear();
  for (size_t f = 0; f < index.fields(); ++f) {
    if (!index.has_field(record, f)) continue;
    const Extent extent = index.field(record, f);
    fields.push_back({index.field_name(f), extent.offset, extent.length, index.hash(record, f)});
  }
  const Extent whole = index.record(record);
  return {.offset = whole.offset, .length = whole.length, .fields = fields};
}

// The index with labels of the classes of all parts.
std::string WithLabels(const ShardIndex& index, const std::vector<int64_t>& labels) {
  ShardIndexBuilder builder;
  std::vector<ScannedField> fields;
  for (uint64_t record = 0; record < index.records(); ++record) {
    const int64_t label = index.label(record);
    builder.Add(RecordOf(index, record, fields), index.key(record), index.source_path(record),
                label < 0 ? kNoLabel : labels[static_cast<size_t>(label)], index.image(record));
  }
  return builder.Finish(index.shard_bytes());
}

// For each record, its place in the order of keys.
absl::StatusOr<std::string> OrderOfKeys(const std::vector<ShardIndex>& indexes) {
  struct Row {
    std::string_view key;
    uint32_t record;  // over all parts
  };
  std::vector<Row> rows;
  for (const ShardIndex& index : indexes) {
    for (uint64_t record = 0; record < index.records(); ++record)
      rows.push_back({index.key(record), static_cast<uint32_t>(rows.size())});
  }
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.key < b.key; });
  const auto twice =
      std::ranges::adjacent_find(rows, [](const Row& a, const Row& b) { return a.key == b.key; });
  if (twice != rows.end()) {
    return WithFacts(absl::AlreadyExistsError(
                         StrCat("two writers have added the key ", EscapeForTerminal(twice->key))),
                     {.key = std::string(twice->key)});
  }
  std::string bytes(rows.size() * sizeof(uint32_t), '\0');
  for (uint32_t place = 0; place < rows.size(); ++place) {
    for (size_t byte = 0; byte < sizeof place; ++byte) {
      bytes[rows[place].record * sizeof place + byte] = static_cast<char>(place >> (8 * byte));
    }
  }
  return bytes;
}

// The names of labels 0, 1, ...: sorted. If all are whole numbers, these are the labels, with names
// for those between them.
std::vector<std::string> NumberClasses(const std::set<std::string>& names) {
  uint32_t count = 0;
  for (const std::string& name : names) {
    uint32_t number = 0;
    if (!absl::SimpleAtoi(name, &number) || number >= kMostNumberedClasses ||
        name != StrCat(number)) {
      return {names.begin(), names.end()};
    }
    count = std::max(count, number + 1);
  }
  std::vector<std::string> numbered;
  while (numbered.size() < count) numbered.push_back(StrCat(numbered.size()));
  return numbered;
}

absl::StatusOr<std::unique_ptr<StagedFile>> Stage(const std::string& path, std::string_view bytes) {
  const std::string staged = StrCat(path, kStage);
  RETURN_IF_ERROR(RemoveFile(staged));
  ASSIGN_OR_RETURN(std::unique_ptr<StagedFile> file, StagedFile::Create(staged));
  RETURN_IF_ERROR(file->Append(AsBytes(bytes)));
  return file;
}

// Whoever reads the old one reads all of it. Not on disk by then: every finish makes these anew.
absl::StatusOr<FileEntry> Replace(const std::string& folder, const std::string& name,
                                  std::string_view bytes) {
  ASSIGN_OR_RETURN(const std::unique_ptr<StagedFile> file, Stage(In(folder, name), bytes));
  RETURN_IF_ERROR(file->Replace(In(folder, name)));
  return FileEntry{name, bytes.size(), Xxh3_128(AsBytes(bytes))};
}

absl::StatusOr<std::optional<HeldLock>> Lock(const std::string& path, int create) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC | create, 0666);
  if (descriptor < 0) return IoStatus("open", path, errno);
  File file(descriptor, path);
  ASSIGN_OR_RETURN(const bool ours, LockNamed(file, AT_FDCWD, path));
  if (!ours) return std::nullopt;
  return std::optional<HeldLock>(std::move(file));
}

// By the holder of `published` and of these workers' locks. While `published` is there nobody
// writes, so it goes last.
absl::Status RemovePublished(const std::string& folder, const std::vector<std::string>& parts,
                             const std::vector<uint32_t>& workers) {
  RETURN_IF_ERROR(RemoveFile(In(folder, kRecordOrder)));
  for (const std::string& part : parts) {
    for (const char* ending : {kFacts, kLabelledIndex, kIndex, kShard})
      RETURN_IF_ERROR(RemoveFile(In(folder, part, ending)));
  }
  ASSIGN_OR_RETURN(std::vector<std::string> names, ListFolder(folder));
  for (const uint32_t worker : workers) {
    const std::string prefix = WorkerPrefix(worker);
    const auto is_later = [&](const std::string& name) {
      return IsPart(name) && name.starts_with(prefix + "-");
    };
    if (std::ranges::any_of(names, is_later)) continue;
    RETURN_IF_ERROR(RemoveUnfinished(folder, worker));
    for (const char* ending : {kEnded, kLock})
      RETURN_IF_ERROR(RemoveFile(In(folder, prefix, ending)));
  }
  ASSIGN_OR_RETURN(names, ListFolder(folder));
  const bool others_write = std::ranges::any_of(names, IsOurs);
  for (const std::string& name : names) {
    if ((name.starts_with(kOptions) || name.starts_with(kLabels)) && !others_write)
      RETURN_IF_ERROR(RemoveFile(In(folder, name)));
  }
  RETURN_IF_ERROR(RemoveFile(In(folder, kPublished)));
  ::rmdir(folder.c_str());
  return absl::OkStatus();
}

Manifest EmptyManifest(const std::string& folder, const std::string& version) {
  Manifest manifest;
  manifest.format = std::string(kTfrecordFormat.name);
  manifest.layout = std::string(kTfrecordFormat.layouts[0].name);
  manifest.tool = {{"version", version}};
  manifest.source_root = folder;
  manifest.options = {{"missing-part", "keep"}};  // a sample need not have every field
  return manifest;
}

}  // namespace

std::string PartsFolderOf(const std::string& dataset) {
  return StrCat(dataset.substr(0, dataset.find_last_not_of('/') + 1), ".parts");
}

std::string WorkerPrefix(uint32_t worker) { return absl::StrFormat("w%05u", worker); }

absl::StatusOr<std::vector<uint32_t>> Workers(const std::string& folder) {
  ASSIGN_OR_RETURN(std::vector<std::string> names, ListFolder(folder));
  std::sort(names.begin(), names.end());
  std::vector<uint32_t> workers;
  for (const std::string& name : names) {
    uint32_t worker = 0;
    if (name.ends_with(kLock) && absl::SimpleAtoi(name.substr(1, name.find('.') - 1), &worker) &&
        name == StrCat(WorkerPrefix(worker), kLock)) {
      workers.push_back(worker);
    }
  }
  return workers;
}

HeldLock::~HeldLock() {
  if (file_.is_open() && process_ == ::getpid()) ::flock(file_.descriptor(), LOCK_UN);
}

absl::StatusOr<std::optional<HeldLock>> LockWorker(const std::string& folder, uint32_t worker) {
  return Lock(In(folder, WorkerPrefix(worker), kLock), O_CREAT);
}

absl::Status WriteNewFile(const std::string& path, std::string_view bytes) {
  ASSIGN_OR_RETURN(const std::unique_ptr<StagedFile> file, Stage(path, bytes));
  RETURN_IF_ERROR(file->SyncData());
  return file->Publish(path);
}

absl::Status WritePart(const std::string& folder, const Part& part) {
  Json classes = Json::array();
  for (const std::string& name : part.classes) classes.push_back(PercentEscape(name));
  const Json facts = {{"records", part.records},
                      {"bytes", part.bytes},
                      {"xxh3_128", part.digest.ToHex()},
                      {"classes", std::move(classes)}};
  return WriteNewFile(In(folder, part.name, kFacts), facts.dump());
}

absl::StatusOr<std::vector<Part>> ReadParts(const std::string& folder) {
  ASSIGN_OR_RETURN(std::vector<std::string> names, ListFolder(folder));
  std::sort(names.begin(), names.end());
  std::vector<Part> parts;
  for (const std::string& name : names) {
    if (!IsPart(name)) continue;
    ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(In(folder, name), kMostFactsBytes));
    const Json facts = Json::parse(text, /*cb=*/nullptr, /*allow_exceptions=*/false);
    Part part;
    part.name = name.substr(0, name.size() - std::string_view(kFacts).size());
    bool whole = facts.is_object() && facts.size() == 4 && facts.contains("classes") &&
                 facts["classes"].is_array() &&
                 facts.value("records", Json()).is_number_unsigned() &&
                 facts.value("bytes", Json()).is_number_unsigned() &&
                 facts.value("xxh3_128", Json()).is_string();
    const std::optional<Digest> digest =
        whole ? ParseDigest(facts["xxh3_128"].get<std::string>()) : std::nullopt;
    whole = digest.has_value();
    for (const Json& each : whole ? facts["classes"] : Json::array()) {
      const std::optional<std::string> label =
          each.is_string() ? PercentUnescape(each.get<std::string>()) : std::nullopt;
      whole = whole && label.has_value();
      if (whole) part.classes.push_back(*label);
    }
    if (!whole) return absl::DataLossError(StrCat(In(folder, name), " is damaged"));
    part.records = facts["records"];
    part.bytes = facts["bytes"];
    part.digest = *digest;
    parts.push_back(std::move(part));
  }
  return parts;
}

absl::StatusOr<ShardIndex> OpenIndex(const std::string& folder, const Part& part) {
  ASSIGN_OR_RETURN(ShardIndex index, ShardIndex::Open(In(folder, part.name, kIndex), part.bytes));
  bool whole = index.records() == part.records;
  for (uint64_t record = 0; record < index.records(); ++record)
    whole = whole && index.label(record) < static_cast<int64_t>(part.classes.size());
  if (!whole)
    return absl::DataLossError(
        StrCat(In(folder, part.name, kIndex), " does not belong to its part"));
  return index;
}

absl::Status RemoveUnfinished(const std::string& folder, uint32_t worker) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(folder));
  const std::set<std::string> known(names.begin(), names.end());
  const std::string prefix = StrCat(WorkerPrefix(worker), "-");
  for (const std::string& name : names) {
    if (!name.starts_with(prefix) || !IsOurs(name)) continue;
    const std::string part = name.substr(0, name.find('.'));
    const bool finished = known.contains(StrCat(part, kFacts)) && !name.ends_with(kStage);
    if (!finished) RETURN_IF_ERROR(RemoveFile(In(folder, name)));
  }
  return absl::OkStatus();
}

absl::Status CheckClasses(const std::string& folder, const std::vector<Part>& parts,
                          const std::vector<std::string>& classes) {
  if (classes.empty()) return absl::OkStatus();
  const std::set<std::string> known(classes.begin(), classes.end());
  for (const Part& part : parts) {
    for (const std::string& name : part.classes) {
      if (known.contains(name)) continue;
      return absl::InvalidArgumentError(
          StrCat("samples in ", EscapeForTerminal(folder), " have the label ",
                 EscapeForTerminal(name), ", which is not among the ", classes.size(),
                 " classes that are given; give the classes of before, or remove that folder to "
                 "start again without its samples"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Part>> MakeDataset(const std::string& folder, const std::string& version,
                                              const std::vector<std::string>& classes) {
  ASSIGN_OR_RETURN(std::vector<Part> parts, ReadParts(folder));
  RETURN_IF_ERROR(CheckClasses(folder, parts, classes));
  uint64_t samples = 0;
  for (const Part& part : parts) {
    if (part.records > kMostSamples - samples) {
      return absl::UnimplementedError(
          StrCat("a dataset has at most ", kMostSamples, " samples; there are more here"));
    }
    samples += part.records;
  }
  Manifest manifest = EmptyManifest(folder, version);
  std::set<std::string> names;
  for (const Part& part : parts) names.insert(part.classes.begin(), part.classes.end());
  manifest.classes = classes.empty() ? NumberClasses(names) : classes;
  std::map<std::string, int64_t> numbers;
  for (const std::string& name : manifest.classes)
    numbers.emplace(name, static_cast<int64_t>(numbers.size()));
  std::vector<ShardIndex> indexes;
  for (const Part& part : parts) {
    ASSIGN_OR_RETURN(const ShardIndex index, OpenIndex(folder, part));
    std::vector<int64_t> labels;
    for (const std::string& name : part.classes) labels.push_back(numbers.at(name));
    ManifestShard shard;
    shard.name = StrCat(part.name, kShard);
    shard.split = kSplit;
    shard.bytes = part.bytes;
    shard.records = part.records;
    shard.xxh3_128 = part.digest;
    ASSIGN_OR_RETURN(shard.index,
                     Replace(folder, StrCat(part.name, kLabelledIndex), WithLabels(index, labels)));
    manifest.files.push_back({shard.name, shard.bytes, shard.xxh3_128});
    manifest.files.push_back(shard.index);
    manifest.counts.packed += shard.records;
    manifest.shards.push_back(std::move(shard));
    indexes.push_back(index);
  }
  if (manifest.counts.packed == 0) return absl::FailedPreconditionError("no sample was added");
  manifest.counts.seen = manifest.counts.packed;
  manifest.splits[std::string(kSplit)] = manifest.counts.packed;
  ASSIGN_OR_RETURN(const std::string order, OrderOfKeys(indexes));
  ASSIGN_OR_RETURN(FileEntry entry, Replace(folder, std::string(kRecordOrder), order));
  manifest.files.push_back(std::move(entry));
  std::ranges::sort(manifest.files, {}, &FileEntry::name);
  RETURN_IF_ERROR(manifest.Check());
  // It becomes `published`, which must be whole.
  const std::string path = In(folder, kManifestName);
  ASSIGN_OR_RETURN(const std::unique_ptr<StagedFile> file, Stage(path, manifest.ToJson()));
  RETURN_IF_ERROR(file->SyncData());
  RETURN_IF_ERROR(file->Replace(path));
  RETURN_IF_ERROR(SyncDirectory(folder));
  return parts;
}

void RemoveParts(const std::string& folder, const std::vector<Part>& parts,
                 const std::vector<uint32_t>& workers) {
  const std::string manifest = In(folder, kManifestName), published = In(folder, kPublished);
  // What fails leaves all parts, or `published`.
  const absl::StatusOr<std::optional<HeldLock>> held = Lock(manifest, 0);
  if (!held.ok() || !held->has_value() || ::rename(manifest.c_str(), published.c_str()) != 0 ||
      !SyncDirectory(folder).ok()) {
    return;
  }
  std::vector<std::string> names;
  for (const Part& part : parts) names.push_back(part.name);
  (void)RemovePublished(folder, names, workers);
}

absl::StatusOr<bool> EndRemoval(const std::string& folder) {
  const std::string path = In(folder, kPublished);
  const absl::StatusOr<std::optional<HeldLock>> held = Lock(path, 0);
  if (absl::IsNotFound(held.status())) return false;
  RETURN_IF_ERROR(held.status());
  if (!held->has_value()) {
    return absl::FailedPreconditionError(
        StrCat("the samples in ", EscapeForTerminal(folder),
               " are published, and another process removes them; try again when it has"));
  }
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, kMaxManifestBytes));
  const absl::StatusOr<Manifest> manifest = Manifest::Parse(text);
  if (!manifest.ok()) {
    return absl::DataLossError(
        StrCat(EscapeForTerminal(path), " is damaged (", manifest.status().message(),
               "); it says that the samples are published: remove the folder"));
  }
  std::vector<std::string> parts;
  for (const ManifestShard& shard : manifest->shards)
    parts.push_back(shard.name.substr(0, shard.name.size() - std::string_view(kShard).size()));
  ASSIGN_OR_RETURN(const std::vector<uint32_t> there, Workers(folder));
  std::vector<uint32_t> workers;
  std::vector<HeldLock> locks;
  for (const uint32_t worker : there) {
    ASSIGN_OR_RETURN(std::optional<HeldLock> lock, LockWorker(folder, worker));
    if (!lock.has_value()) continue;  // it comes, and does not yet write
    workers.push_back(worker);
    locks.push_back(*std::move(lock));
  }
  RETURN_IF_ERROR(RemovePublished(folder, parts, workers));
  return true;
}

}  // namespace shardpack
