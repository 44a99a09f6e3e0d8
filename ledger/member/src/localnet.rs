//! Starts the clusters of a ledger on this machine, each member a process, and kills them: for tests and the demo.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fastpay_core::{AccountId, AccountKey, Amount, Asset, Authority, AuthorityKeys};
use fastpay_ledger_client::{Client, Network};
use fastpay_ledger_statement::{ClusterId, MemberKeys};
use fastpay_program::keystore::{Secret, write_secret};
use tokio::time::{Instant, sleep};

use crate::member::init;

/// Every cluster has so many members, of which one may be faulty.
pub const MEMBERS: u8 = 4;

/// The guardian of committee 0, whose key everybody knows.
#[must_use]
pub fn guardian() -> AccountKey {
    AccountKey::ethereum([0x67; 32]).expect("the number is below the order of the curve")
}

/// What a ledger is to have.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// The clusters that keep nothing, and pass requests on.
    pub coordinators: Vec<u32>,
    /// The clusters that keep reserves and values. The first settles.
    pub shards: Vec<u32>,
    /// Each namespace with its writer.
    pub namespaces: Vec<(String, AccountId)>,
    /// Who has how much of the native asset first.
    pub issued: Vec<(AccountId, u128)>,
    /// The members of FastPay's committee 0. Without any, they are four whose keys everybody knows, and who do not run.
    pub authorities: Vec<Authority>,
}

/// A ledger on this machine. Its members are killed when it is dropped.
#[derive(Debug)]
pub struct Localnet {
    folder: PathBuf,
    program: PathBuf,
    network: Network,
    running: BTreeMap<(u32, u8), Child>,
}

impl Localnet {
    /// Makes the folders of all members.
    ///
    /// # Errors
    /// Any of the system.
    pub fn new(program: &Path, folder: &Path, shape: &Shape) -> io::Result<Self> {
        let mut text = String::new();
        let shards = &shape.shards;
        let settlement = shards.first().ok_or_else(|| io::Error::other("a ledger has a shard"))?;
        let _ = writeln!(text, "settlement = {settlement}\nshards = {shards:?}");
        let mut keys: Vec<((u32, u8), Secret)> = Vec::new();
        // All ports are held until all are known, so that none is given twice.
        let mut held = Vec::new();
        for cluster in shape.coordinators.iter().chain(shards) {
            let mut secrets: Vec<Secret> = (0..MEMBERS).map(|_| Secret::new(rand::random())).collect();
            secrets.sort_by_key(|secret| MemberKeys::from_seed(**secret).public());
            let _ = writeln!(text, "[[cluster]]\nid = {cluster}");
            for (index, secret) in (0..MEMBERS).zip(secrets) {
                let key = MemberKeys::from_seed(*secret).public();
                let _ = writeln!(text, "[[cluster.member]]\nkey = \"{key}\"");
                for name in ["engine", "api", "http"] {
                    let listener = listen()?;
                    let _ = writeln!(text, "{name} = \"{}\"", listener.local_addr()?);
                    held.push(listener);
                }
                keys.push(((*cluster, index), secret));
            }
        }
        for (name, writer) in &shape.namespaces {
            let _ = writeln!(text, "[[namespace]]\nname = \"{name}\"\nwriter = \"{writer}\"");
        }
        for (owner, amount) in &shape.issued {
            let asset = serde_json::to_string(&Asset::ETHER)?;
            let _ = writeln!(text, "[[issue]]\nowner = \"{owner}\"\nasset = {asset}\namount = \"{}\"", Amount(*amount));
        }
        let (asset, guardian) = (Asset::ETHER.0, guardian().account());
        let _ = writeln!(
            text,
            "[[committee]]\nnumber = 0\nguardian = \"{guardian}\"\n[committee.parameters]\n\
             votes_validity_ms = 604800000\nunlock_window_ms = 259200000\nendorsed_delay_ms = 2000\n\
             announced_delay_ms = 10000\nlapse_ms = 604800000\nunlock_bond = {{ asset = \"{asset}\", amount = \"10\" }}"
        );
        let known =
            (1..=4_u8).map(|seed| AuthorityKeys::from_secrets([seed; 32], [seed; 32]).map(|keys| keys.public()));
        let known = known.collect::<Result<Vec<_>, _>>().map_err(io::Error::other)?;
        let authorities = if shape.authorities.is_empty() { &known } else { &shape.authorities };
        for Authority { name, redemption_key } in authorities {
            let _ =
                writeln!(text, "[[committee.authority]]\nvotingKey = \"{name}\"\nredemptionKey = \"{redemption_key}\"");
        }
        std::fs::create_dir_all(folder)?;
        let ledger = folder.join("ledger.toml");
        std::fs::write(&ledger, &text)?;
        for ((cluster, index), secret) in keys {
            let key = folder.join(format!("{cluster}.{index}.key"));
            write_secret(&key, &secret, None).map_err(io::Error::other)?;
            init(&folder.join(format!("{cluster}.{index}")), &ledger, &key).map_err(io::Error::other)?;
        }
        drop(held);
        let network = Network::parse(&text).map_err(io::Error::other)?;
        Ok(Self { folder: folder.to_path_buf(), program: program.to_path_buf(), network, running: BTreeMap::new() })
    }

    /// The ledger.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The ledger's file.
    #[must_use]
    pub fn ledger(&self) -> PathBuf {
        self.folder.join("ledger.toml")
    }

