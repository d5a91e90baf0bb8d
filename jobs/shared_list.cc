#include "jobs/shared_list.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "converters/listing/listing.h"
#include "converters/publishing/owned_folder.h"
#include "converters/publishing/pack_folder.h"
#include "converters/publishing/pack_names.h"
#include "converters/publishing/run_stage.h"
#include "converters/publishing/shard_claims.h"
#include "converters/publishing/shard_results.h"
#include "converters/sources/folder_parts.h"
#include "formats/io/escape.h"
#include "formats/io/exists.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/io/list_folder.h"
#include "formats/io/shell_quoted.h"
#include "formats/io/staged_file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

using absl::StrCat;
using nlohmann::json;

constexpr char kHead[] = "list.json", kSchema[] = "shardpack.list/2";
constexpr char kHash[] = "hash";  // of the other members
constexpr uint64_t kMaxHeadBytes = uint64_t{1} << 30;
constexpr std::chrono::milliseconds kLeastPause{20}, kMostPause{1000};

std::string PartName(size_t part) { return absl::StrFormat("part-%06d", part); }

// What all processes of a list agree on.
struct Head {
  std::string root;
  FolderSourceOptions options;
  FolderDivision division;
  std::vector<std::string> witnesses;  // in the root when the list was begun
};

json Escaped(const std::vector<std::string>& texts) {
  json list = json::array();
  for (const std::string& text : texts) list.push_back(PercentEscape(text));
  return list;
}

json OptionsJson(const FolderSourceOptions& options) {
  json fields = json::array();
  for (const Sidecar& each : options.sidecars)
    fields.push_back({PercentEscape(each.suffix), PercentEscape(each.field)});
  return {{"any_extension", options.any_extension},
          {"extensions", Escaped(options.extensions)},
          {"include", Escaped(options.include)},
          {"exclude", Escaped(options.exclude)},
          {"follow", options.follow},
          {"max_file_bytes", options.max_file_bytes},
          {"fields", std::move(fields)}};
}

std::string HashOf(const json& others) { return Xxh3_128(AsBytes(others.dump())).ToHex(); }

std::string ToText(const Head& head) {
  json parts = json::array();
  for (const FolderPart& part : head.division.parts) parts.push_back(Escaped(part));
  json value = {{"schema", kSchema},
                {"root", PercentEscape(head.root)},
                {"options", OptionsJson(head.options)},
                {"witnesses", Escaped(head.witnesses)},
                {"parts", std::move(parts)}};
  value[kHash] = HashOf(value);
  return value.dump() + "\n";
}

std::string Unescaped(const json& value) {
  std::optional<std::string> text = PercentUnescape(value.get_ref<const std::string&>());
  if (!text) throw std::invalid_argument("escape");
  return *std::move(text);
}

std::vector<std::string> UnescapedList(const json& values) {
  std::vector<std::string> texts;
  for (const json& value : values) texts.push_back(Unescaped(value));
  return texts;
}

absl::StatusOr<Head> ReadHead(const std::string& lists) {
  const std::string path = StrCat(lists, "/", kHead);
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, kMaxHeadBytes));
  try {
    json value = json::parse(text);
    if (value.at("schema") != kSchema) {
      return absl::InvalidArgumentError(
          StrCat(EscapeForTerminal(path), " was made by another version of pack; list again"));
    }
    const json hash = value.at(kHash);
    value.erase(kHash);
    if (hash != HashOf(value)) throw std::invalid_argument(kHash);
    Head head;
    head.root = Unescaped(value.at("root"));
    const json& options = value.at("options");
    head.options.any_extension = options.at("any_extension").get<bool>();
    head.options.extensions = UnescapedList(options.at("extensions"));
    head.options.include = UnescapedList(options.at("include"));
    head.options.exclude = UnescapedList(options.at("exclude"));
    head.options.follow = options.at("follow").get<bool>();
    head.options.max_file_bytes = options.at("max_file_bytes").get<uint64_t>();
    for (const json& each : options.at("fields"))
      head.options.sidecars.push_back({Unescaped(each.at(0)), Unescaped(each.at(1))});
    for (const json& part : value.at("parts")) head.division.parts.push_back(UnescapedList(part));
    head.witnesses = UnescapedList(value.at("witnesses"));
    if (!head.division.IsWhole()) throw std::invalid_argument("parts");
    if (head.witnesses.empty()) throw std::invalid_argument("witnesses");
    head.division.mark = Xxh3_128(AsBytes(text));
    return head;
  } catch (const std::bad_alloc&) {  // says nothing about the text
    throw;
  } catch (const std::exception&) {  // nlohmann's exceptions stop here
    return absl::DataLossError(
        StrCat(EscapeForTerminal(path), " is damaged; remove the folder, and list again"));
  }
}

