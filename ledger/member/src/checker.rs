//! Checks requests that come many at once, on threads of their own and few batches at a time. So no other call waits
//! for that, however many requests clients send.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use fastpay_ledger_statement::{Deployment, Request, StatementVerifier, VerifiedRequest, Wire};
use tokio::sync::Semaphore;
use tonic::Status;

use crate::grpc::SubmitError;

/// Checks batches in turns. Copies have the same turns.
#[derive(Clone, Debug)]
pub(crate) struct Checker {
    verifier: Arc<Mutex<StatementVerifier>>,
    turns: Arc<Semaphore>,
}

impl Checker {
    /// Checks so many batches at once.
    pub(crate) fn new(turns: usize) -> Self {
        Self { verifier: Arc::default(), turns: Arc::new(Semaphore::new(turns)) }
    }

    /// A checker that shares the turns alone, for one call.
    pub(crate) fn of_call(&self) -> Self {
        Self { verifier: Arc::default(), turns: self.turns.clone() }
    }

    /// The requests, each once.
    ///
    /// # Errors
    /// `invalid_argument` if one does not hold.
    pub(crate) async fn verified(
        &self,
        encoded: Vec<Vec<u8>>,
        deployment: Deployment,
    ) -> Result<Vec<VerifiedRequest>, Status> {
        let turn = self.turns.clone().acquire_owned().await.expect("the turns never end");
        let verifier = self.verifier.clone();
        let checked = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let mut seen = HashSet::new();
            let once = encoded.iter().filter(|bytes| seen.insert(*bytes));
            let requests = once.map(|bytes| Ok(Arc::new(decoded(bytes)?))).collect::<Result<_, Status>>()?;
            let mut verifier = verifier.lock().expect("nothing panics under this lock");
            let verified = verifier.verify(requests, deployment, &mut rand::rng());
            Ok(verified.into_iter().collect::<Result<_, _>>().map_err(SubmitError::from)?)
        });
        checked.await.map_err(|_| Status::internal("the requests could not be checked"))?
    }
}

/// Reads a request.
///
/// # Errors
/// `invalid_argument`.
pub(crate) fn decoded(bytes: &[u8]) -> Result<Request, Status> {
    Request::decode(bytes).map_err(|error| Status::invalid_argument(format!("the request: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::testing::{chain, get, write};
    use tonic::Code;

    #[tokio::test]
    async fn a_batch_has_each_request_once_and_none_that_does_not_hold() {
        let (chain, checker) = (chain(), Checker::new(1));
        let deployment = chain.layout().deployment();
        let requests = [write(&chain, 0), get(0)];
        let encoded = requests.each_ref().map(|request| request.request().encode());
        let repeated = [&encoded[..], &encoded[..]].concat();
        assert_eq!(checker.verified(repeated, deployment).await.unwrap(), requests);
        let mut forged = encoded[0].clone();
        *forged.last_mut().unwrap() ^= 1;
        for wrong in [forged, b"nothing".to_vec()] {
            let refused = checker.verified(vec![encoded[1].clone(), wrong], deployment).await.unwrap_err();
            assert_eq!(refused.code(), Code::InvalidArgument);
        }
        assert_eq!(checker.turns.available_permits(), 1, "each turn ends");
    }

    #[tokio::test]
    async fn calls_share_turns() {
        let checker = Checker::new(1);
        let call = checker.of_call();
        let turn = checker.turns.clone().acquire_owned().await.unwrap();
        let mut waits = Box::pin(call.verified(Vec::new(), chain().layout().deployment()));
        let second = std::time::Duration::from_millis(100);
        assert!(tokio::time::timeout(second, &mut waits).await.is_err());
        drop(turn);
        assert_eq!(waits.await.unwrap(), []);
    }
}
