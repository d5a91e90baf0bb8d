// Writers: samples that a program makes, left in parts for `pack`.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "api/errors.h"
#include "api/handles.h"
#include "api/job_handle.h"
#include "api/jobs/job_words.h"
#include "api/jobs/pack_program.h"
#include "api/options.h"
#include "api/shardpack.h"
#include "api/structs.h"
#include "api/writing/part_writer.h"
#include "api/writing/parts_folder.h"
#include "api/writing/target_rule.h"
#include "formats/core/manifest.h"
#include "formats/core/sample.h"
#include "formats/io/error_facts.h"
#include "formats/io/escape.h"
#include "formats/io/exists.h"
#include "formats/io/file.h"
#include "formats/io/signals_blocked.h"
#include "formats/io/status_macros.h"

namespace shardpack::api {

struct OpenWriter {
  const pid_t process = ::getpid();
  std::string out, parts;
  std::vector<std::string> arguments, classes;
  std::set<std::string, std::less<>> known_classes;
  uint32_t worker = 0, workers = 1;
  std::shared_ptr<PartWriter> writer;
  std::optional<TargetRule> rule;
  bool published = false;  // what was there, by a finish that was killed since
  bool finished = false;
  std::weak_ptr<void> job;  // there until the job of the finish has ended
};

// In a forked child the file and the lock are the parent's.
struct EndInOwnProcess {
  void operator()(OpenWriter* open) const {
    if (open->process == ::getpid()) delete open;
  }
};
using OwnedWriter = std::unique_ptr<OpenWriter, EndInOwnProcess>;

}  // namespace shardpack::api

struct shardpack_writer : shardpack::api::Handle<shardpack::api::OwnedWriter> {
  using Handle::Handle;
};

