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
/// @param recipient The address that receives `amount - fee`.
/// @param asset The ERC-20 that is paid, zero for ETH.
/// @param amount The amount that the account is debited, in the asset's smallest unit.
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
/// @param outflowWindow The time in which a used-up outflow limit is full again: 1 hour to 7 days. Two shares can
/// leave within a window that begins with a full limit.
/// @param outflowShare How much may leave at once while the limit is full, in basis points of the asset's balance: 100
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
/// @param cap The maximum that the contract holds of the asset for accounts. It is stored as a small float, rounded
/// down by less than 1/256; `depositCap` returns the stored value.
struct AssetCap {
    address asset;
    uint128 cap;
}

/// @title FastPay on its Primary
/// @notice Takes deposits that fund FastPay accounts, and pays redemptions that a quorum of the committee voted for.
/// @dev In errors, `item` is the position of the redemption in the call (0 in `redeem`; `type(uint256).max` where the
/// votes are for the whole call, as in `redeemBatch` and in all of `ICouncil`), and `position` that of the vote among
/// its votes.
///
/// `index` numbers the events of the order without a gap: `CommitteeInstalled`, `Funded`, `Redeemed`,
/// `RedemptionQueued`, `RedemptionReleased`, `UnlockRequested`, `SequenceUpheld` and `SequenceVoided`. Index 0 is the
/// committee of epoch 0.
interface IFastPay is IERC5267 {
    // ------------------------------------------------------------------------------------------ events

    /// @notice `epoch` began.
    /// @param authorities Its committee, in the order in which votes name its members.
    /// @param guardian May pause, postpone and endorse from now on; zero for none.
    /// @param previousEpochEnds Votes of the epoch before count until this time, inclusive; zero if they do not count.
    /// @param compromisedSince The first epoch whose keys were compromised. Votes of it and of later ended epochs do
    /// not count, and redemptions that they queued need votes of the current epoch. Equal to `epoch` if there is none.
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
    /// @param total The whole postponement of the epoch, in seconds.
    event Postponed(uint64 epoch, uint256 total);

    /// @notice The deposit cap of `asset` was raised to `cap`, its exact value.
    event CapRaised(address indexed asset, uint256 cap);

    /// @notice A deposit.
    /// @param recipient The FastPay account that authorities credit.
    /// @param amount The amount that arrived, which may be less than the amount sent.
    event Funded(
        uint64 indexed index, bytes32 indexed recipient, address indexed asset, uint128 amount, address payer
    );

    /// @notice A redemption was executed: `amount - fee` went to `recipient` and `fee` to `relayer`. If `ClaimCreated`
    /// follows, that part is kept as a claim.
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

    /// @notice A redemption was queued, because it exceeds the asset's outflow limit. The order is spent, and its
    /// amount stays in the asset's balance. From `executableAt` on, unless the guardian postpones it, anyone can call
    /// `executeQueued` to pay it. `Redeemed` follows then, with an index of its own.
    /// @param relayer Submitted the redemption, and gets the fee when it is paid.
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

    /// @notice A queued redemption of a compromised epoch was removed from the queue and will not be paid. The order
    /// stays spent, and authorities credit its account with the unpaid amount.
    event RedemptionReleased(bytes32 indexed sender, uint64 index, uint64 sequence, bytes32 digest);

    /// @notice An unlock of number `sequence` was requested for the owner of `account`. Authorities verify
    /// `authorization` where the contract cannot.
    /// @param voidableFrom The time from which a quorum can void the number.
    event UnlockRequested(
        uint64 indexed index,
        bytes32 indexed account,
        uint64 sequence,
        uint256 voidableFrom,
        bytes authorization
    );

    /// @notice The order with this digest was upheld: no other order of `sequence` is valid.
    event SequenceUpheld(uint64 indexed index, bytes32 indexed account, uint64 sequence, bytes32 digest);

    /// @notice Number `sequence` was voided: no order of it is valid.
    event SequenceVoided(uint64 indexed index, bytes32 indexed account, uint64 sequence);

    /// @notice An item of a bundle or a batch was skipped because it had been redeemed or queued before.
    event RedemptionSkipped(bytes32 indexed sender, uint64 sequence);

    /// @notice A payout failed. `owner` can collect it with `claim`, and anyone can send it to `owner` with `claimFor`.
    event ClaimCreated(address indexed owner, address indexed asset, uint256 amount);

    /// @notice A claim of `owner`, or a part of it, was paid to `to`.
    event Claimed(address indexed owner, address indexed asset, address indexed to, uint256 amount);

