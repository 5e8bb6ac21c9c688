//! Links the system's libraries of the peers that are asked for.

fn main() {
    println!("cargo::rerun-if-changed=native/wiredtiger.c");
    let is_requested =
        |feature: &str| std::env::var_os(format!("CARGO_FEATURE_{feature}")).is_some();
    if is_requested("ROCKSDB") {
        println!("cargo::rustc-link-lib=dylib=rocksdb");
    }
    #[cfg(feature = "wiredtiger")]
    {
        cc::Build::new().file("native/wiredtiger.c").compile("frond_wiredtiger");
        println!("cargo::rustc-link-lib=dylib=wiredtiger");
    }
}