// As they are typed.
std::string FlagsOf(const FolderSourceOptions& options) {
  std::string flags;
  const auto add = [&](std::string_view name, const std::string& value) {
    absl::StrAppend(&flags, " --", std::string(name), " ", ShellQuoted(value));
  };
  if (options.any_extension) {
    add("ext", "any");
  } else if (!options.extensions.empty()) {
    add("ext", absl::StrJoin(options.extensions, ","));
  }
  for (const std::string& glob : options.include) add("include", glob);
  for (const std::string& glob : options.exclude) add("exclude", glob);
  if (options.follow) absl::StrAppend(&flags, " --follow");
  if (options.max_file_bytes != FolderSourceOptions().max_file_bytes)
    add("max-file-size", StrCat(options.max_file_bytes));
  std::vector<std::string> fields;
  for (const Sidecar& each : options.sidecars)
    fields.push_back(StrCat(each.suffix, ":", each.field));
  if (!fields.empty()) add("fields", absl::StrJoin(fields, ","));
  return flags;
}

std::string JoinCommand(const std::string& lists, const Head& head) {
  return StrCat(TypedProgram(), " list ", ShellQuoted(head.root), FlagsOf(head.options),
                " --write ", ShellQuoted(lists), " --join");
}

// The folder of lists, as one process has it open.
class SharedLister {
 public:
  SharedLister(const SharedListRequest& request, IoPool& pool, std::atomic<uint64_t>& listed,
               const std::atomic<int>& stop, SharedListReport& report)
      : request_(request), pool_(pool), listed_(listed), stop_(stop), report_(report) {}

  absl::Status List() {
    ASSIGN_OR_RETURN(root_, OpenSourceFolder(request_.source));
    ASSIGN_OR_RETURN(witnesses_, FindWitnesses(root_));
    if (witnesses_.empty()) {
      return absl::FailedPreconditionError(
          StrCat("source ", EscapeForTerminal(root_.path), " holds nothing; is its disk mounted?"));
    }
    RETURN_IF_ERROR(Begin());
    ASSIGN_OR_RETURN(head_, FindHead());
    report_.root = head_.root;
    report_.parts = parts();
    RETURN_IF_ERROR(CheckWitnesses());
    WorkerOptions options{.join = true, .stale_seconds = request_.stale_seconds};
    ASSIGN_OR_RETURN(claims_, ShardClaims::Create(request_.lists, *stage_, options, parts()));
    ASSIGN_OR_RETURN(OwnedFolder folder, OwnedFolder::Open(request_.lists));
    folder_ = std::make_unique<OwnedFolder>(std::move(folder));
    lister_ = std::make_unique<FolderPartLister>(root_, request_.options, head_.division, pool_,
                                                 listed_, stop_);
    RETURN_IF_ERROR(ListParts());
    return SyncDirectory(request_.lists);
  }

 private:
  std::string PathOf(const std::string& name) const { return StrCat(request_.lists, "/", name); }
  size_t parts() const { return head_.division.parts.size(); }

  // What is read of a disk that is not there is not in a list.
  absl::Status CheckWitnesses() const {
    ASSIGN_OR_RETURN(bool any, AnyWitness(root_, head_.witnesses));
    for (const FolderPart& part : head_.division.parts) {
      if (any) break;
      ASSIGN_OR_RETURN(any, AnyWitness(root_, part));
    }
    if (any) return absl::OkStatus();
    const std::string lists = EscapeForTerminal(request_.lists);
    return absl::FailedPreconditionError(
        StrCat("source ", EscapeForTerminal(root_.path), " holds nothing of what it held when ",
               lists, " was begun, as ", EscapeForTerminal(head_.witnesses[0]),
               "; is its disk mounted? If it holds something else now, remove ", lists,
               " and list it again"));
  }