    // ------------------------------------------------------------- errors: deployment and committees

    /// @notice The safety parameter `name` is out of its bounds.
    error InvalidSafetyParameter(string name, uint256 value, uint256 min, uint256 max);

    /// @notice The cap is zero at deployment, its asset has a cap already, or it does not raise the cap.
    /// @param current The present cap.
    error InvalidCap(address asset, uint256 current, uint128 cap);

    /// @notice `council` was deployed for another contract than this one.
    error CouncilOfAnother(address council);

    /// @notice `council` was deployed at `deployedAt`, more than a day ago. The time until a recovery counts from then.
    error CouncilTooOld(address council, uint256 deployedAt);

    /// @notice A committee has 4 to 255 members.
    error InvalidCommitteeSize(uint256 size);

    /// @notice The authority at `index` has a zero voting key or a zero redemption key.
    error ZeroKey(uint256 index);

    /// @notice The voting key at `index` is not above the one before it. Sort by voting key, and name each member once.
    error VotingKeysNotAscending(uint256 index);

    /// @notice Two authorities have the same redemption key.
    error RepeatedRedemptionKey(uint256 first, uint256 second);

    /// @notice No committee has ever been installed for `epoch`.
    error UnknownEpoch(uint64 epoch);

    /// @notice Only `council()` may call this, and `caller` is not it.
    error NotCouncil(address caller);

    // ----------------------------------------------------------------------------- errors: pauses

    /// @notice Deposits, redemptions and claims are paused until `until`.
    error PausedUntil(uint256 until);

    /// @notice `caller` is not the guardian.
    error NotGuardian(address caller);

    /// @notice `pauseCooldown` has not passed since the last pause. The next may begin at `nextPauseAt`.
    error PauseTooEarly(uint256 nextPauseAt);

    /// @notice There is no pause to end.
    error NotPaused();

    /// @notice The redemptions of `epoch` would be postponed by more than `max` in total.
    error PostponedTooLong(uint64 epoch, uint256 total, uint256 max);

    // --------------------------------------------------------------------------- errors: deposits

    /// @notice The deposit is to the account zero, or the claim to the address zero.
    error ZeroRecipient();

    /// @notice The deposit is to the account of this contract's own address, which nobody could spend.
    error RecipientIsContract();

    /// @notice Plain ETH came from a contract: `sender` is not the transaction's origin, and may have no key to spend
    /// from its account. Use `depositEther` and name the account to fund.
    error SenderWithoutKey(address sender);

    /// @notice `depositToken` was called for ETH. Use `depositEther`.
    error ZeroAsset();

    /// @notice There is no contract at `asset`.
    error AssetWithoutCode(address asset);

    /// @notice Nothing of `asset` arrived.
    error NothingReceived(address asset);

    /// @notice The contract would hold more of `asset` for accounts than the deposit cap.
    /// @param held What it holds for accounts now.
    /// @param cap See `depositCap`.
    error AssetCapExceeded(address asset, uint256 held, uint256 received, uint256 cap);

    /// @notice The contract holds less of `asset` than it would owe with this deposit: the token reduced the contract's
    /// balance, or moved less than it reported. A new deposit would pay for what is missing.
    error AssetUnderCollateralized(address asset, uint256 held, uint256 owed);

    /// @notice The token refused the permit, and the payer's present allowance is too small.
    error PermitRefused(address asset, uint256 allowance, uint256 amount);

    // ------------------------------------------------------------------------ errors: redemptions

    /// @notice The redemption was executed or queued before. Nothing is left to do.
    error AlreadyRedeemed(bytes32 sender, uint64 sequence);

    /// @notice The redemption's amount is zero.
    error ZeroRedemption(uint256 item);

    /// @notice The redemption's fee is above its amount.
    error FeeAboveAmount(uint256 item, uint128 fee, uint128 amount);

    /// @notice The contract holds less of `asset` for its accounts than the redemption's amount.
    error BalanceTooLow(uint256 item, address asset, uint256 balance, uint128 amount);

    /// @notice Votes of `epoch` do not count any more. A current quorum has to vote again.
    /// @param endedAt The time until which they counted; zero if a later installation ended them.
    error EpochEnded(uint64 epoch, uint256 endedAt);

    /// @notice The batch has no redemption.
    error EmptyBatch();

    /// @notice `votes` does not have the length of a quorum's votes.
    error WrongVotesLength(uint256 item, uint256 length, uint256 expected);

