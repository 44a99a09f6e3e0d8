//! Carries calls to a member: a connection, or a test's replacement for one.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, StdError, http};
use tonic::transport::Channel;

/// Carries calls in place of a connection, such as a simulated network. Calls and answers are whole HTTP messages, encoded
/// as they are on a connection.
pub trait Carrier: fmt::Debug + Send + Sync {
    /// Carries a call to the member, and gives its answer back.
    ///
    /// # Errors
    /// If the call does not arrive. The error is a [`tonic::Status`], as from a connection.
    fn carry(&self, call: http::Request<Body>) -> BoxFuture<http::Response<Body>, StdError>;
}

/// The way to a member. Cheap to clone.
#[derive(Clone, Debug)]
pub enum Transport {
    /// Over HTTP/2.
    Connection(Channel),
    /// By somebody else.
    Carried(Arc<dyn Carrier>),
}

impl Service<http::Request<Body>> for Transport {
    type Response = http::Response<Body>;
    type Error = StdError;
    type Future = BoxFuture<http::Response<Body>, StdError>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        match self {
            Self::Connection(channel) => channel.poll_ready(cx).map_err(Into::into),
            Self::Carried(_) => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, call: http::Request<Body>) -> Self::Future {
        match self {
            Self::Connection(channel) => {
                let answer = channel.call(call);
                Box::pin(async move { answer.await.map_err(Into::into) })
            }
            Self::Carried(carrier) => carrier.carry(call),
        }
    }
}
