//! From when to when a certificate is valid.

use std::ops::RangeInclusive;

use rustls::pki_types::CertificateDer;

use super::der::{SEQUENCE, take, take_tagged};

/// The tag of a certificate's version, which older ones don't have.
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const DAY_SECONDS: i64 = 24 * 60 * 60;

/// The seconds since 1970 in which a certificate is valid; `None` if it can't be read.
pub fn of_certificate(certificate: &CertificateDer<'_>) -> Option<RangeInclusive<i64>> {
    let mut rest = certificate.as_ref();
    let mut certificate = take_tagged(&mut rest, SEQUENCE)?;
    let mut body = take_tagged(&mut certificate, SEQUENCE)?;
    // The version, then number, algorithm and issuer.
    if body.first() == Some(&VERSION) {
        take(&mut body)?;
    }
    for _ in 0..3 {
        take(&mut body)?;
    }
    let mut validity = take_tagged(&mut body, SEQUENCE)?;
    Some(time(&mut validity)?..=time(&mut validity)?)
}

/// Takes a time, which RFC 5280 has in UTC and with seconds.
fn time(rest: &mut &[u8]) -> Option<i64> {
    let (year, rest) = match take(rest)? {
        (UTC_TIME, text) => {
            let (year, rest) = text.split_at_checked(2)?;
            let year = number(year)?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        (GENERALIZED_TIME, text) => {
            let (year, rest) = text.split_at_checked(4)?;
            (number(year)?, rest)
        }
        _ => return None,
    };
    let digits = rest.strip_suffix(b"Z").filter(|digits| digits.len() == 10)?;
    let parts: Option<Vec<i64>> = digits.chunks(2).map(number).collect();
    let &[month, day, hours, minutes, seconds] = parts?.as_slice() else { return None };
    let is_right = (1..=12).contains(&month) && (1..=31).contains(&day);
    let time = hours * 3600 + minutes * 60 + seconds;
    is_right.then(|| days_from_civil(year, month, day) * DAY_SECONDS + time)
}

/// Days since 1970 (Hinnant, "chrono-compatible low-level date algorithms").
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn number(digits: &[u8]) -> Option<i64> {
    let is_number = digits.iter().all(u8::is_ascii_digit);
    str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_rfc_5280_has_them() {
        for (tag, text, expected) in [
            (UTC_TIME, "700101000000Z", Some(0)),
            (UTC_TIME, "491231235959Z", Some(2_524_607_999)),
            (GENERALIZED_TIME, "20500101000000Z", Some(2_524_608_000)),
            (GENERALIZED_TIME, "99991231235959Z", Some(253_402_300_799)),
            (UTC_TIME, "701301000000Z", None),
            (UTC_TIME, "7001010000Z", None),
            (UTC_TIME, "7001010000+0Z", None),
            (GENERALIZED_TIME, "2050", None),
            (0x13, "700101000000Z", None),
        ] {
            let bytes = [&[tag, text.len() as u8], text.as_bytes()].concat();
            assert_eq!(time(&mut bytes.as_slice()), expected, "{text}");
        }
    }
}
