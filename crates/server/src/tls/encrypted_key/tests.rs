//! Goal: keys as OpenSSL writes them are decrypted, and nothing else is taken for a key.
//!
//! *Method*: one key, written by `openssl pkcs8 -topk8` in each way (`-v2`, `-v2prf`, `-scrypt`,
//! `-v1`), all with the same password.

use super::*;

const PASSWORD: &str = "geheim-Wört";

const PLAIN: &str = "\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgFJzzfXZthIQ2w9km
uStEoSRL//wX/OAmMaERiJIqJk6hRANCAATX+8p0NgK+oDSJPBe3yRUPn33aOpwG
fIxHKxZYD0qVIcZYGyd5lMO1h0arF8LZiAcEK1x0oV0srTuTHG7rUN0V
-----END PRIVATE KEY-----
";

const AES_256: &str = "\
-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAgj+Xepw1XqDAICCAAw
DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEH4dDEGDMda6oESfGPthDTMEgZCw
x5siwSE38EcPG+is+W9RNzTrLVh2asSzirrd38HzLaJpvCm9IFFDwVm5iGdNL93T
TCkoXjcFvPHdyeWu61KWymErYr7CEHS9AMh1vyrwtLNGx7pOwENvpz7n5gluXMOA
2k1y4YHvXoCCyeiklTjoRnWUMG6H7AZYp9LLswlr5z3p1PHaaM6LwW2KiiNMKY8=
-----END ENCRYPTED PRIVATE KEY-----
";

const AES_128_SHA_1: &str = "\
-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHeMEkGCSqGSIb3DQEFDTA8MBsGCSqGSIb3DQEFDDAOBAgPo074qenZcwICCAAw
HQYJYIZIAWUDBAECBBDa23iB77XQQgPuBYLOUU3EBIGQONlR53QmB87TOsHN1WSN
/e1Zm6uestKnq+7sL5/aBVLSds83dWXvgOW4O+1CZjaE60X2kCcy2F6SG5mVFSwW
/UF51VjSdwZ6ljtk5+H6+4rf339CyGZXGGZOBEr7/hWMduU22gcnqVwjwm4zJD2E
+deyxSsP4IBm1ISfoemcWGN2qeXdEm3444scqjvaxPOr
-----END ENCRYPTED PRIVATE KEY-----
";

const AES_192_SHA_512: &str = "\
-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAhKy7k/SqnHtgICA+gw
DAYIKoZIhvcNAgsFADAdBglghkgBZQMEARYEEHZSdetxmz71+djZdJNzM6gEgZDj
fOpqnNkOIrcwwIJQMhp0+rZQdQ0Y9v+513Y7raJz/9rKlXBADCJ8bJEOYIurBf1k
kL3/py+FnbY1mPox77YMmw3gOQdntb0hdJGIJkQnpeHOqsLNmqf9UerSGRupS0dD
ptdUmi5RWzdky7psXn7Q6sSayzT+0fuNdI5Gq1Ectep66rvNVCDXrLJbKV1Xk/4=
-----END ENCRYPTED PRIVATE KEY-----
";

const TRIPLE_DES_SHA_384: &str = "\
-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHjME4GCSqGSIb3DQEFDTBBMCkGCSqGSIb3DQEFDDAcBAi3DD3+0sH3AAICCAAw
DAYIKoZIhvcNAgoFADAUBggqhkiG9w0DBwQI7ayrhEPtKaUEgZBKTQA0Aw5/UPTb
IkuNZFnIRaQLjFHNwW78LLje5X2Ky2xez7Ns/sLGRC8B+iVPn75KUKlQLZESPUuY
x3bkaTVQtrLuO+XxEg5c/awMMjw6myFy4UF+tCCP1b/1f36bXqc/yAa9bzDNXPAF
NY2YeOEOlNqArUsomJC0IltK46hX5/qAgW+V3Y5Y/JFvX/251gg=
-----END ENCRYPTED PRIVATE KEY-----
";

