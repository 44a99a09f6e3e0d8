// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Balances} from "./base/Balances.sol";
import {Roles} from "./base/Roles.sol";
import {ICouncil} from "./interfaces/ICouncil.sol";
import {
    AssetCap,
    Authority,
    CertifiedRedemption,
    IFastPay,
    Redemption,
    SafetyParameters
} from "./interfaces/IFastPay.sol";
import {Payouts} from "./libraries/Payouts.sol";
import {Redemptions} from "./libraries/Redemptions.sol";
import {Votes} from "./libraries/Votes.sol";
import {State} from "./types/State.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Permit.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";

/// @title FastPay on its Primary
/// @notice Holds the assets of FastPay accounts. Deposits bring value in. Redemptions that a quorum of the committee
/// voted for take it out. The contract has no owner and no upgrade, so nothing else moves value.
/// @dev For each asset, the contract holds at least `balance + claims`, unless the token itself reduced that. Assets
/// share only the numbering of events, so a hostile token harms only its own holders. Every function that moves value
/// checks, writes its state, logs, and only then calls other contracts, under one re-entrancy guard.
contract FastPay is Balances {
    using Redemptions for Redemption;
    using Redemptions for Redemption[];
    using MessageHashUtils for bytes32;
    using Redemptions for bytes32;
    using Redemptions for bytes32[];
    using SafeERC20 for IERC20;

    /// @dev One bit for each of 256 orders of an account. As a struct, its slot is computed once for read and write.
    struct Word {
        uint256 bits;
    }

    /// @dev A queued redemption, found by the hash of its order, which is unique.
    struct Queued {
        bytes32 hash;
        address relayer;
        uint40 executableAt;
        uint32 epoch;
    }

    /// @inheritdoc IFastPay
    uint256 public immutable deploymentBlock;

    // slither-disable-next-line uninitialized-state -- written in `_spend`, through a reference to its inside
    mapping(bytes32 sender => mapping(uint256 word => Word)) private _redeemed;
    mapping(bytes32 sender => mapping(uint64 sequence => Queued)) private _queue;

    /// @inheritdoc IFastPay
    mapping(address asset => uint256) public totalQueued;

    /// @param authorities The committee of epoch 0: 4 to 255 members, sorted by voting key.
    /// @param guardian_ May pause, postpone and endorse; zero for none.
    /// @param council_ The council, deployed before for the address that this contract will have.
    /// @param parameters Fixed from now on; `SafetyParameters` has the bounds.
    /// @param caps The deposit caps. Assets that are not named have none.
    constructor(
        Authority[] memory authorities,
        address guardian_,
        ICouncil council_,
        SafetyParameters memory parameters,
        AssetCap[] memory caps
    ) Roles(authorities, guardian_, council_, parameters) Balances(caps) {
        deploymentBlock = block.number;
    }

    // ------------------------------------------------------------------------------------ deposits

    /// @inheritdoc IFastPay
    receive() external payable nonReentrant {
        // Only an ECDSA key can spend the account that this funds, and only the transaction's origin certainly has
        // one. `code.length` cannot tell: it is zero for a contract under construction, and not zero for a key's
        // account that has delegated (EIP-7702). The origin authorizes nothing here; this protects the sender's own
        // money.
        require(msg.sender == tx.origin, SenderWithoutKey(msg.sender));
        _fund(_accountOf(msg.sender), Payouts.ETHER, msg.value, address(this).balance);
    }

    /// @inheritdoc IFastPay
    function depositEther(bytes32 recipient) external payable nonReentrant {
        _fund(recipient, Payouts.ETHER, msg.value, address(this).balance);
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
        // Anyone who sees the permit can use it first. That must not stop the deposit that it was signed for.
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
        (bytes32 hash, bytes32 domain) = (redemption.hash(), _domainSeparatorV4());
        Votes.check(votes, hash.voteDigest(epoch_, domain), _voters(state, epoch_), 0);
        _settle(redemption, hash, domain, epoch_, 0);
    }

    /// @inheritdoc IFastPay
    function redeemMany(CertifiedRedemption[] calldata certified) external nonReentrant {
        State state = _running();
        bytes32 domain = _domainSeparatorV4();
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
            bytes32 hash = redemption.hash();
            Votes.check(item.votes, hash.voteDigest(epoch_, domain), voters, i);
            _settle(redemption, hash, domain, epoch_, i);
        }
    }

    /// @inheritdoc IFastPay
    function redeemBatch(Redemption[] calldata redemptions, uint64 epoch_, bytes calldata votes)
        external
        nonReentrant
    {
        require(redemptions.length > 0, EmptyBatch());
        address[] memory voters = _voters(_running(), epoch_);
        (bytes32[] memory hashes, bytes32 domain) = (redemptions.hashes(), _domainSeparatorV4());
        Votes.check(votes, hashes.batchVoteDigest(epoch_, domain), voters, Votes.WHOLE_CALL);
        for (uint256 i = 0; i < redemptions.length; ++i) {
            Redemption calldata redemption = redemptions[i];
            if (_spend(redemption)) _settle(redemption, hashes[i], domain, epoch_, i);
            else emit RedemptionSkipped(redemption.sender, redemption.sequence);
        }
    }

    /// @inheritdoc IFastPay
    function executeQueued(Redemption calldata redemption, bytes calldata votes) external nonReentrant {
        State state = _running();
        (bytes32 hash, Queued memory waiting) = _unqueue(redemption);
        uint256 executableAt = waiting.executableAt + _postponement(waiting.epoch);
        require(block.timestamp >= executableAt, TooEarly(executableAt));
        if (_isCompromised(waiting.epoch)) {
            require(votes.length > 0, EpochCompromised(waiting.epoch));
            bytes32[] memory hashes = new bytes32[](1);
            hashes[0] = hash;
            bytes32 digest = hashes.batchVoteDigest(state.epoch(), _domainSeparatorV4());
            Votes.check(votes, digest, _voters(state, state.epoch()), Votes.WHOLE_CALL);
        }
        (address asset, uint128 amount) = (redemption.asset, redemption.amount);
        uint64 index = _debit(asset, amount);
        _pay(redemption, _hashTypedDataV4(hash), asset, amount, redemption.fee, waiting.relayer, index);
    }

    /// @inheritdoc IFastPay
    function releaseQueued(Redemption calldata redemption, bytes calldata votes) external nonReentrant {
        State state = _state;
        (bytes32 hash, Queued memory waiting) = _unqueue(redemption);
        require(_isCompromised(waiting.epoch), EpochNotCompromised(waiting.epoch));
        bytes32 digest = hash.releaseVoteDigest(state.epoch(), _domainSeparatorV4());
        Votes.check(votes, digest, _voters(state, state.epoch()), Votes.WHOLE_CALL);
        emit RedemptionReleased(redemption.sender, _nextIndex(), redemption.sequence, _hashTypedDataV4(hash));
    }

    /// @inheritdoc IFastPay
    function claim(address asset, address to, uint256 amount) external nonReentrant {
        require(to != address(0), ZeroRecipient());
        require(to != address(this), RecipientIsContract());
        _claim(msg.sender, asset, to, amount);
    }

    /// @inheritdoc IFastPay
    function claimFor(address owner, address asset, uint256 amount) external nonReentrant {
        _claim(owner, asset, owner, amount);
    }

    // --------------------------------------------------------------------------------- the council

    /// @inheritdoc IFastPay
    function void(bytes32 account, uint64 sequence) external onlyCouncil nonReentrant {
        _running();
        require(_mark(account, sequence), SequenceSpent(account, sequence));
        emit SequenceVoided(_nextIndex(), account, sequence);
    }

    // --------------------------------------------------------------------------------------- views

    /// @inheritdoc IFastPay
    function queued(bytes32 sender, uint64 sequence)
        external
        view
        returns (uint256 executableAt, address relayer, uint64 epoch_, bool needsVotes)
    {
        Queued storage waiting = _queue[sender][sequence];
        if (waiting.hash == 0) return (0, address(0), 0, false);
        epoch_ = waiting.epoch;
        executableAt = waiting.executableAt + _postponement(epoch_);
        return (executableAt, waiting.relayer, epoch_, _isCompromised(epoch_));
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
        return redemption.hash().voteDigest(epoch_, _domainSeparatorV4());
    }

    /// @inheritdoc IFastPay
    function redemptionBatchVoteDigest(uint64 epoch_, Redemption[] calldata redemptions)
        external
        view
        returns (bytes32)
    {
        return redemptions.hashes().batchVoteDigest(epoch_, _domainSeparatorV4());
    }

    /// @inheritdoc IFastPay
    function releaseVoteDigest(uint64 epoch_, Redemption calldata redemption)
        external
        view
        returns (bytes32)
    {
        return redemption.hash().releaseVoteDigest(epoch_, _domainSeparatorV4());
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
        _fund(recipient, address(asset), held > before ? held - before : 0, held);
    }

    /// @dev Credits a deposit under the next index.
    function _fund(bytes32 recipient, address asset, uint256 received, uint256 held) private {
        State state = _running();
        require(recipient != 0, ZeroRecipient());
        require(recipient != _accountOf(address(this)), RecipientIsContract());
        (uint128 amount, uint64 index) = _credit(state, asset, received, held);
        emit Funded(index, recipient, asset, amount, msg.sender);
    }

    /// @dev Marks an order as spent; false if it was before. A later failure in the call reverts this too.
    function _spend(Redemption calldata redemption) private returns (bool) {
        return _mark(redemption.sender, redemption.sequence);
    }

    function _mark(bytes32 sender, uint64 sequence) private returns (bool) {
        (uint256 word, uint256 bit) = Redemptions.place(sequence);
        Word storage orders = _redeemed[sender][word];
        uint256 done = orders.bits;
        if (done & bit != 0) return false;
        orders.bits = done | bit;
        return true;
    }

    /// @dev Pays or queues a redemption that a quorum voted for.
    function _settle(
        Redemption calldata redemption,
        bytes32 hash,
        bytes32 domain,
        uint64 epoch_,
        uint256 item
    ) private {
        (address asset, uint128 amount, uint128 fee) = (redemption.asset, redemption.amount, redemption.fee);
        require(amount > 0, ZeroRedemption(item));
        require(fee <= amount, FeeAboveAmount(item, fee, amount));
        bytes32 digest = domain.toTypedDataHash(hash);
        (bool passes, uint64 index) = _debitWithinLimit(asset, amount, item);
        if (passes) _pay(redemption, digest, asset, amount, fee, msg.sender, index);
        else _enqueue(redemption, hash, digest, epoch_, index);
    }

    /// @dev Queues a redemption. Its amount stays in the asset's balance until it is executed.
    function _enqueue(
        Redemption calldata redemption,
        bytes32 hash,
        bytes32 digest,
        uint64 epoch_,
        uint64 index
    ) private {
        uint256 executableAt = block.timestamp + OUTFLOW_DELAY;
        // forge-lint: disable-next-item(unsafe-typecast) -- until the year 36,812; an epoch has 20 bits
        _queue[redemption.sender][redemption.sequence] = Queued({
            hash: hash, relayer: msg.sender, executableAt: uint40(executableAt), epoch: uint32(epoch_)
        });
        totalQueued[redemption.asset] += redemption.amount;
        emit RedemptionQueued(
            redemption.sender,
            redemption.recipient,
            redemption.asset,
            index,
            redemption.sequence,
            redemption.amount,
            redemption.fee,
            msg.sender,
            digest,
            epoch_,
            executableAt
        );
    }

    /// @dev Removes a redemption from the queue. A later failure in the call reverts this too.
    function _unqueue(Redemption calldata redemption) private returns (bytes32 hash, Queued memory waiting) {
        (bytes32 sender, uint64 sequence) = (redemption.sender, redemption.sequence);
        hash = redemption.hash();
        waiting = _queue[sender][sequence];
        require(waiting.hash == hash, NotQueued(sender, sequence));
        delete _queue[sender][sequence];
        totalQueued[redemption.asset] -= redemption.amount;
    }

    /// @dev Pays a redemption whose amount was subtracted from the asset's balance. The caller passes the fields that
    /// it has read, because each read from calldata is checked again.
    function _pay(
        Redemption calldata redemption,
        bytes32 digest,
        address asset,
        uint128 amount,
        uint128 fee,
        address relayer,
        uint64 index
    ) private {
        address recipient = redemption.recipient;
        emit Redeemed(
            redemption.sender, recipient, asset, index, redemption.sequence, amount, fee, relayer, digest
        );
        unchecked {
            amount -= fee; // checked when it was redeemed
        }
        if (amount > 0) _payOut(asset, recipient, amount);
        if (fee > 0) _payOut(asset, relayer, fee);
    }

    /// @dev Pays a part of a redemption, or records it as a claim.
    function _payOut(address asset, address to, uint128 amount) private {
        if (Payouts.trySend(asset, to, amount)) return;
        _addClaim(to, asset, amount);
        emit ClaimCreated(to, asset, amount);
    }

    /// @dev Pays a claim or a part of it. The payout may use all remaining gas, because the caller pays for it.
    function _claim(address owner, address asset, address to, uint256 amount) private {
        _running();
        _takeClaim(owner, asset, amount);
        emit Claimed(owner, asset, to, amount);
        require(Payouts.send(asset, to, amount, gasleft()), ClaimRefused(to, asset, amount));
    }

    /// @dev The FastPay account that the ECDSA key of an Ethereum address owns.
    function _accountOf(address owner) private pure returns (bytes32) {
        return bytes32(uint256(uint160(owner)));
    }
}
