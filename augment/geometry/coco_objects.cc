#include "augment/geometry/coco_objects.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "formats/io/status_macros.h"
#include "nlohmann/json.hpp"

namespace shardpack {
namespace {

constexpr size_t kMaxDepth = 64;
// Beyond any image, and far from where a product of two could overflow.
constexpr double kMaxCoordinate = 1e9;

// An element of a list, as it is.
struct Element {
  std::vector<double> box, keypoints;
  std::vector<std::vector<double>> rings;
  std::optional<std::string> compressed;
  std::vector<double> counts, size;
  bool has_counts = false, has_box = false;
  std::optional<double> area;
  std::optional<int64_t> label, category, id;
  bool crowd = false;

  // What other annotations of the image have; whatever says something of an object is one.
  bool is_caption() const {
    return box.empty() && !category && !label && rings.empty() && !compressed && !has_counts &&
           keypoints.empty();
  }
};

class ObjectSax : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::string error;
  std::optional<std::vector<Element>> boxes, annotations;
  AnnotatedSize size;

  bool null() override { return NotAtRoot() && NoNumber("null"); }
  bool boolean(bool value) override {
    return NoNumber("a truth value") && IsNoLabel() && TakeCrowd(value ? 1 : 0) &&
           Integer(value ? 1 : 0);
  }
  bool number_integer(number_integer_t value) override {
    return TakeCrowd(static_cast<double>(value)) && Integer(value);
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (value <= INT64_MAX) return number_integer(static_cast<number_integer_t>(value));
    return number_float(static_cast<double>(value), "");
  }
  bool number_float(number_float_t value, const string_t&) override {
    return IsNoLabel() && TakeCrowd(value) && Number(value);
  }
  bool string(string_t& text) override {
    if (!NotAtRoot() || !NoNumber("text") || !IsNoLabel() || !IsNoCrowd()) return false;
    if (list_ != nullptr && depth_ == element_depth_ + 1 && member_ == Member::kSegmentation &&
        inner_ == "counts") {
      element_.compressed = text;
    }
    return !IsBareElement() || Fail("is text and no object");
  }
  bool binary(binary_t&) override { return Fail("is binary data"); }
  bool start_object(size_t) override {
    if (!IsNoLabel() || !IsNoCrowd()) return false;
    if (++depth_ > kMaxDepth) return Fail("is nested too deeply");
    if (list_ != nullptr && depth_ == element_depth_) {
      element_ = {};
      seen_ = 0;
      member_ = Member::kOther;
    }
    return depth_ <= element_depth_ || NoNumber("an object");
  }
  bool end_object() override {
    const bool ends = list_ != nullptr && depth_ == element_depth_;
    --depth_;
    if (!ends) return true;
    if (list_->size() == kMaxObjects)
      return Fail(
          absl::StrCat("is more than the ", kMaxObjects, " objects that one image may have"));
    list_->push_back(std::move(element_));
    element_ = {};
    return true;
  }
  bool start_array(size_t) override {
    if (!IsNoLabel() || !IsNoCrowd()) return false;
    if (++depth_ > kMaxDepth) return Fail("is nested too deeply");
    if (depth_ == 1) return StartList(annotations, 2);
    if (depth_ == 2 && list_ == nullptr && root_key_ == "boxes") return StartList(boxes, 3);
    if (depth_ == 2 && list_ == nullptr && root_key_ == "annotations")
      return StartList(annotations, 3);
    if (list_ == nullptr) return true;
    if (depth_ == element_depth_) return Fail("is a list and no object");
    const size_t below = depth_ - element_depth_;
    if (below > (member_ == Member::kSegmentation ? 2u : 1u) && !NoNumber("a list")) return false;
    if (depth_ == element_depth_ + 1 && member_ == Member::kBox) element_.has_box = true;
    if (member_ != Member::kSegmentation) return true;
    if (depth_ == element_depth_ + 1) in_rings_ = true;
    if (depth_ != element_depth_ + 2) return true;
    if (in_rings_) element_.rings.emplace_back();
    if (!in_rings_ && inner_ == "counts") element_.has_counts = true;
    return true;
  }
  bool end_array() override {
    if (list_ != nullptr && depth_ == element_depth_ - 1) list_ = nullptr;
    --depth_;
    return true;
  }
  bool key(string_t& name) override {
    if (depth_ == 1) root_key_ = name;
    if (depth_ == 2) root_member_ = name;
    if (list_ == nullptr) return true;
    if (depth_ == element_depth_ + 1) inner_ = name;
    if (depth_ != element_depth_) return true;
    member_ = MemberOf(name);
    in_rings_ = false;
    const uint32_t bit = 1u << static_cast<uint32_t>(member_);
    if (member_ != Member::kOther && (seen_ & bit) != 0)
      return Fail(absl::StrCat("has the member ", name, " twice"));
    seen_ |= bit;
    return true;
  }
  bool parse_error(size_t at, const std::string&, const nlohmann::detail::exception&) override {
    if (error.empty()) error = absl::StrCat("not JSON: damaged at byte ", at);
    return false;
  }

