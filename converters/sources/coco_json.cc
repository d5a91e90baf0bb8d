#include "converters/sources/coco_json.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/escape.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr size_t kMaxDepth = 64;
constexpr char kNoObject[] =
    "the file is not an object, as COCO json is; a list of images is taken as .jsonl, one object "
    "a line";
constexpr double kMaxExact = 9007199254740992.0;  // 2^53

// Follows the parser through {"images": [{...}], "annotations": [{...}], "categories": [{...}]}:
// members of those objects, and the numbers of a bbox one level deeper. Everything else is ignored,
// or copied into the kept text.
class CocoSax : public nlohmann::json_sax<nlohmann::json> {
 public:
  CocoSax(CocoKeep keep, CocoFile* coco) : keep_(keep), coco_(coco) {}

  std::string error = {};
  std::map<int64_t, std::string> categories;
  bool has_images = false, has_annotations = false;
  bool takes_objects = true;  // else annotations are kept unchecked

  bool null() override {
    Copy("null");
    TakeNoBoxNumber();
    return depth_ > 0 || Fail(kNoObject);
  }
  bool boolean(bool value) override {
    Copy(value ? "true" : "false");
    if (AtMember() && IsId()) return NoId("a truth value");
    TakeNoBoxNumber();
    return Take(value ? 1 : 0);
  }
  bool number_integer(number_integer_t value) override {
    Copy(absl::StrCat(value));
    return Take(value);
  }
  bool number_unsigned(number_unsigned_t value) override {
    Copy(absl::StrCat(value));
    return value <= INT64_MAX ? Take(static_cast<int64_t>(value))
                              : TakeReal(static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t& text) override {
    Copy(text);
    return TakeReal(value);
  }
  bool string(string_t& text) override {
    if (depth_ == 0) return Fail(kNoObject);
    if (Copies()) Copy(nlohmann::json(text).dump());
    TakeNoNumber();
    outlined_ = outlined_ || InOutline();
    if (!AtMember()) return true;
    if (section_ == Section::kImages && key_ == "file_name") image_.file_name = text;
    if (section_ == Section::kCategories && key_ == "name") name_ = text;
    return !IsId() || NoId("text");
  }
  bool binary(binary_t&) override { return Fail("binary data"); }

  bool start_object(size_t) override {
    TakeNoNumber();
    if (++depth_ > kMaxDepth) return Fail("nested too deeply");
    if (depth_ == 3 && in_list_) Begin();
    Open("{");
    return true;
  }
  bool end_object() override {
    Close("}");
    const bool ends = depth_-- == 3 && in_list_;
    return !ends || End();
  }
  bool start_array(size_t) override {
    if (depth_ == 0) return Fail(kNoObject);
    TakeNoNumber();
    if (++depth_ > kMaxDepth) return Fail("nested too deeply");
    if (depth_ == 2) in_list_ = section_ != Section::kOther;
    Open("[");
    in_box_ = depth_ == 4 && in_list_ && section_ == Section::kObjects && key_ == "bbox";
    if (in_box_) box_numbers_ = 0;
    return true;
  }
  bool end_array() override {
    in_box_ = false;
    Close("]");
    if (depth_-- == 2) in_list_ = false;
    return true;
  }
  bool key(string_t& name) override {
    if (depth_ == 1) {
      section_ = name == "images"        ? Section::kImages
                 : name == "annotations" ? Section::kObjects
                 : name == "categories"  ? Section::kCategories
                                         : Section::kOther;
      // Which one counts would depend on the program.
      if (section_ != Section::kOther && !sections_.insert(section_).second)
        return Fail(absl::StrCat("the member ", name, " stands twice"));
      has_images = has_images || section_ == Section::kImages;
      has_annotations = has_annotations || section_ == Section::kObjects;
    }
    if (depth_ == 3 && in_list_) {
      key_ = name;
      if (!keys_.insert(name).second)
        return Fail(absl::StrCat("the member ", name, " stands twice in one object"));
      outline_ = section_ == Section::kObjects && (name == "segmentation" || name == "keypoints");
    }
    if (Copies()) {
      Copy(nlohmann::json(name).dump());
      coco_->text += ':';
      after_value_ = false;
    }
    return true;
  }
  bool parse_error(size_t, const std::string&,
                   const nlohmann::detail::exception& failure) override {
    const std::string what = failure.what();
    const size_t line = what.find("at line ");
    return Fail(absl::StrCat("not JSON ", line == std::string::npos ? what : what.substr(line)));
  }

 private:
  enum class Section : uint8_t { kOther, kImages, kObjects, kCategories };

  bool Fail(std::string why) {
    if (error.empty()) error = std::move(why);
    return false;
  }
  // Whether this is within a kept image or annotation.
  bool Copies() const {
    return keep_ == CocoKeep::kAll && in_list_ && depth_ >= 3 && section_ != Section::kCategories;
  }
  void Copy(std::string_view value) {
    if (!Copies()) return;
    if (after_value_) coco_->text += ',';
    coco_->text += value;
    after_value_ = true;
  }
  void Open(std::string_view bracket) {
    Copy(bracket);
    after_value_ = false;
  }
  void Close(std::string_view bracket) {
    after_value_ = false;
    Copy(bracket);
  }

  bool AtMember() const { return depth_ == 3 && in_list_; }
  bool IsId() const {
    return key_ == "id" ||
           (section_ == Section::kObjects && (key_ == "image_id" || key_ == "category_id"));
  }

  bool NoId(const char* what) {
    return Fail(absl::StrCat("the member ", key_, " is ", what, "; ids are numbers"));
  }

  void Begin() {
    keys_.clear();
    begin_ = coco_->text.size();
    after_value_ = false;
    key_.clear();
    id_ = std::nullopt;
    image_id_ = category_id_ = std::nullopt;
    image_ = {};
    object_ = {};
    name_ = std::nullopt;
    box_numbers_ = 0;
    wrong_crowd_ = wrong_box_ = outline_ = outlined_ = false;
  }

  bool AtCrowd() const { return AtMember() && section_ == Section::kObjects && key_ == "iscrowd"; }
  bool InOutline() const { return outline_ && in_list_ && depth_ > 3; }
  // What is not a number where one might be expected.
  void TakeNoNumber() {
    wrong_crowd_ = wrong_crowd_ || AtCrowd();
    TakeNoBoxNumber();
  }
  // Also null and truth values, which an iscrowd may be.
  void TakeNoBoxNumber() { wrong_box_ = wrong_box_ || in_box_; }
  bool Take(int64_t value) {
    if (depth_ == 0) return Fail(kNoObject);
    if (AtMember() && key_ == "id") id_ = value;
    if (AtMember() && section_ == Section::kObjects) {
      if (key_ == "image_id") image_id_ = value;
      if (key_ == "category_id") category_id_ = value;
    }
    return TakeReal(static_cast<double>(value));
  }
  bool TakeReal(double value) {
    if (depth_ == 0) return Fail(kNoObject);
    if (AtMember() && section_ == Section::kObjects && key_ == "area") object_.area = value;
    if (AtCrowd()) {  // 1.0, too: numbers of a column that lacks some become such
      object_.crowd = value == 1;
      wrong_crowd_ = value != 0 && value != 1;
    }
    if (AtMember() && section_ == Section::kImages && key_ == "width") image_.width = value;
    if (AtMember() && section_ == Section::kImages && key_ == "height") image_.height = value;
    outlined_ = outlined_ || InOutline();
    if (!in_box_ || depth_ != 4) return true;
    if (box_numbers_ < 4) object_.box[box_numbers_] = value;
    ++box_numbers_;
    return true;
  }

  bool End() {
    switch (section_) {
      case Section::kImages:
        if (!id_) return Fail(absl::StrCat("image number ", coco_->images.size(), " has no id"));
        if (image_.file_name.empty())
          return Fail(absl::StrCat("the image ", *id_, " has no file_name"));
        image_.id = *id_;
        image_.json = Kept();
        coco_->images.push_back(std::move(image_));
        return true;
      case Section::kObjects:
        return EndObject();
      case Section::kCategories:
        if (!id_ || !name_)
          return Fail(absl::StrCat("category number ", categories.size(), " has no id or no name"));
        return categories.emplace(*id_, *name_).second ||
               Fail(absl::StrCat("the category ", *id_, " occurs twice"));
      case Section::kOther:
        break;
    }
    return true;
  }

  CocoText Kept() const { return {begin_, coco_->text.size() - begin_}; }

  bool EndObject() {
    const std::string which = id_ ? absl::StrCat("the annotation ", *id_)
                                  : absl::StrCat("annotation number ", annotations_);
    ++annotations_;
    const bool caption = keep_ == CocoKeep::kAll && image_id_ && !category_id_ &&
                         box_numbers_ == 0 && !wrong_box_ && !outlined_;
    const bool is_object = takes_objects && !caption;
    if (!image_id_ || (is_object && !category_id_)) {
      return Fail(absl::StrCat(which, " has no whole number as its ",
                               image_id_ ? "category_id" : "image_id"));
    }
    if (keep_ == CocoKeep::kAll) coco_->annotations.push_back({*image_id_, Kept()});
    if (wrong_crowd_) return Fail(absl::StrCat(which, " has an iscrowd that is not 0 or 1"));
    if (!is_object) return true;
    if (wrong_box_) return Fail(absl::StrCat(which, " has a bbox of more than numbers"));
    if (box_numbers_ != 4)
      return Fail(absl::StrCat(which, " has a bbox of ", box_numbers_, " numbers; expected 4"));
    object_.image_id = *image_id_;
    if (*category_id_ < INT32_MIN || *category_id_ > INT32_MAX)
      return Fail(absl::StrCat(which, " has the category_id ", *category_id_));
    object_.category =
        static_cast<int32_t>(*category_id_);  // the id: its index is known at the end
    coco_->objects.push_back(object_);
    return true;
  }

  const CocoKeep keep_;
  CocoFile* const coco_;
  uint64_t begin_ = 0, annotations_ = 0;
  bool after_value_ = false;
  size_t depth_ = 0;
  Section section_ = Section::kOther;
  bool in_list_ = false, in_box_ = false;
  std::string key_;
  std::set<Section> sections_;  // that have begun
  std::set<std::string> keys_;  // of the current object
  std::optional<int64_t> id_, image_id_, category_id_;
  std::optional<std::string> name_;
  CocoImage image_;
  CocoObject object_;
  size_t box_numbers_ = 0;
  bool wrong_crowd_ = false, wrong_box_ = false;
  bool outline_ = false, outlined_ = false;  // of the member, and of what came: outline, keypoints
};

// By image; every image id must exist.
absl::Status SortAnnotations(const std::vector<int64_t>& sorted_ids, CocoFile* coco) {
  for (const CocoAnnotation& annotation : coco->annotations) {
    if (std::binary_search(sorted_ids.begin(), sorted_ids.end(), annotation.image_id)) continue;
    return absl::InvalidArgumentError(absl::StrCat("an annotation has the image_id ",
                                                   annotation.image_id, ", which no image has"));
  }
  std::stable_sort(
      coco->annotations.begin(), coco->annotations.end(),
      [](const CocoAnnotation& a, const CocoAnnotation& b) { return a.image_id < b.image_id; });
  return absl::OkStatus();
}

std::vector<int64_t> SortedIds(const CocoFile& coco) {
  std::vector<int64_t> ids;
  for (const CocoImage& image : coco.images) ids.push_back(image.id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

// Checks that need the whole file: ids exist, names are unique.
absl::Status Join(const CocoSax& sax, CocoFile* coco) {
  std::map<int64_t, int32_t> place;
  std::set<std::string_view> names;
  for (const auto& [id, name] : sax.categories) {
    place[id] = static_cast<int32_t>(coco->categories.size());
    if (name.empty() || !names.insert(name).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the category ", id, " has the name of another one, or none: ", EscapeForTerminal(name)));
    }
    coco->categories.push_back(name);
    coco->category_ids.push_back(id);
  }
  const std::vector<int64_t> ids = SortedIds(*coco);
  const auto twice = std::adjacent_find(ids.begin(), ids.end());
  if (twice != ids.end())
    return absl::InvalidArgumentError(absl::StrCat("the image ", *twice, " occurs twice"));
  RETURN_IF_ERROR(SortAnnotations(ids, coco));
  for (CocoObject& object : coco->objects) {
    const auto known = place.find(object.category);
    if (known == place.end()) {
      return absl::InvalidArgumentError(absl::StrCat("an annotation of image ", object.image_id,
                                                     " has the category_id ", object.category,
                                                     ", which no category has"));
    }
    object.category = known->second;
    if (!std::binary_search(ids.begin(), ids.end(), object.image_id)) {
      return absl::InvalidArgumentError(
          absl::StrCat("an annotation has the image_id ", object.image_id, ", which no image has"));
    }
    if (object.area < 0) object.area = object.box[2] * object.box[3];
  }
  std::stable_sort(
      coco->objects.begin(), coco->objects.end(),
      [](const CocoObject& a, const CocoObject& b) { return a.image_id < b.image_id; });
  return absl::OkStatus();
}

absl::Status InFile(std::string_view name, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat(EscapeForTerminal(name), ": ",
                                                 EscapeForTerminal(std::string(status.message()))));
}

template <typename Input>
absl::Status Parse(Input&& input, std::string_view name, CocoKeep keep, CocoFile* coco) {
  CocoSax sax(keep, coco);
  const bool parsed = nlohmann::json::sax_parse(std::forward<Input>(input), &sax);
  absl::Status status;
  if (!parsed) {
    status = absl::InvalidArgumentError(sax.error.empty() ? "not JSON" : sax.error);
  } else if (!sax.has_images) {
    status = absl::InvalidArgumentError("no member \"images\": this is not a COCO json");
  } else {
    status = Join(sax, coco);
  }
  return InFile(name, status);
}

// Calls `read(file)` for the regular file at that path.
template <typename Read>
absl::Status WithFile(const std::string& path, const Read& read) {
  absl::StatusOr<File> opened = File::OpenRead(path);
  if (!opened.ok()) {
    const absl::Status failed = opened.status();
    return absl::IsNotFound(failed) ? absl::InvalidArgumentError(failed.message()) : failed;
  }
  struct stat facts;
  if (::fstat(opened->descriptor(), &facts) != 0) return IoStatus("stat", path, errno);
  if (!S_ISREG(facts.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(EscapeForTerminal(path), " is not a regular file"));
  }
  const int copy = ::dup(opened->descriptor());
  const std::unique_ptr<FILE, decltype(&fclose)> file(copy < 0 ? nullptr : ::fdopen(copy, "rb"),
                                                      &fclose);
  if (file == nullptr) return IoStatus("open", path, errno);
  const absl::Status parsed = read(file.get());
  return ferror(file.get()) != 0 ? IoStatus("read", path, EIO) : parsed;
}

// Whole numbers without a fraction, as most tools write them.
nlohmann::json Number(double value) {
  const bool whole = std::floor(value) == value && std::abs(value) < kMaxExact;
  return whole ? nlohmann::json(static_cast<int64_t>(value)) : nlohmann::json(value);
}

}  // namespace

std::span<const CocoObject> CocoFile::ObjectsOf(const CocoImage& image) const {
  const auto [begin, end] = std::equal_range(
      objects.begin(), objects.end(), CocoObject{.image_id = image.id},
      [](const CocoObject& a, const CocoObject& b) { return a.image_id < b.image_id; });
  return {begin, end};
}

std::span<const CocoAnnotation> CocoFile::AnnotationsOf(const CocoImage& image) const {
  const auto [begin, end] = std::equal_range(
      annotations.begin(), annotations.end(), CocoAnnotation{.image_id = image.id},
      [](const CocoAnnotation& a, const CocoAnnotation& b) { return a.image_id < b.image_id; });
  return {begin, end};
}

absl::Status ReadCoco(const std::string& path, CocoKeep keep, CocoFile* coco) {
  return WithFile(path, [&](FILE* file) { return Parse(file, path, keep, coco); });
}

absl::Status ParseCoco(std::string_view text, std::string_view name, CocoKeep keep,
                       CocoFile* coco) {
  return Parse(text, name, keep, coco);
}

namespace {

// "b/1.jpg" for "a/b/1.jpg": files may include folders or leave them out.
bool IsTailOf(std::string_view tail, std::string_view path) {
  return path == tail || (path.ends_with(tail) && path[path.size() - tail.size() - 1] == '/');
}

// An id identifies an image only within one file, so the names must be equal.
absl::Status CheckNames(const CocoFile& other, const CocoFile& coco) {
  std::map<int64_t, std::string_view> names;
  for (const CocoImage& image : other.images) names.emplace(image.id, image.file_name);
  std::map<int64_t, std::string_view> ours;
  for (const CocoImage& image : coco.images) ours.emplace(image.id, image.file_name);
  for (const CocoAnnotation& annotation : other.annotations) {
    const auto here = ours.find(annotation.image_id);
    if (here == ours.end()) continue;  // reported when they are sorted
    const auto there = names.find(annotation.image_id);
    if (there == names.end()) {
      return absl::InvalidArgumentError(absl::StrCat("an annotation has the image_id ",
                                                     annotation.image_id,
                                                     ", which none of the file's own images "
                                                     "has, so that nothing says whether it means ",
                                                     std::string(here->second)));
    }
    if (IsTailOf(there->second, here->second) || IsTailOf(here->second, there->second)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the image ", annotation.image_id, " is ", std::string(there->second), ", which is ",
        std::string(here->second), " in the file that is packed: annotations of other images"));
  }
  return absl::OkStatus();
}

absl::Status CheckCategories(const std::map<int64_t, std::string>& other, const CocoFile& coco) {
  for (size_t i = 0; i < coco.categories.size(); ++i) {
    const auto there = other.find(coco.category_ids[i]);
    if (there == other.end() || there->second == coco.categories[i]) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the category ", there->first, " is ", there->second, ", which is ", coco.categories[i],
        " in the file that is packed: its annotations would mean other classes"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status JoinAnnotations(const std::string& path, CocoFile* coco) {
  CocoFile other;
  other.text = std::move(coco->text);  // one text for both
  CocoSax sax(CocoKeep::kAll, &other);
  sax.takes_objects = false;
  absl::Status status = WithFile(path, [&](FILE* file) {
    const bool parsed = nlohmann::json::sax_parse(file, &sax);
    if (!parsed)
      return InFile(path, absl::InvalidArgumentError(sax.error.empty() ? "not JSON" : sax.error));
    if (!sax.has_annotations) {
      return InFile(
          path, absl::InvalidArgumentError("no member \"annotations\": this is not a COCO json"));
    }
    return absl::OkStatus();
  });
  coco->text = std::move(other.text);
  if (status.ok()) status = InFile(path, CheckNames(other, *coco));
  if (status.ok()) status = InFile(path, CheckCategories(sax.categories, *coco));
  if (!status.ok()) return status;
  coco->annotations.insert(coco->annotations.end(), other.annotations.begin(),
                           other.annotations.end());
  return InFile(path, SortAnnotations(SortedIds(*coco), coco));
}

namespace {

nlohmann::json Boxes(const CocoFile& coco, const CocoImage& image,
                     std::span<const int32_t> label_of_category) {
  nlohmann::json boxes = nlohmann::json::array();
  for (const CocoObject& object : coco.ObjectsOf(image)) {
    nlohmann::json box = nlohmann::json::array();
    for (const double number : object.box) box.push_back(Number(number));
    const auto category = static_cast<size_t>(object.category);
    boxes.push_back({{"area", Number(object.area)},
                     {"bbox", std::move(box)},
                     {"category", PercentEscape(coco.categories[category])},
                     {"iscrowd", object.crowd ? 1 : 0},
                     {"label", label_of_category[category]}});
  }
  return boxes;
}

}  // namespace

std::string BoxesJson(const CocoFile& coco, const CocoImage& image,
                      std::span<const int32_t> label_of_category) {
  return nlohmann::json({{"boxes", Boxes(coco, image, label_of_category)}, {"image_id", image.id}})
      .dump();
}

std::string WholeJson(const CocoFile& coco, const CocoImage& image,
                      std::span<const int32_t> label_of_category) {
  std::string json = "{\"annotations\":[";
  bool first = true;
  for (const CocoAnnotation& annotation : coco.AnnotationsOf(image)) {
    absl::StrAppend(&json, first ? "" : ",", std::string(coco.Json(annotation.json)));
    first = false;
  }
  absl::StrAppend(&json, "],\"boxes\":", Boxes(coco, image, label_of_category).dump(),
                  ",\"image\":", std::string(coco.Json(image.json)), ",\"image_id\":", image.id,
                  "}");
  return json;
}

}  // namespace shardpack
