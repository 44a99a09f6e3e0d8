//! A whole committee: with the contract on a chain and a relayer, or from a genesis without Ethereum.

use std::path::{Path, PathBuf};
use std::time::Duration;

use alloy::primitives::Address;
use fastpay_client::NetworkError;
use fastpay_client::{AuthorityClient, Endpoints};
use fastpay_core::{Authority as Member, Committee, Committees, Domain, Epoch, Genesis, GenesisBalance};
use fastpay_testkit::Ports;

use crate::authority::{Authority, Cell};
use crate::chain::{CHAIN_ID, Chain};
use crate::failure::Failure;
use crate::place::Place;
use crate::relayer::Relayer;

/// The size of a network.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// The number of authorities.
    pub authorities: usize,
    /// The number of shards of each authority.
    pub shards: u16,
    /// The time between blocks.
    pub block_time: Duration,
    /// The `fastpay-node` that sets authorities up and runs them until [`Authority::upgrade`]; this workspace's if none.
    pub node: Option<&'static Path>,
}

impl Default for Layout {
    fn default() -> Self {
        Self { authorities: 4, shards: 2, block_time: Duration::from_millis(300), node: None }
    }
}

/// The source of the committee's money.
#[derive(Clone, Debug)]
pub enum Primary {
    /// A contract.
    Contract {
        /// The URL of an Ethereum node.
        rpc_url: String,
        /// The chain.
        chain_id: u64,
        /// The FastPay contract.
        contract: Address,
    },
    /// A genesis file.
    Genesis(PathBuf),
}

/// A committee, its chain and its relayer. All processes end when it is dropped.
#[derive(Debug)]
pub struct Network {
    /// The authorities.
    pub authorities: Vec<Authority>,
    /// The relayer, if there is a chain.
    pub relayer: Option<Relayer>,
    /// The chain, if there is one.
    pub chain: Option<Chain>,
    primary: Primary,
    domain: Domain,
    committee: Committee,
    ports: Ports,
    // The last field, so that the processes end before their files are removed.
    place: Place,
}

fn committee(members: Vec<Member>) -> Result<Committee, Failure> {
    Committee::new(Epoch(0), members).map_err(Failure::wrong)
}

fn new_authorities(place: &Place, layout: Layout) -> Result<Vec<Authority>, Failure> {
    (0..layout.authorities).map(|number| Authority::with_new_keys(place, number, layout.node)).collect()
}

impl Network {
    /// Starts a chain, deploys the contract for a new committee, and sets up its authorities and a relayer without
    /// starting them.
    ///
    /// # Errors
    /// If a step fails.
    pub async fn prepare(place: Place, layout: Layout) -> Result<Self, Failure> {
        let mut ports = Ports::take()?;
        let chain = Chain::start(&place, &mut ports, layout.block_time).await?;
        Self::on_chain(place, ports, layout, chain, None).await
    }

    /// The same on a running chain. The authorities reach it at `rpc_url` if given.
    ///
    /// # Errors
    /// If a step fails.
    pub async fn on_chain(
        place: Place,
        mut ports: Ports,
        layout: Layout,
        chain: Chain,
        rpc_url: Option<String>,
    ) -> Result<Self, Failure> {
        let mut authorities = new_authorities(&place, layout)?;
        let members: Vec<_> = authorities.iter().map(Authority::member).collect();
        let contract = chain.deploy(&place, &members)?;
        let primary = Primary::Contract { rpc_url: chain.url().to_owned(), chain_id: CHAIN_ID, contract };
        let theirs = match (&primary, rpc_url) {
            (Primary::Contract { chain_id, contract, .. }, Some(rpc_url)) => {
                Primary::Contract { rpc_url, chain_id: *chain_id, contract: *contract }
            }
            (primary, _) => primary.clone(),
        };
        for authority in &mut authorities {
            authority.init(&mut ports, layout.shards, &theirs)?;
        }
        write_endpoints(&place, &authorities, Vec::new())?;
        let relayer = Some(Relayer::init(&place, "relayer", &chain, &primary).await?);
        let domain = Domain::new(CHAIN_ID, contract);
        let committee = committee(members)?;
        Ok(Self { authorities, relayer, chain: Some(chain), primary, domain, committee, ports, place })
    }

    /// Sets up a committee without a Primary and without starting it.
    ///
    /// # Errors
    /// If a step fails.
    pub fn prepare_standalone(place: Place, layout: Layout, balances: Vec<GenesisBalance>) -> Result<Self, Failure> {
        Self::prepare_apart(place, layout, balances, Vec::new())
    }

    /// The same with each of the first authorities in a cell of its own.
    ///
    /// # Errors
    /// If a step fails.
    pub fn prepare_apart(
        place: Place,
        layout: Layout,
        balances: Vec<GenesisBalance>,
        cells: Vec<Cell>,
    ) -> Result<Self, Failure> {
        let mut ports = Ports::take()?;
        let mut authorities = new_authorities(&place, layout)?;
        authorities.iter_mut().zip(cells).for_each(|(authority, cell)| authority.move_into(cell));
        let members: Vec<_> = authorities.iter().map(Authority::member).collect();
        let genesis = Genesis { committee: members.clone(), balances };
        let text = serde_json::to_string(&genesis).map_err(Failure::wrong)?;
        let primary = Primary::Genesis(place.write("genesis.json", text)?);
        for authority in &mut authorities {
            authority.init(&mut ports, layout.shards, &primary)?;
        }
        write_endpoints(&place, &authorities, Vec::new())?;
        let (domain, committee) = (genesis.domain(), committee(members)?);
        Ok(Self { authorities, relayer: None, chain: None, primary, domain, committee, ports, place })
    }

