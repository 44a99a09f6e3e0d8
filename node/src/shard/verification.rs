//! From decoded requests to verified ones, all that are queued at a time.

use fastpay_core::{Deferred, Domain, VerifiedRequest};
use fastpay_rpc::Refusal;

use super::command::Request;
use crate::standing::Standing;

/// What signatures are checked against.
pub(super) struct Verification {
    pub domain: Domain,
}

impl Verification {
    /// The requests, in their order, each verified or refused on its own account.
    pub fn verify(&self, requests: Vec<Request>, standing: &Standing) -> Vec<Result<VerifiedRequest, Refusal>> {
        let (mut outcomes, mut deferred) = (Vec::new(), Vec::new());
        for request in requests {
            match self.prepare(request, standing) {
                Ok(prepared) => {
                    outcomes.push(None);
                    deferred.push(prepared);
                }
                Err(refusal) => outcomes.push(Some(refusal)),
            }
        }
        let mut verified = Deferred::check_all(deferred, rand::rng()).into_iter();
        let outcomes = outcomes.into_iter().filter_map(|outcome| match outcome {
            Some(refusal) => Some(Err(refusal)),
            None => verified.next().map(|verified| verified.map_err(|bad| Refusal::Invalid(bad.to_string()))),
        });
        outcomes.collect()
    }

    fn prepare(&self, request: Request, standing: &Standing) -> Result<Deferred<VerifiedRequest>, Refusal> {
        match request {
            Request::Order(order) => {
                let prepared = order.prepare(&self.domain);
                prepared.map(Into::into).map_err(|error| Refusal::Invalid(error.to_string()))
            }
            Request::Certificate(certificate) => {
                let committee = standing.committees().get(certificate.epoch);
                let committee = committee.ok_or(Refusal::UnknownEpoch(certificate.epoch))?;
                let prepared = certificate.prepare(&self.domain, committee);
                prepared.map(Into::into).map_err(|error| Refusal::Invalid(error.to_string()))
            }
        }
    }
}
