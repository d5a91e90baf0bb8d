#include "formats/core/manifest.h"

#include <algorithm>
#include <exception>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "formats/core/manifest_defect.h"
#include "formats/io/escape.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

using Json = nlohmann::json;  // its objects are sorted maps

constexpr char kDefectUrl[] = "shardpack/manifest-defect";

// --- The members of the manifest, once, for writing and for reading.

struct Member;
using Object = std::vector<Member>;
using TextMap = std::map<std::string, std::string>;
using CountMap = std::map<std::string, uint64_t>;
using Target = std::variant<std::string*, uint64_t*, uint32_t*, int64_t*, Digest*, TextMap*,
                            CountMap*, std::vector<std::string>*, std::vector<ManifestShard>*,
                            std::vector<FileEntry>*, Object>;
struct Member {
  std::string_view name;
  Target target;
  bool optional = false;  // left out when it is empty
};

Object MembersOf(FileEntry& file) {
  return {{"bytes", &file.bytes}, {"name", &file.name}, {"xxh3_128", &file.xxh3_128}};
}

Object MembersOf(ManifestShard& shard) {
  return {{"bytes", &shard.bytes},
          {"index", MembersOf(shard.index)},
          {"location", &shard.location, true},
          {"name", &shard.name},
          {"planned", &shard.planned, true},
          {"records", &shard.records},
          {"sha256", &shard.sha256, true},
          {"split", &shard.split},
          {"xxh3_128", &shard.xxh3_128}};
}

Object MembersOf(ManifestCounts& counts) {
  return {{"failed", &counts.failed}, {"filtered", &counts.filtered}, {"ignored", &counts.ignored},
          {"packed", &counts.packed}, {"seen", &counts.seen},         {"skipped", &counts.skipped}};
}

Object MembersOf(DatasetFacts& facts) {
  return {{"image_bytes", &facts.image_bytes},
          {"image_formats", &facts.image_formats},
          {"largest_image_bytes", &facts.max_image_bytes},
          {"largest_record_bytes", &facts.largest_record_bytes},
          {"max_height", &facts.max_height},
          {"max_width", &facts.max_width},
          {"min_height", &facts.min_height},
          {"min_width", &facts.min_width},
          {"pixel_stats", &facts.pixel_stats, true},
          {"pixel_sums", &facts.pixel_sums, true},
          {"pixels", &facts.pixels, true}};
}

// Values that the text holds and the struct does not.
struct Envelope {
  uint64_t schema = Manifest::kSchema;
  Digest self;
};

Object MembersOf(Manifest& m, Envelope& envelope) {
  return {{"classes", &m.classes},
          {"counts", MembersOf(m.counts)},
          {"facts", MembersOf(m.facts)},
          {"files", &m.files},
          {"format", &m.format},
          {"label_base", &m.label_base},
          {"layout", &m.layout},
          {"options", &m.options},
          {"options_digest", &m.options_digest},
          {"origin", &m.origin, true},
          {"plan_digest", &m.plan_digest},
          {"schema", &envelope.schema},
          {"self", &envelope.self},
          {"shards", &m.shards},
          {"source", Object{{"bytes", &m.source_bytes},
                            {"files", &m.source_files},
                            {"listing_digest", &m.listing_digest},
                            {"root", &m.source_root},
                            {"times", &m.source_times, true}}},
          {"splits", &m.splits},
          {"tool", &m.tool}};
}

// --- Writing.

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

