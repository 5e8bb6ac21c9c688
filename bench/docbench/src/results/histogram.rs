//! Histograms as text: HdrHistogram's V2 compressed encoding in base64, which its own tools read.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

use crate::target::Failure;

/// As text; [`decode_histogram`] reads it, and so does any HdrHistogram library.
pub fn encode_histogram(histogram: &Histogram<u64>) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new().serialize(histogram, &mut bytes).map_err(Failure::other)?;
    Ok(STANDARD.encode(bytes))
}

/// Decodes it from text.
pub fn decode_histogram(text: &str) -> Result<Histogram<u64>, Failure> {
    let bytes = STANDARD.decode(text).map_err(Failure::other)?;
    Deserializer::new().deserialize(&mut bytes.as_slice()).map_err(Failure::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::new_histogram;

    #[test]
    fn encoded_histograms_are_read_back() {
        let mut histogram = new_histogram();
        for micros in [3, 40, 40, 5_000, 60_000_000] {
            histogram.record(micros).expect("in the bounds");
        }
        let text = encode_histogram(&histogram).expect("it can be written");
        // All V2 compressed histograms begin so.
        assert!(text.starts_with("HISTFAAA"), "{text}");
        assert_eq!(decode_histogram(&text).expect("it was just written"), histogram);
        assert!(decode_histogram("HISTFAAA").is_err());
    }
}