 private:
  enum class Member : uint8_t {
    kOther,
    kBox,
    kArea,
    kLabel,
    kCategory,
    kId,
    kCrowd,
    kSegmentation,
    kKeypoints
  };

  static Member MemberOf(const std::string& name) {
    static const std::map<std::string, Member> kMembers = {{"bbox", Member::kBox},
                                                           {"area", Member::kArea},
                                                           {"label", Member::kLabel},
                                                           {"category_id", Member::kCategory},
                                                           {"id", Member::kId},
                                                           {"iscrowd", Member::kCrowd},
                                                           {"keypoints", Member::kKeypoints},
                                                           {"segmentation", Member::kSegmentation}};
    const auto found = kMembers.find(name);
    return found == kMembers.end() ? Member::kOther : found->second;
  }

  bool Fail(const std::string& why) {
    if (error.empty()) {
      error = list_ == nullptr ? absl::StrCat("the JSON ", why)
                               : absl::StrCat("object ", list_->size(), " ", why);
    }
    return false;
  }
  // What stands where numbers are expected: within bbox, keypoints and polygons.
  bool NoNumber(const char* what) {
    const bool among_numbers = member_ == Member::kBox || member_ == Member::kKeypoints ||
                               (member_ == Member::kSegmentation && in_rings_);
    if (list_ == nullptr || depth_ <= element_depth_ || !among_numbers) return true;
    return Fail(
        absl::StrCat("has ", what, " among the numbers of its bbox, keypoints or polygons"));
  }
  bool AtMember(Member member) const {
    return list_ != nullptr && depth_ == element_depth_ && member_ == member;
  }
  // A class that is named, 1.5 or 2^63, would else be none.
  bool IsNoLabel() {
    const bool label = AtMember(Member::kLabel);
    return !(label || AtMember(Member::kCategory)) ||
           Fail(absl::StrCat("has a ", label ? "label" : "category_id",
                             " that is not a whole number of 64 bits"));
  }
  bool IsNoCrowd() {
    return !AtMember(Member::kCrowd) || Fail("has an iscrowd that is not 0 or 1");
  }
  // 1.0, too: numbers of a column that lacks some become such.
  bool TakeCrowd(double value) {
    if (!AtMember(Member::kCrowd)) return true;
    element_.crowd = value == 1;
    return value == 0 || value == 1 || IsNoCrowd();
  }
  bool NotAtRoot() { return depth_ > 0 || Fail("is not a list of objects"); }
  // A value in the place of an object of a list.
  bool IsBareElement() const { return list_ != nullptr && depth_ + 1 == element_depth_; }
  bool StartList(std::optional<std::vector<Element>>& list, size_t element_depth) {
    if (list) return Fail(absl::StrCat("has the member ", root_key_, " twice"));
    list.emplace();
    list_ = &*list;
    element_depth_ = element_depth;
    return true;
  }

