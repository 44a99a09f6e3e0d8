// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {
    Authority,
    CertifiedRedemption,
    IFastPay,
    Redemption,
    SafetyParameters
} from "../../contracts/interfaces/IFastPay.sol";
import {MoodyRecipient} from "../mocks/Recipients.sol";
import {FeeToken, MoodyToken, ZooToken} from "../tokens/WeirdTokens.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {CommonBase} from "forge-std/Base.sol";
import {StdUtils} from "forge-std/StdUtils.sol";

/// @title Everything that the world does to the contract, and what it should have come to
/// @notice Every action says beforehand what the contract must do, from rules and sums of its own ("ghosts"), and fails
/// where the contract does anything else.
contract LimitsHandler is CommonBase, StdUtils {
    /// @dev A redemption that waits.
    struct Waiting {
        Redemption order;
        address relayer;
        uint256 executableAt; // without postponement
        uint64 epoch;
    }

    /// @dev How a redemption is brought: alone, under a vote for many, or in a bundle, in which it comes twice.
    enum Way {
        Single,
        Batch,
        Bundle
    }

    /// @dev What left at once and of how much, or came in and to how much.
    struct Flow {
        uint256 time;
        uint256 amount;
        uint256 balance;
        bool isDeposit;
    }

    uint64 private constant SEQUENCES = 40; // few, so that the same numbers come up again and again
    uint256 private constant ACCOUNTS = 2;

    IFastPay public immutable fastPay;
    address public immutable guardian;
    SafetyParameters private _parameters;
    function(uint256) external pure returns (uint256) private _memberKey;

    address[3] public assets; // ETH, a token with moods, one that takes a fee
    address[3] public payees; // a recipient of ETH with moods, two that take all
    uint256 public time; // each action sets the clock itself

    uint64 public epoch;
    uint256 public previousEpochEnds;
    uint256 public events;
    mapping(uint64 epoch => bool) public compromised;
    mapping(uint64 epoch => uint256) public postponed;
    uint256 public pausedUntil;
    uint256 public nextPauseAt;
    mapping(address asset => uint256) public deposited;
    mapping(address asset => uint256) public redeemed; // taken off the balance
    mapping(address asset => uint256) public left; // by what the contract really holds
    mapping(address asset => uint256) public donated;
    mapping(bytes32 sender => mapping(uint64 sequence => uint256)) public spent;
    mapping(bytes32 sender => mapping(uint64 sequence => uint256)) public paid;
    mapping(address asset => Flow[]) private _flows;
    Waiting[] private _waiting;

    constructor(
        IFastPay fastPay_,
        address guardian_,
        function(uint256) external pure returns (uint256) memberKey
    ) {
        (fastPay, guardian, _memberKey) = (fastPay_, guardian_, memberKey);
        _parameters = fastPay_.safetyParameters();
        assets = [address(0), address(new MoodyToken()), address(new FeeToken())];
        payees = [address(new MoodyRecipient(MoodyRecipient.Mood.Reverts)), vm.addr(0xb0b), vm.addr(0xca401)];
        time = vm.getBlockTimestamp();
    }

    /// @dev Sets the clock, which nothing but `pass` moves.
    modifier onTime() {
        vm.warp(time);
        _;
    }

    // ------------------------------------------------------------------------------------- actions

    function pass(uint256 seconds_) external {
        // As often minutes as days.
        time += bound(seconds_, 1, seconds_ % 2 == 0 ? 1 hours : 3 days);
        vm.warp(time);
    }

    /// @dev The moods in which a token or a recipient pays or refuses; those in which a token lies are tested elsewhere.
    function changeMood(uint256 ofToken, uint256 ofRecipient) external onTime {
        MoodyToken.Mood[4] memory moods = [
            MoodyToken.Mood.Good,
            MoodyToken.Mood.ReturnsNothing,
            MoodyToken.Mood.ReturnsFalse,
            MoodyToken.Mood.Reverts
        ];
        MoodyToken(assets[1]).setMood(moods[ofToken % 4]);
        MoodyRecipient(payable(payees[0])).setMood(MoodyRecipient.Mood(ofRecipient % 5));
    }

    function deposit(uint256 which, uint256 amount) external onTime {
        address asset = assets[which % 3];
        amount = bound(amount, 1, 1e24);
        address payer = payees[1];
        bytes32 recipient = bytes32(uint256(1));
        uint256 before = _held(asset);
        bool done;
        if (asset == address(0)) {
            vm.deal(payer, payer.balance + amount);
            bytes memory call = abi.encodeCall(IFastPay.depositEther, (recipient));
            vm.prank(payer, payer);
            (done,) = address(fastPay).call{value: amount}(amount % 2 == 0 ? call : bytes("")); // or plainly
        } else {
            ZooToken(asset).mint(payer, amount);
            vm.startPrank(payer);
            ZooToken(asset).approve(address(fastPay), amount);
            (done,) = address(fastPay)
                .call(abi.encodeCall(IFastPay.depositToken, (recipient, IERC20(asset), uint128(amount))));
            vm.stopPrank();
        }
        amount = _held(asset) - before;
        require(done == (!_paused() && !_refuses(asset)), "a deposit, a pause and a refusal");
        if (!done) return;
        deposited[asset] += amount;
        ++events;
        _flows[asset].push(Flow(time, amount, fastPay.totalBalance(asset), true));
    }

    function redeem(uint256 seed, uint256 amount, uint256 by, bool ofPrevious) external onTime {
        Redemption memory order = _order(seed, amount);
        if (order.amount == 0) return;
        uint64 voters = ofPrevious && epoch > 0 ? epoch - 1 : epoch;
        Way way = Way(by % 3);
        bytes memory call = _redemptionCall(order, voters, way);
        bool known = spent[order.sender][order.sequence] > 0;
        bool counted = voters == epoch || time <= previousEpochEnds;
        bool fits = order.amount <= fastPay.outflowAvailable(order.asset);
        Flow memory flow = Flow(time, order.amount, fastPay.totalBalance(order.asset), false);
        uint256 before = _held(order.asset);
        vm.prank(payees[2]);
        (bool done,) = address(fastPay).call(call);
        // A bundle passes what is spent by before it looks at the votes.
        bool stopped = way == Way.Single ? known || !counted : !counted && (way == Way.Batch || !known);
        require(done == (!_paused() && !stopped), "a redemption, and what should stop it");
        if (!done || known) {
            require(_held(order.asset) == before, "paid nevertheless");
            return;
        }
        ++spent[order.sender][order.sequence];
        ++events;
        if (fits) {
            redeemed[order.asset] += order.amount;
            _flows[order.asset].push(flow);
            _noteLeft(order, before);
        } else {
            require(_held(order.asset) == before, "queued and paid");
            _waiting.push(
                Waiting({
                    order: order,
                    relayer: payees[2],
                    executableAt: time + _parameters.outflowDelay,
                    epoch: voters
                })
            );
        }
        (uint256 executableAt,,,) = fastPay.queued(order.sender, order.sequence);
        require((executableAt == 0) == fits, "the limit, and the queue");
    }

    function redeemWithoutAQuorum(uint256 seed, uint256 amount, uint256 change) external onTime {
        Redemption memory order = _order(seed, amount);
        bytes memory votes = _votes(epoch, fastPay.redemptionVoteDigest(epoch, order));
        votes[bound(change, 0, votes.length - 1)] ^= 0x10;
        (bool done,) = address(fastPay).call(abi.encodeCall(IFastPay.redeem, (order, epoch, votes)));
        require(!done, "paid without a quorum");
    }

    function executeQueued(uint256 which, bool withVotes) external onTime {
        if (_waiting.length == 0) return;
        which = which % _waiting.length;
        Waiting memory item = _waiting[which];
        uint256 before = _held(item.order.asset);
        bool covered = fastPay.totalBalance(item.order.asset) >= item.order.amount;
        (bool done,) = address(fastPay).call(executionOf(which, withVotes));
        bool due = time >= item.executableAt + postponed[item.epoch];
        bool voted = withVotes || !compromised[item.epoch];
        require(done == (!_paused() && due && voted && covered), "an execution, and its time");
        if (!done) return;
        ++events;
        redeemed[item.order.asset] += item.order.amount;
        _noteLeft(item.order, before);
        _remove(which);
    }

    function releaseQueued(uint256 which, bool withVotes) external onTime {
        if (_waiting.length == 0) return;
        which = which % _waiting.length;
        Waiting memory item = _waiting[which];
        bytes memory votes =
            withVotes ? _votes(epoch, fastPay.releaseVoteDigest(epoch, item.order)) : bytes("");
        (bool done,) = address(fastPay).call(abi.encodeCall(IFastPay.releaseQueued, (item.order, votes)));
        require(done == (compromised[item.epoch] && withVotes), "a release, and of what");
        if (!done) return;
        ++events;
        _remove(which);
    }

    function claim(uint256 which, uint256 part, bool byAnyone) external onTime {
        address owner = payees[which % 3];
        address asset = assets[(which >> 8) % 3];
        uint256 owed = fastPay.claimOf(owner, asset);
        uint256 amount = owed == 0 ? 1 : bound(part, 1, owed);
        uint256 before = _held(asset);
        vm.prank(byAnyone ? payees[2] : owner);
        // With a bound, because a mood burns all gas that there is.
        (bool done,) = address(fastPay).call{gas: 1_000_000}(
            byAnyone
                ? abi.encodeCall(IFastPay.claimFor, (owner, asset, amount))
                : abi.encodeCall(IFastPay.claim, (asset, payees[1], amount))
        );
        bool refused =
            _refuses(asset) || (byAnyone && owner == payees[0] && asset == address(0) && _recipientRefuses());
        require(done == (!_paused() && owed > 0 && !refused), "a claim, a pause and a refusal");
        if (done) left[asset] += before - _held(asset);
        if (done) require(before - _held(asset) == amount, "another amount than claimed");
    }

    function install(uint256 seed, uint64 since) external onTime {
        if (epoch == 8) return;
        Authority[] memory next = _next(seed);
        // As often nobody's keys were out.
        since = seed % 2 == 0 ? epoch + 1 : uint64(bound(since, 0, epoch));
        vm.prank(address(fastPay.council()));
        fastPay.install(next, guardian, since, 0); // a pause does not stop it
        ++epoch;
        ++events;
        previousEpochEnds = since == epoch ? time + _parameters.votesValidity : 0;
        for (; since < epoch; ++since) {
            compromised[since] = true;
        }
    }

    function installWithoutTheCouncil(uint256 seed, uint256 who) external onTime {
        Authority[] memory next = _next(seed);
        vm.prank(who % 4 == 3 ? guardian : payees[who % 4]);
        (bool done,) = address(fastPay).call(abi.encodeCall(IFastPay.install, (next, guardian, epoch + 1, 0)));
        require(!done, "installed without the council");
    }

    function postpone(uint256 who, uint64 of_, uint256 extra) external onTime {
        address caller = who % 4 == 0 ? payees[who % 3] : guardian;
        of_ = uint64(bound(of_, 0, epoch));
        extra = bound(extra, 0, 10 days);
        vm.prank(caller);
        (bool done,) = address(fastPay).call(abi.encodeCall(IFastPay.postpone, (of_, extra)));
        bool bounded = postponed[of_] + extra <= 30 days;
        require(done == (caller == guardian && bounded), "a postponement, by whom and how long");
        if (done) postponed[of_] += extra;
    }

    function pause(uint256 who) external onTime {
        address caller = who % 4 == 0 ? payees[who % 3] : guardian;
        vm.prank(caller);
        (bool done,) = address(fastPay).call(abi.encodeCall(IFastPay.pause, ()));
        require(done == (caller == guardian && time >= nextPauseAt), "a pause, by whom and when");
        if (!done) return;
        pausedUntil = time + _parameters.pauseDuration;
        nextPauseAt = pausedUntil + _parameters.pauseCooldown;
    }

    function unpause(uint256 who) external onTime {
        address caller = who % 4 == 0 ? payees[who % 3] : guardian;
        vm.prank(caller);
        (bool done,) = address(fastPay).call(abi.encodeCall(IFastPay.unpause, ()));
        require(done == (caller == guardian && _paused()), "an end of a pause, by whom and when");
        if (!done) return;
        pausedUntil = time;
        nextPauseAt = time + _parameters.pauseCooldown;
    }

    function donate(uint256 amount) external onTime {
        amount = bound(amount, 1, 1e20);
        vm.deal(address(fastPay), address(fastPay).balance + amount); // forced: no code runs
        MoodyToken(assets[1]).mint(address(fastPay), amount);
        donated[assets[0]] += amount;
        donated[assets[1]] += amount;
    }

    // --------------------------------------------------------------------------------------- reads

    function waiting(uint256 index) external view returns (Waiting memory) {
        return _waiting[index];
    }

    function numberWaiting() external view returns (uint256) {
        return _waiting.length;
    }

    function flows(address asset) external view returns (Flow[] memory) {
        return _flows[asset];
    }

    /// @dev The call that executes what waits at an index.
    function executionOf(uint256 index, bool withVotes) public view returns (bytes memory) {
        Redemption[] memory one = new Redemption[](1);
        one[0] = _waiting[index].order;
        bytes memory votes =
            withVotes ? _votes(epoch, fastPay.redemptionBatchVoteDigest(epoch, one)) : bytes("");
        return abi.encodeCall(IFastPay.executeQueued, (one[0], votes));
    }

    function eachNumber(function(bytes32, uint64) external view check) external view {
        for (uint256 account = 1; account <= ACCOUNTS; ++account) {
            for (uint64 sequence = 0; sequence < SEQUENCES; ++sequence) {
                check(bytes32(account), _sequence(sequence));
            }
        }
    }

    // ------------------------------------------------------------------------------------- private

    function _refuses(address asset) private view returns (bool) {
        MoodyToken.Mood mood = MoodyToken(assets[1]).mood();
        return asset == assets[1] && mood != MoodyToken.Mood.Good && mood != MoodyToken.Mood.ReturnsNothing;
    }

    function _recipientRefuses() private view returns (bool) {
        MoodyRecipient.Mood mood = MoodyRecipient(payable(payees[0])).mood();
        return mood != MoodyRecipient.Mood.Accepts && mood != MoodyRecipient.Mood.ReturnsMuch;
    }

    function _redemptionCall(Redemption memory order, uint64 voters, Way way)
        private
        view
        returns (bytes memory)
    {
        if (way != Way.Batch) {
            bytes memory single = _votes(voters, fastPay.redemptionVoteDigest(voters, order));
            if (way == Way.Single) return abi.encodeCall(IFastPay.redeem, (order, voters, single));
            CertifiedRedemption[] memory twice = new CertifiedRedemption[](2);
            twice[0] = twice[1] = CertifiedRedemption({redemption: order, epoch: voters, votes: single});
            return abi.encodeCall(IFastPay.redeemMany, (twice));
        }
        Redemption[] memory one = new Redemption[](1);
        one[0] = order;
        bytes memory votes = _votes(voters, fastPay.redemptionBatchVoteDigest(voters, one));
        return abi.encodeCall(IFastPay.redeemBatch, (one, voters, votes));
    }

    /// @dev Numbers on both sides of the border between two words of the bitmap.
    function _sequence(uint64 sequence) private pure returns (uint64) {
        return 240 + sequence;
    }

    function _paused() private view returns (bool) {
        return time < pausedUntil;
    }

    function _next(uint256 seed) private view returns (Authority[] memory next) {
        next = new Authority[](4 + seed % 4);
        for (uint256 i = 0; i < next.length; ++i) {
            next[i] = Authority(bytes32(i + 1), vm.addr(_memberKey(100 * (uint256(epoch) + 1) + i)));
        }
    }

    function _remove(uint256 which) private {
        _waiting[which] = _waiting[_waiting.length - 1];
        _waiting.pop();
    }

    function _noteLeft(Redemption memory order, uint256 before) private {
        ++paid[order.sender][order.sequence];
        left[order.asset] += before - _held(order.asset);
    }

    /// @dev A redemption that is covered: as often of a hundredth of what is held as of any part.
    function _order(uint256 seed, uint256 amount) private view returns (Redemption memory order) {
        order.sender = bytes32(1 + seed % ACCOUNTS);
        order.sequence = _sequence(uint64((seed >> 8) % SEQUENCES));
        order.recipient = payees[(seed >> 16) % 3];
        order.asset = assets[(seed >> 24) % 3];
        uint256 most = fastPay.totalBalance(order.asset);
        if (seed & (1 << 40) != 0) most = most / 100;
        order.amount = most == 0 ? 0 : uint128(bound(amount, 1, most));
        // Also none, and all of it.
        order.fee = order.amount * uint128((seed >> 48) % 3) / 2;
    }

    function _votes(uint64 voters, bytes32 digest) private view returns (bytes memory votes) {
        uint256 quorum = fastPay.quorum(voters);
        for (uint256 member = 0; member < quorum; ++member) {
            (uint8 v, bytes32 r, bytes32 s) = vm.sign(_key(voters, member), digest);
            votes = bytes.concat(votes, abi.encodePacked(uint8(member), r, s, v));
        }
    }

    function _key(uint64 voters, uint256 member) private view returns (uint256) {
        return _memberKey(100 * uint256(voters) + member);
    }

    function _held(address asset) private view returns (uint256) {
        return asset == address(0) ? address(fastPay).balance : IERC20(asset).balanceOf(address(fastPay));
    }
}