    /// @notice The members of the votes are not strictly ascending: they are unsorted, or a member votes twice.
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

    /// @notice This redemption is not in the queue: none with its number is, or another one.
    error NotQueued(bytes32 sender, uint64 sequence);

    /// @notice The redemption can be executed from `executableAt` on.
    error TooEarly(uint256 executableAt);

    /// @notice The redemption was queued with votes of the compromised `epoch`. It needs votes of the current epoch for
    /// the `redemptionBatchVoteDigest` of this redemption alone.
    error EpochCompromised(uint64 epoch);

    /// @notice The redemption was queued with votes of `epoch`, which is not compromised; it cannot be released.
    error EpochNotCompromised(uint64 epoch);

    // ------------------------------------------------------------------------------ errors: unlocking

    /// @notice The order is spent, so its number cannot be voided.
    error SequenceSpent(bytes32 account, uint64 sequence);

    // ----------------------------------------------------------------------------- errors: claims

    /// @notice `owner` has no claim of `asset`.
    error NothingToClaim(address owner, address asset);

    /// @notice `amount` is zero, or more than the claim.
    error InvalidClaimAmount(address owner, address asset, uint256 claimed, uint256 amount);

    /// @notice The payout of the claim failed. The claim stays.
    error ClaimRefused(address to, address asset, uint256 amount);

    // ------------------------------------------------------------------------------------ deposits

    /// @notice Funds `recipient` with the ETH sent along.
    function depositEther(bytes32 recipient) external payable;

    /// @notice Funds `recipient` with up to `amount` of `asset`. The caller must have approved it.
    /// @dev Credits what arrives, so a token that takes a fee on transfer credits less than `amount`.
    function depositToken(bytes32 recipient, IERC20 asset, uint128 amount) external;

