// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ICouncil, Outcome, Upholding} from "../interfaces/ICouncil.sol";
import {IFastPay} from "../interfaces/IFastPay.sol";
import {Committees} from "../libraries/Committees.sol";
import {Payouts} from "../libraries/Payouts.sol";
import {UnlockStatements} from "../libraries/UnlockStatements.sol";
import {Votes} from "../libraries/Votes.sol";
import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";

/// @title Unlocks a number for which an owner signed two orders
/// @notice The owner requests an unlock. A quorum that knows a certificate upholds its order. A quorum that knows none
/// voids the number once the window has passed; all members together void it at once. Each number has one outcome.
/// A committee with stolen keys may have upheld an order that does not exist. The number is open again once an
/// installation marks that committee's epoch as compromised.
/// @dev FastPay numbers the events. The ETH held here is the sum of the bonds: one for each number that names a payer.
// slither-disable-next-line unimplemented-functions -- Council completes it
abstract contract Unlocks is ICouncil {
    /// @dev An unlock request, in one slot.
    struct Unlock {
        address payer;
        uint40 voidableFrom;
        uint32 epoch;
        Outcome outcome;
    }

    /// @dev The gas cost of upholding at 60 gwei. Whoever upholds an order gets the bond.
    uint256 private constant BOND = 0.005 ether;

    /// @dev An Ed25519 key with a signature has 96 bytes. Authorities read every request.
    uint256 private constant AUTHORIZATION_MAX = 512;

    bytes32 private constant DOMAIN_TYPE_HASH =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");

    IFastPay internal immutable FAST_PAY;

    mapping(bytes32 account => mapping(uint64 sequence => Unlock)) private _unlocks;

    constructor(IFastPay fastPay_) {
        FAST_PAY = fastPay_;
    }

    /// @inheritdoc ICouncil
    function requestUnlock(bytes32 account, uint64 sequence, bytes calldata authorization) external payable {
        Unlock memory unlock = _unlocks[account][sequence];
        require(_outcomeOf(unlock) == Outcome.None, AlreadyDecided(account, sequence));
        require(
            authorization.length <= AUTHORIZATION_MAX,
            AuthorizationTooLong(authorization.length, AUTHORIZATION_MAX)
        );
        bool isFirst = unlock.voidableFrom == 0;
        if (uint256(account) <= type(uint160).max) {
            _requireOwner(account, sequence, authorization);
            require(isFirst, AlreadyRequested(account, sequence));
        }
        // A second request needs no bond: the first may be a stranger's, which authorities ignore.
        uint256 bond = isFirst ? BOND : 0;
        require(msg.value == bond, WrongBond(msg.value, bond));
        uint256 voidableFrom = block.timestamp + FAST_PAY.safetyParameters().unlockWindow;
        if (isFirst) _keep(account, sequence, msg.sender, voidableFrom, 0, Outcome.None);
        FAST_PAY.requestUnlock(account, sequence, voidableFrom, authorization);
    }

    /// @inheritdoc ICouncil
    function upholdSequence(bytes32 account, uint64 sequence, bytes32 digest, bytes calldata votes) external {
        Unlock memory unlock = _requested(account, sequence);
        require(_outcomeOf(unlock) == Outcome.None, AlreadyDecided(account, sequence));
        (uint64 epoch, address[] memory keys) = _currentCommittee();
        uint256 quorum = Committees.quorum(keys.length);
        bytes32 vote = certificateVoteDigest(epoch, account, sequence, digest);
        Votes.check(votes, vote, keys, quorum, Votes.WHOLE_CALL);
        _payBond(msg.sender, _uphold(unlock, account, sequence, digest, epoch));
    }

    /// @inheritdoc ICouncil
    function upholdMany(Upholding[] calldata items) external {
        (uint64 epoch, address[] memory keys) = _currentCommittee();
        uint256 quorum = Committees.quorum(keys.length);
        uint256 bonds = 0;
        for (uint256 i = 0; i < items.length; ++i) {
            Upholding calldata item = items[i];
            (bytes32 account, uint64 sequence, bytes32 digest) = (item.account, item.sequence, item.digest);
            Unlock memory unlock = _requested(account, sequence);
            if (_outcomeOf(unlock) != Outcome.None) continue;
            bytes32 vote = certificateVoteDigest(epoch, account, sequence, digest);
            Votes.check(item.votes, vote, keys, quorum, i);
            bonds += _uphold(unlock, account, sequence, digest, epoch);
        }
        _payBond(msg.sender, bonds);
    }

    /// @inheritdoc ICouncil
    // slither-disable-next-line reentrancy-no-eth -- FastPay calls nobody back, and the number is decided by then
    function voidSequence(bytes32 account, uint64 sequence, bool unanimous, bytes calldata votes) external {
        Unlock memory unlock = _requested(account, sequence);
        require(_outcomeOf(unlock) == Outcome.None, AlreadyDecided(account, sequence));
        (uint64 epoch, address[] memory keys) = _currentCommittee();
        (uint256 voidableFrom, uint256 needed) = unanimous
            ? (_unanimousFrom(epoch), keys.length)
            : (unlock.voidableFrom, Committees.quorum(keys.length));
        require(block.timestamp >= voidableFrom, NotVoidable(account, sequence, voidableFrom));
        bytes32 vote = voidVoteDigest(epoch, account, sequence, unanimous);
        Votes.check(votes, vote, keys, needed, Votes.WHOLE_CALL);
        _keep(account, sequence, address(0), unlock.voidableFrom, epoch, Outcome.Voided);
        FAST_PAY.void(account, sequence);
        // A payer that refuses its bond must not keep the account stuck.
        if (unlock.payer != address(0) && !Payouts.trySend(Payouts.ETHER, unlock.payer, BOND)) {
            _unlocks[account][sequence].payer = unlock.payer;
        }
    }

    /// @inheritdoc ICouncil
    function returnBond(bytes32 account, uint64 sequence) external {
        Unlock memory unlock = _unlocks[account][sequence];
        require(unlock.outcome == Outcome.Voided && unlock.payer != address(0), NoBond(account, sequence));
        _unlocks[account][sequence].payer = address(0);
        _payBond(unlock.payer, BOND);
    }

    /// @inheritdoc ICouncil
    function unlockBond() external pure returns (uint256) {
        return BOND;
    }

    /// @inheritdoc ICouncil
    function unlockOf(bytes32 account, uint64 sequence)
        external
        view
        returns (Outcome outcome, uint256 voidableFrom, address payer)
    {
        Unlock memory unlock = _unlocks[account][sequence];
        return (_outcomeOf(unlock), unlock.voidableFrom, unlock.payer);
    }

    /// @inheritdoc ICouncil
    function unanimousFrom() external view returns (uint256) {
        return _unanimousFrom(FAST_PAY.epoch());
    }

    /// @inheritdoc ICouncil
    function unlockRequestDigest(bytes32 account, uint64 sequence) public view returns (bytes32) {
        return _digest(UnlockStatements.request(account, sequence));
    }

    /// @inheritdoc ICouncil
    function certificateVoteDigest(uint64 epoch, bytes32 account, uint64 sequence, bytes32 digest)
        public
        view
        returns (bytes32)
    {
        return _digest(UnlockStatements.certificateVote(epoch, account, sequence, digest));
    }

    /// @inheritdoc ICouncil
    function voidVoteDigest(uint64 epoch, bytes32 account, uint64 sequence, bool unanimous)
        public
        view
        returns (bytes32)
    {
        return _digest(UnlockStatements.voidVote(epoch, account, sequence, unanimous));
    }

    /// @dev The time at which the current epoch began.
    function _epochBegan() internal view virtual returns (uint256);

    /// @dev The signer of a digest; zero if the signature is invalid or not in its canonical form.
    function _signer(bytes32 digest, bytes calldata signature) internal pure returns (address) {
        (bytes32 r, bytes32 s, uint8 v) =
            (bytes32(signature[:32]), bytes32(signature[32:64]), uint8(signature[64]));
        return uint256(s) <= Votes.S_MAX ? ecrecover(digest, v, r, s) : address(0);
    }

    /// @dev The EIP-712 digest of a struct hash under FastPay's domain.
    function _digest(bytes32 structHash) internal view returns (bytes32) {
        bytes32 domain = keccak256(
            abi.encode(
                DOMAIN_TYPE_HASH, keccak256("FastPay"), keccak256("1"), block.chainid, address(FAST_PAY)
            )
        );
        return MessageHashUtils.toTypedDataHash(domain, structHash);
    }

    /// @dev Records that an order is upheld. Returns the bond that is due; zero if it was paid before.
    // slither-disable-next-line calls-loop -- FastPay numbers each order of a bundle
    function _uphold(Unlock memory unlock, bytes32 account, uint64 sequence, bytes32 digest, uint64 epoch)
        private
        returns (uint256)
    {
        _keep(account, sequence, address(0), unlock.voidableFrom, epoch, Outcome.Upheld);
        FAST_PAY.uphold(account, sequence, digest);
        return unlock.payer == address(0) ? 0 : BOND;
    }

    function _keep(
        bytes32 account,
        uint64 sequence,
        address payer,
        uint256 voidableFrom,
        uint64 epoch,
        Outcome outcome
    ) private {
        // forge-lint: disable-next-item(unsafe-typecast) -- until the year 36,812; an epoch has 20 bits
        _unlocks[account][sequence] = Unlock({
            payer: payer, voidableFrom: uint40(voidableFrom), epoch: uint32(epoch), outcome: outcome
        });
    }

    function _requested(bytes32 account, uint64 sequence) private view returns (Unlock memory unlock) {
        unlock = _unlocks[account][sequence];
        require(unlock.voidableFrom != 0, NotRequested(account, sequence));
    }

    /// @dev The outcome of a number. It is `None` again if a compromised epoch upheld the order, which may not exist. A
    /// number that such an epoch voided stays void, because it is spent.
    // slither-disable-next-line calls-loop -- FastPay alone is called
    function _outcomeOf(Unlock memory unlock) private view returns (Outcome) {
        bool isOpenAgain = unlock.outcome == Outcome.Upheld && FAST_PAY.compromised(unlock.epoch);
        return isOpenAgain ? Outcome.None : unlock.outcome;
    }

    function _payBond(address to, uint256 amount) private {
        if (amount == 0) return;
        require(Payouts.send(Payouts.ETHER, to, amount, gasleft()), BondRefused(to));
    }

    function _currentCommittee() private view returns (uint64 epoch, address[] memory keys) {
        epoch = FAST_PAY.epoch();
        keys = Committees.redemptionKeys(address(FAST_PAY), epoch);
    }

    /// @dev In a later epoch this waits until members that left have had time to hand over their executed orders.
    function _unanimousFrom(uint64 epoch) private view returns (uint256) {
        return epoch == 0 ? 0 : _epochBegan() + FAST_PAY.safetyParameters().votesValidity;
    }

    /// @dev Reverts unless the caller owns the account or its key signed.
    function _requireOwner(bytes32 account, uint64 sequence, bytes calldata authorization) private view {
        address owner = address(uint160(uint256(account)));
        if (msg.sender == owner) return;
        bool signed = authorization.length == 65
            && _signer(unlockRequestDigest(account, sequence), authorization) == owner;
        // `ecrecover` returns zero for an invalid signature, and nobody owns the account zero.
        require(signed && owner != address(0), NotOwner(account));
    }
}
