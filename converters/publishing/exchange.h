// Exchange: how a dataset that --overwrite has built beside OUT takes OUT's place, and the old one
// goes.
//
//   absl::Status possible = CheckNotMounted("OUT");               // before anything is built
//   absl::Status known = TryExchange(*beside, "OUT");             // the same, of the file system
//   absl::Status marked = MarkReplaced(*out, note.mark, true);    // and the note in OUT.pack-new
//   absl::Status done = ExchangeFolders("OUT.pack-new", "OUT", "OUT");
//   absl::StatusOr<bool> gone = FinishReplacement("OUT", "OUT.pack-new");   // also after a kill
//
// Before the exchange both datasets get one random mark: the old one in `.pack/replaced-by`, the
// new one in `.pack/replaced`, with the names of the old one's files. Whatever lies beside OUT
// later, be it by the hand of the user, is emptied only if it bears the mark that OUT names. The
// mark goes last, so that the next run finishes what a killed one began.
//
// Thread-safety: functions; under the lock of OUT.
// Errors: FailedPrecondition (exit 5) with another way on, where folders cannot be exchanged, and
// where the old dataset holds what pack has not made; I/O Status.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_EXCHANGE_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_EXCHANGE_H_

#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/publishing/owned_folder.h"

namespace shardpack {

// What kReplacedName holds.
struct ReplacedNote {
  std::string mark;
  std::set<std::string> names;
};
std::string NewMark();
std::string ReplacedText(const ReplacedNote& note);
// Whether the text is that of a note of an exchange, of either dataset.
bool IsReplacedText(std::string_view text);

// What kReplacesName holds: the name of OUT as far as it can be that of a file, and a hash of it,
// by which it is told from what a user has written there.
std::string ReplacesText(const std::string& out);
bool IsReplacesText(std::string_view text);

// A mount point cannot be exchanged, nor a volume of its own. Ok when nothing is there.
absl::Status CheckNotMounted(const std::string& path);
// Whether the file system can exchange folders, by two empty ones in the stage of `beside`, which
// are removed. `out` is named in errors, here and below.
absl::Status TryExchange(const OwnedFolder& beside, const std::string& out);

// Marks the dataset that is about to be replaced. `.pack` is there.
absl::Status MarkReplaced(const OwnedFolder& out, const std::string& mark, bool sync);
absl::Status ExchangeFolders(const std::string& one, const std::string& other,
                             const std::string& out);

// True after an exchange whose old dataset may still be there.
absl::StatusOr<bool> IsReplacement(const std::string& dataset);
// Removes the old dataset, which lies in `old` now. False when what lies there is not that dataset:
// then nothing was touched.
absl::StatusOr<bool> FinishReplacement(const std::string& dataset, const std::string& old);
// What the user is told then.
std::string NotTheReplaced(const std::string& path);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_EXCHANGE_H_