namespace shardpack::api {
namespace {

constexpr uint32_t kMostWorkers = 65536;
constexpr char kOverwrite[] = "--overwrite";

absl::StatusOr<OpenWriter*> UseWriter(const shardpack_writer* handle) {
  ASSIGN_OR_RETURN(const OwnedWriter* const writer, ContentOf(handle, "writer"));
  if ((*writer)->process == ::getpid()) return writer->get();
  return absl::FailedPreconditionError(
      "the writer belongs to the process before a fork; open one after, as another worker");
}

absl::Status CheckOut(const OpenWriter& open) {
  const std::string name =
      std::filesystem::path(open.out.substr(0, open.out.find_last_not_of('/') + 1)).filename();
  if (name.empty() || name == "." || name == "..")
    return absl::InvalidArgumentError(
        "the path of the dataset must end with the name of its folder");
  const auto is_dataset = [](const std::string& folder) {
    return Exists(absl::StrCat(folder, "/", std::string(kManifestName)));
  };
  ASSIGN_OR_RETURN(const bool there, is_dataset(open.out));
  if (!there || std::ranges::find(open.arguments, kOverwrite) != open.arguments.end())
    return absl::OkStatus();
  // A finish was begun, and its process may have been killed: `pack` then knows whether the dataset
  // is of these samples.
  ASSIGN_OR_RETURN(const bool begun, is_dataset(open.parts));
  if (begun) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(EscapeForTerminal(open.out),
                                               " is a dataset already; the argument ", kOverwrite,
                                               " lets the finish replace it"));
}

absl::Status KnowClasses(OpenWriter& open) {
  for (const std::string& name : open.classes) {
    if (name.empty() || name.size() > kMostLabelBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the class ", EscapeForTerminal(name), " must have 1 to ", kMostLabelBytes, " bytes"));
    }
    if (!open.known_classes.insert(name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("the class ", EscapeForTerminal(name), " is given twice"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<shardpack_writer*> MakeWriter(const char* path,
                                             const shardpack_writer_options* given) {
  RETURN_IF_ERROR(NotNull(path, "path"));
  ASSIGN_OR_RETURN(const shardpack_writer_options options, Known(given, "writer options"));
  OwnedWriter open(new OpenWriter);
  ASSIGN_OR_RETURN(open->arguments,
                   TextsOf(options.arguments, options.argument_count, "an argument"));
  open->workers = std::max(options.workers, 1u);
  open->worker = options.worker;
  open->rule.emplace(open->arguments);
  if (open->worker >= open->workers || open->workers > kMostWorkers) {
    return absl::InvalidArgumentError(absl::StrCat("worker ", open->worker, " of ", open->workers,
                                                   ": workers count from 0, and there are at most ",
                                                   kMostWorkers));
  }
  if (*path == '\0') return absl::InvalidArgumentError("the path of the dataset is empty");
  ASSIGN_OR_RETURN(open->classes, TextsOf(options.classes, options.class_count, "a class"));
  RETURN_IF_ERROR(KnowClasses(*open));
  // The working folder may be another one by the time of the finish.
  ASSIGN_OR_RETURN(open->out, AbsolutePath(path));
  open->parts = PartsFolderOf(open->out);
  ASSIGN_OR_RETURN(open->published, EndRemoval(open->parts));
  RETURN_IF_ERROR(CheckOut(*open));
  ASSIGN_OR_RETURN(open->writer, PartWriter::Open(open->parts, open->worker));
  if (!open->classes.empty()) {
    ASSIGN_OR_RETURN(const std::vector<Part> parts, ReadParts(open->parts));
    RETURN_IF_ERROR(CheckClasses(open->parts, parts, open->classes));
  }
  return new shardpack_writer(std::move(open));
}

// The image comes first; and so that the order of the others does not matter either, they are
// sorted.
bool ComesFirst(std::string_view a, std::string_view b) {
  return std::pair(a != kImageField, a) < std::pair(b != kImageField, b);
}

absl::Status CheckAndAdd(const OpenWriter& open, std::string_view key,
                         std::optional<std::string_view> label, std::span<const FieldView> fields) {
  if (label && !open.classes.empty() && !open.known_classes.contains(*label)) {
    return absl::InvalidArgumentError(absl::StrCat("the label ", EscapeForTerminal(*label),
                                                   " is not among the ", open.classes.size(),
                                                   " classes that the writer was opened with"));
  }
  RETURN_IF_ERROR(open.rule->Check(key, label.has_value(), fields));
  return open.writer->Add(key, label, fields);
}

bool IsOfTheSample(const absl::Status& error) {
  return absl::IsInvalidArgument(error) || absl::IsAlreadyExists(error);
}

absl::Status AddSample(const OpenWriter& open, std::string_view key,
                       std::optional<std::string_view> label, std::span<const FieldView> fields) {
  if (open.finished) return absl::FailedPreconditionError("the writer has been finished");
  absl::Status added = CheckAndAdd(open, key, label, fields);
  return IsOfTheSample(added) ? WithFacts(added, {.key = std::string(key)}) : added;
}

absl::Status Add(shardpack_writer* handle, const char* key, size_t key_bytes, const char* label,
                 const shardpack_field* fields, size_t field_count) {
  ASSIGN_OR_RETURN(OpenWriter* const open, UseWriter(handle));
  RETURN_IF_ERROR(NotNull(key, "key"));
  RETURN_IF_ERROR(NotNull(fields, "fields"));
  std::vector<FieldView> views;
  for (size_t n = 0; n < field_count; ++n) {
    const absl::Status given =
        fields[n].bytes > 0 ? NotNull(fields[n].data, "data of a field") : absl::OkStatus();
    if (!given.ok()) return WithFacts(given, {.key = std::string(key, key_bytes)});
    views.push_back({fields[n].name == nullptr ? kImageField : std::string_view(fields[n].name),
                     {static_cast<const std::byte*>(fields[n].data), fields[n].bytes}});
  }
  std::ranges::stable_sort(views, ComesFirst, &FieldView::name);
  return AddSample(*open, std::string_view(key, key_bytes),
                   label == nullptr ? std::nullopt : std::optional<std::string_view>(label), views);
}

// Columns of shardpack_samples before those of further fields, and the length of a field that a
// sample does not have.
constexpr size_t kKeyColumn = 0, kLabelColumn = 1, kImageColumn = 2, kFirstField = 3;
constexpr uint64_t kNoField = ~uint64_t{0};

// The columns of fields in the order in which they are added, by name.
absl::StatusOr<std::vector<std::pair<std::string, size_t>>> ColumnsOf(
    const shardpack_samples& samples) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names,
                   TextsOf(samples.fields, samples.field_count, "the name of a field"));
  std::vector<std::pair<std::string, size_t>> columns = {{std::string(kImageField), kImageColumn}};
  for (const std::string& name : names)
    columns.emplace_back(name, columns.size() - 1 + kFirstField);
  std::ranges::stable_sort(columns, ComesFirst, &std::pair<std::string, size_t>::first);
  return columns;
}

// Before the first sample is added.
absl::Status CheckLengths(const shardpack_samples& samples, size_t columns) {
  if (samples.count > 0) RETURN_IF_ERROR(NotNull(samples.lengths, "lengths"));
  if (samples.byte_count > 0) RETURN_IF_ERROR(NotNull(samples.bytes, "bytes"));
  uint64_t left = samples.byte_count;
  for (uint64_t row = 0; row < samples.count; ++row) {
    for (size_t column = 0; column < columns; ++column) {
      const uint64_t length = samples.lengths[row * columns + column];
      if (length == kNoField && column >= kFirstField) continue;
      if (length > left)
        return absl::InvalidArgumentError("lengths add up to more than byte_count");
      left -= length;
    }
  }
  if (left == 0) return absl::OkStatus();
  return absl::InvalidArgumentError("lengths add up to less than byte_count");
}

absl::Status AddMany(shardpack_writer* handle, const shardpack_samples* given) {
  ASSIGN_OR_RETURN(OpenWriter* const open, UseWriter(handle));
  RETURN_IF_ERROR(NotNull(given, "samples"));
  ASSIGN_OR_RETURN(const shardpack_samples samples, Known(given, "samples"));
  ASSIGN_OR_RETURN(const auto columns, ColumnsOf(samples));
  const size_t stride = kFirstField + samples.field_count;
  RETURN_IF_ERROR(CheckLengths(samples, stride));
  absl::Status refused;
  std::vector<std::string_view> values(stride);
  std::vector<FieldView> fields;
  const char* at = static_cast<const char*>(samples.bytes);
  for (uint64_t row = 0; row < samples.count; ++row) {
    const uint64_t* const lengths = samples.lengths + row * stride;
    for (size_t column = 0; column < stride; ++column) {
      values[column] =
          lengths[column] == kNoField ? std::string_view() : std::string_view(at, lengths[column]);
      at += values[column].size();
    }
    fields.clear();
    for (const auto& [name, column] : columns) {
      if (lengths[column] != kNoField) fields.push_back({name, AsBytes(values[column])});
    }
    const std::string_view label = values[kLabelColumn];
    absl::Status added =
        AddSample(*open, values[kKeyColumn],
                  label.empty() ? std::nullopt : std::optional<std::string_view>(label), fields);
    if (added.ok()) continue;
    if (!IsOfTheSample(added)) return added;
    if (refused.ok()) refused = std::move(added);
  }
  return refused;
}

// Each other worker has been there and is gone, also one of a number that there is no more; while
// this is held, none comes back.
absl::StatusOr<std::vector<HeldLock>> LockOthers(const OpenWriter& open,
                                                 const std::vector<uint32_t>& workers) {
  std::vector<HeldLock> locks;
  for (const uint32_t worker : workers) {
    if (worker == open.worker) continue;
    const std::string name = absl::StrCat("worker ", worker, " of ", open.workers);
    ASSIGN_OR_RETURN(std::optional<HeldLock> lock, LockWorker(open.parts, worker));
    if (!lock.has_value()) {
      return absl::FailedPreconditionError(
          absl::StrCat(name, " is still writing; it has to be released first"));
    }
    locks.push_back(*std::move(lock));
  }
  for (uint32_t worker = 0; worker < open.workers; ++worker) {
    if (!std::ranges::binary_search(workers, worker)) {
      return absl::FailedPreconditionError(
          absl::StrCat("worker ", worker, " of ", open.workers, " has not begun"));
    }
  }
  return locks;
}

// The samples of a finish that was killed since are not missing.
absl::Status CheckPublished(const OpenWriter& open) {
  if (!open.published) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<Part> parts, ReadParts(open.parts));
  if (!parts.empty()) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat(EscapeForTerminal(open.out),
                   " is published already: what a finish that was killed had left of its samples ",
                   "is removed, and no other was added"));
}

// Arguments such as --dry-run and --help end a job well, without a dataset.
bool IsMadeOf(const std::string& dataset, const std::string& source) {
  const absl::StatusOr<Manifest> manifest = Manifest::Read(dataset);
  if (!manifest.ok()) return false;
  const auto found = manifest->options.find("dataset");
  return found != manifest->options.end() && found->second == source;
}

// On another thread: it starts a program, and waits for it.
std::future<absl::StatusOr<std::string>> FindPackAside() {
  const SignalsBlocked blocked;
  return std::async(std::launch::async, [] { return FindPack(shardpack_version()); });
}

absl::StatusOr<shardpack_job*> Finish(shardpack_writer* handle) {
  ASSIGN_OR_RETURN(OpenWriter* const open, UseWriter(handle));
  if (!open->job.expired()) {
    return absl::FailedPreconditionError(
        "the job of this writer's finish has not ended; another finish would change what it reads");
  }
  if (open->finished) {
    ASSIGN_OR_RETURN(const bool left, Exists(open->parts));
    ASSIGN_OR_RETURN(const bool published,
                     Exists(absl::StrCat(open->out, "/", std::string(kManifestName))));
    if (!left && published) {
      return WithFacts(absl::AlreadyExistsError(absl::StrCat(
                           EscapeForTerminal(open->out), " was published by this writer's finish")),
                       {.path = open->out});
    }
  }
  RETURN_IF_ERROR(open->writer->Flush());
  RETURN_IF_ERROR(CheckPublished(*open));
  ASSIGN_OR_RETURN(std::vector<uint32_t> workers, Workers(open->parts));
  ASSIGN_OR_RETURN(std::vector<HeldLock> others, LockOthers(*open, workers));
  std::future<absl::StatusOr<std::string>> found = FindPackAside();
  ASSIGN_OR_RETURN(std::vector<Part> parts,
                   MakeDataset(open->parts, shardpack_version(), open->classes));
  ASSIGN_OR_RETURN(const Manifest manifest, Manifest::Read(open->parts));
  std::vector<std::string> typed = {"convert"};
  typed.insert(typed.end(), open->arguments.begin(), open->arguments.end());
  typed.push_back(absl::StrCat("--out=", open->out));
  typed.insert(typed.end(), {"--", open->parts});
  ASSIGN_OR_RETURN(const std::vector<std::string> words, JobWords(std::move(typed)));
  ASSIGN_OR_RETURN(const std::string program, found.get());
  const auto locks = std::make_shared<std::vector<HeldLock>>(std::move(others));
  ASSIGN_OR_RETURN(
      shardpack_job* const job,
      StartJob(program, words, "",
               [folder = open->parts, out = open->out, made_of = IdentityText(manifest.Identity()),
                own = open->writer, parts = std::move(parts), workers = std::move(workers),
                locks](int exit_code) {
                 if (exit_code == 0 && IsMadeOf(out, made_of)) RemoveParts(folder, parts, workers);
               }));
  open->finished = true;
  open->job = locks;
  return job;
}

}  // namespace
}  // namespace shardpack::api

