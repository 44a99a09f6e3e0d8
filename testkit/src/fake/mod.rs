//! Fake authorities behind real gRPC: honest ones that follow core's rules, and ones with a [`Role`] that no real node
//! can be made to play.
#![allow(clippy::unwrap_used)]

mod archive;
mod role;
mod service;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use fastpay_client::{AuthorityEndpoints, ClientOptions, Endpoints, Network, QuorumOptions};
use fastpay_core::{
    AccountId, Amount, Asset, Attestation, AttestedCertificate, Certificate, Committees, Deposit, Moment, PrimaryView,
    Receipt, Redemption, SequenceNumber, SignedEndpoint, TransactionIndex, Transfer, TransferOrder, UnlockEvent,
    UnlockEventKind,
};
use fastpay_rpc::proto::shard_server::ShardServer;
use tokio_stream::wrappers::TcpListenerStream;

use crate::{TestAuthority, TestAuthorityError, TestCommittee};

use archive::FakeArchive;
pub use role::{LIES, Role};

/// Authorities that answer at all answer within this time on any machine; a client waits this long for the others.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);

/// A function that is called with every order and certificate that an authority receives, before the authority answers.
type Observer = Arc<dyn Fn(&Message) + Send + Sync>;

/// A request to an authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// An order to vote for.
    Order(TransferOrder),
    /// A certificate to apply.
    Certificate(Certificate),
}

struct State {
    authority: TestAuthority,
    role: Role,
    certificates: BTreeMap<(AccountId, u64), Certificate>,
    received: BTreeMap<AccountId, Vec<Receipt>>,
    deposits: BTreeMap<AccountId, Vec<Deposit>>,
    redemptions: Vec<Certificate>,
    orders_seen: Vec<TransferOrder>,
    certificates_seen: Vec<Certificate>,
    certificates_asked: usize,
    batches_asked: usize,
    is_waited_for: bool,
    /// The number of requests that came while the authority was erratic.
    erratic: u64,
    /// What it keeps in an archive alone.
    archive: Option<FakeArchive>,
    /// Where it says that members can be reached.
    told: Vec<SignedEndpoint>,
}

impl State {
    fn confirm(
        &mut self,
        certificate: &Certificate,
        attestation: Option<&Attestation>,
    ) -> Result<(), TestAuthorityError> {
        match attestation.cloned() {
            None => self.authority.confirm(certificate)?,
            Some(attestation) => {
                let certificate = certificate.clone();
                self.authority.confirm_attested(&AttestedCertificate { certificate, attestation })?
            }
        };
        self.authority.deliver_all();
        let transfer = &certificate.order.transfer;
        let name = (transfer.sender(), transfer.sequence().0);
        // It keeps what it has executed, whatever else it confirms under the number.
        if let Entry::Vacant(vacant) = self.certificates.entry(name) {
            vacant.insert(certificate.clone());
            for receipt in transfer.receipts() {
                self.received.entry(receipt.payment.recipient).or_default().push(receipt);
            }
            if let Transfer::Redemption(_) = transfer {
                self.redemptions.push(certificate.clone());
            }
        }
        Ok(())
    }
}

/// One authority, shared with its server.
#[derive(Clone)]
pub struct FakeAuthority {
    index: usize,
    /// The committees of all epochs.
    epochs: Arc<Mutex<Vec<TestCommittee>>>,
    observer: Arc<Mutex<Option<Observer>>>,
    state: Arc<Mutex<State>>,
}

impl FakeAuthority {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The authority's committee in the epoch that it has reached.
    fn current(&self, state: &State) -> TestCommittee {
        self.epochs.lock().unwrap()[usize::try_from(state.authority.epoch().0).unwrap()].clone()
    }

    /// Gives the authority this role from now on.
    pub fn play(&self, role: Role) {
        self.state().role = role;
    }

    /// Has the authority say that members can be reached there.
    pub fn tell(&self, endpoints: &[SignedEndpoint]) {
        self.state().told = endpoints.to_vec();
    }

    /// Whether the authority votes for every order, whatever it voted for before.
    #[must_use]
    pub fn votes_for_all(&self) -> bool {
        matches!(self.state().role, Role::VotesForAll(_))
    }

    /// The account's next number.
    #[must_use]
    pub fn next_sequence(&self, account: AccountId) -> u64 {
        self.state().authority.account(&account).next_sequence().0
    }

