// CodecVersions: names and versions of the libraries that decode, convert and encode pixels.
//
//   for (const auto& [name, version] : CodecVersions()) std::cout << name << ' ' << version << '\n';
//
// Part of the digest of a plan that changes pixels, because other versions may produce other bytes.
#ifndef SHARDPACK_IMAGES_CODECS_CODEC_VERSIONS_H_
#define SHARDPACK_IMAGES_CODECS_CODEC_VERSIONS_H_

#include <map>
#include <string>

namespace shardpack {

std::map<std::string, std::string> CodecVersions();
// "giflib 5.2.1, lcms2 2.14, ..."
std::string CodecVersionsText();

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_CODECS_CODEC_VERSIONS_H_
