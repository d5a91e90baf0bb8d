#include "formats/core/manifest.h"

#include <algorithm>
#include <exception>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "formats/core/manifest_defect.h"
#include "formats/core/manifest_members.h"
#include "formats/core/manifest_reader.h"
#include "formats/io/error_facts.h"
#include "formats/io/escape.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

using manifest_internal::Envelope;
using manifest_internal::Member;
using manifest_internal::MembersOf;
using manifest_internal::Object;
using manifest_internal::Target;
using Json = nlohmann::json;  // its objects are sorted maps

constexpr char kDefectUrl[] = "shardpack/manifest-defect";

Json FromMembers(const Object& members);

Json ToValue(const std::string& text) { return PercentEscape(text); }
Json ToValue(const Digest& digest) { return digest.ToHex(); }
template <typename Number>
Json ToValue(Number number) requires std::is_integral_v<Number> {
  return number;
}
template <typename Value>
Json ToValue(const std::map<std::string, Value>& map) {
  Json value = Json::object();
  for (const auto& [key, entry] : map) value[PercentEscape(key)] = ToValue(entry);
  return value;
}
template <typename Element>
Json ToValue(std::vector<Element>& elements) {
  Json value = Json::array();
  for (Element& element : elements) {
    if constexpr (std::is_same_v<Element, std::string>) {
      value.push_back(ToValue(element));
    } else {
      value.push_back(FromMembers(MembersOf(element)));
    }
  }
  return value;
}

bool IsEmpty(const Target& target) {
  return std::visit(
      [](const auto& value) {
        if constexpr (requires { value->empty(); }) {
          return value->empty();
        } else {
          return false;
        }
      },
      target);
}

Json FromMembers(const Object& members) {
  Json value = Json::object();
  for (const Member& member : members) {
    if (member.optional && IsEmpty(member.target)) continue;
    value[std::string(member.name)] = std::visit(
        [](auto& target) -> Json {
          if constexpr (std::is_pointer_v<std::decay_t<decltype(target)>>) {
            return ToValue(*target);
          } else {
            return FromMembers(target);
          }
        },
        member.target);
  }
  return value;
}

// The canonical text without `self`.
std::string Body(const Manifest& manifest) {
  Envelope envelope;
  // One list of members serves reading and writing; writing does not modify them.
  Object members = MembersOf(const_cast<Manifest&>(manifest), envelope);
  std::erase_if(members, [](const Member& member) { return member.name == "self"; });
  return FromMembers(members).dump(1) + "\n";
}

// `self` is on its own line before this one. JSON strings contain no raw newline, so this text
// occurs once.
constexpr std::string_view kAfterSelf = "\n \"shards\": ";

std::string WithSelf(std::string body, const Digest& self) {
  const size_t at = body.find(kAfterSelf);
  return body.insert(at, absl::StrCat("\n \"self\": \"", self.ToHex(), "\","));
}

// The schema, which every version of pack writes on a line of its own as it does `self`, if it is
// not this one's and the text is as it was written: damage is not another version.
std::optional<uint64_t> OtherSchemaOf(std::string_view json) {
  constexpr std::string_view kSelf = "\n \"self\": \"", kSchema = "\n \"schema\": ";
  constexpr size_t kHexDigits = 32, kSelfBytes = kSelf.size() + kHexDigits + 2;  // with `",`
  const size_t at = json.find(kSelf), schema_at = json.find(kSchema);
  if (at == json.npos || json.size() - at < kSelfBytes || schema_at == json.npos) return {};
  const std::string_view rest = json.substr(schema_at + kSchema.size());
  uint64_t schema = 0;
  if (!absl::SimpleAtoi(std::string(rest.substr(0, rest.find(','))), &schema)) return {};
  if (schema == Manifest::kSchema) return {};
  std::string body(json);
  body.erase(at, kSelfBytes);
  const std::string self = Xxh3_128(AsBytes(body)).ToHex();
  return json.substr(at + kSelf.size(), kHexDigits) == self ? std::optional(schema) : std::nullopt;
}

}  // namespace

absl::Status RefuseManifest(const std::string& why, ManifestDefect defect) {
  absl::Status status = absl::DataLossError(absl::StrCat(std::string(kManifestName), ": ", why));
  if (defect != ManifestDefect::kOther) {
    status.SetPayload(kDefectUrl, absl::Cord(std::to_string(static_cast<int>(defect))));
  }
  return status;
}

ManifestDefect DefectOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kDefectUrl);
  if (!payload) return ManifestDefect::kOther;
  return static_cast<ManifestDefect>(std::stoi(std::string(*payload)));
}

std::string Manifest::ToJson() const {
  std::string body = Body(*this);
  const Digest self = Xxh3_128(AsBytes(body));
  return WithSelf(std::move(body), self);
}

absl::StatusOr<Manifest> Manifest::Parse(std::string_view json) {
  if (json.size() > kMaxManifestBytes) {
    return RefuseManifest(absl::StrCat(json.size(), " bytes, the limit is ", kMaxManifestBytes));
  }
  if (json.empty()) return RefuseManifest("the file is empty");
  // Before its members, of which the other version may have others.
  if (const std::optional<uint64_t> other = OtherSchemaOf(json)) {
    return absl::UnimplementedError(
        absl::StrCat(std::string(kManifestName), ": schema ", *other, ", expected ", int{kSchema},
                     "; another version of pack has written it: read it with that version"));
  }
  Manifest manifest;
  Envelope envelope;
  try {
    const std::string problem = ReadManifestText(json, manifest, envelope);
    if (!problem.empty()) return RefuseManifest(problem);
    if (envelope.schema != kSchema) {
      return RefuseManifest(absl::StrCat("schema ", envelope.schema, ", expected ", int{kSchema}));
    }
    std::string body = Body(manifest);
    const Digest self = Xxh3_128(AsBytes(body));
    const std::string canonical = WithSelf(std::move(body), envelope.self);
    if (canonical != json) {
      const auto [there, here] =
          std::mismatch(json.begin(), json.end(), canonical.begin(), canonical.end());
      return RefuseManifest(absl::StrCat("not in canonical form at offset ", there - json.begin()));
    }
    if (self != envelope.self) {
      return RefuseManifest(absl::StrCat("changed after it was written (self: expected ",
                                         self.ToHex(), ", actual ", envelope.self.ToHex(), ")"),
                            ManifestDefect::kSelfHash);
    }
  } catch (const std::bad_alloc&) {  // says nothing about the manifest
    throw;
  } catch (const std::exception& error) {
    return RefuseManifest(EscapeForTerminal(error.what()));
  }
  RETURN_IF_ERROR(manifest.Check());
  return manifest;
}

absl::StatusOr<Manifest> Manifest::Read(const std::string& dataset) {
  const std::string path = absl::StrCat(dataset, "/", std::string(kManifestName));
  absl::StatusOr<std::string> json = ReadWholeFile(path, kMaxManifestBytes);
  if (absl::IsOutOfRange(json.status())) {
    return WithFacts(absl::DataLossError(json.status().message()), {.path = path});
  }
  if (!json.ok()) return json.status();
  absl::StatusOr<Manifest> manifest = Parse(*json);
  if (manifest.ok()) return manifest;
  absl::Status named(manifest.status().code(),
                     absl::StrCat(EscapeForTerminal(dataset), "/", manifest.status().message()));
  manifest.status().ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { named.SetPayload(url, payload); });
  return WithFacts(std::move(named), {.path = path});
}

}  // namespace shardpack