const SCRYPT: &str = "\
-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHkME8GCSqGSIb3DQEFDTBCMCEGCSsGAQQB2kcECzAUBAi7RgaQIl8xEQICQAAC
AQgCAQEwHQYJYIZIAWUDBAEqBBByFrl3gGL55b+ENXIa0IiDBIGQIXt4UZO+MpLa
FTN31ZEdfgxSDGtv3H8hQw7DvpYxeDhjChsZeHilFmIBVfmE5JSSvITDwszHNLzf
7I7SR5KsnO3tyzAjF+DMIBECGS3kVcL9irjEBWxn75jW3l86NBO3Bn7708E7KL1j
qSeV7VdGuB/DZ1bGsxXRNP5NNC26L2kMC4MajN3eDWBQl3G7NHzd
-----END ENCRYPTED PRIVATE KEY-----
";

const PBES_1: &str = "\
-----BEGIN ENCRYPTED PRIVATE KEY-----
MIGxMBwGCiqGSIb3DQEMAQMwDgQIF++i59RMPZ8CAggABIGQRu5gVZpxzHhMAn5k
oyY+cH0A4ifub9m73ZdWA3OXmAGA+KeOwgZ4K9uBSZyY0Fbw2fxTXLJ5bHB7uRxP
l/QeXDbfaQG6gdVhOP3VdJci4s//aw01ZgmYAinlluz3obYkIHJdli4YNX/yyu4l
uf5S3KA8B7eVGQBFcGfKXboGfAx31SXuw09+5sVZ86jIqAu0
-----END ENCRYPTED PRIVATE KEY-----
";

const SHA_224: &str = "\
-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAgY0iaWo8ypwwICCAAw
DAYIKoZIhvcNAggFADAdBglghkgBZQMEASoEEEQcx2B6MJcabp3RFmt+/f4EgZCU
UgeVCJCsYsabFDcPGN7Wqq6iD3B51UEp6AvE4HRQYsDfEIVViOhwSjPXqs1GAZS1
DX693SgLhRN8MAcuv21k8311dBPttoPEkvzlGadF+QbaemjbreUWWQaKxEjh2Ic1
sDG16d6gG40kQaUCrvOX33vNfcq/kjzBx6OVWXH1J0r569nNY1u/tytHBz9t9Ag=
-----END ENCRYPTED PRIVATE KEY-----
";

const CAMELLIA: &str = "\
-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHuMFkGCSqGSIb3DQEFDTBMMCkGCSqGSIb3DQEFDDAcBAhuIyu59OvRugICCAAw
DAYIKoZIhvcNAgkFADAfBgsqgwiMmks9AQEBBAQQ1hFfWkXEt4HXr4Chi3iJtwSB
kK9T4aZjs0SH+10WwPxYfy8ilyMuNigqpo549cCXjU7VDvNcs55MrNWdqaHR/aGU
WFq0jPi1YJetaSNTXbTGuEwE1rRJs3aLS3NJ5g4pDjoZNJOm/G05b86SmiqYddj0
J1ALYRBTj9iTHK/xWID0VGE489D1goslQAMRGCum21Dbv0AfhxkfUp6KYOlE2ioz
+A==
-----END ENCRYPTED PRIVATE KEY-----
";

const OLD: &str = "\
-----BEGIN EC PRIVATE KEY-----
Proc-Type: 4,ENCRYPTED
DEK-Info: AES-256-CBC,A64EB7A5D1B0AAEECB2E5322E90B817F

