//! Compiles the protobuf schema with a compiler written in Rust, so that nothing need be installed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto/ledger.proto");
    let descriptors = protox::compile(["proto/ledger.proto"], ["proto"])?;
    tonic_prost_build::configure().compile_fds(descriptors)?;
    Ok(())
}
