//! `authenticationRestrictions`: from which addresses, and to which of the server's, a user may log
//! in.
//!
//! A user or a role has a list of them, one of which must be met; of a user with roles the user's
//! own list and the list of each role, also of included ones. So two roles may make a user that can
//! never log in.

use std::net::IpAddr;

use frond_db::Error;
use frond_doc::{Document, DocumentBuilder, Value};
use frond_query::Code;

use crate::fields::Fields;

/// The field's name.
pub const RESTRICTIONS: &str = "authenticationRestrictions";
const CLIENT: &str = "clientSource";
const SERVER: &str = "serverAddress";

/// The addresses of a connection's two ends, where it is one of a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Endpoints {
    /// The client's.
    pub client: Option<IpAddr>,
    /// The server's.
    pub server: Option<IpAddr>,
}

/// One restriction: each list that is there must have the address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Restriction {
    clients: Option<Vec<AddressRange>>,
    servers: Option<Vec<AddressRange>>,
}

/// An address, or all that begin alike (`198.51.100.0/24`).
#[derive(Clone, PartialEq, Eq, Debug)]
struct AddressRange {
    /// As it was given.
    text: String,
    address: IpAddr,
    bits: u32,
}

impl AddressRange {
    fn parse(text: &str) -> Option<AddressRange> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let bits_max = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            Some(bits) if bits.bytes().all(|byte| byte.is_ascii_digit()) => bits.parse().ok()?,
            Some(_) => return None,
            None => bits_max,
        };
        let text = text.to_owned();
        (bits <= bits_max).then_some(AddressRange { text, address, bits })
    }

    fn contains(&self, address: IpAddr) -> bool {
        // Bits above the given ones are shifted out; a shift by all of them leaves nothing.
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let differing = u32::from(own) ^ u32::from(other);
                differing.checked_shr(32 - self.bits).unwrap_or(0) == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let differing = u128::from(own) ^ u128::from(other);
                differing.checked_shr(128 - self.bits).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

impl Restriction {
    /// Reads `{clientSource, serverAddress}`.
    fn read(document: Document<'_>) -> Result<Restriction, Error> {
        let mut fields = Fields::of_part(RESTRICTIONS, document)?;
        let clients = fields.array(CLIENT)?.map(|list| read_ranges(list.iter())).transpose()?;
        let servers = fields.array(SERVER)?.map(|list| read_ranges(list.iter())).transpose()?;
        fields.finish()?;
        if clients.is_none() && servers.is_none() {
            let message = "At least one of 'clientSource' and/or 'serverAddress' must be set";
            return Err(Error::invalid(Code::of(162), message));
        }
        Ok(Restriction { clients, servers })
    }

    /// Reads a list of them.
    ///
    /// # Errors
    /// `BadValue` if one isn't a restriction; `CollectionIsEmpty` (162) if it restricts nothing.
    pub fn read_all<'a>(
        values: impl Iterator<Item = Value<'a>>,
    ) -> Result<Vec<Restriction>, Error> {
        let read = |value: Value<'a>| {
            let restriction = value.as_document().ok_or_else(|| {
                let message = "'authenticationRestrictions' array sub-documents must be address \
                               restriction objects";
                Error::invalid(Code::UnsupportedFormat, message)
            })?;
            Restriction::read(restriction).map_err(|error| match error.code.number() {
                162 => error,
                _ => Error::invalid(Code::BadValue, error.message),
            })
        };
        values.map(read).collect()
    }

    /// Appends a list of them.
    pub fn append_all(builder: &mut DocumentBuilder, restrictions: &[Restriction]) {
        builder.begin_array(RESTRICTIONS);
        Restriction::push_all(builder, restrictions);
        builder.end();
    }

    /// Pushes them into an array that has begun.
    pub fn push_all(builder: &mut DocumentBuilder, restrictions: &[Restriction]) {
        for restriction in restrictions {
            builder.push_begin_document();
            for (name, ranges) in [(CLIENT, &restriction.clients), (SERVER, &restriction.servers)] {
                let Some(ranges) = ranges else { continue };
                builder.begin_array(name);
                for range in ranges {
                    builder.push(Value::String(&range.text));
                }
                builder.end();
            }
            builder.end();
        }
    }

    fn is_met(&self, ends: Endpoints) -> bool {
        [(&self.clients, ends.client), (&self.servers, ends.server)].into_iter().all(
            |(ranges, address)| {
                ranges.as_ref().is_none_or(|ranges| {
                    address.is_some_and(|address| ranges.iter().any(|it| it.contains(address)))
                })
            },
        )
    }

    /// Whether one of a list is met, or there is none.
    pub fn is_any_met(restrictions: &[Restriction], ends: Endpoints) -> bool {
        restrictions.is_empty() || restrictions.iter().any(|restriction| restriction.is_met(ends))
    }
}

