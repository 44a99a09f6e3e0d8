// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

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

/// @notice What brakes the contract, fixed at deployment. All times in seconds.
/// @param pauseDuration How long a pause lasts at most: 1 hour to 7 days.
/// @param pauseCooldown From the end of a pause until the next may begin: `pauseDuration` to 365 days.
/// @param outflowWindow The time in which a limit that is used up is whole again: 1 hour to 7 days. So two shares can
/// leave within a window that begins with a whole one.
/// @param outflowShare What may leave at once while the limit is whole, in basis points of the asset's balance: 100 to
/// 10,000.
/// @param outflowDelay How long a redemption above the limit waits: 1 hour to 7 days.
/// @param votesValidity How long votes of an epoch count after its end: 1 day to 90 days.
struct Brakes {
    uint32 pauseDuration;
    uint32 pauseCooldown;
    uint32 outflowWindow;
    uint16 outflowShare;
    uint32 outflowDelay;
    uint32 votesValidity;
}

/// @title FastPay on its Primary
/// @notice Takes deposits that fund FastPay accounts, and pays redemptions that a quorum of the committee voted for.
/// @dev In errors, `item` is the position of the redemption in the call (0 in `redeem`; `type(uint256).max` where
/// the votes are for the whole call, as in `redeemBatch` and `rotate`), and `position` that of the vote among its
/// votes.
interface IFastPay is IERC5267 {
    // ------------------------------------------------------------------------------------------ events

    /// @notice `epoch` began.
    /// @param authorities Its committee, in the order in which votes name its members.
    /// @param guardian Who can pause from now on; zero if nobody can.
    /// @param previousEpochEnds Until when, inclusive, votes of the epoch before count; zero at deployment.
    event CommitteeInstalled(
        uint64 indexed epoch, Authority[] authorities, address guardian, uint256 previousEpochEnds
    );

    /// @notice The guardian stopped deposits, redemptions and claims, before `until`.
    event Paused(uint256 until);

    /// @notice The guardian ended a pause before its time.
    event Unpaused();

    /// @notice A deposit. `index` counts deposits of all assets from 1 without a gap.
    /// @param recipient The FastPay account that authorities credit.
    /// @param amount What arrived, which may be less than what was sent.
    event Funded(
        uint64 indexed index, bytes32 indexed recipient, address indexed asset, uint128 amount, address payer
    );

    /// @notice A redemption was executed: `amount - fee` went to `recipient` and `fee` to `relayer`, each either
    /// paid or, if `ClaimCreated` follows, kept for them.
    event Redeemed(
        bytes32 indexed sender,
        uint64 sequence,
        address indexed recipient,
        address indexed asset,
        uint128 amount,
        uint128 fee,
        address relayer
    );

    /// @notice A redemption waits, because it is more than the asset's outflow limit lets go at once. The order is
    /// spent; from `executableAt` on, anyone can have it paid with `executeQueued`, and `Redeemed` follows then.
    /// @param relayer Who brought it, and gets the fee when it is paid.
    event RedemptionQueued(
        bytes32 indexed sender,
        uint64 sequence,
        address indexed recipient,
        address indexed asset,
        uint128 amount,
        uint128 fee,
        address relayer,
        uint256 executableAt
    );

    /// @notice An item of a bundle or a batch was left out because it had been redeemed or queued before.
    event RedemptionSkipped(bytes32 indexed sender, uint64 sequence);

    /// @notice A payout did not go through; `owner` can collect it with `claim` or `claimTo`.
    event ClaimCreated(address indexed owner, address indexed asset, uint256 amount);

    /// @notice All that `owner` could claim of `asset` was paid to `to`.
    event Claimed(address indexed owner, address indexed asset, address indexed to, uint256 amount);

    // ------------------------------------------------------------- errors: deployment and committees

    /// @notice The parameter `name` of `Brakes` is out of its bounds.
    error InvalidBrake(string name, uint256 value, uint256 min, uint256 max);

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

    // ----------------------------------------------------------------------------- errors: pauses

    /// @notice Deposits, redemptions and claims are stopped; at `until` they go on.
    error PausedUntil(uint256 until);

    /// @notice `caller` is not the guardian.
    error NotGuardian(address caller);