    /// The account's balance in wei.
    #[must_use]
    pub fn balance(&self, account: AccountId) -> i128 {
        self.state().authority.account(&account).balance(Asset::ETHER).to_string().parse().unwrap()
    }

    /// Whether an order of the account is pending.
    #[must_use]
    pub fn is_locked(&self, account: AccountId) -> bool {
        self.state().authority.account(&account).pending.is_some()
    }

    /// Every order that the authority received, in order.
    #[must_use]
    pub fn orders_seen(&self) -> Vec<TransferOrder> {
        self.state().orders_seen.clone()
    }

    /// Every certificate that the authority received, in order.
    #[must_use]
    pub fn certificates_seen(&self) -> Vec<Certificate> {
        self.state().certificates_seen.clone()
    }

    /// The number of requests for certificates that the authority received.
    #[must_use]
    pub fn certificates_asked(&self) -> usize {
        self.state().certificates_asked
    }

    /// The number of requests for a vote on a batch that the authority received.
    #[must_use]
    pub fn batches_asked(&self) -> usize {
        self.state().batches_asked
    }

    /// Whether a client waits for a certificate that the authority withholds.
    #[must_use]
    pub fn is_waited_for(&self) -> bool {
        self.state().is_waited_for
    }

    /// Whether the authority's redemption log has a redemption of this number, of any account.
    #[must_use]
    pub fn has_redemption(&self, sequence: u64) -> bool {
        let state = self.state();
        state.redemptions.iter().any(|certificate| certificate.order.transfer.sequence().0 == sequence)
    }

    /// Restores the state in which `account` had received `count` payments. Returns the receipts that this removes.
    pub fn set_back(&self, account: AccountId, count: usize) -> Vec<Receipt> {
        let mut state = self.state();
        let later = state.received.get_mut(&account).unwrap().split_off(count);
        for payment in &later {
            state.certificates.remove(&(payment.payment.sender, payment.payment.sequence.0));
        }
        later
    }

    /// Loses the redemptions of this number, of every account.
    pub fn forget(&self, sequence: u64) {
        let mut state = self.state();
        state.certificates.retain(|(_, number), _| *number != sequence);
        state.redemptions.retain(|certificate| certificate.order.transfer.sequence().0 != sequence);
    }

    /// Locks the account on the order at this authority alone.
    pub fn lock(&self, order: &TransferOrder) {
        self.state().authority.order(order).unwrap();
    }

    /// Confirms the certificate at this authority alone.
    pub fn confirm(&self, certificate: &Certificate) {
        self.state().confirm(certificate, None).unwrap();
    }

    /// Returns this certificate from now on in place of the one that it has executed under that number. With `lists`,
    /// it lists the payments of it, too. It has pruned nothing.
    pub fn show(&self, certificate: &Certificate, lists: bool) {
        let (mut state, transfer) = (self.state(), &certificate.order.transfer);
        state.archive = None;
        let name = (transfer.sender(), transfer.sequence());
        state.certificates.insert((name.0, name.1.0), certificate.clone());
        for receipt in transfer.receipts().filter(|_| lists) {
            let received = state.received.entry(receipt.payment.recipient).or_default();
            received.retain(|known| (known.payment.sender, known.payment.sequence) != name);
            received.push(receipt);
        }
    }

    /// Appends the certificate, valid or not, to the redemption log, and confirms it where the rules allow that.
    pub fn publish(&self, certificate: &Certificate) {
        let transfer = &certificate.order.transfer;
        let mut state = self.state();
        // Certificates that the rules refuse are logged, too.
        let _ = state.authority.confirm(certificate);
        let name = (transfer.sender(), transfer.sequence().0);
        state.certificates.entry(name).or_insert_with(|| certificate.clone());
        state.redemptions.push(certificate.clone());
    }

    /// Empties the redemption log.
    pub fn clear(&self) {
        self.state().redemptions.clear();
    }

    /// Follows the committee to its next epoch.
    pub fn rotate(&self) {
        let mut state = self.state();
        let next = usize::try_from(state.authority.epoch().0 + 1).unwrap();
        state.authority.rotate(&self.epochs.lock().unwrap()[next], self.index);
    }