  absl::Status Begin() {
    std::error_code error;
    std::filesystem::create_directories(request_.lists, error);
    if (error) return IoStatus("create folder", request_.lists, error.value());
    ASSIGN_OR_RETURN(const bool begun, IsBegun());
    if (begun && !request_.join) {
      return absl::FailedPreconditionError(StrCat(
          EscapeForTerminal(request_.lists), " already holds a list; --join helps to finish it"));
    }
    for (const std::string_view name : {kPackFolder, kStageFolder})
      RETURN_IF_ERROR(MakeDirectory(PathOf(std::string(name))));
    ASSIGN_OR_RETURN(stage_, RunStage::Create(request_.lists));
    return stage_->TestFileSystem(
        "several processes cannot share lists in it safely. --write to a folder on another file "
        "system; or pack plan SRC, which needs no lists");
  }

  // Whether the folder holds a list; an error if it holds anything else.
  absl::StatusOr<bool> IsBegun() const {
    ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(request_.lists));
    const auto other = std::find_if(names.begin(), names.end(),
                                    [](const std::string& name) { return name != kPackFolder; });
    ASSIGN_OR_RETURN(const bool begun, HoldsList(request_.lists));  // it comes before its parts
    if (begun || other == names.end()) return begun;
    return absl::FailedPreconditionError(
        StrCat(EscapeForTerminal(request_.lists), " is not empty, and holds no list (first entry: ",
               EscapeForTerminal(*other), "); name another folder with --write"));
  }

  // The first process divides the source; the others take what it has found.
  absl::StatusOr<Head> FindHead() {
    absl::StatusOr<Head> head = ReadHead(request_.lists);
    if (absl::IsNotFound(head.status())) {
      const Head mine{root_.path,
                      request_.options,
                      {FindFolderParts(root_, request_.options, stop_)},
                      witnesses_};
      if (stop_ != 0) return absl::CancelledError("stopped by a signal");
      RETURN_IF_ERROR(Publish(kHead, ToText(mine)));
      head = ReadHead(request_.lists);
    }
    if (!head.ok()) return head.status();
    const std::string lists = EscapeForTerminal(request_.lists);
    if (head->root != root_.path) {
      return absl::FailedPreconditionError(StrCat(lists, " is the list of ",
                                                  EscapeForTerminal(head->root), ", not of ",
                                                  EscapeForTerminal(root_.path)));
    }
    if (OptionsJson(head->options) != OptionsJson(request_.options)) {
      return absl::FailedPreconditionError(
          StrCat(lists, " is listed with other flags; all processes must have the same"));
    }
    return head;
  }

  // Whole, and once: what is there already stays.
  absl::Status Publish(const std::string& name, std::string_view bytes) const {
    ASSIGN_OR_RETURN(const std::unique_ptr<StagedFile> staged,
                     stage_->StageWhole(kOfTheRun, bytes, /*sync=*/true));
    const absl::Status linked = staged->Link(PathOf(name));
    return absl::IsAlreadyExists(linked) ? absl::OkStatus() : linked;
  }

  absl::Status ListParts() {
    std::deque<uint32_t> waiting;
    const size_t count = parts();
    const size_t first = Xxh3_64(AsBytes(stage_->owner())) % count;
    for (size_t i = 0; i < count; ++i)
      waiting.push_back(static_cast<uint32_t>((first + i) % count));
    std::chrono::milliseconds pause = kLeastPause;
    while (!waiting.empty()) {
      const size_t before = waiting.size();
      std::deque<uint32_t> held;
      for (const uint32_t part : waiting) {
        if (stop_.load() != 0) return absl::CancelledError("stopped by a signal");
        ASSIGN_OR_RETURN(const bool done, ListIfFree(part));
        if (!done) held.push_back(part);
      }
      waiting = std::move(held);
      pause = waiting.size() < before ? kLeastPause : std::min(2 * pause, kMostPause);
      if (!waiting.empty()) std::this_thread::sleep_for(pause);
    }
    return absl::OkStatus();
  }

  // Whether the part is there, listed by any worker.
  absl::StatusOr<bool> IsListed(uint32_t part) const {
    const std::string name = PartName(part);
    const absl::StatusOr<std::string> begins = folder_->Read(name, kFolderPartHeadBytes);
    if (absl::IsNotFound(begins.status())) return false;
    if (!begins.ok()) return begins.status();
    const absl::Status ours = CheckFolderPart(*begins, head_.division, part);
    if (ours.ok()) return true;
    return NotThisPart(ours, PathOf(name), JoinCommand(request_.lists, head_));
  }

  // Whether the part is listed now.
  absl::StatusOr<bool> ListIfFree(uint32_t part) {
    ASSIGN_OR_RETURN(bool done, IsListed(part));
    if (done) return true;
    ASSIGN_OR_RETURN(const bool mine, claims_->Claim(part));
    if (!mine) return false;
    ASSIGN_OR_RETURN(done, IsListed(part));  // its holder may have finished it since
    if (done) return true;
    const uint64_t before = listed_;
    std::vector<UnreadFolder> unread;
    ASSIGN_OR_RETURN(const std::string bytes, lister_->List(part, &unread));
    RETURN_IF_ERROR(CheckWitnesses());
    RETURN_IF_ERROR(Publish(PartName(part), bytes));
    claims_->SetFinished(part, listed_ - before);
    ++report_.my_parts;
    for (UnreadFolder& each : unread)
      report_.unread.push_back({std::move(each.path), each.reason, PathOf(PartName(part))});
    return true;
  }

  const SharedListRequest& request_;
  IoPool& pool_;
  std::atomic<uint64_t>& listed_;
  const std::atomic<int>& stop_;
  SourceFolder root_;
  std::vector<std::string> witnesses_;  // in the root now
  Head head_;
  std::unique_ptr<OwnedFolder> folder_;  // of the lists
  std::unique_ptr<FolderPartLister> lister_;
  SharedListReport& report_;
  std::unique_ptr<RunStage> stage_;
  std::unique_ptr<ShardClaims> claims_;  // uses the stage, so it must go first
};