  bool Integer(int64_t value) {
    if (list_ != nullptr && depth_ == element_depth_) {
      if (member_ == Member::kLabel) element_.label = value;
      if (member_ == Member::kCategory) element_.category = value;
      if (member_ == Member::kId) element_.id = value;
    }
    return Number(static_cast<double>(value));
  }
  bool Number(double value) {
    if (!NotAtRoot()) return false;
    if (list_ == nullptr) {
      if (depth_ == 2 && root_key_ == "image" && root_member_ == "width") size.width = value;
      if (depth_ == 2 && root_key_ == "image" && root_member_ == "height") size.height = value;
      return true;
    }
    if (IsBareElement()) return Fail("is a number and no object");
    const size_t below = depth_ - element_depth_;
    if (below == 0 && member_ == Member::kArea) element_.area = value;
    if (below == 1 && member_ == Member::kBox) element_.box.push_back(value);
    if (below == 1 && member_ == Member::kKeypoints) element_.keypoints.push_back(value);
    if (member_ != Member::kSegmentation || below == 0) return true;
    if (in_rings_) {
      if (below == 1) return Fail("has a segmentation that is a list of numbers");
      if (below == 2) element_.rings.back().push_back(value);
      return true;
    }
    if (below == 2 && inner_ == "counts") element_.counts.push_back(value);
    if (below == 2 && inner_ == "size") element_.size.push_back(value);
    return true;
  }

  size_t depth_ = 0;          // of open objects and lists
  size_t element_depth_ = 0;  // at which an object of the list is open
  std::vector<Element>* list_ = nullptr;
  std::string root_key_;
  std::string root_member_;  // of the object that is the member `root_key_`
  std::string inner_;        // the member of a segmentation that is an object
  bool in_rings_ = false;    // within a segmentation that is a list
  Member member_ = Member::kOther;
  uint32_t seen_ = 0;
  Element element_;
};

absl::Status Wrong(size_t object, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("object ", object, " ", what));
}

bool IsCoordinate(double value) {
  return std::isfinite(value) && std::abs(value) <= kMaxCoordinate;
}

absl::Status TakeBox(size_t number, const Element& element, ImageObject& object) {
  const std::vector<double>& box = element.box;
  if (!element.has_box || box.size() != 4) {
    return Wrong(number, element.has_box
                             ? absl::StrCat("has a bbox of ", box.size(), " numbers; expected 4")
                             : "has no bbox");
  }
  if (!std::all_of(box.begin(), box.end(), IsCoordinate))
    return Wrong(number, "has a bbox with a number that is not one of an image");
  if (box[2] < 0 || box[3] < 0)
    return Wrong(number, absl::StrCat("has a bbox of the negative size ", box[2], " x ", box[3]));
  object.box = {box[0], box[1], box[0] + box[2], box[1] + box[3]};
  object.area = element.area.value_or(box[2] * box[3]);
  object.crowd = element.crowd;
  object.label = element.label.value_or(element.category.value_or(-1));
  return absl::OkStatus();
}

absl::Status TakePolygons(size_t number, const Element& element, ImageObject& object) {
  for (size_t i = 0; i < element.rings.size(); ++i) {
    const std::vector<double>& numbers = element.rings[i];
    if (numbers.size() % 2 != 0) {
      return Wrong(number, absl::StrCat("has polygon ", i, " of ", numbers.size(),
                                        " numbers; expected pairs"));
    }
    if (!std::all_of(numbers.begin(), numbers.end(), IsCoordinate))
      return Wrong(number,
                   absl::StrCat("has polygon ", i, " with a number that is not one of an image"));
    if (numbers.size() == 2) {
      return Wrong(number, absl::StrCat("has polygon ", i,
                                        " of one point; a polygon is one list of x and y"));
    }
    if (numbers.size() < 6) continue;  // no points, or a line
    object.outlined = true;
    Ring& ring = object.polygons.emplace_back();
    for (size_t p = 0; p < numbers.size(); p += 2) ring.push_back({numbers[p], numbers[p + 1]});
  }
  return absl::OkStatus();
}

// A whole number of at most 32 bits.
bool IsCount(double value) {
  return value >= 0 && value <= UINT32_MAX && std::floor(value) == value;
}