Json FromMembers(const Object& members) {
  Json value = Json::object();
  for (const Member& member : members) {
    if (const auto* text = std::get_if<std::string*>(&member.target);
        member.optional && text != nullptr && (*text)->empty()) {
      continue;
    }
    if (const auto* counts = std::get_if<std::map<std::string, uint64_t>*>(&member.target);
        member.optional && counts != nullptr && (*counts)->empty()) {
      continue;
    }
    if (const auto* texts = std::get_if<TextMap*>(&member.target);
        member.optional && texts != nullptr && (*texts)->empty()) {
      continue;
    }
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
  // Members are named once for both directions; writing only reads through them.
  Object members = MembersOf(const_cast<Manifest&>(manifest), envelope);
  std::erase_if(members, [](const Member& member) { return member.name == "self"; });
  return FromMembers(members).dump(1) + "\n";
}

// `self` stands on a line of its own before this one. A string of JSON holds no newline, so it is
// found once.
constexpr std::string_view kAfterSelf = "\n \"shards\": ";

std::string WithSelf(std::string body, const Digest& self) {
  const size_t at = body.find(kAfterSelf);
  return body.insert(at, absl::StrCat("\n \"self\": \"", self.ToHex(), "\","));
}

// --- Reading: events of nlohmann's parser go straight into the struct. What the schema does not
// have is refused where it begins, so neither depth nor unknown members cost memory.

class Reader : public nlohmann::json_sax<Json> {
 public:
  explicit Reader(Object root) : root_(std::move(root)) {}

  const std::string& problem() const { return problem_; }

  bool null() override { return Fail("null is not allowed"); }
  bool boolean(bool) override { return Fail("a boolean is not allowed"); }
  bool binary(binary_t&) override { return Fail("binary is not allowed"); }
  bool number_float(number_float_t, const string_t& text) override {
    return Fail(absl::StrCat("expected an integer below 2^64, actual ", text.substr(0, 40)));
  }
  bool number_integer(number_integer_t number) override {
    if (Target* target = Value(); target != nullptr) {
      if (auto* into = std::get_if<int64_t*>(target)) return Store(**into, number);
    }
    return Fail(absl::StrCat("a negative number is not allowed: ", number));
  }
  bool number_unsigned(number_unsigned_t number) override {
    if (Frame* frame = Top(); frame != nullptr && frame->counts != nullptr) {
      return Store((*frame->counts)[frame->key], number);
    }
    if (Target* target = Value(); target != nullptr) {
      if (auto* into = std::get_if<uint64_t*>(target)) return Store(**into, number);
      if (auto* into = std::get_if<uint32_t*>(target)) return Store(**into, number);
      if (auto* into = std::get_if<int64_t*>(target)) return Store(**into, number);
    }
    return Fail("a number is not allowed");
  }
  bool string(string_t& text) override;
  bool start_object(size_t) override;
  bool start_array(size_t) override;
  bool key(string_t& name) override;
  bool end_object() override;
  bool end_array() override {
    stack_.pop_back();
    return true;
  }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    if (problem_.empty()) {
      // Without the name that the library gives the kind of error.
      const std::string_view what = error.what();
      const size_t name = what.starts_with('[') ? what.find("] ") : what.npos;
      problem_ = absl::StrCat("malformed JSON at offset ", position, ": ",
                              std::string(name == what.npos ? what : what.substr(name + 2)));
    }
    return false;
  }

 private:
  // One open object or array; just one of the pointers is set, or `members` counts.
  struct Frame {
    std::string place;  // for messages
    Object members;
    std::vector<bool> seen;
    size_t current = 0;  // member whose value comes next
    std::string key;     // the same in a map
    TextMap* texts = nullptr;
    CountMap* counts = nullptr;
    std::vector<std::string>* strings = nullptr;
    std::vector<ManifestShard>* shards = nullptr;
    std::vector<FileEntry>* files = nullptr;
    bool is_map() const { return texts != nullptr || counts != nullptr; }
    bool is_array() const { return strings != nullptr || shards != nullptr || files != nullptr; }
  };

  Frame* Top() { return stack_.empty() ? nullptr : &stack_.back(); }
  // Where the next value of an object goes; null in a map, in an array and at the very start.
  Target* Value() {
    Frame* top = Top();
    if (top == nullptr || top->is_map() || top->is_array()) return nullptr;
    return &top->members[top->current].target;
  }
  template <typename To, typename From>
  bool Store(To& to, From number) {
    if (!std::in_range<To>(number)) return Fail(absl::StrCat("the number is too large: ", number));
    to = static_cast<To>(number);
    return true;
  }
  bool Fail(const std::string& why);
  std::string Place();
  bool Open(Object members) {
    Frame frame;
    frame.place = Place();
    frame.seen.resize(members.size());
    frame.members = std::move(members);
    stack_.push_back(std::move(frame));
    return true;
  }

  Object root_;
  std::vector<Frame> stack_;
  std::string problem_;
};

std::string Reader::Place() {
  const Frame* top = Top();
  if (top == nullptr) return "";
  if (top->strings != nullptr) return absl::StrCat(top->place, "[", top->strings->size(), "]");
  if (top->shards != nullptr) return absl::StrCat(top->place, "[", top->shards->size() - 1, "]");
  if (top->files != nullptr) return absl::StrCat(top->place, "[", top->files->size() - 1, "]");
  const std::string name = top->is_map() || top->members.empty()
                               ? top->key
                               : std::string(top->members[top->current].name);
  return top->place.empty() ? name : absl::StrCat(top->place, ".", name);
}

bool Reader::Fail(const std::string& why) {
  const std::string place = Place();
  problem_ = absl::StrCat(place.empty() ? "" : absl::StrCat(EscapeForTerminal(place), ": "),
                          EscapeForTerminal(why));
  return false;
}