    /// A client of the ledger.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::new(&self.network).expect("the ledger's file was made here")
    }

    /// A member's folder.
    #[must_use]
    pub fn member_folder(&self, cluster: u32, member: u8) -> PathBuf {
        self.folder.join(format!("{cluster}.{member}"))
    }

    /// What all members have logged.
    #[must_use]
    pub fn logs(&self) -> String {
        let clusters = self.network.genesis().clusters.keys();
        clusters.flat_map(|cluster| (0..MEMBERS).map(|member| self.log(cluster.0, member))).collect()
    }

    /// What a member has logged.
    #[must_use]
    pub fn log(&self, cluster: u32, member: u8) -> String {
        let path = self.member_folder(cluster, member).join("log");
        String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
    }

    /// Starts a member that is honest, or lies about something.
    ///
    /// # Errors
    /// Any of the system; a member that was started and not killed.
    pub fn start(&mut self, cluster: u32, member: u8, lie: Option<&str>) -> io::Result<()> {
        if self.running.contains_key(&(cluster, member)) {
            return Err(io::Error::other("the member was started before; kill it first"));
        }
        let folder = self.member_folder(cluster, member);
        let log = File::options().create(true).append(true).open(folder.join("log"))?;
        let mut command = Command::new(&self.program);
        command.arg("run").arg(&folder).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        command.env("NO_COLOR", "1");
        if let Some(lie) = lie {
            command.env("FASTPAY_LEDGER_LIE", lie);
        }
        self.running.insert((cluster, member), command.spawn()?);
        Ok(())
    }

    /// Starts all members of a cluster that do not run.
    ///
    /// # Errors
    /// Any of the system.
    pub fn start_cluster(&mut self, cluster: u32) -> io::Result<()> {
        for member in 0..MEMBERS {
            if !self.running.contains_key(&(cluster, member)) {
                self.start(cluster, member, None)?;
            }
        }
        Ok(())
    }

    /// Starts all members that do not run.
    ///
    /// # Errors
    /// Any of the system.
    pub fn start_all(&mut self) -> io::Result<()> {
        let clusters: Vec<ClusterId> = self.network.genesis().clusters.keys().copied().collect();
        clusters.into_iter().try_for_each(|cluster| self.start_cluster(cluster.0))
    }

    /// Starts all members that do not run, and waits until all vote.
    ///
    /// # Errors
    /// Any of the system; a member that does not vote within a minute.
    pub async fn start_and_wait(&mut self) -> io::Result<()> {
        self.start_all()?;
        let all: Vec<u8> = (0..MEMBERS).collect();
        let clusters: Vec<ClusterId> = self.network.genesis().clusters.keys().copied().collect();
        for cluster in clusters {
            self.wait_for(cluster.0, &all, 1).await?;
        }
        Ok(())
    }

    /// Kills a member as a power cut would.
    pub fn kill(&mut self, cluster: u32, member: u8) {
        if let Some(mut child) = self.running.remove(&(cluster, member)) {
            // It may have ended before.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Kills all members of a cluster at once.
    pub fn kill_cluster(&mut self, cluster: u32) {
        for member in 0..MEMBERS {
            if let Some(child) = self.running.get_mut(&(cluster, member)) {
                let _ = child.kill();
            }
        }
        (0..MEMBERS).for_each(|member| self.kill(cluster, member));
    }

    /// The processor time of all members so far.
    ///
    /// # Errors
    /// Any of the system; a member that has ended.
    pub fn processor_time(&self) -> io::Result<Duration> {
        let mut sum = 0_u64;
        for child in self.running.values() {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id()))?;
            sum = sum.saturating_add(ticks_of(&stat).ok_or_else(|| io::Error::other("no times in /proc"))?);
        }
        Ok(Duration::from_millis(sum.saturating_mul(10)))
    }

    /// Waits until each of these members has decided a height, and votes.
    ///
    /// # Errors
    /// If one has not within a minute.
    pub async fn wait_for(&self, cluster: u32, members: &[u8], height: u64) -> io::Result<()> {
        let client = self.client();
        let end = Instant::now().checked_add(Duration::from_secs(60));
        loop {
            let all = client.status(ClusterId(cluster)).await.map_err(io::Error::other)?;
            let is_there = |member: &u8| {
                let status = all.get(usize::from(*member)).and_then(|(_, status)| status.as_ref());
                status.is_some_and(|status| status.height >= height && status.votes)
            };
            if members.iter().all(is_there) {
                return Ok(());
            }
            if end.is_none_or(|end| Instant::now() > end) {
                let logs: String = members.iter().map(|member| self.log(cluster, *member)).collect();
                return Err(io::Error::other(format!("cluster {cluster} is not at height {height}: {all:?}\n{logs}")));
            }
            sleep(Duration::from_millis(100)).await;
        }
    }
}

/// User and system time in what `/proc` says about a process, in hundredths of a second. The name, in brackets, may
/// have spaces; both are the eleventh and twelfth field after the state, which is the first one after the name.
fn ticks_of(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_whitespace().skip(11);
    let (user, system): (u64, u64) = (times.next()?.parse().ok()?, times.next()?.parse().ok()?);
    user.checked_add(system)
}

/// Holds a port below those that the system gives to outgoing connections, so that a member that was killed can have it
/// again, and below those of the end-to-end tests.
pub(crate) fn listen() -> io::Result<TcpListener> {
    loop {
        match TcpListener::bind(("127.0.0.1", rand::random_range(10_000..12_000))) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            bound => return bound,
        }
    }
}

impl Drop for Localnet {
    fn drop(&mut self) {
        for child in self.running.values_mut() {
            let _ = child.kill();
        }
        for child in self.running.values_mut() {
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ticks_of;

    #[test]
    fn processor_time_is_read_also_of_a_process_without_a_terminal() {
        let stat = "7 (a ) name) S 1 7 7 0 -1 4194560 900 0 3 0 120 34 5 6 20 0 9 0 100 1000 200";
        assert_eq!(ticks_of(stat), Some(154));
        assert_eq!(ticks_of(""), None);
    }
}
