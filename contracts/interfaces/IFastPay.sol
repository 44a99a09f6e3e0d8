// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ICouncil} from "./ICouncil.sol";
import {IERC5267} from "@openzeppelin/contracts/interfaces/IERC5267.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

/// @notice A member of the committee.
/// @param votingKey The Ed25519 public key that votes on payments. It is the authority's name.
/// @param redemptionKey The Ethereum address of the secp256k1 key that votes on redemptions.
struct Authority {
    bytes32 votingKey;
    address redemptionKey;
}

/// @notice An order to move value out of FastPay. Its EIP-712 digest is what its sender signed.
/// @param sender The FastPay account that is debited.
/// @param recipient Who is paid `amount - fee`.
/// @param asset The ERC-20 that is paid, zero for ETH.
/// @param amount What the account is debited, in the asset's smallest unit.
/// @param fee The part of `amount` that goes to whoever submits the redemption.
/// @param sequence The order's number in its account.
/// @param memo Free for the sender.
struct Redemption {
    bytes32 sender;
    address recipient;
    address asset;
    uint128 amount;
    uint128 fee;
    uint64 sequence;
    bytes32 memo;
}

/// @notice A redemption with the votes of a quorum.
/// @param redemption What the committee voted for.
/// @param epoch The committee that voted.
/// @param votes The votes of exactly a quorum, packed: `member (1 byte) ‖ r (32) ‖ s (32) ‖ v (1)` each, where
/// `member` is a position in `committee(epoch)`. Members strictly ascending, `s` in the lower half, `v` 27 or 28.
struct CertifiedRedemption {
    Redemption redemption;
    uint64 epoch;
    bytes votes;
}

/// @notice The safety parameters, fixed at deployment. All times are in seconds.
/// @param pauseDuration How long a pause lasts at most: 1 hour to 7 days.
/// @param pauseCooldown The time between the end of a pause and the start of the next: `pauseDuration` to 365 days.
/// @param outflowWindow The time in which an outflow limit that is used up is whole again: 1 hour to 7 days. Two shares
/// can leave within a window that begins with a whole limit.
/// @param outflowShare How much may leave at once while the limit is whole, in basis points of the asset's balance: 100
/// to 10,000.
/// @param outflowDelay How long a redemption above the limit waits: 3 days to 30 days, at least 21 without a guardian.
/// @param votesValidity How long votes of an epoch count after its end: twice `unlockWindow` to 90 days.
/// @param unlockWindow How long an unlock request stays open before a quorum can void its number: 3 days to 30 days.
struct SafetyParameters {
    uint32 pauseDuration;
    uint32 pauseCooldown;
    uint32 outflowWindow;
    uint16 outflowShare;
    uint32 outflowDelay;
    uint32 votesValidity;
    uint32 unlockWindow;
}

/// @notice A deposit cap, optional.
/// @param asset The ERC-20, zero for ETH.
/// @param cap The most that the contract holds of it for accounts. Kept as a small float, rounded down by less than
/// 1/256; `depositCap` gives the exact value.
struct AssetCap {
    address asset;
    uint128 cap;
}

/// @title FastPay on its Primary
/// @notice Takes deposits that fund FastPay accounts, and pays redemptions that a quorum of the committee voted for.
/// @dev In errors, `item` is the position of the redemption in the call (0 in `redeem`; `type(uint256).max` where
/// the votes are for the whole call, as in `redeemBatch` and in all of `ICouncil`), and `position` that of the vote among
/// its votes.
///
/// `index` numbers the events of the order without a gap: `CommitteeInstalled`, `Funded`, `Redeemed`, `RedemptionQueued`,
/// `RedemptionReleased`, `UnlockRequested`, `SequenceUpheld` and `SequenceVoided`. Index 0 is the committee of epoch 0.
interface IFastPay is IERC5267 {
    // ------------------------------------------------------------------------------------------ events

