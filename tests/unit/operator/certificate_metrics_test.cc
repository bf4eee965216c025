#include "operator/certificate_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace adamant {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(CertificateMetricsTest, WhatWasIssuedAndRefusedIsCountedFromTheStart) {
  metrics::Registry registry;
  CertificateMetrics metrics(registry, true);
  metrics.OnIssued(security::Role::kWorker);
  metrics.OnRefused(kube::CertificateObserver::Refusal::kBadToken);
  const std::string text = registry.Text();
  EXPECT_THAT(text, HasSubstr("adamant_certificates_issued_total{role=\"worker\"} 1"));
  EXPECT_THAT(text, HasSubstr("adamant_certificates_issued_total{role=\"exporter\"} 0"));
  EXPECT_THAT(text, HasSubstr("adamant_authorisation_refused_total{reason=\"bad_token\"} 1"));
  EXPECT_THAT(text, HasSubstr("adamant_authorisation_refused_total{reason=\"replaced\"} 0"));
  EXPECT_THAT(text, HasSubstr("adamant_operator_tls_enabled 1"));
}

TEST(CertificateMetricsTest, EndsAreThoseThatAreKnown) {
  metrics::Registry registry;
  CertificateMetrics metrics(registry, true);
  EXPECT_THAT(registry.Text(), Not(HasSubstr("certificate_end")));
  const auto end = std::chrono::system_clock::from_time_t(60);
  metrics.OnEnd(kube::CertificateObserver::Kind::kRoot, end);
  metrics.OnEnd(kube::CertificateObserver::Kind::kRoot, end + std::chrono::seconds(5));
  const std::string text = registry.Text();
  EXPECT_THAT(text,
              HasSubstr("adamant_operator_certificate_end_timestamp_seconds{kind=\"root\"} 65"));
  EXPECT_THAT(text, Not(HasSubstr("kind=\"leaf\"")));
}

TEST(CertificateMetricsTest, WhatSignsIsARootOrAnIssuers) {
  metrics::Registry registry;
  CertificateMetrics metrics(registry, true);
  const auto end = std::chrono::system_clock::from_time_t(60);
  metrics.OnEnd(kube::CertificateObserver::Kind::kLeaf, end);
  metrics.OnEnd(kube::CertificateObserver::Kind::kRoot, end);
  metrics.OnEnd(kube::CertificateObserver::Kind::kIssuer, end);
  EXPECT_THAT(registry.Text(), HasSubstr("timestamp_seconds{kind=\"issuer\"} 60"));
  EXPECT_THAT(registry.Text(), HasSubstr("timestamp_seconds{kind=\"leaf\"} 60"));
  EXPECT_THAT(registry.Text(), Not(HasSubstr("kind=\"root\"")));
  metrics.OnEnd(kube::CertificateObserver::Kind::kRoot, end);
  EXPECT_THAT(registry.Text(), Not(HasSubstr("kind=\"issuer\"")));
}

TEST(CertificateMetricsTest, WithoutTlsThereIsNothingToCount) {
  metrics::Registry registry;
  const CertificateMetrics metrics(registry, false);
  EXPECT_THAT(registry.Text(), HasSubstr("adamant_operator_tls_enabled 0"));
  EXPECT_THAT(registry.Text(), Not(HasSubstr("adamant_certificates_issued_total")));
}

}  // namespace
}  // namespace adamant
