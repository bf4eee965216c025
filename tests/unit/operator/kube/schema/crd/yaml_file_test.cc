#include "operator/kube/schema/crd/yaml_file.h"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>
#include <string>

namespace adamant::kube {
namespace {

using Json = nlohmann::ordered_json;

TEST(YamlFileTest, ObjectsAndListsAreBlocks) {
  EXPECT_EQ(ToYamlFile({{"a", 1},
                        {"list", Json::array({"x", Json::object(), {{"b", true}, {"c", nullptr}}})},
                        {"none", Json::array()},
                        {"map", {{"d", 0.5}}}}),
            "a: 1\n"
            "list:\n"
            "  - x\n"
            "  - {}\n"
            "  - b: true\n"
            "    c: null\n"
            "none: []\n"
            "map:\n"
            "  d: 0.5\n");
}

TEST(YamlFileTest, WordsThatYamlReadsOtherwiseAreQuoted) {
  EXPECT_EQ(ToYamlFile({{"a", Json::array({"True", "no", "1", "", "1Gi", "a: b", "None"})}}),
            "a:\n  - \"True\"\n  - \"no\"\n  - \"1\"\n  - \"\"\n  - \"1Gi\"\n  - \"a: b\"\n"
            "  - None\n");
}

TEST(YamlFileTest, TextsReadBackTheSame) {
  const std::string words(
      "a long text that is folded because it is longer than a line: with #, 'quotes' and - dashes, "
      "over several lines.");
  for (const std::string& text :
       {words,
        words + "\nA: another line.\n- and more of it.",
        words + "\n",
        " " + words,
        words + "  two spaces",
        std::string(200, 'x'),
        std::string("tab\tand \\ \"quotes\" that need quotes of their own, "
                    "however long it is")}) {
    const std::string yaml = ToYamlFile({{"outer", {{"text", text}}}});
    EXPECT_EQ(YAML::Load(yaml)["outer"]["text"].as<std::string>(), text) << yaml;
  }
}

}  // namespace
}  // namespace adamant::kube
