//! How `frond serve` talks with its clients.

use frond_server::wire::Compressor;

/// How the server talks with its clients
#[derive(clap::Args)]
pub struct NetworkArguments {
    /// How messages may be compressed where a client asks for it, separated by commas: snappy, zstd, zlib;
    /// or disabled
    #[arg(long, value_name = "NAMES", default_value = "snappy,zstd,zlib",
          value_parser = parse_compressors)]
    network_compressors: Compressors,
}

/// A list of one argument.
#[derive(Clone, Debug, PartialEq)]
struct Compressors(Vec<Compressor>);

impl NetworkArguments {
    /// How messages may be compressed.
    pub fn compressors(&self) -> Vec<Compressor> {
        self.network_compressors.0.clone()
    }
}

fn parse_compressors(text: &str) -> Result<Compressors, String> {
    if text == "disabled" {
        return Ok(Compressors(Vec::new()));
    }
    let mut compressors = Vec::new();
    for name in text.split(',') {
        let compressor = Compressor::named(name.trim())
            .ok_or_else(|| format!("unknown compressor {name:?}: snappy, zstd, zlib or disabled"))?;
        if compressors.contains(&compressor) {
            return Err(format!("{} is given twice", compressor.name()));
        }
        compressors.push(compressor);
    }
    Ok(Compressors(compressors))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressors_are_read() {
        for (text, expected) in [
            ("snappy,zstd,zlib", Some(Compressor::ALL.to_vec())),
            ("zlib, snappy", Some(vec![Compressor::Zlib, Compressor::Snappy])),
            ("disabled", Some(vec![])),
            ("disabled,zlib", None),
            ("zlib,zlib", None),
            ("lz4", None),
            ("", None),
        ] {
            assert_eq!(parse_compressors(text).ok(), expected.map(Compressors), "{text}");
        }
    }
}
