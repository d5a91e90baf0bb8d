#include "converters/listing/composed_text.h"

#include <utf8proc.h>

#include <cstdlib>
#include <memory>

#include "formats/io/escape.h"

namespace shardpack {

void MakeComposed(std::string& text) {
  if (IsAscii(text)) return;
  utf8proc_uint8_t* composed = nullptr;
  const utf8proc_ssize_t bytes =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &composed,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&free)> owner(composed, &free);
  if (bytes >= 0) text.assign(reinterpret_cast<const char*>(composed), static_cast<size_t>(bytes));
}

}  // namespace shardpack
