//! The commands about the committee.

mod arguments;

use fastpay_node::authority::keys::{self, KeyFiles, passphrase_source};
use fastpay_node::operator::committee::{self, Announce, Payer, Proposal, State};
use fastpay_program::console::{answer, complain};

use crate::error::CommandError;
use crate::{document, page, runtime, tell, write_out};

pub(crate) use arguments::{ChangeCommand, CommitteeCommand, SendingArguments};
use arguments::{NextArguments, SignCommand, SigningArguments};

/// A step of a new committee.
pub(super) fn change(command: ChangeCommand) -> Result<(), CommandError> {
    let show = |proposal: &Proposal, json| answer(if json { page(proposal) } else { proposal.to_string() });
    let sender = |sending: &SendingArguments| -> Result<_, CommandError> {
        let config = sending.config.read()?;
        let key = committee::read_key(&sending.key, &passphrase_source(sending.passphrase_file.clone()))?;
        Ok((config, Payer { key, max_fee_cap_gwei: sending.max_fee_cap_gwei }, runtime()?))
    };
    match command {
        ChangeCommand::Propose { proofs, terms, out, json, config } => {
            let config = config.read()?;
            let terms = terms.into();
            let (text, proposal) = runtime()?.block_on(committee::propose(&config, &proofs, &terms, &out))?;
            complain(text.trim_end());
            Ok(show(&proposal, json)?)
        }
        ChangeCommand::Announce { next: NextArguments { announcement, proofs }, votes, recovery, sending } => {
            let (config, payer, runtime) = sender(&sending)?;
            let what = Announce { announcement: &announcement, proofs: &proofs, votes: &votes, is_recovery: recovery };
            let proposal = runtime.block_on(committee::announce(&config, payer, &what, &mut tell))?;
            Ok(show(&proposal, sending.json)?)
        }
        ChangeCommand::Endorse { announcement, id, sending } => {
            let (config, payer, runtime) = sender(&sending)?;
            let proposal = runtime.block_on(committee::endorse(&config, payer, (&announcement, id), &mut tell))?;
            Ok(show(&proposal, sending.json)?)
        }
        ChangeCommand::Install { announcement, votes, sending } => {
            let (config, payer, runtime) = sender(&sending)?;
            let files = (announcement.as_path(), votes.as_slice());
            let proposal = runtime.block_on(committee::install(&config, payer, files, &mut tell))?;
            show(&proposal, sending.json)?;
            let is_installed = proposal.state == State::Installed;
            is_installed.then_some(()).ok_or(CommandError::NotInstalled(proposal.next))
        }
        ChangeCommand::Status { announcement, votes, json, config } => {
            let config = config.read()?;
            let report = runtime()?.block_on(committee::status(&config, announcement.as_deref(), &votes))?;
            Ok(answer(if json { page(&report) } else { report.to_string() })?)
        }
    }
}

/// A member's signature.
pub(super) fn sign(command: SignCommand) -> Result<(), CommandError> {
    let setting = |signing: &SigningArguments| -> Result<_, CommandError> {
        let config = signing.config.read()?;
        let keys = keys::read_all(&config.keys, &passphrase_source(signing.passphrase_file.clone()))?;
        Ok((config, keys, runtime()?))
    };
    let (ballot, out) = match command {
        SignCommand::Prove { keys: folder, signing } => {
            let SigningArguments { out, passphrase_file, config } = signing;
            let pair = keys::read(&KeyFiles::in_folder(&folder), &passphrase_source(passphrase_file))?;
            // A ledger's connections belong to a runtime, also if none is made.
            let runtime = runtime()?;
            let _entered = runtime.enter();
            let proof = committee::prove(&config.read()?, &pair)?;
            return write_out(&document(&proof), out);
        }
        SignCommand::Sign { next: NextArguments { announcement, proofs }, signing } => {
            let (config, keys, runtime) = setting(&signing)?;
            (runtime.block_on(committee::sign(&config, &keys, &announcement, &proofs))?, signing.out)
        }
        SignCommand::Accept { next: NextArguments { announcement, proofs }, block, signing } => {
            let (config, keys, runtime) = setting(&signing)?;
            (runtime.block_on(committee::accept(&config, &keys, &announcement, &proofs, block))?, signing.out)
        }
        SignCommand::Heartbeat { block, signing } => {
            let (config, keys, runtime) = setting(&signing)?;
            (runtime.block_on(committee::heartbeat(&config, &keys, block))?, signing.out)
        }
        SignCommand::RaiseCap { raise, signing } => {
            let (config, keys, runtime) = setting(&signing)?;
            (runtime.block_on(committee::raise_cap(&config, &keys, &raise))?, signing.out)
        }
        SignCommand::Adopt { checkpoint, sources, signing } => {
            let (config, keys, runtime) = setting(&signing)?;
            let sources = sources.into();
            (runtime.block_on(committee::adopt(&config, &keys, &sources, checkpoint, &mut tell))?, signing.out)
        }
        SignCommand::Release { redemption, signing } => {
            let (config, keys, runtime) = setting(&signing)?;
            (runtime.block_on(committee::release(&config, &keys, &redemption))?, signing.out)
        }
    };
    complain(&ballot.text);
    write_out(&document(&ballot.vote), out)
}