using namespace shardpack;       // NOLINT: the functions below are those of the C interface
using namespace shardpack::api;  // NOLINT

shardpack_code shardpack_writer_open(const char* path, const shardpack_writer_options* options,
                                     shardpack_writer** writer, shardpack_error** error) {
  return Making(writer, error, [&] { return MakeWriter(path, options); });
}

shardpack_code shardpack_writer_add(shardpack_writer* writer, const char* key, size_t key_bytes,
                                    const char* label, const shardpack_field* fields,
                                    size_t field_count, shardpack_error** error) {
  return Guarded(error, [&] { return Add(writer, key, key_bytes, label, fields, field_count); });
}

shardpack_code shardpack_writer_add_many(shardpack_writer* writer, const shardpack_samples* samples,
                                         shardpack_error** error) {
  return Guarded(error, [&] { return AddMany(writer, samples); });
}

shardpack_code shardpack_writer_has(const shardpack_writer* writer, const char* key,
                                    size_t key_bytes, shardpack_error** error) {
  return Guarded(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(OpenWriter* const open, UseWriter(writer));
    RETURN_IF_ERROR(NotNull(key, "key"));
    const std::string_view name(key, key_bytes);
    if (open->writer->Has(name)) return absl::OkStatus();
    return WithFacts(absl::NotFoundError(absl::StrCat(
                         "no sample ", EscapeForTerminal(std::string(name)), " is safe on disk")),
                     {.key = std::string(name)});
  });
}

shardpack_code shardpack_writer_flush(shardpack_writer* writer, shardpack_error** error) {
  return Guarded(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(OpenWriter* const open, UseWriter(writer));
    return open->writer->Flush();
  });
}

shardpack_code shardpack_writer_finish(shardpack_writer* writer, shardpack_job** job,
                                       shardpack_error** error) {
  return Making(job, error, [&] { return Finish(writer); });
}

void shardpack_writer_release(shardpack_writer* writer) { Release(writer); }
