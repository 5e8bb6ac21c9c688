//! All that a database can be asked for, on one page a kind; each line leads to the file that does
//! it. [`Database`](crate::database::Database) itself is in its own file.

mod definitions;
mod reads;
mod writes;
