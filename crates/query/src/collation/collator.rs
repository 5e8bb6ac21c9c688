//! An ICU4X collator that is set up as a specification says.
//!
//! All options are set, also those for which a language has a default of its own, since MongoDB's
//! specification has no "as the language has it"; the one exception is `backwards`, which Canadian
//! French has unless told otherwise. ICU4X takes it from a language's data alone: [`Data`] hands
//! that data on with the one bit set as asked.

use frond_doc::{Document, Value};
use icu_collator::options::{AlternateHandling, CaseLevel, CollatorOptions, MaxVariable, Strength};
use icu_collator::preferences::{CollationCaseFirst, CollationNumericOrdering};
use icu_collator::provider::{
    Baked, CollationDiacriticsV1, CollationJamoV1, CollationMetadataV1, CollationReorderingV1,
    CollationRootV1, CollationSpecialPrimariesV1, CollationTailoringV1,
};
use icu_collator::{Collator, CollatorPreferences};
use icu_locale_core::Locale;
use icu_normalizer::provider::{Baked as Normalizer, NormalizerNfdDataV1, NormalizerNfdTablesV1};
use icu_provider::{
    DataError, DataMarker, DataPayload, DataProvider, DataRequest, DataResponse, DynamicDataMarker,
};

use super::locale;
use crate::code::Code;
use crate::error::QueryError;

/// The bit of a language's data that asks for accents from the end of the string.
const BACKWARDS: u32 = 1 << 7;

/// Makes the collator of a specification that has every option.
pub(super) fn build(specification: Document<'_>) -> Result<Collator, QueryError> {
    let text = |name| specification.get(name).and_then(|value| value.as_str()).unwrap_or_default();
    let flag = |name| specification.get(name) == Some(Value::Boolean(true));
    let tag = locale::tag(text("locale")).ok_or_else(|| failed(&"it has no rules"))?;
    let locale: Locale = tag.parse().map_err(|error| failed(&error))?;
    let mut preferences = CollatorPreferences::from(&locale);
    preferences.numeric_ordering = Some(match flag("numericOrdering") {
        true => CollationNumericOrdering::True,
        false => CollationNumericOrdering::False,
    });
    preferences.case_first = Some(match text("caseFirst") {
        "upper" => CollationCaseFirst::Upper,
        "lower" => CollationCaseFirst::Lower,
        _ => CollationCaseFirst::False,
    });
    let mut options = CollatorOptions::default();
    options.strength = Some(match specification.get("strength").and_then(|s| s.as_integer()) {
        Some(1) => Strength::Primary,
        Some(2) => Strength::Secondary,
        Some(4) => Strength::Quaternary,
        Some(5) => Strength::Identical,
        _ => Strength::Tertiary,
    });
    options.case_level = Some(if flag("caseLevel") { CaseLevel::On } else { CaseLevel::Off });
    options.alternate_handling = Some(match text("alternate") {
        "shifted" => AlternateHandling::Shifted,
        _ => AlternateHandling::NonIgnorable,
    });
    options.max_variable = Some(match text("maxVariable") {
        "space" => MaxVariable::Space,
        _ => MaxVariable::Punctuation,
    });
    let data = Data { backwards: flag("backwards") };
    Collator::try_new_unstable(&data, preferences, options).map_err(|error| failed(&error))
}

fn failed(why: &dyn std::fmt::Display) -> QueryError {
    QueryError::new(Code::OperationFailed, format!("Failed to create collator: {why}"))
}

/// ICU4X's own data, with `backwards` as asked.
struct Data {
    backwards: bool,
}

/// Loads what ICU4X has built in.
fn built_in<M>(
    source: &dyn DataProvider<M>,
    request: DataRequest<'_>,
) -> Result<DataResponse<M>, DataError>
where
    M: DataMarker + DynamicDataMarker,
{
    source.load(request)
}

macro_rules! from_built_in {
    ($($source:ident: $($marker:ty),+;)+) => { $($(
        impl DataProvider<$marker> for Data {
            fn load(&self, request: DataRequest<'_>) -> Result<DataResponse<$marker>, DataError> {
                built_in(&$source, request)
            }
        }
    )+)+ };
}

from_built_in! {
    Baked: CollationDiacriticsV1, CollationJamoV1, CollationReorderingV1, CollationRootV1,
        CollationSpecialPrimariesV1, CollationTailoringV1;
    Normalizer: NormalizerNfdDataV1, NormalizerNfdTablesV1;
}

impl DataProvider<CollationMetadataV1> for Data {
    fn load(
        &self,
        request: DataRequest<'_>,
    ) -> Result<DataResponse<CollationMetadataV1>, DataError> {
        let found = built_in::<CollationMetadataV1>(&Baked, request)?;
        let mut metadata = *found.payload.get();
        metadata.bits = match self.backwards {
            true => metadata.bits | BACKWARDS,
            false => metadata.bits & !BACKWARDS,
        };
        Ok(DataResponse { metadata: found.metadata, payload: DataPayload::from_owned(metadata) })
    }
}