    /// @notice `epoch` began.
    /// @param authorities Its committee, in the order in which votes name its members.
    /// @param guardian Can pause, postpone and endorse from now on; zero for nobody.
    /// @param previousEpochEnds Votes of the epoch before count until this time, inclusive; zero if they do not count.
    /// @param compromisedSince From this epoch on keys were out: votes of it and of later ended epochs do not count, and
    /// redemptions that they queued need votes of the current epoch. Equal to `epoch` if no keys were out.
    /// @param checkpoint The digest of the certified checkpoint that the announcement named; zero for none.
    event CommitteeInstalled(
        uint64 indexed index,
        uint64 indexed epoch,
        Authority[] authorities,
        address guardian,
        uint256 previousEpochEnds,
        uint64 compromisedSince,
        bytes32 checkpoint
    );

    /// @notice The guardian stopped deposits, redemptions and claims, before `until`.
    event Paused(uint256 until);

    /// @notice The guardian ended a pause before its time.
    event Unpaused();

    /// @notice The guardian postponed the redemptions that were queued with votes of `epoch`.
    /// @param total By how much in all, in seconds.
    event Postponed(uint64 epoch, uint256 total);

    /// @notice The deposit cap of `asset` was raised to `cap`, its exact value.
    event CapRaised(address indexed asset, uint256 cap);

    /// @notice A deposit.
    /// @param recipient The FastPay account that authorities credit.
    /// @param amount The amount that arrived, which may be less than the amount sent.
    event Funded(
        uint64 indexed index, bytes32 indexed recipient, address indexed asset, uint128 amount, address payer
    );

    /// @notice A redemption was executed: `amount - fee` went to `recipient` and `fee` to `relayer`, each either
    /// paid or, if `ClaimCreated` follows, kept for them.
    /// @param digest The EIP-712 digest of the order, which its sender signed.
    event Redeemed(
        bytes32 indexed sender,
        address indexed recipient,
        address indexed asset,
        uint64 index,
        uint64 sequence,
        uint128 amount,
        uint128 fee,
        address relayer,
        bytes32 digest
    );

    /// @notice A redemption waits, because it is more than the asset's outflow limit lets go at once. The order is
    /// spent, and its amount stays in the asset's balance. From `executableAt` on, unless the guardian postpones it,
    /// anyone can have it paid with `executeQueued`. `Redeemed` follows then, with an index of its own.
    /// @param relayer Brought it, and gets the fee when it is paid.
    /// @param digest The EIP-712 digest of the order, which its sender signed.
    /// @param epoch The committee that voted for it.
    event RedemptionQueued(
        bytes32 indexed sender,
        address indexed recipient,
        address indexed asset,
        uint64 index,
        uint64 sequence,
        uint128 amount,
        uint128 fee,
        address relayer,
        bytes32 digest,
        uint64 epoch,
        uint256 executableAt
    );

    /// @notice A queued redemption of a compromised epoch was taken out of the queue and will not be paid. The order stays
    /// spent; authorities credit its account with what the contract did not pay.
    event RedemptionReleased(bytes32 indexed sender, uint64 index, uint64 sequence, bytes32 digest);

    /// @notice The owner of `account` asks what became of order `sequence`. Authorities judge `authorization` where the
    /// contract cannot.
    /// @param voidableFrom From this time on a quorum can void the number.
    event UnlockRequested(
        uint64 indexed index,
        bytes32 indexed account,
        uint64 sequence,
        uint256 voidableFrom,
        bytes authorization
    );

    /// @notice The order with this digest holds under `sequence`, and no other does.
    event SequenceUpheld(uint64 indexed index, bytes32 indexed account, uint64 sequence, bytes32 digest);

    /// @notice No order holds under `sequence`.
    event SequenceVoided(uint64 indexed index, bytes32 indexed account, uint64 sequence);

    /// @notice An item of a bundle or a batch was left out because it had been redeemed or queued before.
    event RedemptionSkipped(bytes32 indexed sender, uint64 sequence);