bool Reader::string(string_t& text) {
  std::optional<std::string> bytes = PercentUnescape(text);
  if (!bytes) return Fail("a string is not in the %XX form");
  Frame* top = Top();
  if (top != nullptr && top->strings != nullptr) {
    top->strings->push_back(*std::move(bytes));
    return true;
  }
  if (top != nullptr && top->texts != nullptr) {
    (*top->texts)[top->key] = *std::move(bytes);
    return true;
  }
  if (Target* target = Value(); target != nullptr) {
    if (auto* into = std::get_if<std::string*>(target)) {
      **into = *std::move(bytes);
      return true;
    }
    if (auto* into = std::get_if<Digest*>(target)) {
      const std::optional<Digest> digest = ParseDigest(*bytes);
      if (!digest) return Fail("expected 32 lower-case hexadecimal digits");
      **into = *digest;
      return true;
    }
  }
  return Fail("a string is not allowed");
}

bool Reader::start_object(size_t) {
  Frame* top = Top();
  if (top == nullptr) {
    return root_.empty() ? Fail("a second value") : Open(std::exchange(root_, {}));
  }
  if (top->shards != nullptr) return Open(MembersOf(top->shards->emplace_back()));
  if (top->files != nullptr) return Open(MembersOf(top->files->emplace_back()));
  Target* target = Value();
  if (target == nullptr) return Fail("an object is not allowed");
  if (auto* members = std::get_if<Object>(target)) return Open(*members);
  Frame frame;
  frame.place = Place();
  if (auto* into = std::get_if<TextMap*>(target)) frame.texts = *into;
  if (auto* into = std::get_if<CountMap*>(target)) frame.counts = *into;
  if (!frame.is_map()) return Fail("an object is not allowed");
  stack_.push_back(std::move(frame));
  return true;
}

bool Reader::start_array(size_t) {
  Target* target = Value();
  if (target == nullptr) return Fail("an array is not allowed");
  Frame frame;
  frame.place = Place();
  if (auto* into = std::get_if<std::vector<std::string>*>(target)) frame.strings = *into;
  if (auto* into = std::get_if<std::vector<ManifestShard>*>(target)) frame.shards = *into;
  if (auto* into = std::get_if<std::vector<FileEntry>*>(target)) frame.files = *into;
  if (!frame.is_array()) return Fail("an array is not allowed");
  stack_.push_back(std::move(frame));
  return true;
}

bool Reader::key(string_t& name) {
  Frame& top = stack_.back();
  std::optional<std::string> bytes = PercentUnescape(name);
  if (!bytes) return Fail("a member's name is not in the %XX form");
  if (top.is_map()) {
    top.key = *std::move(bytes);
    const bool fresh = top.texts != nullptr ? top.texts->try_emplace(top.key).second
                                            : top.counts->try_emplace(top.key).second;
    return fresh || Fail("the member comes twice");
  }
  const auto member = std::find_if(top.members.begin(), top.members.end(),
                                   [&](const Member& m) { return m.name == *bytes; });
  if (member == top.members.end()) return Fail(absl::StrCat("unknown member ", *bytes));
  top.current = static_cast<size_t>(member - top.members.begin());
  if (top.seen[top.current]) return Fail("the member comes twice");
  top.seen[top.current] = true;
  return true;
}

bool Reader::end_object() {
  Frame& top = stack_.back();
  for (size_t i = 0; i < top.members.size(); ++i) {
    if (top.seen[i] || top.members[i].optional) continue;
    top.current = i;
    return Fail("the member is missing");
  }
  stack_.pop_back();
  return true;
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
  Manifest manifest;
  Envelope envelope;
  try {
    Reader reader(MembersOf(manifest, envelope));
    if (!Json::sax_parse(json.begin(), json.end(), &reader))
      return RefuseManifest(reader.problem());
    if (envelope.schema != kSchema) {
      return RefuseManifest(absl::StrCat("schema ", envelope.schema, ", expected ", int{kSchema},
                                         "; another version of pack has written it"));
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
  } catch (const std::bad_alloc&) {  // which says nothing about the manifest
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
    return absl::DataLossError(json.status().message());
  }
  if (!json.ok()) return json.status();
  absl::StatusOr<Manifest> manifest = Parse(*json);
  if (manifest.ok()) return manifest;
  absl::Status named(manifest.status().code(),
                     absl::StrCat(EscapeForTerminal(dataset), "/", manifest.status().message()));
  manifest.status().ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { named.SetPayload(url, payload); });
  return named;
}

}  // namespace shardpack