    /// Replaces an authority, whose process must not run, by one of a new operator, with new keys and with an empty folder
    /// and ports of its own. The endpoints file lists it.
    ///
    /// # Errors
    /// If a command fails, no port is left, or the file cannot be written.
    pub fn replace(&mut self, number: usize, shards: u16) -> Result<(), Failure> {
        let mut new = Authority::with_new_keys(&self.place, self.authorities.len().saturating_add(number), None)?;
        new.init(&mut self.ports, shards, &self.primary)?;
        *self.authority(number)? = new;
        write_endpoints(&self.place, &self.authorities, Vec::new())
    }

    /// Sets up one more authority, of a new operator, with an empty folder. The endpoints file lists it.
    ///
    /// # Errors
    /// As [`Network::replace`].
    pub fn add(&mut self, shards: u16) -> Result<(), Failure> {
        let mut new = Authority::with_new_keys(&self.place, self.authorities.len(), None)?;
        new.init(&mut self.ports, shards, &self.primary)?;
        self.authorities.push(new);
        write_endpoints(&self.place, &self.authorities, Vec::new())
    }

    /// Configures fewer shards of an authority, whose journals its operator has rebased, and lists it so in the endpoints
    /// file. Its process starts with them.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn set_shards(&mut self, number: usize, shards: u16) -> Result<(), Failure> {
        self.authority(number)?.set_shards(shards)?;
        write_endpoints(&self.place, &self.authorities, Vec::new())
    }

    /// Starts all authorities, and waits until they are ready.
    ///
    /// # Errors
    /// If one is not.
    pub async fn start_authorities(&mut self) -> Result<(), Failure> {
        for authority in &mut self.authorities {
            authority.start()?;
        }
        for authority in &mut self.authorities {
            authority.wait_ready().await?;
        }
        Ok(())
    }

    /// Starts the relayer.
    ///
    /// # Errors
    /// If there is none.
    pub fn start_relayer(&mut self) -> Result<(), Failure> {
        self.relayer()?.start()
    }

    /// The authority of this number.
    ///
    /// # Errors
    /// If there is none.
    pub fn authority(&mut self, number: usize) -> Result<&mut Authority, Failure> {
        self.authorities.get_mut(number).ok_or_else(|| Failure::Wrong(format!("there is no authority {number}")))
    }

    /// The relayer.
    ///
    /// # Errors
    /// If there is none.
    pub fn relayer(&mut self) -> Result<&mut Relayer, Failure> {
        self.relayer.as_mut().ok_or_else(|| Failure::Wrong("there is no relayer without a chain".into()))
    }

    /// The chain.
    ///
    /// # Errors
    /// If there is none.
    pub fn chain(&self) -> Result<&Chain, Failure> {
        self.chain.as_ref().ok_or_else(|| Failure::Wrong("this network has no chain".into()))
    }

    /// The source of the committee's money.
    #[must_use]
    pub fn primary(&self) -> &Primary {
        &self.primary
    }

    /// The contract.
    ///
    /// # Errors
    /// If there is none.
    pub fn contract(&self) -> Result<Address, Failure> {
        match &self.primary {
            Primary::Contract { contract, .. } => Ok(*contract),
            Primary::Genesis(_) => Err(Failure::Wrong("this network has no contract".into())),
        }
    }

    /// The domain of everything that is signed here.
    #[must_use]
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// The committee.
    #[must_use]
    pub fn committee(&self) -> &Committee {
        &self.committee
    }

    /// The network's folder.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Its ports, for other programs that listen.
    pub fn ports(&mut self) -> &mut Ports {
        &mut self.ports
    }

    /// Configures the relayer to serve its fees, and lists it in the endpoints file. Returns its base URL. The relayer
    /// applies this at its next start.
    ///
    /// # Errors
    /// If there is no relayer, no port is left, or a file cannot be written.
    pub fn publish_fees(&mut self) -> Result<String, Failure> {
        let port = self.ports.next(1)?;
        let url = self.relayer()?.publish_fees(port)?;
        write_endpoints(&self.place, &self.authorities, vec![url.clone()])?;
        Ok(url)
    }

    /// The endpoints file.
    #[must_use]
    pub fn endpoints_file(&self) -> PathBuf {
        self.place.path("endpoints.json")
    }

    /// A client of every authority.
    ///
    /// # Errors
    /// If an address is malformed.
    pub fn clients(&self) -> Result<Vec<AuthorityClient>, Failure> {
        self.authorities.iter().map(Authority::client).collect()
    }

    /// The wallet library's client of the committee.
    ///
    /// # Errors
    /// If the file of endpoints is malformed.
    pub fn wallet_network(&self) -> Result<fastpay_client::Network, Failure> {
        let endpoints = Endpoints::read(&self.endpoints_file()).map_err(Failure::wrong)?;
        let committees = Committees::new(self.committee.clone()).map_err(Failure::wrong)?;
        let network = fastpay_client::Network::new(self.domain, committees, &endpoints);
        network.map_err(|error: NetworkError| Failure::wrong(error))
    }
}

fn write_endpoints(place: &Place, authorities: &[Authority], relayers: Vec<String>) -> Result<(), Failure> {
    let list: Result<Vec<_>, _> = authorities.iter().map(|authority| authority.endpoints().cloned()).collect();
    let endpoints = Endpoints { authorities: list?, relayers, explorer: None };
    let text = serde_json::to_string_pretty(&endpoints).map_err(Failure::wrong)?;
    place.write("endpoints.json", text).map(drop)
}