    /// @notice A payout did not go through. `owner` can collect it with `claim`, and anyone can send it to `owner` with
    /// `claimFor`.
    event ClaimCreated(address indexed owner, address indexed asset, uint256 amount);

    /// @notice A claim of `owner`, or a part of it, was paid to `to`.
    event Claimed(address indexed owner, address indexed asset, address indexed to, uint256 amount);

    // ------------------------------------------------------------- errors: deployment and committees

    /// @notice The safety parameter `name` is out of its bounds.
    error InvalidSafetyParameter(string name, uint256 value, uint256 min, uint256 max);

    /// @notice `cap` is zero at deployment, names an asset that has a cap already, or does not raise the cap.
    /// @param current The cap that holds.
    error InvalidCap(address asset, uint256 current, uint128 cap);

    /// @notice `council` was deployed for another contract than this one.
    error CouncilOfAnother(address council);

    /// @notice `council` was deployed at `deployedAt`, more than a day before. Its time until a recovery counts from then.
    error CouncilTooOld(address council, uint256 deployedAt);

    /// @notice A committee has 4 to 255 members.
    error InvalidCommitteeSize(uint256 size);

    /// @notice The authority at `index` has a zero voting key or a zero redemption key.
    error ZeroKey(uint256 index);

    /// @notice The voting key at `index` is not above the one before it. Sort by voting key, name nobody twice.
    error VotingKeysNotAscending(uint256 index);

    /// @notice Two authorities have the same redemption key.
    error RepeatedRedemptionKey(uint256 first, uint256 second);

    /// @notice No committee has ever been installed for `epoch`.
    error UnknownEpoch(uint64 epoch);

    /// @notice Only `council()` may call this; `caller` is another.
    error NotCouncil(address caller);

    // ----------------------------------------------------------------------------- errors: pauses

    /// @notice Deposits, redemptions and claims are stopped; at `until` they go on.
    error PausedUntil(uint256 until);

    /// @notice `caller` is not the guardian.
    error NotGuardian(address caller);

    /// @notice The last pause has not been over for `pauseCooldown`; the next may begin at `nextPauseAt`.
    error PauseTooEarly(uint256 nextPauseAt);

    /// @notice There is no pause to end.
    error NotPaused();

    /// @notice The redemptions of `epoch` would be postponed by more than `max` in all.
    error PostponedTooLong(uint64 epoch, uint256 total, uint256 max);

    // --------------------------------------------------------------------------- errors: deposits

    /// @notice A deposit to the account zero, or a claim to the address zero.
    error ZeroRecipient();

    /// @notice A deposit to the account of this contract's own address, which nobody could spend.
    error RecipientIsContract();

    /// @notice Plain ETH from a contract, or through one: `sender` did not send the transaction itself, and may have
    /// no key to spend from its own account with. Use `depositEther`, with the account to fund.
    error SenderWithoutKey(address sender);

    /// @notice `depositToken` was called for ETH. Use `depositEther`.
    error ZeroAsset();

    /// @notice There is no contract at `asset`.
    error AssetWithoutCode(address asset);

    /// @notice Nothing of `asset` arrived.
    error NothingReceived(address asset);

    /// @notice The contract would hold more of `asset` for accounts than its deposit cap.
    /// @param held What it holds for accounts now.
    /// @param cap See `depositCap`.
    error AssetCapExceeded(address asset, uint256 held, uint256 received, uint256 cap);

    /// @notice The contract holds less of `asset` than it owes with this deposit: the token took something away, or paid
    /// less than it said. A new deposit would pay for it.
    error AssetUnderCollateralized(address asset, uint256 held, uint256 owed);

    /// @notice The token refused the permit, and what the payer allowed before does not suffice.
    error PermitRefused(address asset, uint256 allowance, uint256 amount);

    // ------------------------------------------------------------------------ errors: redemptions

    /// @notice Nothing to do: this redemption was executed or queued before.
    error AlreadyRedeemed(bytes32 sender, uint64 sequence);

