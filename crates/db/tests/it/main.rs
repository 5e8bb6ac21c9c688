//! The database as those who embed it use it.

mod version;
