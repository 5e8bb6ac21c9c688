//! Arithmetic and conversion of Decimal128.