    /// @notice The redemption's amount is zero.
    error ZeroRedemption(uint256 item);

    /// @notice The redemption's fee is above its amount.
    error FeeAboveAmount(uint256 item, uint128 fee, uint128 amount);

    /// @notice The contract holds less of `asset` for its accounts than the redemption's amount.
    error BalanceTooLow(uint256 item, address asset, uint256 balance, uint128 amount);

    /// @notice Votes of `epoch` do not count any more. A current quorum has to vote again.
    /// @param endedAt They counted until then; zero if a later installation ended them.
    error EpochEnded(uint64 epoch, uint256 endedAt);

    /// @notice A batch without a redemption.
    error EmptyBatch();

    /// @notice `votes` is not exactly a quorum's.
    error WrongVotesLength(uint256 item, uint256 length, uint256 expected);

    /// @notice The members of the votes are not strictly ascending: unsorted, or a member votes twice.
    error VotesNotAscending(uint256 item, uint256 position, uint8 member);

    /// @notice The vote names a member that the committee does not have.
    error UnknownMember(uint256 item, uint256 position, uint8 member);

    /// @notice The vote's `s` is in the upper half of the curve's order.
    error MalleableVote(uint256 item, uint256 position, bytes32 s);

    /// @notice The vote's `v` is neither 27 nor 28.
    error InvalidRecoveryId(uint256 item, uint256 position, uint8 v);

    /// @notice The vote is not the named member's signature of this statement in this epoch, on this chain and
    /// contract.
    error WrongSigner(uint256 item, uint256 position, uint8 member, address recovered);

    /// @notice Too little gas is left to give a payout its full allowance. Send the call again with more gas.
    error InsufficientGas(uint256 available, uint256 required);

    /// @notice No redemption waits under this number, or another one than the given.
    error NotQueued(bytes32 sender, uint64 sequence);

    /// @notice The redemption waits until `executableAt`.
    error TooEarly(uint256 executableAt);

    /// @notice The redemption was queued with votes of `epoch`, whose keys were out. It needs votes of the current epoch:
    /// a `redemptionBatchVoteDigest` of it alone.
    error EpochCompromised(uint64 epoch);

    /// @notice The redemption was queued with votes of `epoch`, which is not compromised; it cannot be released.
    error EpochNotCompromised(uint64 epoch);

    // ------------------------------------------------------------------------------ errors: unlocking

    /// @notice The order is spent, so that its number cannot be voided.
    error SequenceSpent(bytes32 account, uint64 sequence);

    // ----------------------------------------------------------------------------- errors: claims

    /// @notice `owner` has no claim of `asset`.
    error NothingToClaim(address owner, address asset);

    /// @notice `amount` is zero, or more than the claim.
    error InvalidClaimAmount(address owner, address asset, uint256 claimed, uint256 amount);

    /// @notice The payout of the claim did not go through; the claim stays.
    error ClaimRefused(address to, address asset, uint256 amount);

    // ------------------------------------------------------------------------------------ deposits

    /// @notice Funds `recipient` with the ETH sent along.
    function depositEther(bytes32 recipient) external payable;

    /// @notice Funds `recipient` with up to `amount` of `asset`, which the caller has approved before.
    /// @dev Credits what arrives, so a token that takes a fee on transfer credits less than `amount`.
    function depositToken(bytes32 recipient, IERC20 asset, uint128 amount) external;

