//! Bytes from outside.
