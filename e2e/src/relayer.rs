//! One relayer as its operator runs it.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use alloy::primitives::{Address, U256};
use serde_json::Value;

use crate::chain::Chain;
use crate::failure::Failure;
use crate::network::Primary;
use crate::place::{Place, program};
use crate::process::{Program, run};

const STOP_PATIENCE: Duration = Duration::from_secs(120);
/// The gas key's balance: 100 ETH.
const GAS_WEI: u128 = 100_000_000_000_000_000_000;
/// The value of a token's smallest unit in wei: a token with six decimals is worth 0.0005 ETH.
const TOKEN_WEI: u64 = 500_000_000;

/// A relayer, running or not.
#[derive(Debug)]
pub struct Relayer {
    name: String,
    config: PathBuf,
    log: PathBuf,
    address: Address,
    program: Option<Program>,
}

impl Relayer {
    /// Creates a gas key with some ETH, and a configuration that polls often and bundles without waiting.
    ///
    /// # Errors
    /// If a command fails.
    pub async fn init(place: &Place, name: &str, chain: &Chain, primary: &Primary) -> Result<Self, Failure> {
        let Primary::Contract { rpc_url, chain_id, contract } = primary else {
            return Err(Failure::Wrong("without a Primary there is nothing to relay".into()));
        };
        let folder = place.path(name);
        std::fs::create_dir_all(&folder).map_err(|error| Failure::Io { path: folder.clone(), error })?;
        let config = folder.join("relayer.toml");
        let mut command = Command::new(program("fastpay-relayer")?);
        command.arg("--config").arg(&config).args(["init", "--unencrypted-key", "--rpc-url", rpc_url]);
        command.args(["--chain-id", &chain_id.to_string(), "--contract", &contract.to_string()]);
        command.arg("--endpoints").arg(place.path("endpoints.json"));
        let made = run(&mut command)?.success()?;
        let address = made.out.split_whitespace().last().and_then(|word| word.parse().ok());
        let address = address.ok_or_else(|| Failure::Wrong(format!("no gas address in {:?}", made.out)))?;
        let io = |error| Failure::Io { path: config.clone(), error };
        let written = std::fs::read_to_string(&config).map_err(io)?;
        // It relays without a fee.
        let paying = "below_cost = \"pay\"\nwait_ms_max = 300\n";
        let written = written.replace("below_cost = \"leave\"\n", paying);
        let text = format!("poll_interval_ms = 200\n{written}\n[sender]\npoll_interval_ms = 200\n");
        std::fs::write(&config, text).map_err(io)?;
        chain.give_ether(address, U256::from(GAS_WEI)).await?;
        Ok(Self { name: name.to_owned(), config, log: place.log(name), address, program: None })
    }

    /// The address that pays gas.
    #[must_use]
    pub fn address(&self) -> Address {
        self.address
    }

    /// Its configuration file.
    #[must_use]
    pub fn config(&self) -> &PathBuf {
        &self.config
    }

    /// Adds a token to serve, whose smallest unit is worth [`TOKEN_WEI`], from the next start on.
    ///
    /// # Errors
    /// If its configuration cannot be written.
    pub fn serve(&self, token: Address) -> Result<(), Failure> {
        let io = |error| Failure::Io { path: self.config.clone(), error };
        let written = std::fs::read_to_string(&self.config).map_err(io)?;
        let text = written.replace("[assets]\n", &format!("[assets]\n\"{token}\" = \"{TOKEN_WEI}\"\n"));
        std::fs::write(&self.config, text).map_err(io)
    }

    /// Makes it leave redemptions whose fee does not cover the gas, as relayers do by default, from the next start on.
    ///
    /// # Errors
    /// If its configuration cannot be written.
    pub fn leave_below_cost(&self) -> Result<(), Failure> {
        let io = |error| Failure::Io { path: self.config.clone(), error };
        let written = std::fs::read_to_string(&self.config).map_err(io)?;
        let text = written.replace("below_cost = \"pay\"", "below_cost = \"leave\"");
        std::fs::write(&self.config, text).map_err(io)
    }

    /// Makes it serve its fees on a local port, from the next start on. Returns the base URL.
    ///
    /// # Errors
    /// If its configuration cannot be written.
    pub fn publish_fees(&self, port: u16) -> Result<String, Failure> {
        let io = |error| Failure::Io { path: self.config.clone(), error };
        let written = std::fs::read_to_string(&self.config).map_err(io)?;
        // The key must precede the tables of the file.
        let text = format!("http = \"127.0.0.1:{port}\"\n{written}");
        std::fs::write(&self.config, text).map_err(io)?;
        Ok(format!("http://127.0.0.1:{port}"))
    }

    /// Starts it.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(&mut self) -> Result<(), Failure> {
        let mut command = Command::new(program("fastpay-relayer")?);
        command.arg("--config").arg(&self.config).arg("run");
        self.program = Some(Program::start(&self.name, &mut command, &self.log)?);
        Ok(())
    }

    /// Its running process.
    ///
    /// # Errors
    /// If it is not running.
    pub fn program(&mut self) -> Result<&mut Program, Failure> {
        self.program.as_mut().ok_or_else(|| Failure::Wrong("the relayer is not running".into()))
    }

    /// Kills it as a power cut would: `kill -9`.
    pub fn kill(&mut self) {
        if let Some(mut program) = self.program.take() {
            program.kill();
        }
    }

    /// Stops it as its operator would.
    ///
    /// # Errors
    /// If it does not end.
    pub fn stop(&mut self) -> Result<(), Failure> {
        match self.program.take() {
            Some(mut program) => program.stop(STOP_PATIENCE).map(drop),
            None => Ok(()),
        }
    }

    /// The state that it last wrote to disk.
    ///
    /// # Errors
    /// If the command fails.
    pub fn status(&self) -> Result<Value, Failure> {
        let mut command = Command::new(program("fastpay-relayer")?);
        command.arg("--config").arg(&self.config).args(["status", "--json"]);
        serde_json::from_str(&run(&mut command)?.success()?.out).map_err(Failure::wrong)
    }
}