    /// Follows the committee to its next epoch, long after the one before has ended: of its certificates, only those count
    /// that members attest.
    pub fn rotate_long_ago(&self) {
        self.rotate();
        let mut state = self.state();
        state.authority.moment = Some(Moment { now: 1, followed: 1, unlock_window: 1 });
    }

    /// Follows a recovery to the next epoch: begins anew from an empty checkpoint, and has forgotten the rest.
    fn recover(&self, next: &TestCommittee) {
        let mut state = self.state();
        state.authority.recover(next, self.index);
        (state.certificates, state.received, state.deposits) = Default::default();
        state.redemptions.clear();
        state.archive = None;
    }

    /// As `recover`, with what the recovery debited without its order.
    fn recover_paid(&self, next: &TestCommittee, redemption: &Redemption, account: (SequenceNumber, Amount)) {
        self.recover(next);
        let mut state = self.state();
        // The epoch is taken up already.
        state.authority.debit_paid(next.committee.epoch(), redemption, account);
        state.archive = Some(FakeArchive::of_recovery(next, redemption, account.0));
    }

    /// Follows the Primary to an event about a number.
    pub fn follow_unlock(&self, event: &UnlockEvent) {
        let mut state = self.state();
        let shard = state.authority.shard(&event.account);
        shard.follow_unlock(event).unwrap();
        if event.kind == UnlockEventKind::Voided {
            shard.advance(event.account, PrimaryView::Recent, |_| {
                panic!("nothing is kept of the number after a void one")
            });
        }
    }

    /// Follows the Primary to a deposit.
    pub fn deposit(&self, deposit: &Deposit) {
        let mut state = self.state();
        state.authority.deposit(deposit).unwrap();
        state.deposits.entry(deposit.recipient).or_default().push(deposit.clone());
    }
}

/// Fake authorities that form a committee.
pub struct FakeCommittee {
    /// The committee of the first epoch.
    pub committee: TestCommittee,
    /// Its members, in the committee's order.
    pub authorities: Vec<FakeAuthority>,
    /// The addresses at which they are served.
    pub endpoints: Endpoints,
    epochs: Arc<Mutex<Vec<TestCommittee>>>,
    observer: Arc<Mutex<Option<Observer>>>,
}

impl FakeCommittee {
    /// Honest authorities that no server offers yet.
    #[must_use]
    pub fn new(committee: TestCommittee) -> Self {
        let (epochs, observer) = (Arc::new(Mutex::new(vec![committee.clone()])), Arc::default());
        let authority = |index| FakeAuthority {
            index,
            epochs: Arc::clone(&epochs),
            observer: Arc::clone(&observer),
            state: Arc::new(Mutex::new(State {
                authority: TestAuthority::new(&committee, index, 1),
                role: Role::Honest,
                certificates: BTreeMap::new(),
                received: BTreeMap::new(),
                deposits: BTreeMap::new(),
                redemptions: Vec::new(),
                orders_seen: Vec::new(),
                certificates_seen: Vec::new(),
                certificates_asked: 0,
                batches_asked: 0,
                is_waited_for: false,
                erratic: 0,
                archive: None,
                told: Vec::new(),
            })),
        };
        let authorities = (0..committee.keys.len()).map(authority).collect();
        let endpoints = Endpoints::default();
        Self { committee, authorities, endpoints, epochs, observer }
    }

    /// Four honest authorities, served on loopback.
    pub async fn start() -> Self {
        Self::start_with(TestCommittee::new(4)).await
    }

    /// The members of this committee, served on loopback.
    pub async fn start_with(committee: TestCommittee) -> Self {
        let mut fakes = Self::new(committee);
        for (authority, member) in fakes.authorities.iter().zip(fakes.committee.committee.members()) {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let shards = vec![format!("http://{}", listener.local_addr().unwrap())];
            let server = tonic::transport::Server::builder().add_service(ShardServer::new(authority.clone()));
            tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
            fakes.endpoints.authorities.push(AuthorityEndpoints {
                name: member.name,
                shards,
                http: None,
                tls_ca: None,
                label: None,
            });
        }
        fakes
    }

    /// Calls `observer` with every order and certificate that any authority receives, before the authority answers.
    pub fn observe(&self, observer: impl Fn(&Message) + Send + Sync + 'static) {
        *self.observer.lock().unwrap() = Some(Arc::new(observer));
    }

    /// The committee of the newest epoch.
    #[must_use]
    pub fn newest(&self) -> TestCommittee {
        self.epochs.lock().unwrap().last().unwrap().clone()
    }

