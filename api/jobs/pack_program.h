// FindPack: the program `pack` that jobs start.
//
//   absl::StatusOr<std::string> pack = FindPack("0.2.0");          // its path
//
// $SHARDPACK_PACK is that program or an error. Without it: `bin/pack`, then `../bin/pack`, from the
// folder of this library, then the folders of $PATH. Each is asked for its version: one of another
// version, and another tool of that name, is passed over.
//
// Thread-safety: any thread that may read the environment.
// Errors: NotFound with the places where it was looked for; Unimplemented if there are only
// programs of other versions, or $SHARDPACK_PACK is one, naming both versions; DeadlineExceeded if
// $SHARDPACK_PACK does not answer; those of the system if it can start nothing.
#ifndef SHARDPACK_API_JOBS_PACK_PROGRAM_H_
#define SHARDPACK_API_JOBS_PACK_PROGRAM_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace shardpack {

absl::StatusOr<std::string> FindPack(std::string_view version);

}  // namespace shardpack

#endif  // SHARDPACK_API_JOBS_PACK_PROGRAM_H_