Mlpp5hjy9CQS+Ym/TdpeLhtuAOkKGOKQ55htY3my6WLSBxP473spiOcHYjdl5yh9
yx0T54IdDxU0gR1Tm1nsbGYED+cwD8lHjjiVACBUsDpgE5tHAG50cLbrQMZDJQIg
uFrboTn35Ekbqix9+j0JPJRvmP/pnxZ/WCCE8GT2sig=
-----END EC PRIVATE KEY-----
";
/// The key that all of them hold.
fn plain() -> Vec<u8> {
    let body: String = PLAIN.lines().filter(|line| !line.starts_with('-')).collect();
    data_encoding::BASE64.decode(body.as_bytes()).expect("base 64")
}

fn decrypted(pem: &str, password: Option<&str>) -> Result<Option<Vec<u8>>, EncryptedKeyError> {
    Ok(decrypt(pem, password)?.map(|key| key.secret_der().to_vec()))
}

#[test]
fn keys_are_decrypted_as_openssl_encrypts_them() {
    for pem in [AES_256, AES_128_SHA_1, AES_192_SHA_512, TRIPLE_DES_SHA_384] {
        assert_eq!(decrypted(pem, Some(PASSWORD)), Ok(Some(plain())), "{pem}");
        assert_eq!(decrypted(pem, Some("geheim")), Err(EncryptedKeyError::WrongPassword));
        assert_eq!(decrypted(pem, Some("")), Err(EncryptedKeyError::WrongPassword));
        assert_eq!(decrypted(pem, None), Err(EncryptedKeyError::NoPassword));
    }
    let behind_a_certificate = format!("-----BEGIN CERTIFICATE-----\nAA==\n{AES_256}");
    assert_eq!(decrypted(&behind_a_certificate, Some(PASSWORD)), Ok(Some(plain())));
    let by_windows = AES_256.replace('\n', "\r\n");
    assert_eq!(decrypted(&by_windows, Some(PASSWORD)), Ok(Some(plain())));
}

#[test]
fn other_ways_are_refused_by_name() {
    for (pem, what) in [
        (SCRYPT, "scrypt"),
        (PBES_1, "another scheme than PBES2"),
        (SHA_224, "another hash"),
        (CAMELLIA, "another cipher"),
        (OLD, "OpenSSL's older way"),
    ] {
        match decrypted(pem, Some(PASSWORD)) {
            Err(EncryptedKeyError::Unsupported(found)) => assert!(found.contains(what), "{found}"),
            other => panic!("{what}: {other:?}"),
        }
    }
    assert_eq!(decrypted(PLAIN, Some(PASSWORD)), Ok(None), "it isn't encrypted");
    assert_eq!(decrypted("", None), Ok(None));
}

/// Each byte changed, and each end: refused, or what the key was.
#[test]
fn damage_makes_no_other_key() {
    let body: String = AES_256.lines().filter(|line| !line.starts_with('-')).collect();
    let bytes = data_encoding::BASE64.decode(body.as_bytes()).expect("base 64");
    let read = |bytes: &[u8]| {
        let text = data_encoding::BASE64.encode(bytes);
        decrypted(&format!("{BEGIN}\n{text}\n{END}\n"), Some(PASSWORD))
    };
    assert_eq!(read(&bytes), Ok(Some(plain())));
    for end in 0..bytes.len() {
        assert!(read(&bytes[..end]).is_err(), "cut off at {end}");
    }
    // What stands before the encrypted bytes: lengths, identifiers, salt, rounds, vector.
    let data = bytes.len() - 144;
    for position in 0..data {
        let mut damaged = bytes.clone();
        damaged[position] ^= 0x10;
        // The vector changes the first block only: the key's own lengths, which are checked there.
        if let Ok(Some(key)) = read(&damaged) {
            assert_eq!(key.len(), plain().len(), "byte {position}");
        }
    }
    let many = [0x02, 0x04, 0x7f, 0xff, 0xff, 0xff];
    let refused = EncryptedKeyError::Unsupported("more than ten million rounds");
    assert_eq!(rounds(&many[2..]), Err(refused));
    assert_eq!(rounds(&[0]), Err(EncryptedKeyError::Damaged));
}
