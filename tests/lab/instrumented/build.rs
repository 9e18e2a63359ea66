//! Turns the laboratory's hooks on.

fn main() {
    println!("cargo::rustc-cfg=handstamp_laboratory");
    // The sources know the operator's tool, which is part of no experiment.
    println!("cargo::rustc-check-cfg=cfg(feature, values(\"cli\"))");
    println!("cargo::rerun-if-changed=build.rs");
}
