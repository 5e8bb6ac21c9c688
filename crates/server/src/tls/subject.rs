//! The subject of a certificate, as text: MongoDB's names for users who log in by certificates (RFC
//! 4514: the most specific part comes first; letters beyond ASCII stay as they are).

use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

use super::der::{OBJECT_IDENTIFIER, SEQUENCE, SET, take, take_tagged};

/// Object identifiers as DER has them, and what they are called.
const SHORT_NAMES: &[(&[u8], &str)] = &[
    (&[0x55, 4, 3], "CN"),
    (&[0x55, 4, 4], "SN"),
    (&[0x55, 4, 5], "serialNumber"),
    (&[0x55, 4, 6], "C"),
    (&[0x55, 4, 7], "L"),
    (&[0x55, 4, 8], "ST"),
    (&[0x55, 4, 9], "street"),
    (&[0x55, 4, 10], "O"),
    (&[0x55, 4, 11], "OU"),
    (&[0x55, 4, 12], "title"),
    (&[0x55, 4, 42], "GN"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1], "emailAddress"),
    (&[9, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1], "UID"),
    (&[9, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25], "DC"),
];

/// The subject of a certificate; `None` if it has none, or one that no user can be named by.
pub fn of_certificate(certificate: &CertificateDer<'_>) -> Option<String> {
    let certificate = EndEntityCert::try_from(certificate).ok()?;
    of_name(certificate.subject()).filter(|subject| !subject.is_empty())
}

/// The text of a name: the content of its outermost sequence.
fn of_name(mut name: &[u8]) -> Option<String> {
    let mut parts = Vec::new();
    while !name.is_empty() {
        let mut set = take_tagged(&mut name, SET)?;
        let mut attributes = Vec::new();
        while !set.is_empty() {
            let mut attribute = take_tagged(&mut set, SEQUENCE)?;
            let identifier = take_tagged(&mut attribute, OBJECT_IDENTIFIER)?;
            let (tag, content) = take(&mut attribute)?;
            let value = escaped(&text(tag, content)?);
            attributes.push(format!("{}={value}", name_of(identifier)?));
        }
        parts.push(attributes.join("+"));
    }
    parts.reverse();
    Some(parts.join(","))
}

/// A string of one of ASN.1's sorts. One with a NUL would look like a shorter one to others.
fn text(tag: u8, content: &[u8]) -> Option<String> {
    let text = match tag {
        // UTF8String; NumericString, PrintableString and IA5String are ASCII.
        0x0c | 0x12 | 0x13 | 0x16 => str::from_utf8(content).ok()?.to_owned(),
        // TeletexString, which is read as Latin-1 everywhere.
        0x14 => content.iter().map(|byte| char::from(*byte)).collect(),
        // BMPString.
        0x1e => {
            let (units, []) = content.as_chunks::<2>() else { return None };
            let units: Vec<u16> = units.iter().map(|unit| u16::from_be_bytes(*unit)).collect();
            String::from_utf16(&units).ok()?
        }
        _ => return None,
    };
    (!text.contains('\0')).then_some(text)
}

/// Returns the name of an object identifier, or its numbers.
fn name_of(identifier: &[u8]) -> Option<String> {
    if let Some((_, name)) = SHORT_NAMES.iter().find(|(known, _)| *known == identifier) {
        return Some((*name).to_owned());
    }
    let (first, rest) = identifier.split_first()?;
    let root = (first / 40).min(2);
    let mut dotted = format!("{root}.{}", first - root * 40);
    let mut number = 0_u64;
    for byte in rest {
        number = number.checked_mul(1 << 7)? | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            dotted.push_str(&format!(".{number}"));
            number = 0;
        }
    }
    Some(dotted)
}

fn escaped(value: &str) -> String {
    let mut escaped = String::new();
    let last = value.chars().count().saturating_sub(1);
    for (position, letter) in value.chars().enumerate() {
        let is_special = matches!(letter, ',' | '+' | '"' | '\\' | '<' | '>' | ';')
            || position == 0 && matches!(letter, ' ' | '#')
            || position == last && letter == ' ';
        if is_special {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![tag];
        match u8::try_from(content.len()) {
            Ok(short @ ..0x80) => bytes.push(short),
            Ok(long) => bytes.extend([0x81, long]),
            Err(_) => {
                bytes.push(0x82);
                bytes.extend((content.len() as u16).to_be_bytes());
            }
        }
        bytes.extend_from_slice(content);
        bytes
    }

    fn attribute(identifier: &[u8], tag: u8, value: &[u8]) -> Vec<u8> {
        tagged(SEQUENCE, &[tagged(OBJECT_IDENTIFIER, identifier), tagged(tag, value)].concat())
    }

    #[test]
    fn names_are_written_as_mongodb_writes_them() {
        let country = tagged(SET, &attribute(&[0x55, 4, 6], 0x13, b"DE"));
        let organization = tagged(SET, &attribute(&[0x55, 4, 10], 0x0c, "Bäume, GmbH".as_bytes()));
        let two = [
            attribute(&[0x55, 4, 3], 0x1e, &[0, b'a', 0, b'n', 0, b'n']),
            attribute(&[0x2a, 3, 0x87, 0x68], 0x16, b" #x "),
        ];
        let name = [country, organization, tagged(SET, &two.concat())].concat();
        let expected = r"CN=ann+1.2.3.1000=\ #x\ ,O=Bäume\, GmbH,C=DE";
        assert_eq!(of_name(&name).as_deref(), Some(expected));
        for end in 1..name.len() {
            let cut = of_name(&name[..end]);
            assert!(cut.is_none_or(|text| expected.ends_with(&text)), "cut off at {end}");
        }
        let long = "n".repeat(300);
        let name = tagged(SET, &attribute(&[0x55, 4, 3], 0x0c, long.as_bytes()));
        assert_eq!(of_name(&name), Some(format!("CN={long}")));
    }

    #[test]
    fn names_that_could_be_taken_for_others_are_none() {
        let name = tagged(SET, &attribute(&[0x55, 4, 3], 0x0c, b"ann\0.example.org"));
        assert_eq!(of_name(&name), None);
        let name = tagged(SET, &attribute(&[0x55, 4, 3], 0x04, b"ann"));
        assert_eq!(of_name(&name), None, "no string");
    }
}
