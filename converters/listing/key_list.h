// KeyList: a text that names samples of a dataset by their keys, one a line, to leave them out.
//
//   std::string text = KeyListText(IdentityText(dataset.identity()), {"cat/1", "cat/2"});
//   absl::StatusOr<KeyList> list = ParseKeyList(text, "keys.txt");   // list->keys.size() == 2
//
// Lines that begin with # are comments: the first says what the list is, the second which dataset
// it was made for, the third how many keys were written. Keys have %XX where they have control
// characters, %, or bytes that are not UTF-8, and %23 for a # at the beginning.
//
// Lifetime: a plain value.
// Thread-safety: pure.
// Errors: InvalidArgument, naming the list, and the line, for a list without a key that does not
// say so itself, and for a line that is not a key.
#ifndef SHARDPACK_CONVERTERS_LISTING_KEY_LIST_H_
#define SHARDPACK_CONVERTERS_LISTING_KEY_LIST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace shardpack {

inline constexpr std::string_view kKeyListMark = "# pack dups: keys to leave out, one a line\n";

struct KeyList {
  std::string file;                 // for messages
  std::string dataset;              // its identity as text; empty if the list does not say it
  std::optional<uint64_t> written;  // the number of keys, as the list says it
  std::vector<std::string> keys;
};

std::string KeyListText(const std::string& identity, const std::vector<std::string>& keys);
absl::StatusOr<KeyList> ParseKeyList(std::string_view text, const std::string& file);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_KEY_LIST_H_