fn read_ranges<'a>(values: impl Iterator<Item = Value<'a>>) -> Result<Vec<AddressRange>, Error> {
    let read = |value: Value<'a>| {
        value
            .as_str()
            .and_then(AddressRange::parse)
            .ok_or_else(|| Error::invalid(Code::BadValue, "Invalid IP address in CIDR string"))
    };
    values.map(read).collect()
}

#[cfg(test)]
mod tests {
    use frond_doc::extended_json;

    use super::*;

    fn read(json: &str) -> Result<Vec<Restriction>, i32> {
        let document = extended_json::parse(&format!(r#"{{"a": {json}}}"#)).expect("JSON");
        let list = document.get("a").and_then(|list| list.as_array()).expect("a list");
        Restriction::read_all(list.iter()).map_err(|error| error.code.number())
    }

    #[test]
    fn an_address_is_within_a_range_if_its_first_bits_are_the_same() {
        for (range, inside, outside) in [
            ("192.0.2.7", "192.0.2.7", "192.0.2.6"),
            ("192.0.2.0/24", "192.0.2.255", "192.0.3.0"),
            ("192.0.2.128/25", "192.0.2.129", "192.0.2.127"),
            ("0.0.0.0/0", "255.255.255.255", "::1"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::"),
            ("::/0", "2001:db8::1", "192.0.2.1"),
            ("::1", "::1", "::2"),
        ] {
            let range = AddressRange::parse(range).expect(range);
            assert!(range.contains(inside.parse().expect("an address")), "{range:?}");
            assert!(!range.contains(outside.parse().expect("an address")), "{range:?}");
        }
        for none in ["", "192.0.2", "192.0.2.0/33", "::/129", "192.0.2.0/", "192.0.2.0/+8", "x"] {
            assert_eq!(AddressRange::parse(none), None, "{none}");
        }
    }

    #[test]
    fn one_of_a_list_must_be_met_whole() {
        let from = |client: &str, server: &str| Endpoints {
            client: client.parse().ok(),
            server: server.parse().ok(),
        };
        let list = read(
            r#"[{"clientSource": ["192.0.2.0/24", "::1"], "serverAddress": ["198.51.100.1"]},
                {"clientSource": ["203.0.113.9"]}]"#,
        )
        .expect("a list");
        for (client, server, is_met) in [
            ("192.0.2.3", "198.51.100.1", true),
            ("192.0.2.3", "198.51.100.2", false),
            ("::1", "198.51.100.1", true),
            ("203.0.113.9", "198.51.100.2", true),
            ("203.0.113.8", "198.51.100.1", false),
            ("a socket", "of Unix", false),
        ] {
            assert_eq!(Restriction::is_any_met(&list, from(client, server)), is_met, "{client}");
        }
        assert!(Restriction::is_any_met(&[], Endpoints::default()));
        let nowhere = read(r#"[{"clientSource": []}]"#).expect("a list");
        assert!(!Restriction::is_any_met(&nowhere, from("192.0.2.3", "198.51.100.1")));
    }

    #[test]
    fn restrictions_are_read_as_they_were_written_and_what_is_none_is_refused() {
        let list = read(r#"[{"clientSource": ["192.0.2.0/24"]}, {"serverAddress": ["::1"]}]"#);
        let list = list.expect("a list");
        let mut builder = DocumentBuilder::new();
        Restriction::append_all(&mut builder, &list);
        let written = builder.build();
        let again = written.get(RESTRICTIONS).and_then(|list| list.as_array()).expect("a list");
        assert_eq!(Restriction::read_all(again.iter()).expect("read"), list);
        for (json, code) in [
            ("[{}]", 162),
            ("[1]", 12),
            (r#"[{"clientSource": "192.0.2.1"}]"#, 2),
            (r#"[{"clientSource": [1]}]"#, 2),
            (r#"[{"clientSource": ["here"]}]"#, 2),
            (r#"[{"clientSource": ["192.0.2.1"], "x": 1}]"#, 2),
        ] {
            assert_eq!(read(json), Err(code), "{json}");
        }
    }
}
