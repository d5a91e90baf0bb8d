#include "converters/publishing/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <new>
#include <nlohmann/json.hpp>
#include <span>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "converters/publishing/conflict.h"
#include "formats/io/list_folder.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxJournalBytes = uint64_t{1} << 30;
constexpr std::string_view kLineBegin = "{\"facts\":[", kChecksum = ",\"line\":\"";

json ToJson(const FileEntry& entry) {
  return {{"name", entry.name}, {"bytes", entry.bytes}, {"xxh3_128", entry.xxh3_128.ToHex()}};
}

FileEntry FileEntryFrom(const json& value) {
  FileEntry entry;
  entry.name = value.at("name").get<std::string>();
  entry.bytes = value.at("bytes").get<uint64_t>();
  const std::optional<Digest> digest = ParseDigest(value.at("xxh3_128").get<std::string>());
  if (!digest) throw std::invalid_argument("digest");
  entry.xxh3_128 = *digest;
  return entry;
}

// The details of skips may quote file content; JSON requires UTF-8.
std::string Dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

void AddImageFacts(const ImageInfo& image, uint64_t bytes, DatasetFacts& into) {
  into.image_bytes += bytes;
  into.max_image_bytes = std::max(into.max_image_bytes, bytes);
  if (image.width == 0 || image.height == 0) return;
  const bool first = into.max_width == 0;
  into.min_width = first ? image.width : std::min(into.min_width, image.width);
  into.min_height = first ? image.height : std::min(into.min_height, image.height);
  into.max_width = std::max(into.max_width, image.width);
  into.max_height = std::max(into.max_height, image.height);
}

void MergeFacts(const DatasetFacts& from, DatasetFacts& into) {
  into.largest_record_bytes = std::max(into.largest_record_bytes, from.largest_record_bytes);
  if (from.image_formats.empty()) return;
  into.max_image_bytes = std::max(into.max_image_bytes, from.max_image_bytes);
  into.image_bytes += from.image_bytes;
  if (from.max_width > 0) {  // else the size of no image is known
    const bool first = into.max_width == 0;
    into.min_width = first ? from.min_width : std::min(into.min_width, from.min_width);
    into.min_height = first ? from.min_height : std::min(into.min_height, from.min_height);
  }
  into.max_width = std::max(into.max_width, from.max_width);
  into.max_height = std::max(into.max_height, from.max_height);
  for (const auto& [format, count] : from.image_formats) into.image_formats[format] += count;
  for (const auto& [change, count] : from.pixels) into.pixels[change] += count;
  for (const auto& [name, sum] : from.pixel_sums) into.pixel_sums[name] += sum;
}

std::string ToJournalLine(const ShardResult& result) {
  json skips = json::array();
  for (const Skip& skip : result.skips) {
    skips.push_back({skip.row, std::string(SkipReasonName(skip.reason)), skip.detail});
  }
  const DatasetFacts& facts = result.facts;
  json line = {
      {"shard", result.shard},
      {"file", ToJson(result.file)},
      {"index", ToJson(result.index)},
      {"records", result.records},
      {"sha256", result.sha256},
      {"skips", std::move(skips)},
      {"facts",
       {facts.largest_record_bytes, facts.max_image_bytes, facts.image_bytes, facts.min_width,
        facts.max_width, facts.min_height, facts.max_height, facts.image_formats, facts.pixels,
        facts.pixel_sums}},
  };
  if (result.pending) line["pending"] = true;
  if (result.plan) line["plan"] = result.plan->ToHex();
  if (result.times) line["times"] = result.times->ToHex();
  std::string text = Dump(line);
  text.pop_back();  // the closing brace comes after the checksum
  const std::string checksum = Xxh3_128(AsBytes(text)).ToHex();
  return absl::StrCat(text, std::string(kChecksum), checksum, "\"}\n");
}

namespace {

// Reads the parts that name a shard's files, in the order in which ToJournalLine writes them,
// without building a tree of the rest. False: the line may yet be one.
class FilesOfLine {
 public:
  explicit FilesOfLine(std::string_view text) : left_(text) {}

  bool Read(ShardResult& into) {
    // Facts, which come first, quote nothing.
    const size_t files = left_.find(",\"file\":{");
    if (files == std::string_view::npos) return false;
    left_.remove_prefix(files);
    ReadFile(",\"file\":{\"bytes\":", into.file);
    ReadFile(",\"index\":{\"bytes\":", into.index);
    into.pending = Skip(",\"pending\":true");
    if (Skip(",\"plan\":\"")) into.plan = Hex();
    Expect(",\"records\":");
    into.records = Number();
    Expect(",\"sha256\":\"");
    (void)Text();
    Expect(",\"shard\":");
    const uint64_t shard = Number();
    into.shard = static_cast<uint32_t>(shard);
    Expect(",\"skips\":[");
    // Quotes inside of texts are escaped.
    const size_t times = left_.rfind(",\"times\":\"");
    if (ok_ && times != std::string_view::npos) {
      left_.remove_prefix(times);
      Expect(",\"times\":\"");
      into.times = Hex();
    }
    return ok_ && shard <= std::numeric_limits<uint32_t>::max();
  }

