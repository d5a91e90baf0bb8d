// ReadManifestText: parses a manifest's text into the struct. Internal to the manifest.
//
//   Envelope envelope;
//   std::string problem = ReadManifestText(json, manifest, envelope);   // "" = none
//
// Events of nlohmann's parser go directly into the struct. Anything outside the schema is rejected
// where it begins, so neither nesting nor unknown members cost memory.
//
// Errors: the problem, with the path of the member; exceptions of the parser and of allocation. The
// caller compares the text with the canonical form.
#ifndef SHARDPACK_FORMATS_CORE_MANIFEST_READER_H_
#define SHARDPACK_FORMATS_CORE_MANIFEST_READER_H_

#include <string>
#include <string_view>

#include "formats/core/manifest.h"
#include "formats/core/manifest_members.h"

namespace shardpack::manifest_internal {

std::string ReadManifestText(std::string_view json, Manifest& manifest, Envelope& envelope);

}  // namespace shardpack::manifest_internal

#endif  // SHARDPACK_FORMATS_CORE_MANIFEST_READER_H_
