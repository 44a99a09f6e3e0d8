//! Puts the contracts' interfaces into one `sol!`, which resolves a type only within the source that declares it.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `sol!` skips imports. A contract's type stands for its address, so this one needs no functions.
    let mut source = String::from("alloy::sol! {\n#![sol(extra_derives(Debug, PartialEq, Eq))]\ninterface IERC20 {}\n");
    for interface in ["IFastPay", "ICouncil"] {
        let path = format!("../contracts/interfaces/{interface}.sol");
        println!("cargo::rerun-if-changed={path}");
        source += &std::fs::read_to_string(path)?;
    }
    source += "}\n";
    std::fs::write(Path::new(&std::env::var("OUT_DIR")?).join("contracts.rs"), source)?;
    Ok(())
}
