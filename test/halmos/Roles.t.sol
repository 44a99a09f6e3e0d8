// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Authority, IFastPay} from "../../contracts/interfaces/IFastPay.sol";
import {Proof} from "./Proof.sol";

/// @title What the committee and the guardian can do, and that nobody else can do it
contract RolesProof is Proof {
    /// @dev All that matters to anybody, each for any account, order or asset.
    struct World {
        uint256 held;
        uint256 balance;
        uint256 claims;
        uint256 waiting;
        uint256 claim;
        bool spent;
        uint256 executableAt;
        uint256 index;
    }

    /// @dev Whoever calls, only the council installs a committee. What the council asks for is for other tests.
    function check_OnlyTheCouncilInstalls(address caller, address guardian, uint64 since, bytes32 checkpoint)
        public
    {
        vm.assume(caller != address(fastPay.council()));
        Authority[] memory next = new Authority[](MEMBERS);
        for (uint256 i = 0; i < MEMBERS; ++i) {
            next[i] = Authority({
                votingKey: bytes32(svm.createUint(256, "votingKey")),
                redemptionKey: address(uint160(svm.createUint(160, "redemptionKey")))
            });
        }
        _onlyTheCouncil(caller, abi.encodeCall(IFastPay.install, (next, guardian, since, checkpoint)));
    }

    function check_OnlyTheCouncilRaisesCaps(address caller, address asset, uint128 cap) public {
        _onlyTheCouncil(caller, abi.encodeCall(IFastPay.setCap, (asset, cap)));
    }

    function check_OnlyTheCouncilUnlocks(address caller, bytes32 account, uint64 sequence, bytes32 digest)
        public
    {
        _onlyTheCouncil(caller, abi.encodeCall(IFastPay.uphold, (account, sequence, digest)));
        _onlyTheCouncil(caller, abi.encodeCall(IFastPay.void, (account, sequence)));
        _onlyTheCouncil(caller, abi.encodeCall(IFastPay.requestUnlock, (account, sequence, 0, "")));
    }

    function _onlyTheCouncil(address caller, bytes memory call) private {
        vm.assume(caller != address(fastPay.council()));
        vm.prank(caller);
        (bool success,) = address(fastPay).call(call);
        assert(!success);
    }

    function check_OnlyTheGuardianPauses(
        address caller,
        address owner,
        address asset,
        bytes32 sender,
        uint64 sequence
    ) public {
        World memory before = _world(owner, asset, sender, sequence);
        (address guardian, uint256 until) = (fastPay.guardian(), fastPay.pausedUntil());
        vm.prank(caller);
        (bool success,) = address(fastPay).call(abi.encodeCall(IFastPay.pause, ()));
        if (success) assert(caller == guardian);
        else assert(fastPay.pausedUntil() == until);
        _assertSame(before, _world(owner, asset, sender, sequence));
    }

    function check_OnlyTheGuardianUnpauses(
        address caller,
        address owner,
        address asset,
        bytes32 sender,
        uint64 sequence
    ) public {
        World memory before = _world(owner, asset, sender, sequence);
        (address guardian, uint256 until) = (fastPay.guardian(), fastPay.pausedUntil());
        vm.prank(caller);
        (bool success,) = address(fastPay).call(abi.encodeCall(IFastPay.unpause, ()));
        if (success) assert(caller == guardian && block.timestamp < until);
        else assert(fastPay.pausedUntil() == until);
        _assertSame(before, _world(owner, asset, sender, sequence));
    }

    /// @dev Deposits put in, and take nothing from anybody.
    function check_ADepositOnlyAdds(address owner, bytes32 recipient, bytes32 sender, uint64 sequence)
        public
    {
        World memory before = _world(owner, ETHER, sender, sequence);
        vm.deal(RELAYER, 1 ether);
        vm.prank(RELAYER);
        (bool success,) =
            address(fastPay).call{value: 1 ether}(abi.encodeCall(IFastPay.depositEther, (recipient)));
        World memory afterwards = _world(owner, ETHER, sender, sequence);
        if (success) {
            assert(afterwards.held == before.held + 1 ether);
            assert(afterwards.balance == before.balance + 1 ether);
            (afterwards.held, afterwards.balance) = (before.held, before.balance);
            afterwards.index = before.index;
        }
        _assertSame(before, afterwards);
    }

    function _world(address owner, address asset, bytes32 sender, uint64 sequence)
        private
        view
        returns (World memory world)
    {
        (uint256 executableAt,,,) = fastPay.queued(sender, sequence);
        return World({
            held: address(fastPay).balance,
            balance: fastPay.totalBalance(asset),
            claims: fastPay.totalClaims(asset),
            waiting: fastPay.totalQueued(asset),
            claim: fastPay.claimOf(owner, asset),
            spent: fastPay.isRedeemed(sender, sequence),
            executableAt: executableAt,
            index: fastPay.lastTransactionIndex()
        });
    }

    function _assertSame(World memory a, World memory b) private pure {
        assert(a.held == b.held && a.balance == b.balance && a.claims == b.claims && a.waiting == b.waiting);
        assert(
            a.claim == b.claim && a.spent == b.spent && a.executableAt == b.executableAt && a.index == b.index
        );
    }
}
