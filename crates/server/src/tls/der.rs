//! The little of DER that certificates are read by here.

/// DER's tags.
pub(super) const INTEGER: u8 = 0x02;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const OBJECT_IDENTIFIER: u8 = 0x06;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

/// Takes a value with its tag.
pub(super) fn take<'a>(rest: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (tag, after) = rest.split_first()?;
    let (first, mut after) = after.split_first()?;
    let mut bytes = usize::from(*first);
    if 0x80 <= *first {
        let (long, behind) = after.split_at_checked(usize::from(first & 0x7f))?;
        bytes = match long {
            [byte] => usize::from(*byte),
            [high, low] => usize::from(u16::from_be_bytes([*high, *low])),
            // No certificate is that long, nor a name in it.
            _ => return None,
        };
        after = behind;
    }
    let (content, behind) = after.split_at_checked(bytes)?;
    *rest = behind;
    Some((*tag, content))
}

pub(super) fn take_tagged<'a>(rest: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    take(rest).filter(|(found, _)| *found == tag).map(|(_, content)| content)
}