 private:
  bool Skip(std::string_view known) {
    if (!left_.starts_with(known)) return false;
    left_.remove_prefix(known.size());
    return true;
  }
  void Expect(std::string_view known) { ok_ = ok_ && Skip(known); }
  uint64_t Number() {
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(left_.data(), left_.data() + left_.size(), number);
    ok_ = ok_ && error == std::errc();
    if (ok_) left_.remove_prefix(static_cast<size_t>(end - left_.data()));
    return number;
  }
  // Up to the next quote; a text with escapes is left to the whole parser.
  std::string_view Text() {
    const size_t end = left_.find('"');
    ok_ = ok_ && end != std::string_view::npos;
    const std::string_view text = ok_ ? left_.substr(0, end) : std::string_view();
    ok_ = ok_ && text.find('\\') == std::string_view::npos;
    if (ok_) left_.remove_prefix(end + 1);
    return text;
  }
  Digest Hex() {
    const std::optional<Digest> digest = ParseDigest(Text());
    ok_ = ok_ && digest;
    return digest.value_or(Digest{});
  }
  void ReadFile(std::string_view begin, FileEntry& into) {
    Expect(begin);
    into.bytes = Number();
    Expect(",\"name\":\"");
    into.name = std::string(Text());
    Expect(",\"xxh3_128\":\"");
    into.xxh3_128 = Hex();
    Expect("}");
  }

  std::string_view left_;
  bool ok_ = true;
};

}  // namespace

bool ParseJournalLine(std::string_view line, ShardResult* result, JournalParts parts) {
  const size_t cut = line.rfind(kChecksum);
  if (cut == std::string_view::npos) return false;
  const std::string_view rest = line.substr(cut + kChecksum.size());
  if (rest.size() != 34 || !rest.ends_with("\"}")) return false;
  const std::optional<Digest> checksum = ParseDigest(rest.substr(0, 32));
  if (!checksum || *checksum != Xxh3_128(AsBytes(line.substr(0, cut)))) return false;
  ShardResult files;
  const bool brief = FilesOfLine(line.substr(0, cut)).Read(files);
  if (brief && (files.pending || parts == JournalParts::kFiles)) {  // a pending line has no others
    *result = std::move(files);
    return true;
  }
  try {
    const json value = json::parse(std::string(line.substr(0, cut)) + "}");
    ShardResult parsed;
    parsed.shard = value.at("shard").get<uint32_t>();
    parsed.file = FileEntryFrom(value.at("file"));
    parsed.index = FileEntryFrom(value.at("index"));
    parsed.records = value.at("records").get<uint64_t>();
    parsed.sha256 = value.at("sha256").get<std::string>();
    for (const json& skip : value.at("skips")) {
      const std::optional<SkipReason> reason = ParseSkipReason(skip.at(1).get<std::string>());
      if (!reason) return false;
      parsed.skips.push_back({skip.at(0).get<uint64_t>(), *reason, skip.at(2).get<std::string>()});
    }
    const json& facts = value.at("facts");
    parsed.facts = {facts.at(0).get<uint64_t>(),
                    facts.at(1).get<uint64_t>(),
                    facts.at(2).get<uint64_t>(),
                    facts.at(3).get<uint32_t>(),
                    facts.at(4).get<uint32_t>(),
                    facts.at(5).get<uint32_t>(),
                    facts.at(6).get<uint32_t>(),
                    facts.at(7).get<std::map<std::string, uint64_t>>(),
                    facts.at(8).get<std::map<std::string, uint64_t>>(),
                    facts.at(9).get<std::map<std::string, uint64_t>>()};
    parsed.pending = value.contains("pending");
    if (value.contains("plan")) {
      parsed.plan = ParseDigest(value.at("plan").get<std::string>());
      if (!parsed.plan) return false;
    }
    if (value.contains("times")) {
      parsed.times = ParseDigest(value.at("times").get<std::string>());
      if (!parsed.times) return false;
    }
    *result = std::move(parsed);
    return true;
  } catch (const std::bad_alloc&) {  // says nothing about the line
    throw;
  } catch (const std::exception&) {  // nlohmann's exceptions stop here
    return false;
  }
}

bool IsJournalText(std::string_view text) {
  const bool begun = text.starts_with('\n');  // written by Journal::Open
  bool blank = true;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    // After a power failure, all or part of a file that was not flushed may be zeros.
    if (line.find_first_not_of('\0') == std::string_view::npos) continue;
    blank = false;
    ShardResult unused;
    const bool torn = begun && text.empty() && end == std::string_view::npos;
    if (line.starts_with(kLineBegin) || (torn && kLineBegin.starts_with(line)) ||
        ParseJournalLine(line, &unused))
      return true;
  }
  return blank;
}

bool IsJournalName(std::string_view name) {
  return name.starts_with("journal") && name.ends_with(".jsonl");
}

