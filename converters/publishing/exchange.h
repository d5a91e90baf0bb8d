// Exchange: swaps a dataset that --overwrite has built beside OUT with OUT, and removes the old
// one.
//
//   absl::Status possible = CheckNotMounted("OUT");               // before anything is built
//   absl::Status known = TryExchange(*beside, "OUT");             // the same, of the file system
//   absl::Status marked = MarkReplaced(*out, note.mark, true);    // and the note in OUT.pack-new
//   absl::Status done = ExchangeFolders("OUT.pack-new", "OUT", "OUT");
//   absl::StatusOr<bool> gone = FinishReplacement("OUT", "OUT.pack-new");   // also after a kill
//
// Before the exchange both datasets get the same random mark: the old one in `.pack/replaced-by`,
// the new one in `.pack/replaced`, along with the names of the old one's files. A folder found
// beside OUT later, even one that the user put there, is emptied only if it bears the mark that OUT
// names. The mark is removed last, so that the next run finishes what a killed one began.
//
// Thread-safety: functions, called under the lock of OUT.
// Errors: FailedPrecondition (exit 5), with an alternative, if folders cannot be exchanged, or the
// old dataset holds files that pack did not make; I/O Status.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_EXCHANGE_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_EXCHANGE_H_

#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/publishing/owned_folder.h"

namespace shardpack {

// Content of kReplacedName.
struct ReplacedNote {
  std::string mark;
  std::set<std::string> names;
};
std::string NewMark();
std::string ReplacedText(const ReplacedNote& note);
// Whether the text is a note of an exchange, in either dataset.
bool IsReplacedText(std::string_view text);

// Content of kReplacesName: the name of OUT, as far as a file's name can hold it, and a hash of it
// that distinguishes this text from one that a user wrote there.
std::string ReplacesText(const std::string& out);
bool IsReplacesText(std::string_view text);

// Neither a mount point nor a separate volume can be exchanged. Ok when nothing is there.
absl::Status CheckNotMounted(const std::string& path);
// Checks that the file system can exchange folders, with two empty ones in the stage of `beside`,
// which it then removes. Errors name `out`, here and below.
absl::Status TryExchange(const OwnedFolder& beside, const std::string& out);

// Marks the dataset that is about to be replaced. `.pack` must exist.
absl::Status MarkReplaced(const OwnedFolder& out, const std::string& mark, bool sync);
absl::Status ExchangeFolders(const std::string& one, const std::string& other,
                             const std::string& out);

// True after an exchange whose old dataset may still exist.
absl::StatusOr<bool> IsReplacement(const std::string& dataset);
// Removes the old dataset, which is now in `old`. False, with nothing touched, if `old` is not that
// dataset.
absl::StatusOr<bool> FinishReplacement(const std::string& dataset, const std::string& old);
// What to report in that case.
std::string NotTheReplaced(const std::string& path);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_EXCHANGE_H_
