#include "services/common/security/private_key.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

namespace adamant::security {
namespace {

PrivateKey MakeKey() { return PrivateKey::Make().value(); }

std::string RequestOf(EVP_PKEY* key) {
  X509_REQ* const request = X509_REQ_new();
  X509_REQ_set_pubkey(request, key);
  X509_REQ_sign(request, key, EVP_sha256());
  unsigned char* der = nullptr;
  const int size = i2d_X509_REQ(request, &der);
  std::string bytes(reinterpret_cast<const char*>(der), size);
  OPENSSL_free(der);
  X509_REQ_free(request);
  EVP_PKEY_free(key);
  return bytes;
}

std::string PemOf(EVP_PKEY* key) {
  BIO* const bio = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string pem(data, size);
  BIO_free(bio);
  EVP_PKEY_free(key);
  return pem;
}

TEST(PrivateKeyTest, EachIsAnother) { EXPECT_NE(MakeKey().ToPem(), MakeKey().ToPem()); }

TEST(PrivateKeyTest, IsReadAsItIsWritten) {
  const PrivateKey key = MakeKey();
  const auto read = PrivateKey::FromPem(key.ToPem());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->ToPem(), key.ToPem());
}

TEST(PrivateKeyTest, OtherTextsAndOtherKeysAreRefused) {
  const std::string pem = MakeKey().ToPem();
  EXPECT_FALSE(PrivateKey::FromPem("").ok());
  EXPECT_FALSE(PrivateKey::FromPem(pem.substr(0, pem.size() / 2)).ok());
  EXPECT_FALSE(PrivateKey::FromPem(PemOf(EVP_EC_gen("P-384"))).ok());
  EXPECT_FALSE(PrivateKey::FromPem(PemOf(EVP_RSA_gen(2048))).ok());
}

TEST(PrivateKeyTest, ItsRequestHoldsItsPublicKey) {
  const PrivateKey key = MakeKey();
  const auto read = ReadRequest(key.MakeRequest().value());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(EVP_PKEY_eq(read->get(), key.key().get()), 1);
  EXPECT_LT(key.MakeRequest()->size(), 300);
}

TEST(PrivateKeyTest, RequestsThatAreChangedAreRefused) {
  const std::string good = MakeKey().MakeRequest().value();
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    EXPECT_FALSE(ReadRequest(bad).ok()) << "byte " << i;
    EXPECT_FALSE(ReadRequest(good.substr(0, i)).ok()) << "of " << i << " bytes";
  }
  EXPECT_FALSE(ReadRequest(good + '\0').ok());
  EXPECT_FALSE(ReadRequest(std::string(kMostRequestBytes + 1, '0')).ok());
}

TEST(PrivateKeyTest, RequestsForOtherKindsOfKeysAreRefused) {
  EXPECT_FALSE(ReadRequest(RequestOf(EVP_RSA_gen(2048))).ok());
  EXPECT_FALSE(ReadRequest(RequestOf(EVP_EC_gen("P-384"))).ok());
  EXPECT_TRUE(ReadRequest(RequestOf(EVP_EC_gen("P-256"))).ok());
}

}  // namespace
}  // namespace adamant::security
