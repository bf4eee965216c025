#include "services/common/job/yaml/text_shapes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "proto/adamant/v1/schema.pb.h"

namespace adamant::job {
namespace {

struct Sample {
  v1::TextFormat format;
  std::vector<std::string> right;
  std::vector<std::string> wrong;
};

void ExpectAll(const TextShape& shape, const std::vector<std::string>& texts, bool match) {
  for (const std::string& text : texts) {
    EXPECT_EQ(Matches(shape, text), match) << '"' << text << '"';
  }
}

TEST(TextShapesTest, EachFormatTakesItsTextsAndNoOthers) {
  const std::vector<Sample> samples = {
      {v1::TEXT_FORMAT_ANY, {"a", " \n"}, {"", std::string(4097, 'a')}},
      {v1::TEXT_FORMAT_DNS_LABEL,
       {"a", "a-1", "0"},
       {"", "-a", "a-", "A", "a.b", std::string(64, 'a')}},
      {v1::TEXT_FORMAT_IDENTIFIER, {"a", "a_1"}, {"", "_a", "1a", "a-b", std::string(64, 'a')}},
      {v1::TEXT_FORMAT_DNS_SUBDOMAIN, {"a", "a.b-c.1"}, {"", ".a", "a.", "a..b", "a.-b", "A"}},
      {v1::TEXT_FORMAT_HTTP_URL,
       {"http://a", "https://a.b:80/c?d=e#f"},
       {"", "ftp://a", "http://", "http:///a", "http://a b", "http://a/b c", "HTTP://a"}},
      {v1::TEXT_FORMAT_SHA256,
       {std::string(64, 'a')},
       {"",
        std::string(63, 'a'),
        std::string(65, 'a'),
        std::string(64, 'A'),
        std::string(64, 'g')}},
      {v1::TEXT_FORMAT_LABEL_VALUE,
       {"", "a", "A.b_c-1"},
       {"-a", "a-", "a b", "a/b", std::string(64, 'a')}},
      {v1::TEXT_FORMAT_TIME,
       {"2024-02-29T12:00:00Z", "2024-02-29T12:00:00.5+01:00"},
       {"", "2024-02-29", "2024-02-29 12:00:00", "2024-02-29T12:00:00"}},
      {v1::TEXT_FORMAT_FREE, {"", "a b\n"}, {std::string((1 << 18) + 1, 'a')}},
  };
  for (const Sample& sample : samples) {
    SCOPED_TRACE(v1::TextFormat_Name(sample.format));
    ExpectAll(ShapeOf(sample.format), sample.right, true);
    ExpectAll(ShapeOf(sample.format), sample.wrong, false);
  }
}

TEST(TextShapesTest, KeysMayHaveADomain) {
  for (const v1::TextFormat values : {v1::TEXT_FORMAT_LABEL_VALUE, v1::TEXT_FORMAT_FREE}) {
    const TextShape& shape = KeyShapeOf(values);
    ExpectAll(shape, {"a", "A_b.c", "example.org/a", "kubernetes.io/b-C"}, true);
    ExpectAll(shape, {"", "/a", "a/", "a/b/c", "-a", std::string(64, 'a')}, false);
  }
  ExpectAll(KeyShapeOf(v1::TEXT_FORMAT_LABEL_VALUE), {"A.org/a"}, false);
  ExpectAll(KeyShapeOf(v1::TEXT_FORMAT_FREE), {"A.org/a"}, true);
}

}  // namespace
}  // namespace adamant::job
