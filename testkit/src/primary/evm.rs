//! Executes transactions and calls with revm on one state.

use std::convert::Infallible;

use alloy::consensus::{Header, Transaction as _, TxType};
use alloy::primitives::{Address, Bytes, TxKind, U256};
use revm::context::result::{EVMError, ExecutionResult, InvalidTransaction, ResultAndState};
use revm::context::{BlockEnv, Context, TxEnv};
use revm::context_interface::block::BlobExcessGasAndPrice;
use revm::database_interface::WrapDatabaseRef;
use revm::{ExecuteEvm, MainBuilder, MainContext};

use super::block::Transaction;
use super::state::EvmDatabase;

/// The maximum gas of a transaction (EIP-7825).
pub(super) const TRANSACTION_GAS_MAX: u64 = 1 << 24;
/// An estimate may exceed the required gas by one part in this many, as geth's may.
const ESTIMATE_PRECISION: u64 = 64;

/// A call that is executed without changing the state.
#[derive(Clone, Debug)]
pub(super) struct TrialCall {
    pub(super) from: Address,
    pub(super) to: TxKind,
    pub(super) value: U256,
    pub(super) data: Bytes,
    pub(super) gas: u64,
    /// The maximum fee and, within it, the proposer's tip, in wei per gas. Without them the call pays no fees.
    pub(super) fees: Option<(u128, u128)>,
}

/// Why a transaction or call was not executed.
#[derive(Debug)]
pub(super) enum NotRun {
    /// The sender cannot pay for the value and the gas.
    InsufficientFunds,
    /// Any other reason, in revm's words.
    Invalid(String),
}

/// Executes a signed transaction in the block of this header.
pub(super) fn execute(
    header: &Header,
    chain_id: u64,
    database: &EvmDatabase<'_>,
    transaction: &Transaction,
) -> Result<ResultAndState, NotRun> {
    let environment = TxEnv {
        tx_type: transaction.tx_type().into(),
        caller: transaction.signer(),
        gas_limit: transaction.gas_limit(),
        gas_price: transaction.max_fee_per_gas(),
        gas_priority_fee: transaction.max_priority_fee_per_gas(),
        kind: transaction.kind(),
        value: transaction.value(),
        data: transaction.input().clone(),
        nonce: transaction.nonce(),
        chain_id: transaction.chain_id(),
        access_list: transaction.access_list().cloned().unwrap_or_default(),
        ..TxEnv::default()
    };
    run(header, chain_id, database, environment, false)
}

/// Executes a call after the block of this header.
pub(super) fn try_call(
    header: &Header,
    chain_id: u64,
    database: &EvmDatabase<'_>,
    call: &TrialCall,
) -> Result<ExecutionResult, NotRun> {
    let environment = TxEnv {
        tx_type: call.fees.map_or(TxType::Legacy, |_| TxType::Eip1559).into(),
        gas_price: call.fees.map_or(0, |(max_fee, _)| max_fee),
        gas_priority_fee: call.fees.map(|(_, tip)| tip),
        caller: call.from,
        gas_limit: call.gas.min(TRANSACTION_GAS_MAX),
        kind: call.to,
        value: call.value,
        data: call.data.clone(),
        // All types of transactions but the oldest need a chain id.
        chain_id: call.fees.map(|_| chain_id),
        ..TxEnv::default()
    };
    Ok(run(header, chain_id, database, environment, true)?.result)
}

/// The least gas with which a call succeeds, to a sixty-fourth; or the result of the call if it fails.
pub(super) fn estimate(
    header: &Header,
    chain_id: u64,
    database: &EvmDatabase<'_>,
    call: &TrialCall,
) -> Result<Result<u64, ExecutionResult>, NotRun> {
    let whole = try_call(header, chain_id, database, call)?;
    if !whole.is_success() {
        return Ok(Err(whole));
    }
    // With less than what it used it cannot succeed; with what all frames together hold back it mostly does.
    let mut too_little = whole.tx_gas_used().saturating_sub(1);
    let mut enough = call.gas.min(TRANSACTION_GAS_MAX);
    let mut guess = (whole.tx_gas_used() + 2_300) * 64 / 63;
    while enough - too_little > 1 && (enough - too_little) * ESTIMATE_PRECISION > enough {
        let gas = guess.clamp(too_little + 1, enough - 1);
        let succeeds = match try_call(header, chain_id, database, &TrialCall { gas, ..call.clone() }) {
            Ok(result) => result.is_success(),
            Err(NotRun::Invalid(_)) => false,
            Err(error) => return Err(error),
        };
        if succeeds {
            enough = gas;
        } else {
            too_little = gas;
        }
        guess = too_little.midpoint(enough);
    }
    Ok(Ok(enough))
}

fn run(
    header: &Header,
    chain_id: u64,
    database: &EvmDatabase<'_>,
    environment: TxEnv,
    is_trial: bool,
) -> Result<ResultAndState, NotRun> {
    let block = BlockEnv {
        number: U256::from(header.number),
        beneficiary: header.beneficiary,
        timestamp: U256::from(header.timestamp),
        gas_limit: header.gas_limit,
        basefee: header.base_fee_per_gas.unwrap_or_default(),
        prevrandao: Some(header.mix_hash),
        blob_excess_gas_and_price: Some(BlobExcessGasAndPrice { excess_blob_gas: 0, blob_gasprice: 1 }),
        ..BlockEnv::default()
    };
    let context = Context::mainnet().with_db(WrapDatabaseRef(database)).with_block(block).modify_cfg_chained(|rules| {
        rules.chain_id = chain_id;
        // Nodes execute calls from any sender and without payment.
        rules.disable_nonce_check = is_trial;
        rules.disable_base_fee = is_trial;
    });
    context.build_mainnet().transact(environment).map_err(|error| match error {
        EVMError::Transaction(InvalidTransaction::LackOfFundForMaxFee { .. }) => NotRun::InsufficientFunds,
        EVMError::<Infallible, _>::Transaction(error) => NotRun::Invalid(error.to_string()),
        error => NotRun::Invalid(error.to_string()),
    })
}
