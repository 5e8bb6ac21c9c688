//! The locales of MongoDB's collations, and what ICU4X calls them.
//!
//! MongoDB takes a locale only as ICU itself writes it (`en_US`, not `en-us`), and only those for
//! which there are rules: the list is the manual's. A keyword asks for another of a language's
//! orders: `de@collation=phonebook`.

/// The locales without variants; sorted.
const LOCALES: &[&str] = &[
    "af",
    "am",
    "ar",
    "as",
    "az",
    "be",
    "bg",
    "bn",
    "bo",
    "bs",
    "bs_Cyrl",
    "ca",
    "chr",
    "cs",
    "cy",
    "da",
    "de",
    "de_AT",
    "dsb",
    "dz",
    "ee",
    "el",
    "en",
    "en_US",
    "en_US_POSIX",
    "eo",
    "es",
    "et",
    "fa",
    "fa_AF",
    "fi",
    "fil",
    "fo",
    "fr",
    "fr_CA",
    "ga",
    "gl",
    "gu",
    "ha",
    "haw",
    "he",
    "hi",
    "hr",
    "hsb",
    "hu",
    "hy",
    "id",
    "ig",
    "is",
    "it",
    "ja",
    "ka",
    "kk",
    "kl",
    "km",
    "kn",
    "ko",
    "kok",
    "ky",
    "lb",
    "lkt",
    "ln",
    "lo",
    "lt",
    "lv",
    "mk",
    "ml",
    "mn",
    "mr",
    "ms",
    "mt",
    "my",
    "nb",
    "ne",
    "nl",
    "nn",
    "om",
    "or",
    "pa",
    "pl",
    "ps",
    "pt",
    "ro",
    "ru",
    "se",
    "si",
    "sk",
    "sl",
    "smn",
    "sq",
    "sr",
    "sr_Latn",
    "sv",
    "sw",
    "ta",
    "te",
    "th",
    "to",
    "tr",
    "ug",
    "uk",
    "ur",
    "vi",
    "wae",
    "yi",
    "yo",
    "zh",
    "zh_Hant",
    "zu",
];

/// The other orders of a language: MongoDB's name, and ICU4X's. Sorted by language.
const VARIANTS: &[(&str, &str, &str)] = &[
    ("ar", "compat", "compat"),
    ("bn", "traditional", "trad"),
    ("de", "phonebook", "phonebk"),
    ("de_AT", "phonebook", "phonebk"),
    ("es", "traditional", "trad"),
    ("fi", "traditional", "trad"),
    ("ja", "unihan", "unihan"),
    ("kn", "traditional", "trad"),
    ("ko", "unihan", "unihan"),
    ("si", "dictionary", "dict"),
    // Today's "standard" is the reformed order that MongoDB has without a keyword.
    ("sv", "standard", "trad"),
    ("vi", "traditional", "trad"),
    ("zh", "stroke", "stroke"),
    ("zh", "unihan", "unihan"),
    ("zh", "zhuyin", "zhuyin"),
    ("zh_Hant", "pinyin", "pinyin"),
    ("zh_Hant", "unihan", "unihan"),
    ("zh_Hant", "zhuyin", "zhuyin"),
];

/// The orders that all languages have.
const COMMON_VARIANTS: &[&str] = &["emoji", "eor"];

/// The language tag of a locale; `None` if there is no such locale.
pub(super) fn tag(locale: &str) -> Option<String> {
    let (base, variant) = match locale.split_once('@') {
        Some((base, keyword)) => (base, Some(keyword.strip_prefix("collation=")?)),
        None => (locale, None),
    };
    if LOCALES.binary_search(&base).is_err() {
        return None;
    }
    let mut tag = match base {
        "en_US_POSIX" => "en-US-u-va-posix".to_owned(),
        _ => base.replace('_', "-"),
    };
    let Some(variant) = variant else { return Some(tag) };
    let standard = variant == "standard" && base.starts_with("zh");
    let known = VARIANTS.iter().find(|(language, name, _)| *language == base && *name == variant);
    let known = match known {
        Some((_, _, known)) => known,
        None if COMMON_VARIANTS.contains(&variant) => variant,
        None if standard => return Some(tag),
        None => return None,
    };
    tag.push_str(if base == "en_US_POSIX" { "-co-" } else { "-u-co-" });
    tag.push_str(known);
    Some(tag)
}

/// The locale that a wrong one may have meant, as MongoDB suggests it.
pub(super) fn nearest(locale: &str) -> Option<String> {
    let base = locale.split('@').next().unwrap_or(locale);
    let mut parts: Vec<String> = Vec::new();
    for part in base.split(['_', '-']) {
        let is_script = part.len() == 4 && part.bytes().all(|byte| byte.is_ascii_alphabetic());
        let mut part = match parts.is_empty() || is_script {
            true => part.to_ascii_lowercase(),
            false => part.to_ascii_uppercase(),
        };
        if is_script
            && !parts.is_empty()
            && let Some(first) = part.get_mut(..1)
        {
            first.make_ascii_uppercase();
        }
        parts.push(part);
    }
    while !parts.is_empty() {
        let candidate = parts.join("_");
        if LOCALES.binary_search(&candidate.as_str()).is_ok() {
            return Some(candidate);
        }
        parts.pop();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locales_ascend_so_that_they_can_be_searched() {
        assert!(LOCALES.is_sorted_by(|left, right| left < right));
        assert!(VARIANTS.is_sorted_by(|left, right| left < right));
    }

    #[test]
    fn locales_have_tags() {
        for (locale, expected) in [
            ("en", Some("en")),
            ("fr_CA", Some("fr-CA")),
            ("en_US_POSIX", Some("en-US-u-va-posix")),
            ("de@collation=phonebook", Some("de-u-co-phonebk")),
            ("zh@collation=standard", Some("zh")),
            ("en@collation=phonebook", None),
            ("en@phonebook", None),
            ("EN", None),
            ("en-US", None),
            ("xx", None),
            ("", None),
        ] {
            assert_eq!(tag(locale).as_deref(), expected, "{locale}");
        }
    }

    #[test]
    fn a_wrong_locale_is_refused_with_the_nearest() {
        for (locale, expected) in [
            ("en-us", Some("en_US")),
            ("FR_ca", Some("fr_CA")),
            ("de_CH", Some("de")),
            ("zh_hant_TW", Some("zh_Hant")),
            ("xx_YY", None),
        ] {
            assert_eq!(nearest(locale).as_deref(), expected, "{locale}");
        }
    }
}