    /// Makes this the committee of the next epoch, which no authority has reached yet.
    pub fn install(&self, next: TestCommittee) {
        self.epochs.lock().unwrap().push(next);
    }

    /// Installs the next committee by a recovery. Every authority begins from an empty checkpoint. The clients of
    /// `network` know of the new committee.
    pub fn recover(&self, network: &Network) -> TestCommittee {
        self.replace(network, FakeAuthority::recover)
    }

    /// Installs the next committee, long ago: see [`FakeAuthority::rotate_long_ago`]. The clients of `network` know of it.
    pub fn replace_long_ago(&self, network: &Network) -> TestCommittee {
        self.replace(network, |authority, _| authority.rotate_long_ago())
    }

    fn replace(&self, network: &Network, follow: impl Fn(&FakeAuthority, &TestCommittee)) -> TestCommittee {
        let (now, mut committees) = (self.newest(), network.committees());
        let next = now.rotated();
        self.install(next.clone());
        self.authorities.iter().for_each(|authority| follow(authority, &next));
        committees.install(next.committee.clone()).unwrap();
        let names = self.endpoints.authorities.iter().map(|listed| listed.name);
        network.adopt(committees, names.zip(next.keys.iter().map(|keys| keys.public().name)).collect());
        next
    }

    /// As [`FakeCommittee::recover`], from a checkpoint in which the recovery has debited this redemption, which the
    /// contract had paid, without its order. Its account goes on with the number `next`, and has `left`.
    pub fn recover_paid(&self, network: &Network, redemption: &Redemption, next: u64, left: u128) -> TestCommittee {
        let account = (SequenceNumber(next), Amount(left));
        self.replace(network, |authority, next| authority.recover_paid(next, redemption, account))
    }

    /// Has every authority prune all certificates so far, and with `lists` also its lists of what was received by them:
    /// they are in the archive of a checkpoint, as the first authority has them.
    pub fn prune(&self, lists: bool) {
        let (committee, certificates) = (self.newest(), self.authorities[0].state().certificates.clone());
        for authority in &self.authorities {
            authority.state().archive = Some(FakeArchive::new(&committee, &certificates, lists));
        }
    }

    /// A client's connections to the authorities.
    #[must_use]
    pub fn network(&self) -> Network {
        self.network_with(REQUEST_TIMEOUT)
    }

    /// As [`FakeCommittee::network`], but an authority may take this long to answer.
    #[must_use]
    pub fn network_with(&self, request_timeout: Duration) -> Network {
        let options = ClientOptions { connect_timeout: REQUEST_TIMEOUT, request_timeout };
        let committees = Committees::new(self.committee.committee.clone()).unwrap();
        Network::with_options(self.committee.domain, committees, &self.endpoints, options).unwrap()
    }

    /// Applies deposit number `index` of `amount` wei for an account at the authorities with the numbers `at`.
    pub fn fund(&self, index: u64, account: AccountId, amount: u128, at: &[usize]) {
        let index = TransactionIndex(index);
        let deposit = Deposit { index, recipient: account, asset: Asset::ETHER, amount: Amount(amount) };
        at.iter().for_each(|authority| self.authorities[*authority].deposit(&deposit));
    }

    /// Waits until the condition holds for all authorities.
    pub async fn until(&self, condition: impl Fn(&FakeAuthority) -> bool) {
        self.until_so_many(self.authorities.len(), condition).await;
    }

    /// Waits until the condition holds for `count` authorities: a client that ends once a quorum has settled leaves the
    /// others behind.
    ///
    /// # Panics
    /// After a minute.
    pub async fn until_so_many(&self, count: usize, condition: impl Fn(&FakeAuthority) -> bool) {
        for _ in 0..6_000 {
            if self.authorities.iter().filter(|authority| condition(authority)).count() >= count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the authorities did not come to the expected state");
    }
}

/// A client's deadlines for fake authorities. These answer at once, but on a busy machine that takes seconds, too.
#[must_use]
pub fn options() -> QuorumOptions {
    QuorumOptions {
        deadline: Duration::from_secs(20),
        funds_patience: Duration::from_secs(2),
        background: Duration::from_secs(20),
        backoff_min: Duration::from_millis(5),
        backoff_max: Duration::from_millis(50),
    }
}
