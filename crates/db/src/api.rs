//! All that a database can be asked for, on one page a kind; each line leads to the file that does
//! it. What a [`Database`](crate::database::Database) is stands in its own file.

mod definitions;
mod reads;
mod writes;
