//! Turns the laboratory's hooks on.

fn main() {
    println!("cargo::rustc-cfg=handstamp_laboratory");
    println!("cargo::rerun-if-changed=build.rs");
}