    /// @notice As `depositToken`, with an ERC-2612 permit instead of an approval.
    /// @dev A permit that somebody else has already used is no error as long as the allowance suffices.
    function depositTokenWithPermit(
        bytes32 recipient,
        IERC20 asset,
        uint128 amount,
        uint256 deadline,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external;

    /// @notice Plain ETH funds the sender's own account: 12 zero bytes and its address. Only for a sender that sends
    /// the transaction itself, and so has the key to that account; a contract calls `depositEther`.
    receive() external payable;

    // --------------------------------------------------------------------------------- redemptions

    /// @notice Pays a redemption that a quorum of `epoch` voted for, or queues it where it is more than the asset's
    /// outflow limit lets go at once. Anyone may call; the caller gets the fee.
    /// @dev `epoch` is the current one, or the one before it until `epochValidUntil`.
    function redeem(Redemption calldata redemption, uint64 epoch, bytes calldata votes) external;

    /// @notice Pays or queues several redemptions, each with votes of its own. One that is already redeemed is
    /// skipped, so that nobody can spoil a bundle; any other fault reverts the whole call.
    function redeemMany(CertifiedRedemption[] calldata certified) external;

    /// @notice Pays or queues several redemptions that a quorum of `epoch` voted for as a whole
    /// (`redemptionBatchVoteDigest`). One that is already redeemed is skipped; any other fault reverts the whole
    /// call.
    /// @param votes As of a redemption, for the batch in the order of the call.
    function redeemBatch(Redemption[] calldata redemptions, uint64 epoch, bytes calldata votes) external;

    /// @notice Pays a redemption that was queued, once its time has come. Anyone may call; the fee goes to the
    /// relayer that brought it.
    /// @param votes Empty, unless the redemption was queued with votes of a compromised epoch. Then a quorum of the current
    /// epoch votes for it, as for a batch of one (`redemptionBatchVoteDigest`).
    function executeQueued(Redemption calldata redemption, bytes calldata votes) external;

    /// @notice Takes a redemption of a compromised epoch out of the queue. The order stays spent. A pause does not stop it.
    /// @param votes The votes of a quorum of the current epoch for `releaseVoteDigest`.
    function releaseQueued(Redemption calldata redemption, bytes calldata votes) external;

    /// @notice Pays the caller's claim, or a part of it, to any address.
    function claim(address asset, address to, uint256 amount) external;

    /// @notice Pays the claim of `owner`, or a part of it, to `owner`. Anyone may call. The payout may use all gas that the
    /// caller sends.
    function claimFor(address owner, address asset, uint256 amount) external;

    // ---------------------------------------------------------------------------------- the guardian

    /// @notice Stops deposits, redemptions and claims for `pauseDuration`. Only the guardian may.
    function pause() external;

    /// @notice Ends a pause before its time; the cool-down counts from now. Only the guardian may.
    function unpause() external;

    /// @notice Makes all redemptions that are queued with votes of `epoch`, now or later, wait longer. Only the guardian
    /// may.
    /// @param extra In seconds; in all at most 30 days for each epoch.
    function postpone(uint64 epoch, uint256 extra) external;

    // ----------------------------------------------------------------------------------- the council

    /// @notice Begins the next epoch. Only `council()` may call; a pause does not stop it.
    /// @param authorities The next committee: 4 to 255 members, sorted by voting key.
    /// @param guardian The next guardian; zero for nobody.
    /// @param compromisedSince Ends the votes of this and all later epochs at once; the epoch that begins, for none.
    /// @param checkpoint For the event.
    function install(
        Authority[] calldata authorities,
        address guardian,
        uint64 compromisedSince,
        bytes32 checkpoint
    ) external;

    /// @notice Raises a deposit cap. Only `council()` may call.
    function setCap(address asset, uint128 cap) external;

    /// @notice Gives an unlock request its place in the order. Only `council()` may call.
    function requestUnlock(
        bytes32 account,
        uint64 sequence,
        uint256 voidableFrom,
        bytes calldata authorization
    ) external;

    /// @notice Gives an upheld number its place in the order. Only `council()` may call.
    function uphold(bytes32 account, uint64 sequence, bytes32 digest) external;

    /// @notice Gives a voided number its place in the order, and marks it as spent. Only `council()` may call. A pause stops
    /// it, for nobody can redeem then.
    function void(bytes32 account, uint64 sequence) external;

    // --------------------------------------------------------------------------------------- views

    /// @notice The current epoch.
    function epoch() external view returns (uint64);

    /// @notice Until when votes of `epoch` count, inclusive: for ever, while it is the current one; until a time,
    /// which may have passed, for the one before; zero for all others.
    function epochValidUntil(uint64 epoch) external view returns (uint256);

    /// @notice The committee of any epoch so far, in the order in which votes name its members.
    function committee(uint64 epoch) external view returns (Authority[] memory);

    /// @notice How many votes make a quorum of n: (n + f) / 2 + 1 with f = (n - 1) / 3, which is 2f + 1 for n = 3f + 1.
    function quorum(uint64 epoch) external view returns (uint256);

    /// @notice Whether keys of `epoch` were out, as a later installation said. Its votes do not count.
    function compromised(uint64 epoch) external view returns (bool);

    /// @notice Can pause, postpone and endorse; zero for nobody.
    function guardian() external view returns (address);

    /// @notice The contract that installs committees, raises caps and settles unlock requests.
    function council() external view returns (ICouncil);

    /// @notice The safety parameters, as fixed at deployment.
    function safetyParameters() external view returns (SafetyParameters memory);

    /// @notice The contract is paused before this time. Zero or in the past if it is not.
    function pausedUntil() external view returns (uint256);

    /// @notice From when on the guardian may pause.
    function nextPauseAt() external view returns (uint256);

    /// @notice What the contract holds of `asset` for FastPay accounts: all deposits less all redemptions that were executed.
    function totalBalance(address asset) external view returns (uint256);

    /// @notice The most that the contract holds of `asset` for FastPay accounts; a deposit above it is refused. Without a cap
    /// of its own it is 2^88 - 1 for ETH and 2^127 - 1 for a token.
    function depositCap(address asset) external view returns (uint256);

    /// @notice What the contract holds of `asset` for claims.
    function totalClaims(address asset) external view returns (uint256);

    /// @notice The sum of the redemptions of `asset` that wait. It is a part of `totalBalance`, and may be more than that
    /// where stolen keys queued more than there is.
    function totalQueued(address asset) external view returns (uint256);

    /// @notice The most that one redemption of `asset` can be now without having to wait.
    function outflowAvailable(address asset) external view returns (uint256);

    /// @notice The redemption that waits under this number. All zero if none waits.
    /// @param sender The account that it debits.
    /// @return executableAt It can be executed from then on, postponement included.
    /// @return relayer Gets its fee.
    /// @return epoch The committee that voted for it.
    /// @return needsVotes Whether `executeQueued` needs votes of the current epoch, because `epoch` is compromised.
    function queued(bytes32 sender, uint64 sequence)
        external
        view
        returns (uint256 executableAt, address relayer, uint64 epoch, bool needsVotes);

    /// @notice What `owner` can claim of `asset`.
    function claimOf(address owner, address asset) external view returns (uint256);

    /// @notice The index of the last event of the order.
    function lastTransactionIndex() external view returns (uint64);

    /// @notice Whether the order `sequence` of `sender` is spent: redeemed, queued, released or voided.
    function isRedeemed(bytes32 sender, uint64 sequence) external view returns (bool);

    /// @notice 256 answers of `isRedeemed` at once: bit i of word w is sequence 256 * w + i.
    function redeemedBitmap(bytes32 sender, uint256 word) external view returns (uint256);

    /// @notice The block of the deployment, where a reader of the events starts.
    function deploymentBlock() external view returns (uint256);

    /// @notice The EIP-712 digest that a member signs to vote for `redemption` in `epoch`.
    function redemptionVoteDigest(uint64 epoch, Redemption calldata redemption)
        external
        view
        returns (bytes32);

    /// @notice The EIP-712 digest that a member signs to vote for `redemptions`, in this order, in `epoch`.
    function redemptionBatchVoteDigest(uint64 epoch, Redemption[] calldata redemptions)
        external
        view
        returns (bytes32);

    /// @notice The EIP-712 digest that a member of the committee of `epoch` signs to release `redemption` from the queue.
    function releaseVoteDigest(uint64 epoch, Redemption calldata redemption) external view returns (bytes32);
}
