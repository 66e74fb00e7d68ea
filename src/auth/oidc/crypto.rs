//! Signatures of JSON Web Tokens with the cryptography that TLS uses too. Nothing is signed here.

use jsonwebtoken::{
    Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey,
    crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils},
    errors::{ErrorKind, Result, new_error},
    signature::{Error, Verifier},
};
use ring::{
    hmac,
    signature::{self, RsaPublicKeyComponents, UnparsedPublicKey},
};

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: no_signer,
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Has tokens checked with it. Installing it again changes nothing.
pub(super) fn install() {
    let _ = PROVIDER.install_default();
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the library calls it so")]
fn no_signer(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    Err(new_error(ErrorKind::UnsupportedAlgorithm))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the library calls it so")]
fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    let check = Check::of(*algorithm)?;
    if key.family() != check.family() {
        return Err(new_error(ErrorKind::InvalidKeyFormat));
    }
    Ok(Box::new(Signature {
        algorithm: *algorithm,
        check,
        key: key.clone(),
    }))
}

struct Signature {
    algorithm: Algorithm,
    check: Check,
    key: DecodingKey,
}

/// Method of checking a signature.
#[derive(Clone, Copy)]
enum Check {
    Rsa(&'static signature::RsaParameters),
    Ec(&'static signature::EcdsaVerificationAlgorithm),
    Ed,
    Hmac(hmac::Algorithm),
}

impl Check {
    fn of(algorithm: Algorithm) -> Result<Self> {
        Ok(match algorithm {
            Algorithm::RS256 => Self::Rsa(&signature::RSA_PKCS1_2048_8192_SHA256),
            Algorithm::RS384 => Self::Rsa(&signature::RSA_PKCS1_2048_8192_SHA384),
            Algorithm::RS512 => Self::Rsa(&signature::RSA_PKCS1_2048_8192_SHA512),
            Algorithm::PS256 => Self::Rsa(&signature::RSA_PSS_2048_8192_SHA256),
            Algorithm::PS384 => Self::Rsa(&signature::RSA_PSS_2048_8192_SHA384),
            Algorithm::PS512 => Self::Rsa(&signature::RSA_PSS_2048_8192_SHA512),
            Algorithm::ES256 => Self::Ec(&signature::ECDSA_P256_SHA256_FIXED),
            Algorithm::ES384 => Self::Ec(&signature::ECDSA_P384_SHA384_FIXED),
            Algorithm::EdDSA => Self::Ed,
            Algorithm::HS256 => Self::Hmac(hmac::HMAC_SHA256),
            Algorithm::HS384 => Self::Hmac(hmac::HMAC_SHA384),
            Algorithm::HS512 => Self::Hmac(hmac::HMAC_SHA512),
            _ => return Err(new_error(ErrorKind::UnsupportedAlgorithm)),
        })
    }

    fn family(self) -> AlgorithmFamily {
        match self {
            Self::Rsa(_) => AlgorithmFamily::Rsa,
            Self::Ec(_) => AlgorithmFamily::Ec,
            Self::Ed => AlgorithmFamily::Ed,
            Self::Hmac(_) => AlgorithmFamily::Hmac,
        }
    }
}

impl Verifier<Vec<u8>> for Signature {
    fn verify(&self, message: &[u8], signed: &Vec<u8>) -> std::result::Result<(), Error> {
        let checked = match (self.check, self.key.kind()) {
            (Check::Rsa(check), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(check, message, signed)
            }
            (Check::Ec(check), DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(check, key).verify(message, signed)
            }
            (Check::Ed, DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(&signature::ED25519, key).verify(message, signed)
            }
            (Check::Hmac(check), DecodingKeyKind::SecretOrDer(secret)) => {
                hmac::verify(&hmac::Key::new(check, secret), message, signed)
            }
            _ => return Err(Error::new()),
        };
        checked.map_err(|_| Error::new())
    }
}

impl JwtVerifier for Signature {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
