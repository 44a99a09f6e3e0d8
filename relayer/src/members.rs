//! Members of the committee that the endpoints file does not list. Each says itself where it can be reached; the
//! relayer asks the authorities that it knows, and keeps what they say in `members.json`. Losing the file costs time
//! only.

use std::path::PathBuf;
use std::time::Duration;

use fastpay_core::AuthorityName;
use fastpay_program::files;
use fastpay_rpc::json::MemberEndpoints;
use tokio::time::Instant;

use crate::primary::PrimarySide;
use crate::relayer::{Relayer, RelayerError, wait_if_it_passes};

/// How often the contract is asked for a new committee, and authorities for members without an address.
const INTERVAL: Duration = Duration::from_secs(60);
/// The maximum time for their answers.
const PATIENCE: Duration = Duration::from_secs(5);

impl<P: PrimarySide> Relayer<P> {
    /// Follows the committee, and finds its members.
    pub(crate) async fn find_members(&mut self) -> Result<(), RelayerError> {
        let is_first = self.members_asked_at.is_none();
        if self.members_asked_at.is_some_and(|at| at.elapsed() < INTERVAL) {
            return Ok(());
        }
        self.members_asked_at = Some(Instant::now());
        if !is_first && let Err(error) = self.follow_committees().await {
            wait_if_it_passes(error)?;
        }
        let Some(committees) = &self.committees else { return Ok(()) };
        let network = self.voters.network(&self.domain, committees);
        if is_first {
            network.learn(self.known_members().read());
        }
        if !network.is_all_found() && network.find_members(Instant::now() + PATIENCE).await {
            let content = serde_json::to_vec_pretty(&MemberEndpoints::new(&network.told()));
            let kept = content.map_err(Into::into).and_then(|content| files::replace(&self.members_file(), &content));
            if let Err(error) = kept {
                tracing::warn!(%error, "where members are cannot be kept; they are asked for again");
            }
        }
        // Cursors are kept by the names of the endpoints file.
        let names = network.names();
        let listed =
            |now: AuthorityName| names.iter().find(|(_, name)| **name == now).map_or(now, |(listed, _)| *listed);
        let authorities = network.authorities();
        let authorities = authorities.iter().map(|authority| authority.named(listed(authority.name())));
        self.redemption_logs.follow(authorities.collect());
        Ok(())
    }

    fn members_file(&self) -> PathBuf {
        self.config.data_dir.join("members.json")
    }

    /// What is kept of members. They are asked for again if it cannot be read.
    fn known_members(&self) -> MemberEndpoints {
        let content = files::read(&self.members_file()).ok().flatten().unwrap_or_default();
        serde_json::from_slice(&content).unwrap_or_default()
    }
}