    /// @notice Like `depositToken`, with an ERC-2612 permit instead of an approval.
    /// @dev Somebody else may have used the permit already. That is no error while the allowance suffices.
    function depositTokenWithPermit(
        bytes32 recipient,
        IERC20 asset,
        uint128 amount,
        uint256 deadline,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external;

    /// @notice Plain ETH funds the sender's own account: 12 zero bytes and its address. The sender must be the
    /// transaction's origin, because it then has the key to that account. A contract calls `depositEther`.
    receive() external payable;

    // --------------------------------------------------------------------------------- redemptions

    /// @notice Pays a redemption that a quorum of `epoch` voted for, or queues it if it exceeds the asset's outflow
    /// limit. Anyone may call; the caller gets the fee.
    /// @dev `epoch` is the current one, or the previous one until `epochValidUntil`.
    function redeem(Redemption calldata redemption, uint64 epoch, bytes calldata votes) external;

    /// @notice Pays or queues several redemptions, each with votes of its own. One that is already redeemed is skipped,
    /// so that nobody can make a bundle fail. Any other fault reverts the whole call.
    function redeemMany(CertifiedRedemption[] calldata certified) external;

    /// @notice Pays or queues several redemptions that a quorum of `epoch` voted for as a whole
    /// (`redemptionBatchVoteDigest`). One that is already redeemed is skipped; any other fault reverts the whole
    /// call.
    /// @param votes Packed as those of a redemption, for the batch in the order of the call.
    function redeemBatch(Redemption[] calldata redemptions, uint64 epoch, bytes calldata votes) external;

    /// @notice Pays a queued redemption from its `executableAt` on. Anyone may call; the fee goes to the relayer that
    /// submitted it.
    /// @param votes Empty, unless the redemption was queued with votes of a compromised epoch. Then a quorum of the
    /// current epoch votes for it, as for a batch of one (`redemptionBatchVoteDigest`).
    function executeQueued(Redemption calldata redemption, bytes calldata votes) external;

    /// @notice Removes a redemption of a compromised epoch from the queue. The order stays spent. A pause does not stop
    /// it.
    /// @param votes The votes of a quorum of the current epoch for `releaseVoteDigest`.
    function releaseQueued(Redemption calldata redemption, bytes calldata votes) external;

    /// @notice Pays the caller's claim, or a part of it, to any address.
    function claim(address asset, address to, uint256 amount) external;

    /// @notice Pays the claim of `owner`, or a part of it, to `owner`. Anyone may call. The payout may use all gas that
    /// the caller sends.
    function claimFor(address owner, address asset, uint256 amount) external;

    // ---------------------------------------------------------------------------------- the guardian

    /// @notice Stops deposits, redemptions and claims for `pauseDuration`. Only the guardian may.
    function pause() external;

    /// @notice Ends a pause before its time; the cool-down counts from now. Only the guardian may.
    function unpause() external;

    /// @notice Postpones all redemptions that are queued with votes of `epoch`, now or later. Only the guardian may.
    /// @param extra The time to add, in seconds; at most 30 days for each epoch in total.
    function postpone(uint64 epoch, uint256 extra) external;

    // ----------------------------------------------------------------------------------- the council

    /// @notice Begins the next epoch. Only `council()` may call; a pause does not stop it.
    /// @param authorities The next committee: 4 to 255 members, sorted by voting key.
    /// @param guardian The next guardian; zero for nobody.
    /// @param compromisedSince The votes of this and all later epochs end at once. The epoch that begins, for none.
    /// @param checkpoint The digest for the event.
    function install(
        Authority[] calldata authorities,
        address guardian,
        uint64 compromisedSince,
        bytes32 checkpoint
    ) external;

    /// @notice Raises a deposit cap. Only `council()` may call.
    function setCap(address asset, uint128 cap) external;

    /// @notice Adds an unlock request to the order of events. Only `council()` may call.
    function requestUnlock(
        bytes32 account,
        uint64 sequence,
        uint256 voidableFrom,
        bytes calldata authorization
    ) external;

    /// @notice Adds an upheld number to the order of events. Only `council()` may call.
    function uphold(bytes32 account, uint64 sequence, bytes32 digest) external;

    /// @notice Adds a voided number to the order of events and marks it as spent. Only `council()` may call. It reverts
    /// during a pause, because nobody can redeem then.
    function void(bytes32 account, uint64 sequence) external;

    // --------------------------------------------------------------------------------------- views

    /// @notice The current epoch.
    function epoch() external view returns (uint64);

    /// @notice The time until which votes of `epoch` count, inclusive: the maximum for the current epoch, a time that
    /// may have passed for the previous one, and zero for all others.
    function epochValidUntil(uint64 epoch) external view returns (uint256);

    /// @notice The committee of any epoch so far, in the order in which votes name its members.
    function committee(uint64 epoch) external view returns (Authority[] memory);

    /// @notice How many votes make a quorum of n: (n + f) / 2 + 1 with f = (n - 1) / 3, which is 2f + 1 for n = 3f + 1.
    function quorum(uint64 epoch) external view returns (uint256);

    /// @notice Whether a later installation marked `epoch` as compromised. Its votes do not count.
    function compromised(uint64 epoch) external view returns (bool);

    /// @notice The guardian, who may pause, postpone and endorse; zero for none.
    function guardian() external view returns (address);

    /// @notice The contract that installs committees, raises caps and settles unlock requests.
    function council() external view returns (ICouncil);

    /// @notice The safety parameters, as fixed at deployment.
    function safetyParameters() external view returns (SafetyParameters memory);

    /// @notice The end of the pause. Zero or in the past if the contract is not paused.
    function pausedUntil() external view returns (uint256);

    /// @notice The earliest time of the next pause.
    function nextPauseAt() external view returns (uint256);

    /// @notice What the contract holds of `asset` for FastPay accounts: all deposits less all redemptions that were
    /// executed.
    function totalBalance(address asset) external view returns (uint256);

    /// @notice The maximum that the contract holds of `asset` for FastPay accounts. A deposit above it reverts. Without
    /// a configured cap it is 2^88 - 1 for ETH and 2^127 - 1 for a token.
    function depositCap(address asset) external view returns (uint256);

    /// @notice What the contract holds of `asset` for claims.
    function totalClaims(address asset) external view returns (uint256);

    /// @notice The sum of the queued redemptions of `asset`. It is a part of `totalBalance`, and exceeds it only if
    /// stolen keys queued more than there is.
    function totalQueued(address asset) external view returns (uint256);

    /// @notice The largest redemption of `asset` that would be paid at once now.
    function outflowAvailable(address asset) external view returns (uint256);

    /// @notice The queued redemption with this number. All zero if there is none.
    /// @param sender The account that it debits.
    /// @return executableAt The time from which it can be executed, postponement included.
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

    /// @notice 256 results of `isRedeemed` at once: bit i of word w is sequence 256 * w + i.
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

    /// @notice The EIP-712 digest that a member of the committee of `epoch` signs to release `redemption` from the
    /// queue.
    function releaseVoteDigest(uint64 epoch, Redemption calldata redemption) external view returns (bytes32);
}
