//! Compiles the protobuf schema with a compiler written in Rust, so that nothing need be installed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto/fastpay.proto");
    let descriptors = protox::compile(["proto/fastpay.proto"], ["proto"])?;
    tonic_prost_build::configure().bytes(".").compile_fds(descriptors)?;
    Ok(())
}
