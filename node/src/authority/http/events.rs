//! An account's events, as a stream that a client can resume.
//!
//! ```text
//!  subscribe ─► read the account ─► send what is behind the cursor, page by page ─► wait for a change ─► read …
//! ```
//! A stream reads only after its account changed, and runs one read at a time, so a thousand payments in a moment cost
//! one read. Events equal the entries of the account's pages, so they do not depend on when a client connects.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use fastpay_core::{Account, AccountId, Chain, History, Record};
use fastpay_rpc::json::{self, ProblemCode, Uint64};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use utoipa::IntoParams;

use super::accounts::sent_transfer;
use super::connections::Caller;
use super::extract::{Path, Query};
use super::problem::{ApiError, OfEvents};
use super::{Node, SharedNode};
use crate::authority::network::{self, ConnectionSlot, Range, ReadError};
use crate::authority::shard::{ClientReputation, Subscription};

const LAST_EVENT_ID: &str = "last-event-id";
/// The interval of comments on an idle stream, which make a dead connection visible.
const COMMENT_INTERVAL: Duration = Duration::from_secs(15);
/// The time after which a client reconnects a broken stream.
const RECONNECT_AFTER: Duration = Duration::from_secs(2);
/// The minimum time between two reads for one stream: a constantly changing account is read twenty times a second.
const READ_INTERVAL: Duration = Duration::from_millis(50);
/// The wait before a busy shard is asked again.
const BUSY_INTERVAL: Duration = Duration::from_millis(500);
/// The maximum number of events that wait for a slow client.
const EVENTS_WAITING_MAX: usize = 32;
/// The time that a client waits if all streams are taken.
const TOO_MANY_STREAMS_RETRY: Duration = Duration::from_secs(10);

/// The number of entries of an account's three lists that were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cursor {
    sent: u64,
    received: u64,
    deposits: u64,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.sent, self.received, self.deposits)
    }
}

impl FromStr for Cursor {
    type Err = ApiError;

    fn from_str(text: &str) -> Result<Self, ApiError> {
        let mut counts = text.split('.').map(|count| count.parse::<Uint64>().map(|count| count.0));
        match (counts.next(), counts.next(), counts.next(), counts.next()) {
            (Some(Ok(sent)), Some(Ok(received)), Some(Ok(deposits)), None) => Ok(Self { sent, received, deposits }),
            _ => Err(ApiError::malformed("a cursor is three counts with dots between them, as in the id of an event")),
        }
    }
}

/// From where on events are asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct EventParams {
    /// Start after the event with this id, which must be of the same authority. `0.0.0` starts from the beginning;
    /// without an id, the stream starts now. The header has priority. A cursor ahead of the lists is refused: it is of
    /// another authority, or of this one before it was restored from an older copy, and would skip events.
    #[param(pattern = r"^(0|[1-9][0-9]{0,19})(\.(0|[1-9][0-9]{0,19})){2}$")]
    pub cursor: Option<String>,
}

/// Follow an account
///
/// Server-sent events: `confirmed` (a transfer that it sent), `received` (a payment) and `deposited`, each with the entry
/// of the list of the same name as data. The id of an event is a cursor: how many entries of what it sent, received and
/// was deposited were said so far, at this authority. An id without an event comes first: where the stream begins. A
/// comment comes every 15 s.
#[utoipa::path(get, path = "/v1/accounts/{account}/events", tag = "Accounts", operation_id = "followAccount",
    params(("account" = json::Account, Path, description = "The account."), EventParams,
        ("Last-Event-ID" = Option<String>, Header, description = "A cursor, as a browser sends it with a stream that it takes up again.")),
    responses((status = 200, description = "Events, without end.", body = String, content_type = "text/event-stream"),
        OfEvents))]
