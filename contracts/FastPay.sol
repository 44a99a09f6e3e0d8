// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Authority, CertifiedRedemption, IFastPay, Redemption} from "./interfaces/IFastPay.sol";
import {Committee, Committees} from "./libraries/Committees.sol";
import {Payouts} from "./libraries/Payouts.sol";
import {Redemptions} from "./libraries/Redemptions.sol";
import {Votes} from "./libraries/Votes.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Permit.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";

/// @title FastPay on its Primary
/// @notice Holds what FastPay accounts own. Value comes in by deposits, and goes out by redemptions that a quorum of
/// the committee voted for. There is no owner and no upgrade: nothing else moves it.
/// @dev Per asset, the contract holds at least `balance + claims`. Assets share no state but the deposit index, so a
/// hostile token harms itself alone. Every function that moves value checks, records, logs, and only then calls out,
/// under one re-entrancy guard.
contract FastPay is IFastPay, EIP712, ReentrancyGuardTransient {
    using Committees for Committee;
    using Redemptions for Redemption;
    using SafeERC20 for IERC20;

    /// @dev What is held of an asset: for accounts, and for claims. One slot, for it is written with every payment.
    struct Holding {
        uint128 balance;
        uint128 claims;
    }

    /// @dev The most that is held of an asset, so that authorities can keep balances as signed 128-bit numbers.
    uint256 private constant HOLDING_MAX = uint256(uint128(type(int128).max));

    /// @inheritdoc IFastPay
    uint256 public immutable deploymentBlock;

    /// @inheritdoc IFastPay
    uint64 public epoch;

    /// @inheritdoc IFastPay
    uint64 public lastTransactionIndex;

    mapping(uint64 epoch => Committee) private _committees;
    mapping(address asset => Holding) private _holdings;
    mapping(address owner => mapping(address asset => uint256)) private _claims;
    mapping(bytes32 sender => mapping(uint256 word => uint256)) private _redeemed;

    /// @param authorities The committee of epoch 0: 4 to 255 members, sorted by voting key.
    constructor(Authority[] memory authorities) EIP712("FastPay", "1") {
        deploymentBlock = block.number;
        _committees[0] = Committees.install(authorities);
        emit CommitteeInstalled(0, authorities);
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
        bool redeemed = _redeem(redemption, epoch_, votes, 0);
        require(redeemed, AlreadyRedeemed(redemption.sender, redemption.sequence));
    }

    /// @inheritdoc IFastPay
    function redeemMany(CertifiedRedemption[] calldata certified) external nonReentrant {
        for (uint256 i = 0; i < certified.length; ++i) {
            CertifiedRedemption calldata item = certified[i];
            if (!_redeem(item.redemption, item.epoch, item.votes, i)) {
                emit RedemptionSkipped(item.redemption.sender, item.redemption.sequence);
            }
        }
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
    function committee(uint64 epoch_) external view returns (Authority[] memory) {
        return _committee(epoch_).members();
    }

    /// @inheritdoc IFastPay
    function quorum(uint64 epoch_) external view returns (uint256) {
        return Committees.quorum(_committee(epoch_).size);
    }

    /// @inheritdoc IFastPay
    function totalBalance(address asset) external view returns (uint256) {
        return _holdings[asset].balance;
    }

    /// @inheritdoc IFastPay
    function totalClaims(address asset) external view returns (uint256) {
        return _holdings[asset].claims;
    }

    /// @inheritdoc IFastPay
    function claimOf(address owner, address asset) external view returns (uint256) {
        return _claims[owner][asset];
    }

    /// @inheritdoc IFastPay
    function isRedeemed(bytes32 sender, uint64 sequence) external view returns (bool) {
        (uint256 word, uint256 bit) = Redemptions.place(sequence);
        return _redeemed[sender][word] & bit != 0;
    }

    /// @inheritdoc IFastPay
    function redeemedBitmap(bytes32 sender, uint256 word) external view returns (uint256) {
        return _redeemed[sender][word];
    }

    /// @inheritdoc IFastPay
    function redemptionVoteDigest(uint64 epoch_, Redemption calldata redemption)
        external
        view
        returns (bytes32)
    {
        return _hashTypedDataV4(redemption.voteHash(epoch_));
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
        require(recipient != 0, ZeroRecipient());
        require(recipient != _accountOf(address(this)), RecipientIsContract());
        require(received > 0, NothingReceived(asset));
        Holding memory holding = _holdings[asset];
        uint256 held = uint256(holding.balance) + holding.claims;
        require(
            held <= HOLDING_MAX && received <= HOLDING_MAX - held,
            AssetCapExceeded(asset, held, received, HOLDING_MAX)
        );

        // forge-lint: disable-next-line(unsafe-typecast) -- HOLDING_MAX fits
        uint128 amount = uint128(received);
        _holdings[asset].balance = holding.balance + amount;
        uint64 index = ++lastTransactionIndex;
        emit Funded(index, recipient, asset, amount, msg.sender);
    }

    /// @dev Executes a redemption; false if it was executed before, which is all that is then checked.
    function _redeem(Redemption calldata redemption, uint64 epoch_, bytes calldata votes, uint256 item)
        private
        returns (bool)
    {
        (bytes32 sender, uint64 sequence) = (redemption.sender, redemption.sequence);
        (uint256 word, uint256 bit) = Redemptions.place(sequence);
        uint256 done = _redeemed[sender][word];
        if (done & bit != 0) return false;

        (uint128 amount, uint128 fee) = (redemption.amount, redemption.fee);
        require(amount > 0, ZeroRedemption(item));
        require(fee <= amount, FeeAboveAmount(item, fee, amount));
        {
            Committee memory voters = _committee(epoch_);
            bytes32 digest = _hashTypedDataV4(redemption.voteHash(epoch_));
            Votes.check(votes, digest, voters.redemptionKeys(), Committees.quorum(voters.size), item);
        }
        (address recipient, address asset) = (redemption.recipient, redemption.asset);
        uint128 balance = _holdings[asset].balance;
        require(amount <= balance, BalanceTooLow(item, asset, balance, amount));

        _redeemed[sender][word] = done | bit;
        _holdings[asset].balance = balance - amount;
        emit Redeemed(sender, sequence, recipient, asset, amount, fee, msg.sender);

        _payOut(asset, recipient, amount - fee);
        _payOut(asset, msg.sender, fee);
        return true;
    }

    /// @dev Pays what has been taken off the asset's balance, or keeps it as a claim.
    function _payOut(address asset, address to, uint128 amount) private {
        if (amount == 0 || Payouts.trySend(asset, to, amount)) return;
        // Claims cannot overflow: they come out of balances, and both together are capped.
        _holdings[asset].claims += amount;
        _claims[to][asset] += amount;
        emit ClaimCreated(to, asset, amount);
    }

    /// @dev Pays all of the caller's claim. The payout may take all gas there is, for the caller pays it.
    function _claim(address asset, address to) private {
        uint256 amount = _claims[msg.sender][asset];
        require(amount > 0, NothingToClaim(msg.sender, asset));
        _claims[msg.sender][asset] = 0;
        // forge-lint: disable-next-line(unsafe-typecast) -- a claim is a part of all claims, which fit
        _holdings[asset].claims -= uint128(amount);
        emit Claimed(msg.sender, asset, to, amount);
        require(Payouts.send(asset, to, amount, gasleft()), ClaimRefused(to, asset, amount));
    }

    /// @dev The FastPay account that the ECDSA key of an Ethereum address owns.
    function _accountOf(address owner) private pure returns (bytes32) {
        return bytes32(uint256(uint160(owner)));
    }

    function _committee(uint64 epoch_) private view returns (Committee memory found) {
        found = _committees[epoch_];
        require(found.code != address(0), UnknownEpoch(epoch_));
    }
}
