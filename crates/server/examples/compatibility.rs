//! Prints the tables of COMPATIBILITY.md, each after a line with its name: for `cargo xtask`.

fn main() {
    for (name, table) in frond_server::reference::parts() {
        println!("== {name}\n{table}");
    }
}