absl::Status NotComplete(const std::string& lists, const Head& head,
                         const std::set<uint32_t>& missing) {
  const bool one = missing.size() == 1;
  return absl::AbortedError(
      StrCat(EscapeForTerminal(lists), " is not complete: ", missing.size(), " of ",
             head.division.parts.size(), one ? " parts is" : " parts are", " not listed yet (",
             one ? "number " : "numbers ", ShardList(missing, 20), "). To list ",
             one ? "it" : "them", ":\n  ", JoinCommand(lists, head)));
}

}  // namespace

absl::StatusOr<bool> HoldsList(const std::string& lists) {
  return Exists(StrCat(lists, "/", kHead));
}

absl::Status ListShared(const SharedListRequest& request, IoPool& pool,
                        std::atomic<uint64_t>& listed, const std::atomic<int>& stop,
                        SharedListReport& report) {
  return SharedLister(request, pool, listed, stop, report).List();
}

absl::Status UseSharedList(const std::string& lists, PackRequest& request) {
  for (const char* flag : {"ext", "include", "exclude", "follow", "fields", "max-file-size",
                           "input-format", "root", "columns", "coco", "annotations"}) {
    if (!request.Given(flag)) continue;
    return absl::InvalidArgumentError(
        StrCat("--", flag, " is decided by the list; give it to pack list"));
  }
  absl::StatusOr<Head> head = ReadHead(lists);
  if (absl::IsNotFound(head.status())) {
    return absl::InvalidArgumentError(
        StrCat(EscapeForTerminal(lists),
               " holds no list; pack list SRC --write NEWFOLDER makes one in a new folder"));
  }
  if (!head.ok()) return head.status();
  std::vector<std::string> files;
  std::set<uint32_t> missing;
  for (uint32_t part = 0; part < head->division.parts.size(); ++part) {
    files.push_back(StrCat(lists, "/", PartName(part)));
    ASSIGN_OR_RETURN(const bool there, Exists(files.back()));
    if (!there) missing.insert(part);
  }
  if (!missing.empty()) return NotComplete(lists, *head, missing);
  std::string again = JoinCommand(lists, *head);
  request.paths = {head->root};
  request.input_format = "folder";
  request.plan.max_file_bytes = head->options.max_file_bytes;
  FolderSourceOptions& source = request.source;
  source.any_extension = head->options.any_extension;
  source.extensions = std::move(head->options.extensions);
  source.include = std::move(head->options.include);
  source.exclude = std::move(head->options.exclude);
  source.follow = head->options.follow;
  source.max_file_bytes = head->options.max_file_bytes;
  source.sidecars = std::move(head->options.sidecars);
  source.listed_parts = ListedParts{std::move(head->division), std::move(files), std::move(again)};
  return absl::OkStatus();
}

}  // namespace shardpack