absl::StatusOr<std::unique_ptr<Journal>> Journal::Open(const std::string& path, bool sync) {
  const absl::Status not_ours =
      Conflict(path, "is not a journal of pack; move it away and run again");
  const int fd =
      ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
  if (fd < 0) return errno == ELOOP ? not_ours : IoStatus("open", path, errno);
  auto journal = std::unique_ptr<Journal>(new Journal(File(fd, path), sync));
  struct stat facts;
  if (::fstat(fd, &facts) != 0) return IoStatus("look at", path, errno);
  if (!S_ISREG(facts.st_mode)) return not_ours;
  const auto size = static_cast<uint64_t>(facts.st_size);
  std::string beginning(std::min(size, kJournalBeginningBytes), '\0');
  RETURN_IF_ERROR(journal->file_.ReadExactlyAt(
      0, std::as_writable_bytes(std::span(beginning.data(), beginning.size()))));
  if (!IsJournalText(beginning)) return not_ours;
  RETURN_IF_ERROR(journal->Write(""));
  return journal;
}

// A line torn by a kill, or by a disk that was full, must not swallow the next one.
absl::Status Journal::Write(const std::string& line) {
  const std::string text = torn_ ? "\n" + line : line;
  torn_ = true;
  RETURN_IF_ERROR(file_.Write(std::array{AsBytes(text)}));
  torn_ = false;
  return absl::OkStatus();
}

absl::Status Journal::Append(const ShardResult& result) {
  const std::string line = ToJournalLine(result);
  const std::lock_guard lock(mutex_);
  absl::Status written = Write(line);
  return written.ok() && sync_ ? file_.SyncData() : written;
}

// Not flushed: if a power failure loses this line but not the file, the file is reported, and
// stays.
absl::Status Journal::AppendPending(const ShardResult& result) {
  ShardResult pending;
  pending.shard = result.shard;
  pending.file = result.file;
  pending.index = result.index;
  pending.plan = result.plan;
  pending.pending = true;
  const std::string line = ToJournalLine(pending);
  const std::lock_guard lock(mutex_);
  return Write(line);
}

absl::StatusOr<std::vector<ShardResult>> JournalReader::ReadNew(const std::set<std::string>* only) {
  std::vector<ShardResult> results;
  RETURN_IF_ERROR(ReadEachNew(
      [&](ShardResult& line) { (line.pending ? pending_ : results).push_back(std::move(line)); },
      only));
  return results;
}

absl::Status JournalReader::ReadEachNew(const std::function<void(ShardResult&)>& take,
                                        const std::set<std::string>* only) {
  std::vector<std::string> names;
  if (only != nullptr) {
    names.assign(only->begin(), only->end());
  } else {
    ASSIGN_OR_RETURN(names, ListFolder(folder_));
  }
  std::string text;
  for (const std::string& name : names) {
    if (!IsJournalName(name) || name == except_) continue;
    absl::StatusOr<File> opened = File::OpenRead(absl::StrCat(folder_, "/", name));
    if (only != nullptr && absl::IsNotFound(opened.status())) continue;
    ASSIGN_OR_RETURN(const File file, std::move(opened));
    struct stat facts;
    if (::fstat(file.descriptor(), &facts) != 0) return IoStatus("look at", file.path(), errno);
    if (!S_ISREG(facts.st_mode)) {
      return Conflict(file.path(),
                      "is not a file, as pack's journals are; move it away and run again");
    }
    const auto size = static_cast<uint64_t>(facts.st_size);
    uint64_t& done = read_[name];
    if (size <= done) continue;
    if (size - done > kMaxJournalBytes) {
      return absl::OutOfRangeError(
          absl::StrCat(EscapeForTerminal(file.path()), " has ", size, " bytes"));
    }
    text.resize(size - done);
    ASSIGN_OR_RETURN(
        size_t got, file.ReadAt(done, std::as_writable_bytes(std::span(text.data(), text.size()))));
    std::string_view rest = std::string_view(text).substr(0, got);
    for (size_t end; (end = rest.find('\n')) != std::string_view::npos;
         rest.remove_prefix(end + 1), done += end + 1) {
      ShardResult result;
      if (!ParseJournalLine(rest.substr(0, end), &result, parts_)) continue;
      result.journal = name;
      take(result);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ShardResult>> ReadJournals(const std::string& pack_folder,
                                                      const std::set<std::string>* only,
                                                      JournalParts parts) {
  ASSIGN_OR_RETURN(std::vector<ShardResult> lines,
                   JournalReader(pack_folder, "", parts).ReadNew(only));
  return LastOfEqual(std::move(lines));
}

std::vector<ShardResult> LastOfEqual(std::vector<ShardResult> lines) {
  const auto what = [](const ShardResult& line) {
    const Digest none;
    return std::tuple(line.shard, line.file.xxh3_128, line.index.xxh3_128, line.plan.value_or(none),
                      line.times.value_or(none));
  };
  std::stable_sort(lines.begin(), lines.end(),
                   [&](const ShardResult& a, const ShardResult& b) { return what(a) < what(b); });
  std::vector<ShardResult> results;
  results.reserve(lines.size());
  for (ShardResult& line : lines) {
    const bool again = !results.empty() && what(results.back()) == what(line);
    if (again) results.pop_back();
    results.push_back(std::move(line));
  }
  return results;
}

}  // namespace shardpack