absl::Status TakeMask(size_t number, const Element& element, ImageObject& object) {
  if (!element.has_counts && !element.compressed) return absl::OkStatus();
  if (element.size.size() != 2 || !std::all_of(element.size.begin(), element.size.end(), IsCount)) {
    return Wrong(number, "has run lengths without a size of two whole numbers");
  }
  const auto height = static_cast<uint32_t>(element.size[0]);
  const auto width = static_cast<uint32_t>(element.size[1]);
  absl::StatusOr<RunLengths> mask;
  if (element.compressed) {
    mask = ParseRunLengths(*element.compressed, height, width);
  } else {
    if (!std::all_of(element.counts.begin(), element.counts.end(), IsCount))
      return Wrong(number, "has run lengths that are not whole numbers");
    mask = CheckedRunLengths({element.counts.begin(), element.counts.end()}, height, width);
  }
  if (!mask.ok()) return Wrong(number, absl::StrCat("has ", mask.status().message()));
  object.mask = *std::move(mask);
  object.outlined = true;
  return absl::OkStatus();
}

absl::Status TakeKeypoints(size_t number, const Element& element, ImageObject& object) {
  const std::vector<double>& numbers = element.keypoints;
  if (numbers.size() % 3 != 0) {
    return Wrong(number, absl::StrCat("has keypoints of ", numbers.size(),
                                      " numbers; expected three for each"));
  }
  for (size_t i = 0; i < numbers.size(); i += 3) {
    const double v = numbers[i + 2];
    if (!IsCoordinate(numbers[i]) || !IsCoordinate(numbers[i + 1]) || (v != 0 && v != 1 && v != 2))
      return Wrong(number, absl::StrCat("has keypoint ", i / 3, " that is not x, y and 0, 1 or 2"));
    object.keypoints.push_back({numbers[i], numbers[i + 1], static_cast<uint8_t>(v)});
  }
  return absl::OkStatus();
}

// What is missing of polygons, run lengths and keypoints.
absl::Status Complete(size_t number, const Element& element, ImageObject& object) {
  if (object.polygons.empty() && !object.mask) {
    RETURN_IF_ERROR(TakePolygons(number, element, object));
    RETURN_IF_ERROR(TakeMask(number, element, object));
  }
  if (object.keypoints.empty()) RETURN_IF_ERROR(TakeKeypoints(number, element, object));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ImageObject>> Join(const std::vector<Element>& boxes,
                                              const std::vector<Element>& annotations) {
  std::vector<ImageObject> objects(boxes.size());
  for (size_t i = 0; i < boxes.size(); ++i) {
    RETURN_IF_ERROR(TakeBox(i, boxes[i], objects[i]));
    RETURN_IF_ERROR(Complete(i, boxes[i], objects[i]));
  }
  std::map<int64_t, size_t> by_id;
  size_t number = 0;
  for (const Element& annotation : annotations) {
    if (annotation.is_caption()) continue;
    const size_t here = number++;
    if (here < objects.size()) {
      if (annotation.has_box && annotation.box != boxes[here].box)
        return Wrong(here, "has another bbox among the boxes than among the annotations");
      RETURN_IF_ERROR(Complete(here, annotation, objects[here]));
      if (annotation.id) by_id.emplace(*annotation.id, here);
    } else if (const auto same = annotation.id ? by_id.find(*annotation.id) : by_id.end();
               same != by_id.end()) {
      RETURN_IF_ERROR(Complete(same->second, annotation, objects[same->second]));
    }
  }
  if (number > 0 && number < objects.size())
    return absl::InvalidArgumentError(absl::StrCat(
        "there are ", objects.size(), " boxes, but only ", number, " annotations with objects"));
  return objects;
}

}  // namespace

absl::StatusOr<std::vector<ImageObject>> ParseObjects(std::string_view json, AnnotatedSize* size) {
  ObjectSax sax;
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &sax)) {
    return absl::InvalidArgumentError(sax.error.empty() ? "not JSON" : sax.error);
  }
  const bool said = IsCoordinate(sax.size.width) && IsCoordinate(sax.size.height) &&
                    sax.size.width > 0 && sax.size.height > 0;
  if (size != nullptr) *size = said ? sax.size : AnnotatedSize();
  if (sax.boxes) return Join(*sax.boxes, sax.annotations.value_or(std::vector<Element>()));
  if (!sax.annotations) {
    return absl::InvalidArgumentError(
        "this is not COCO's: neither a list of objects nor one with boxes or annotations");
  }
  std::vector<Element> found;
  for (Element& element : *sax.annotations) {
    if (!element.is_caption()) found.push_back(std::move(element));
  }
  return Join(found, {});
}

}  // namespace shardpack
