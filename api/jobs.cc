// Jobs: commands of `pack` in a child process.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/errors.h"
#include "api/handles.h"
#include "api/job_handle.h"
#include "api/jobs/job_words.h"
#include "api/jobs/pack_program.h"
#include "api/options.h"
#include "api/shardpack.h"
#include "api/structs.h"
#include "formats/io/status_macros.h"

namespace shardpack::api {
namespace {

absl::StatusOr<PackJob*> UseJob(const shardpack_job* handle) {
  ASSIGN_OR_RETURN(const std::unique_ptr<PackJob>* const job, ContentOf(handle, "job"));
  if (!(*job)->InOwnProcess()) {
    return absl::FailedPreconditionError(
        "the job belongs to the process before a fork, which alone may wait for it");
  }
  return job->get();
}

absl::StatusOr<shardpack_job*> Start(const char* const* arguments, size_t count,
                                     const shardpack_job_options* given) {
  ASSIGN_OR_RETURN(const shardpack_job_options options, Known(given, "job options"));
  ASSIGN_OR_RETURN(std::vector<std::string> typed, TextsOf(arguments, count, "an argument"));
  ASSIGN_OR_RETURN(const std::vector<std::string> words, JobWords(std::move(typed)));
  ASSIGN_OR_RETURN(const std::string program, FindPack(shardpack_version()));
  return StartJob(program, words, options.folder == nullptr ? "" : options.folder, nullptr);
}

absl::Status FillProgress(const JobProgress& news, shardpack_job_progress* progress) {
  return Fill(progress, "progress", [&](shardpack_job_progress& all) {
    all.stage = TextOf(news.stage);
    all.done = news.done;
    all.total = news.total;
    all.bytes = news.bytes_in;
    all.total_bytes = news.bytes_total;
    all.seconds = news.seconds;
    all.seconds_left = news.eta_seconds;
  });
}

}  // namespace

absl::StatusOr<shardpack_job*> StartJob(const std::string& program,
                                        const std::vector<std::string>& words,
                                        const std::string& folder,
                                        std::function<void(int)> at_end) {
  ASSIGN_OR_RETURN(std::unique_ptr<PackJob> job,
                   PackJob::Start(program, words, folder, std::move(at_end)));
  return new shardpack_job(std::move(job));
}

}  // namespace shardpack::api

using namespace shardpack;       // NOLINT: the functions below are those of the C interface
using namespace shardpack::api;  // NOLINT

shardpack_code shardpack_job_start(const char* const* arguments, size_t count,
                                   const shardpack_job_options* options, shardpack_job** job,
                                   shardpack_error** error) {
  return Making(job, error, [&] { return Start(arguments, count, options); });
}

shardpack_code shardpack_job_poll(shardpack_job* job, int64_t wait_ms,
                                  shardpack_job_progress* progress, shardpack_error** error) {
  return Guarded(error, [&]() -> absl::StatusOr<shardpack_code> {
    RETURN_IF_ERROR(CheckWait(wait_ms));
    ASSIGN_OR_RETURN(PackJob* const used, UseJob(job));
    JobProgress news;
    // Before the wait: the struct may be refused.
    if (progress != nullptr) RETURN_IF_ERROR(FillProgress(news, progress));
    const PackJob::Seen seen = used->Poll(wait_ms, progress == nullptr ? nullptr : &news);
    if (progress != nullptr) RETURN_IF_ERROR(FillProgress(news, progress));
    return seen == PackJob::Seen::kEnd ? SHARDPACK_OK : SHARDPACK_WAIT;
  });
}

void shardpack_job_cancel(shardpack_job* job) {
  Guarded(nullptr, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(PackJob* const used, UseJob(job));
    used->Cancel();
    return absl::OkStatus();
  });
}

int32_t shardpack_job_exit_code(const shardpack_job* job) {
  int32_t code = -1;
  Guarded(nullptr, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(PackJob* const used, UseJob(job));
    code = used->exit_code();
    return absl::OkStatus();
  });
  return code;
}

shardpack_code shardpack_job_result_json(const shardpack_job* job, char** json,
                                         shardpack_error** error) {
  if (json != nullptr) *json = nullptr;
  return Guarded(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(PackJob* const used, UseJob(job));
    if (!used->ended()) return absl::FailedPreconditionError("the job has not ended yet");
    if (used->result().empty()) return absl::ResourceExhaustedError("no memory for the result");
    return GiveText(used->result(), json);
  });
}

void shardpack_job_release(shardpack_job* job) { Release(job); }
