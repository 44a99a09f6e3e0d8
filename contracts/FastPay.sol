// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Balances} from "./base/Balances.sol";
import {Roles} from "./base/Roles.sol";
import {Authority, Brakes, CertifiedRedemption, IFastPay, Redemption} from "./interfaces/IFastPay.sol";
import {Payouts} from "./libraries/Payouts.sol";
import {Redemptions} from "./libraries/Redemptions.sol";
import {Votes} from "./libraries/Votes.sol";
import {State} from "./types/State.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Permit.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";

/// @title FastPay on its Primary
/// @notice Holds what FastPay accounts own. Value comes in by deposits, and goes out by redemptions that a quorum of
/// the committee voted for. There is no owner and no upgrade: nothing else moves it.
/// @dev Per asset, the contract holds at least `balance + claims + queued`. Assets share no state but the deposit
/// index, so a hostile token harms itself alone. Every function that moves value checks, records, logs, and only then
/// calls out, under one re-entrancy guard.
contract FastPay is Balances {
    using Redemptions for Redemption;
    using Redemptions for Redemption[];
    using SafeERC20 for IERC20;

    /// @dev 256 of an account's orders, a bit each. A struct, so that its place is computed once for both its uses.
    struct Word {
        uint256 bits;
    }

    /// @dev What is held of an asset beside its accounts' balance, each made of what has been a part of that.
    struct Reserve {
        uint256 claims;
        uint256 queued;
    }

    /// @dev A redemption that waits. It is named by its hash, and nobody else's can have that.
    struct Queued {
        bytes32 hash;
        address relayer;
        uint40 executableAt;
    }

    /// @inheritdoc IFastPay
    uint256 public immutable deploymentBlock;

    // slither-disable-next-line uninitialized-state -- written in `_spend`, through a reference to its inside
    mapping(bytes32 sender => mapping(uint256 word => Word)) private _redeemed;
    mapping(address asset => Reserve) private _reserves;
    mapping(address owner => mapping(address asset => uint256)) private _claims;
    mapping(bytes32 sender => mapping(uint64 sequence => Queued)) private _queue;

    /// @param authorities The committee of epoch 0: 4 to 255 members, sorted by voting key.
    /// @param guardian_ Who can pause; zero for nobody.
    /// @param brakes_ What cannot be changed any more; see the bounds at `Brakes`.
    constructor(Authority[] memory authorities, address guardian_, Brakes memory brakes_)
        Roles(authorities, guardian_, brakes_)
    {
        deploymentBlock = block.number;
    }

    // ------------------------------------------------------------------------------------ deposits

    /// @inheritdoc IFastPay
    receive() external payable nonReentrant {
        // Only an ECDSA key can spend the account that this funds, and of all senders only the transaction's origin
        // is sure to have one: a contract may well have none, and code.length cannot tell, for it is zero under
        // construction and not zero for a key's account that has delegated (EIP-7702). The origin is asked about the
        // sender's own money, and authorizes nothing.
        require(msg.sender == tx.origin, SenderWithoutKey(msg.sender));
        _fund(_accountOf(msg.sender), Payouts.ETHER, msg.value);
    }

    /// @inheritdoc IFastPay
    function depositEther(bytes32 recipient) external payable nonReentrant {
        _fund(recipient, Payouts.ETHER, msg.value);
    }

    /// @inheritdoc IFastPay
    function depositToken(bytes32 recipient, IERC20 asset, uint128 amount) external nonReentrant {
        _requireToken(asset);
        _pull(recipient, asset, amount);
    }

    /// @inheritdoc IFastPay
    // slither-disable-next-line reentrancy-benign -- what arrives is known only after the calls; the guard holds
    function depositTokenWithPermit(
        bytes32 recipient,
        IERC20 asset,
        uint128 amount,
        uint256 deadline,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external nonReentrant {
        _requireToken(asset);
        // Whoever sees the permit can use it first, which must not stop the deposit that it was signed for.
        try IERC20Permit(address(asset)).permit(msg.sender, address(this), amount, deadline, v, r, s) {}
        catch {
            uint256 allowance = asset.allowance(msg.sender, address(this));
            require(allowance >= amount, PermitRefused(address(asset), allowance, amount));
        }
        _pull(recipient, asset, amount);
    }

    // --------------------------------------------------------------------------------- redemptions

    /// @inheritdoc IFastPay
    function redeem(Redemption calldata redemption, uint64 epoch_, bytes calldata votes)
        external
        nonReentrant
    {
        State state = _running();
        require(_spend(redemption), AlreadyRedeemed(redemption.sender, redemption.sequence));
        Votes.check(votes, redemption.voteDigest(epoch_, _domainSeparatorV4()), _voters(state, epoch_), 0);
        _settle(redemption, 0);
    }

    /// @inheritdoc IFastPay
    function redeemMany(CertifiedRedemption[] calldata certified) external nonReentrant {
        State state = _running();
        address[] memory voters;
        uint64 epochOfVoters;
        for (uint256 i = 0; i < certified.length; ++i) {
            CertifiedRedemption calldata item = certified[i];
            Redemption calldata redemption = item.redemption;
            if (!_spend(redemption)) {
                emit RedemptionSkipped(redemption.sender, redemption.sequence);
                continue;
            }
            uint64 epoch_ = item.epoch;
            if (voters.length == 0 || epoch_ != epochOfVoters) {
                (voters, epochOfVoters) = (_voters(state, epoch_), epoch_);
            }
            Votes.check(item.votes, redemption.voteDigest(epoch_, _domainSeparatorV4()), voters, i);
            _settle(redemption, i);
        }
    }

    /// @inheritdoc IFastPay
    function redeemBatch(Redemption[] calldata redemptions, uint64 epoch_, bytes calldata votes)
        external
        nonReentrant
    {
        require(redemptions.length > 0, EmptyBatch());
        address[] memory voters = _voters(_running(), epoch_);
        Votes.check(
            votes, redemptions.batchVoteDigest(epoch_, _domainSeparatorV4()), voters, Votes.WHOLE_CALL
        );
        for (uint256 i = 0; i < redemptions.length; ++i) {
            Redemption calldata redemption = redemptions[i];
            if (_spend(redemption)) _settle(redemption, i);
            else emit RedemptionSkipped(redemption.sender, redemption.sequence);
        }
    }

    /// @inheritdoc IFastPay
    function executeQueued(Redemption calldata redemption) external nonReentrant {
        _running();
        (bytes32 sender, uint64 sequence) = (redemption.sender, redemption.sequence);
        Queued memory waiting = _queue[sender][sequence];
        require(waiting.hash == redemption.hash(), NotQueued(sender, sequence));
        require(block.timestamp >= waiting.executableAt, TooEarly(waiting.executableAt));

        delete _queue[sender][sequence];
        (address asset, uint128 amount) = (redemption.asset, redemption.amount);
        _reserves[asset].queued -= amount;
        _pay(redemption, asset, amount, redemption.fee, waiting.relayer);
    }

    /// @inheritdoc IFastPay
    function claim(address asset) external nonReentrant {
        _claim(asset, msg.sender);
    }

    /// @inheritdoc IFastPay
    function claimTo(address asset, address to) external nonReentrant {
        require(to != address(0), ZeroRecipient());
        require(to != address(this), RecipientIsContract());
        _claim(asset, to);
    }

    // --------------------------------------------------------------------------------------- views

    /// @inheritdoc IFastPay
    function totalClaims(address asset) external view returns (uint256) {
        return _reserves[asset].claims;
    }

    /// @inheritdoc IFastPay
    function totalQueued(address asset) external view returns (uint256) {
        return _reserves[asset].queued;
    }

    /// @inheritdoc IFastPay
    function queued(bytes32 sender, uint64 sequence)
        external
        view
        returns (uint256 executableAt, address relayer)
    {
        Queued storage waiting = _queue[sender][sequence];
        return (waiting.executableAt, waiting.relayer);
    }

    /// @inheritdoc IFastPay
    function claimOf(address owner, address asset) external view returns (uint256) {
        return _claims[owner][asset];
    }

    /// @inheritdoc IFastPay
    function lastTransactionIndex() external view returns (uint64) {
        return _state.lastTransactionIndex();
    }

    /// @inheritdoc IFastPay
    function isRedeemed(bytes32 sender, uint64 sequence) external view returns (bool) {
        (uint256 word, uint256 bit) = Redemptions.place(sequence);
        return _redeemed[sender][word].bits & bit != 0;
    }

    /// @inheritdoc IFastPay
    function redeemedBitmap(bytes32 sender, uint256 word) external view returns (uint256) {
        return _redeemed[sender][word].bits;
    }

    /// @inheritdoc IFastPay
    function redemptionVoteDigest(uint64 epoch_, Redemption calldata redemption)
        external
        view
        returns (bytes32)
    {
        return redemption.voteDigest(epoch_, _domainSeparatorV4());
    }

    /// @inheritdoc IFastPay
    function redemptionBatchVoteDigest(uint64 epoch_, Redemption[] calldata redemptions)
        external
        view
        returns (bytes32)
    {
        return redemptions.batchVoteDigest(epoch_, _domainSeparatorV4());
    }

    // ------------------------------------------------------------------------------------- private

    function _requireToken(IERC20 asset) private view {
        require(address(asset) != Payouts.ETHER, ZeroAsset());
        require(address(asset).code.length > 0, AssetWithoutCode(address(asset)));
    }

    /// @dev Takes `amount` of a token from the caller and credits what arrives.
    function _pull(bytes32 recipient, IERC20 asset, uint128 amount) private {
        uint256 before = asset.balanceOf(address(this));
        asset.safeTransferFrom(msg.sender, address(this), amount);
        uint256 held = asset.balanceOf(address(this));
        _fund(recipient, address(asset), held > before ? held - before : 0);
    }

    /// @dev Credits what has arrived, under the next index.
    function _fund(bytes32 recipient, address asset, uint256 received) private {
        _running();
        require(recipient != 0, ZeroRecipient());
        require(recipient != _accountOf(address(this)), RecipientIsContract());
        uint128 amount = _credit(asset, received);
        State state = _state.withNextIndex();
        _state = state;
        emit Funded(state.lastTransactionIndex(), recipient, asset, amount, msg.sender);
    }

    /// @dev Marks an order as done; false if it was. What is found wrong later reverts this too.
    function _spend(Redemption calldata redemption) private returns (bool) {
        (uint256 word, uint256 bit) = Redemptions.place(redemption.sequence);
        Word storage orders = _redeemed[redemption.sender][word];
        uint256 done = orders.bits;
        if (done & bit != 0) return false;
        orders.bits = done | bit;
        return true;
    }

    /// @dev Takes a redemption that a quorum voted for off the asset's balance, and pays it or makes it wait.
    function _settle(Redemption calldata redemption, uint256 item) private {
        (address asset, uint128 amount, uint128 fee) = (redemption.asset, redemption.amount, redemption.fee);
        require(amount > 0, ZeroRedemption(item));
        require(fee <= amount, FeeAboveAmount(item, fee, amount));
        if (_debit(asset, amount, item)) _pay(redemption, asset, amount, fee, msg.sender);
        else _enqueue(redemption);
    }

    /// @dev Keeps a redemption that has been taken off the asset's balance until it may leave.
    function _enqueue(Redemption calldata redemption) private {
        uint256 executableAt = block.timestamp + OUTFLOW_DELAY;
        // forge-lint: disable-next-item(unsafe-typecast) -- until the year 36,812
        _queue[redemption.sender][redemption.sequence] =
            Queued({hash: redemption.hash(), relayer: msg.sender, executableAt: uint40(executableAt)});
        _reserves[redemption.asset].queued += redemption.amount;
        emit RedemptionQueued(
            redemption.sender,
            redemption.sequence,
            redemption.recipient,
            redemption.asset,
            redemption.amount,
            redemption.fee,
            msg.sender,
            executableAt
        );
    }

    /// @dev Pays a redemption that has been taken off all that is held for others. What the caller has read of it
    /// comes along: each field is checked to fit its type whenever it is read.
    function _pay(Redemption calldata redemption, address asset, uint128 amount, uint128 fee, address relayer)
        private
    {
        address recipient = redemption.recipient;
        emit Redeemed(redemption.sender, redemption.sequence, recipient, asset, amount, fee, relayer);
        unchecked {
            amount -= fee; // checked when it was redeemed
        }
        if (amount > 0) _payOut(asset, recipient, amount);
        if (fee > 0) _payOut(asset, relayer, fee);
    }

    /// @dev Pays a part of a redemption, or keeps it as a claim.
    function _payOut(address asset, address to, uint128 amount) private {
        if (Payouts.trySend(asset, to, amount)) return;
        _reserves[asset].claims += amount;
        _claims[to][asset] += amount;
        emit ClaimCreated(to, asset, amount);
    }

    /// @dev Pays all of the caller's claim. The payout may take all gas there is, for the caller pays it.
    function _claim(address asset, address to) private {
        _running();
        uint256 amount = _claims[msg.sender][asset];
        require(amount > 0, NothingToClaim(msg.sender, asset));
        _claims[msg.sender][asset] = 0;
        _reserves[asset].claims -= amount;
        emit Claimed(msg.sender, asset, to, amount);
        require(Payouts.send(asset, to, amount, gasleft()), ClaimRefused(to, asset, amount));
    }

    /// @dev The FastPay account that the ECDSA key of an Ethereum address owns.
    function _accountOf(address owner) private pure returns (bytes32) {
        return bytes32(uint256(uint160(owner)));
    }
}
