// JobWords: a command line of `pack` as a job runs it: with its report as JSON on stdout, and its
// progress as JSON on stderr.
//
//   JobWords({"validate", "shards"})   -> validate shards --json --progress=json
//
// Thread-safety: any thread.
// Errors: InvalidArgument for no words, and for verbs that only print for people.
#ifndef SHARDPACK_API_JOBS_JOB_WORDS_H_
#define SHARDPACK_API_JOBS_JOB_WORDS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace shardpack {

absl::StatusOr<std::vector<std::string>> JobWords(std::vector<std::string> typed);

}  // namespace shardpack

#endif  // SHARDPACK_API_JOBS_JOB_WORDS_H_