    /// @notice The last pause has not been over for `pauseCooldown`; the next may begin at `nextPauseAt`.
    error PauseTooEarly(uint256 nextPauseAt);

    /// @notice There is no pause to end.
    error NotPaused();

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

    /// @notice The contract would hold more of `asset` for accounts than it can count.
    /// @param held What it holds for accounts now.
    /// @param cap 2^88 - 1 for ETH, 2^127 - 1 for a token.
    error AssetCapExceeded(address asset, uint256 held, uint256 received, uint256 cap);

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
    /// @param endedAt Until when they counted; zero if a later rotation cut them off.
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

    // ----------------------------------------------------------------------------- errors: claims

    /// @notice `owner` has no claim of `asset`.
    error NothingToClaim(address owner, address asset);

    /// @notice The payout of the claim did not go through; the claim stays.
    error ClaimRefused(address to, address asset, uint256 amount);

    // ------------------------------------------------------------------------------------ deposits

    /// @notice Funds `recipient` with the ETH sent along.
    function depositEther(bytes32 recipient) external payable;

    /// @notice Funds `recipient` with up to `amount` of `asset`, which the caller has approved before.
    /// @dev Credits what arrives, so a token that takes a fee on transfer credits less than `amount`.
    function depositToken(bytes32 recipient, IERC20 asset, uint128 amount) external;

    /// @notice As `depositToken`, with an ERC-2612 permit in place of the approval.
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
    function executeQueued(Redemption calldata redemption) external;

    /// @notice Pays what the caller could not be paid earlier.
    function claim(address asset) external;

    /// @notice Pays what the caller could not be paid earlier to another address.
    function claimTo(address asset, address to) external;

    // --------------------------------------------------------------------- the committee, the guardian

    /// @notice Begins the next epoch, which a quorum of the current one voted for (`committeeVoteDigest`). Anyone
    /// may call; a pause neither stops it nor is ended by it.
    /// @param authorities The next committee: 4 to 255 members, sorted by voting key.
    /// @param guardian Who can pause from then on; zero for nobody.
    /// @param votes The votes of exactly a quorum of the current committee, packed as those of a redemption.
    function rotate(Authority[] calldata authorities, address guardian, bytes calldata votes) external;

    /// @notice Stops deposits, redemptions and claims for `pauseDuration`. Only the guardian may.
    function pause() external;

    /// @notice Ends a pause before its time; the cool-down counts from now. Only the guardian may.
    function unpause() external;

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

    /// @notice Who can pause; zero if nobody can.
    function guardian() external view returns (address);

    /// @notice What brakes the contract, as fixed at deployment.
    function brakes() external view returns (Brakes memory);

    /// @notice The contract is paused before this time. Zero or in the past if it is not.
    function pausedUntil() external view returns (uint256);

    /// @notice From when on the guardian may pause.
    function nextPauseAt() external view returns (uint256);

    /// @notice What the contract holds of `asset` for FastPay accounts: all deposits less all redemptions.
    function totalBalance(address asset) external view returns (uint256);

    /// @notice What the contract holds of `asset` for claims.
    function totalClaims(address asset) external view returns (uint256);

    /// @notice What the contract holds of `asset` for redemptions that wait.
    function totalQueued(address asset) external view returns (uint256);

    /// @notice The most that one redemption of `asset` can be now without having to wait.
    function outflowAvailable(address asset) external view returns (uint256);

    /// @notice When the redemption that waits under this number can be executed, and who gets its fee. Zeros if
    /// none waits.
    function queued(bytes32 sender, uint64 sequence)
        external
        view
        returns (uint256 executableAt, address relayer);

    /// @notice What `owner` can claim of `asset`.
    function claimOf(address owner, address asset) external view returns (uint256);

    /// @notice The index of the last deposit, which is how many there were.
    function lastTransactionIndex() external view returns (uint64);

    /// @notice Whether the order `sequence` of `sender` is spent: redeemed, or queued to be.
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

    /// @notice The EIP-712 digest that a member of the current committee signs to vote for the next one.
    function committeeVoteDigest(Authority[] calldata authorities, address guardian)
        external
        view
        returns (bytes32);
}
