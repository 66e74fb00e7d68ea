//! A migration that is added must be embedded, although no source file changes.

fn main() {
    println!("cargo:rerun-if-changed=../../migrations");
}