pub(super) async fn events(
    State(node): SharedNode,
    caller: Caller,
    Path(id): Path<json::Account>,
    Query(params): Query<EventParams>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, std::convert::Infallible>> + use<>>, ApiError> {
    let header = headers.get(LAST_EVENT_ID).map(|header| header.to_str().unwrap_or("?").to_owned());
    let cursor: Option<Cursor> = header.or(params.cursor).map(|text| text.parse()).transpose()?;
    let Some(slot) = node.streams.take(caller.address) else {
        let problem = json::Problem::new(ProblemCode::TooManyStreams, "no event stream is free for this address");
        return Err(problem.retry_after(TOO_MANY_STREAMS_RETRY).into());
    };
    let id = id.0;
    let subscription = node.shard_of(&id).handle().subscribe(id);
    let account = {
        let _turn = caller.peer.read().await;
        node.shard_of(&id).account(id).await?
    };
    let now =
        Cursor { sent: account.sent.count(), received: account.received.count(), deposits: account.deposits.count() };
    let cursor = cursor.unwrap_or(now);
    if cursor.sent > now.sent || cursor.received > now.received || cursor.deposits > now.deposits {
        let detail = format!("this authority has said no more than {now} of this account, and the cursor is {cursor}");
        return Err(ApiError::new(ProblemCode::CursorAhead, detail));
    }
    // A stream that begins at what is pruned would leave it out.
    let lists = [
        (&account.sent, cursor.sent, Chain::Sent),
        (&account.received, cursor.received, Chain::Received(id)),
        (&account.deposits, cursor.deposits, Chain::Deposits),
    ];
    for (history, start, chain) in lists.into_iter().filter(|(history, start, _)| *start < history.count()) {
        let _turn = caller.peer.read().await;
        node.shard_of(&id).page(history.clone(), Range { start, limit: 1 }, chain).await?;
    }
    let (events, said) = mpsc::channel(EVENTS_WAITING_MAX);
    let writer = EventWriter { node, id, peer: caller.peer, cursor, events, subscription, _slot: slot };
    tokio::spawn(writer.run(account));
    // The first id, without an event, names where the stream starts: a client that loses it at once resumes there.
    let first = tokio_stream::once(Event::default().retry(RECONNECT_AFTER).id(cursor.to_string()));
    let stream = first.chain(ReceiverStream::new(said)).map(Ok);
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(COMMENT_INTERVAL)))
}

/// Sends the events of one stream.
struct EventWriter {
    node: Arc<Node>,
    id: AccountId,
    peer: Arc<ClientReputation>,
    cursor: Cursor,
    events: mpsc::Sender<Event>,
    subscription: Subscription,
    _slot: ConnectionSlot,
}

/// The stream ends, because its client has disconnected or nothing more can be read here.
struct Ended;

impl EventWriter {
    async fn run(mut self, mut account: Account) {
        let mut stop = self.node.stop.clone();
        let events = self.events.clone();
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => {}
            () = events.closed() => {}
            Ended = async {
                loop {
                    if let Err(ended) = self.send(&account).await {
                        return ended;
                    }
                    self.subscription.changed().await;
                    tokio::time::sleep(READ_INTERVAL).await;
                    match self.read().await {
                        Ok(newer) => account = newer,
                        Err(ended) => return ended,
                    }
                }
            } => {}
        }
    }

    async fn read(&self) -> Result<Account, Ended> {
        loop {
            let read = {
                let _turn = self.peer.read().await;
                self.node.shard_of(&self.id).account(self.id).await
            };
            match read {
                Ok(account) => return Ok(account),
                Err(ReadError::Busy) => tokio::time::sleep(BUSY_INTERVAL).await,
                Err(ReadError::Stopping | ReadError::Unreadable | ReadError::Pruned(_)) => return Err(Ended),
            }
        }
    }

    /// Sends the entries of an account's lists that are behind the cursor.
    async fn send(&mut self, account: &Account) -> Result<(), Ended> {
        let domain = self.node.context.domain;
        while let Some(entries) = self.page(&account.sent, self.cursor.sent, Chain::Sent).await? {
            for (number, record) in entries {
                self.cursor.sent = number.saturating_add(1);
                self.event("confirmed", sent_transfer(&domain, &record)).await?;
            }
        }
        while let Some(entries) = self.page(&account.received, self.cursor.received, Chain::Received(self.id)).await? {
            for (number, record) in entries {
                self.cursor.received = number.saturating_add(1);
                let received = network::received(self.id, number, &record);
                let payment = received.map(|received| json::ReceivedPayment::new(&domain, &received));
                self.event("received", payment).await?;
            }
        }
        while let Some(entries) = self.page(&account.deposits, self.cursor.deposits, Chain::Deposits).await? {
            for (number, record) in entries {
                self.cursor.deposits = number.saturating_add(1);
                self.event("deposited", network::deposit(&record).map(json::Deposit::from)).await?;
            }
        }
        Ok(())
    }

    /// The next entries of a list; `None` if there are none.
    async fn page(&self, history: &History, start: u64, chain: Chain) -> Result<Option<Vec<(u64, Record)>>, Ended> {
        if start >= history.count() {
            return Ok(None);
        }
        let _turn = self.peer.read().await;
        let entries = self
            .node
            .shard_of(&self.id)
            .page(history.clone(), Range { start, limit: 0 }, chain)
            .await
            .map_err(|_| Ended)?;
        Ok((!entries.is_empty()).then_some(entries))
    }

    async fn event(&self, name: &str, entry: Option<impl Serialize>) -> Result<(), Ended> {
        let event = Event::default().event(name).id(self.cursor.to_string()).json_data(entry).map_err(|_| Ended)?;
        self.events.send(event).await.map_err(|_| Ended)
    }
}
