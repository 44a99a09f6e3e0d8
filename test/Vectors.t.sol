// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {
    AssetCap,
    Authority,
    IFastPay,
    Redemption,
    SafetyParameters
} from "../contracts/interfaces/IFastPay.sol";
import {Redemptions} from "../contracts/libraries/Redemptions.sol";
import {Blake3} from "./mocks/Blake3.sol";
import {MoodyToken} from "./tokens/WeirdTokens.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";
import {Test} from "forge-std/Test.sol";

/// @title The vectors that the Rust core writes: both sides hash alike, and judge alike
abstract contract VectorsTest is Test {
    struct Tally {
        uint256 cases;
        uint256 valid;
    }

    string internal _file;
    IFastPay internal _fastPay;

    function _deploy(string memory file) internal {
        _file = file;
        string memory json = _json();
        vm.chainId(vm.parseJsonUint(json, ".domain.chainId"));
        address deployment = vm.parseJsonAddress(json, ".domain.verifyingContract");
        SafetyParameters memory parameters =
            SafetyParameters(1 days, 7 days, 1 days, 10_000, 21 days, 14 days, 7 days);
        // As a chain has it: a contract's first creation has the nonce 1 (EIP-161), which the cheat leaves at 0.
        vm.setNonce(deployment, 1);
        address council = deployCode("Council.sol:Council", abi.encode(deployment, address(0)));
        bytes memory arguments = abi.encode(_committee(), address(0), council, parameters, new AssetCap[](0));
        deployCodeTo("FastPay.sol:FastPay", arguments, deployment);
        _fastPay = IFastPay(payable(deployment));
    }

    function test_TheDomainIsTheSame() public view {
        string memory json = _json();
        (
            bytes1 fields,
            string memory name,
            string memory version,
            uint256 chainId,
            address verifyingContract,
            bytes32 salt,
            uint256[] memory extensions
        ) = _fastPay.eip712Domain();
        assertEq(fields, bytes1(0x0f));
        assertEq(chainId, block.chainid);
        assertEq(verifyingContract, address(_fastPay));
        assertEq(salt, bytes32(0));
        assertEq(extensions.length, 0);
        assertEq(name, vm.parseJsonString(json, ".domain.name"));
        assertEq(version, vm.parseJsonString(json, ".domain.version"));
        assertEq(_fastPay.epoch(), vm.parseJsonUint(json, ".epoch"));
    }

    /// @dev Checks each case of a list, each in a call of its own, so that the text does not pile up in memory.
    function _each(string memory list, function(string memory) external returns (bool) check)
        internal
        returns (Tally memory tally)
    {
        string memory json = _json();
        for (; vm.keyExistsJson(json, _path(list, tally.cases, "")); ++tally.cases) {
            if (check(_path(list, tally.cases, ""))) ++tally.valid;
        }
        assertGt(tally.valid, 0, "no valid case");
    }

    function _assertBothKinds(Tally memory tally) internal pure {
        assertGt(tally.cases, tally.valid, "no invalid case");
    }

    function _json() internal view returns (string memory) {
        return vm.readFile(_file);
    }

    /// @dev What is signed of a struct with this hash, under the domain that the contract states.
    function _digest(bytes32 structHash) internal view returns (bytes32) {
        (, string memory name, string memory version, uint256 chainId, address verifyingContract,,) =
            _fastPay.eip712Domain();
        bytes32 domain = MessageHashUtils.toDomainSeparator(
            bytes1(0x0f), name, version, chainId, verifyingContract, bytes32(0)
        );
        return MessageHashUtils.toTypedDataHash(domain, structHash);
    }

    /// @dev What the sender of a redemption signs. The contract does not check it, but must mean the same order.
    function redemptionDigest(Redemption calldata order) external view returns (bytes32) {
        return _digest(Redemptions.hash(order));
    }

    function _redemption(string memory json, string memory path) internal pure returns (Redemption memory) {
        return abi.decode(
            vm.parseJsonType(
                json,
                path,
                "Redemption(bytes32 sender,address recipient,address asset,uint128 amount,uint128 fee,"
                "uint64 sequence,bytes32 memo)"
            ),
            (Redemption)
        );
    }

    function _committee() internal view returns (Authority[] memory) {
        return abi.decode(
            vm.parseJsonTypeArray(
                _json(), ".committee", "Authority(bytes32 votingKey,address redemptionKey)"
            ),
            (Authority[])
        );
    }

    function _path(string memory list, uint256 index, string memory field)
        internal
        pure
        returns (string memory)
    {
        return string.concat(list, "[", vm.toString(index), "]", field);
    }

    receive() external payable {}
}

contract RedemptionVectorsTest is VectorsTest {
    function setUp() public {
        _deploy("vectors/redemptions.json");
        vm.deal(address(this), type(uint128).max);
    }

    function test_EachCase() public {
        _assertBothKinds(_each(".cases", this.check));
    }

    /// @dev Checks one case as if it were the only one.
    function check(string memory path) external returns (bool valid) {
        string memory json = _json();
        string memory name = vm.parseJsonString(json, string.concat(path, ".name"));
        Redemption memory order = _redemption(json, string.concat(path, ".redemption"));
        uint64 epoch = uint64(vm.parseJsonUint(json, string.concat(path, ".epoch")));
        bytes memory votes = vm.parseJsonBytes(json, string.concat(path, ".votes"));
        valid = vm.parseJsonBool(json, string.concat(path, ".valid"));

        assertEq(
            this.redemptionDigest(order), vm.parseJsonBytes32(json, string.concat(path, ".orderDigest")), name
        );
        assertEq(
            _fastPay.redemptionVoteDigest(epoch, order),
            vm.parseJsonBytes32(json, string.concat(path, ".voteDigest")),
            name
        );

        uint256 state = vm.snapshotState();
        _fund(order);
        try _fastPay.redeem(order, epoch, votes) {
            assertTrue(valid, string.concat(name, ": an invalid case was paid"));
            assertTrue(_fastPay.isRedeemed(order.sender, order.sequence), name);
        } catch (bytes memory reason) {
            assertFalse(valid, string.concat(name, ": a valid case was refused: ", vm.toString(reason)));
        }
        vm.revertToState(state);
    }

    function test_EachBatch() public {
        _assertBothKinds(_each(".batches", this.checkBatch));
    }

    function checkBatch(string memory path) external returns (bool valid) {
        string memory json = _json();
        string memory name = vm.parseJsonString(json, string.concat(path, ".name"));
        string memory list = string.concat(path, ".redemptions");
        uint256 count = 0;
        while (vm.keyExistsJson(json, _path(list, count, ""))) ++count;
        Redemption[] memory orders = new Redemption[](count);
        for (uint256 i = 0; i < count; ++i) {
            orders[i] = _redemption(json, _path(list, i, ""));
        }
        uint64 epoch = uint64(vm.parseJsonUint(json, string.concat(path, ".epoch")));
        bytes memory votes = vm.parseJsonBytes(json, string.concat(path, ".votes"));
        valid = vm.parseJsonBool(json, string.concat(path, ".valid"));
        assertEq(
            _fastPay.redemptionBatchVoteDigest(epoch, orders),
            vm.parseJsonBytes32(json, string.concat(path, ".voteDigest")),
            name
        );

        uint256 state = vm.snapshotState();
        for (uint256 i = 0; i < count; ++i) {
            _fund(orders[i]);
        }
        try _fastPay.redeemBatch(orders, epoch, votes) {
            assertTrue(valid, string.concat(name, ": an invalid batch was paid"));
            for (uint256 i = 0; i < count; ++i) {
                assertTrue(_fastPay.isRedeemed(orders[i].sender, orders[i].sequence), name);
            }
        } catch (bytes memory reason) {
            assertFalse(valid, string.concat(name, ": a valid batch was refused: ", vm.toString(reason)));
        }
        vm.revertToState(state);
    }

    function _fund(Redemption memory order) private {
        if (order.amount == 0) return;
        if (order.asset == address(0)) {
            _fastPay.depositEther{value: order.amount}(bytes32(uint256(1)));
            return;
        }
        MoodyToken model = new MoodyToken();
        vm.etch(order.asset, address(model).code);
        MoodyToken(order.asset).mint(address(this), order.amount);
        MoodyToken(order.asset).approve(address(_fastPay), order.amount);
        _fastPay.depositToken(bytes32(uint256(1)), IERC20(order.asset), order.amount);
    }
}

/// @notice The contract sees no payment, but what is signed of one is Ethereum typed data all the same. Here is all of
/// it that Ethereum can check: every digest, every tree, every account, and every signature but Ed25519's.
contract PaymentVectorsTest is VectorsTest {
    bytes32 private constant PAYMENT_TYPE_HASH = keccak256(
        "Payment(bytes32 sender,bytes32 recipient,address asset,uint128 amount,uint64 sequence,bytes32 memo)"
    );
    bytes32 private constant PAYMENT_VOTE_TYPE_HASH = keccak256("PaymentVote(uint64 epoch,bytes32 root)");
    uint256 private constant PATH_LENGTH_MAX = 10;

    struct Payment {
        bytes32 sender;
        bytes32 recipient;
        address asset;
        uint128 amount;
        uint64 sequence;
        bytes32 memo;
    }

    /// @dev An order, as far as payments and redemptions are alike.
    struct Order {
        bytes32 sender;
        bytes32 digest;
        bool isRedemption;
        bool wellFormed;
    }

    function setUp() public {
        _deploy("vectors/payments.json");
    }

    function test_EachIdentity() public {
        Tally memory tally = _each(".identities", this.checkIdentity);
        assertEq(tally.valid, tally.cases);
    }

    function test_EachOrder() public {
        _assertBothKinds(_each(".orders", this.checkOrder));
        _assertBothKinds(_each(".zip215", this.checkOrder));
    }

    function test_EachVote() public {
        _assertBothKinds(_each(".votes", this.checkVote));
    }

    function test_EachCertificate() public {
        _assertBothKinds(_each(".certificates", this.checkCertificate));
    }

    // ------------------------------------------------------- checks of one case; whether it is valid

    function checkIdentity(string calldata path) external view returns (bool) {
        string memory json = _json();
        bytes32 account = vm.parseJsonBytes32(json, string.concat(path, ".account"));
        string memory text = vm.parseJsonString(json, string.concat(path, ".text"));
        bytes32 key = _bytes32OrZero(json, string.concat(path, ".publicKey"));
        if (key != 0) {
            assertEq(_accountOfKey(key), account, text);
        } else {
            address owner = vm.parseJsonAddress(json, string.concat(path, ".address"));
            assertEq(_accountOf(owner), account, text);
            assertEq(vm.toString(owner), text);
        }
        return true;
    }

    function checkOrder(string calldata path) external view returns (bool valid) {
        string memory json = _json();
        string memory name = vm.parseJsonString(json, string.concat(path, ".name"));
        valid = vm.parseJsonBool(json, string.concat(path, ".valid"));
        Order memory order = _order(json, path);
        assertEq(order.digest, vm.parseJsonBytes32(json, string.concat(path, ".digest")), name);
        (bool authorized, bool certain) = _authorized(json, path, order);
        if (certain) assertEq(order.wellFormed && authorized, valid, name);
        else if (valid) assertTrue(order.wellFormed && authorized, name);
    }

    function checkVote(string calldata path) external view returns (bool valid) {
        string memory json = _json();
        string memory name = vm.parseJsonString(json, string.concat(path, ".name"));
        valid = vm.parseJsonBool(json, string.concat(path, ".valid"));
        Order memory order = _order(json, path);
        bytes32 root = _bytes32OrZero(json, string.concat(path, ".root"));
        bytes32 voteDigest = _bytes32OrZero(json, string.concat(path, ".voteDigest"));

        if (vm.keyExistsJson(json, string.concat(path, ".vote.path.siblings"))) {
            assertEq(_root(json, string.concat(path, ".vote.path"), order.digest), root, name);
            assertEq(root == 0 ? bytes32(0) : _paymentVoteDigest(root), voteDigest, name);
            if (valid) assertFalse(root == 0 || order.isRedemption, name);
        } else if (order.isRedemption) {
            Redemption memory redemption = _redemption(json, string.concat(path, ".transfer.redemption"));
            assertEq(root, 0, name);
            assertEq(_fastPay.redemptionVoteDigest(0, redemption), voteDigest, name);
            assertEq(_redemptionVoteIsSigned(json, string.concat(path, ".vote"), voteDigest), valid, name);
        } else {
            assertTrue(root == 0 && voteDigest == 0 && !valid, name);
        }
    }

    function checkCertificate(string calldata path) external view returns (bool valid) {
        string memory json = _json();
        string memory name = vm.parseJsonString(json, string.concat(path, ".name"));
        valid = vm.parseJsonBool(json, string.concat(path, ".valid"));
        if (!valid) return valid;

        Order memory order = _order(json, path);
        (bool authorized,) = _authorized(json, path, order);
        assertTrue(order.wellFormed && authorized, name);
        uint256 votes = 0;
        for (; vm.keyExistsJson(json, _path(string.concat(path, ".votes"), votes, "")); ++votes) {
            if (!order.isRedemption) continue;
            Redemption memory redemption = _redemption(json, string.concat(path, ".transfer.redemption"));
            bytes32 digest = _fastPay.redemptionVoteDigest(0, redemption);
            string memory vote = _path(string.concat(path, ".votes"), votes, "");
            assertTrue(_redemptionVoteIsSigned(json, vote, digest), name);
        }
        assertEq(votes, _fastPay.quorum(0), name);
    }

    // ------------------------------------------------------------------------------------- private

    function _order(string memory json, string memory path) private view returns (Order memory order) {
        string memory transfer = string.concat(path, ".transfer.redemption");
        bytes32 own = _accountOf(address(_fastPay));
        order.isRedemption = vm.keyExistsJson(json, transfer);
        if (order.isRedemption) {
            Redemption memory redemption = _redemption(json, transfer);
            order.sender = redemption.sender;
            order.digest = this.redemptionDigest(redemption);
            order.wellFormed = redemption.amount > 0 && redemption.fee <= redemption.amount
                && redemption.recipient != address(0) && redemption.recipient != address(_fastPay)
                && redemption.sequence < type(uint64).max;
            return order;
        }
        Payment memory payment = abi.decode(
            vm.parseJsonType(
                json,
                string.concat(path, ".transfer.payment"),
                "Payment(bytes32 sender,bytes32 recipient,address asset,uint128 amount,uint64 sequence,bytes32 memo)"
            ),
            (Payment)
        );
        order.sender = payment.sender;
        order.digest = _digest(keccak256(abi.encode(PAYMENT_TYPE_HASH, payment)));
        order.wellFormed = payment.amount > 0 && payment.recipient != 0 && payment.recipient != own
            && payment.sequence < type(uint64).max;
    }

    /// @dev Whether the order's authorization is its sender's. Of an Ed25519 signature only the key can be checked
    /// here: then a yes is not certain.
    function _authorized(string memory json, string memory path, Order memory order)
        private
        view
        returns (bool authorized, bool certain)
    {
        string memory key = string.concat(path, ".authorization.ed25519.key");
        if (vm.keyExistsJson(json, key)) {
            authorized = _accountOfKey(vm.parseJsonBytes32(json, key)) == order.sender;
            return (authorized, !authorized);
        }
        bytes memory signature =
            vm.parseJsonBytes(json, string.concat(path, ".authorization.ethereum.signature"));
        address signer = _signer(order.digest, signature);
        return (signer != address(0) && _accountOf(signer) == order.sender, true);
    }

    function _redemptionVoteIsSigned(string memory json, string memory vote, bytes32 digest)
        private
        view
        returns (bool)
    {
        bytes32 authority = vm.parseJsonBytes32(json, string.concat(vote, ".authority"));
        address signer = _signer(digest, vm.parseJsonBytes(json, string.concat(vote, ".signature")));
        Authority[] memory members = _fastPay.committee(0);
        for (uint256 i = 0; i < members.length; ++i) {
            if (members[i].votingKey == authority) return members[i].redemptionKey == signer;
        }
        return false;
    }

    /// @dev Who signed, by ecrecover; zero for a signature that is malformed, of which a high `s` is a kind.
    function _signer(bytes32 digest, bytes memory signature) private view returns (address signer) {
        (signer,,) = ECDSA.tryRecover(digest, signature);
    }

    /// @dev Where a path leads; zero if it is too long or has bits that name no sibling.
    function _root(string memory json, string memory path, bytes32 leaf) private pure returns (bytes32 node) {
        uint256 directions = vm.parseJsonUint(json, string.concat(path, ".directions"));
        bytes32[] memory siblings = vm.parseJsonBytes32Array(json, string.concat(path, ".siblings"));
        if (siblings.length > PATH_LENGTH_MAX || directions >> siblings.length != 0) return 0;
        node = Blake3.hash(abi.encodePacked(uint8(0), leaf));
        for (uint256 i = 0; i < siblings.length; ++i) {
            bool siblingIsLeft = (directions >> i) & 1 == 1;
            (bytes32 left, bytes32 right) = siblingIsLeft ? (siblings[i], node) : (node, siblings[i]);
            node = Blake3.hash(abi.encodePacked(uint8(1), left, right));
        }
    }

    function _paymentVoteDigest(bytes32 root) private view returns (bytes32) {
        return _digest(keccak256(abi.encode(PAYMENT_VOTE_TYPE_HASH, _fastPay.epoch(), root)));
    }

    function _accountOf(address owner) private pure returns (bytes32) {
        return bytes32(abi.encodePacked(bytes12(0), owner));
    }

    function _accountOfKey(bytes32 key) private pure returns (bytes32) {
        return keccak256(abi.encodePacked("fastpay/ed25519", key));
    }

    /// @dev forge reads `null` as a zero word.
    function _bytes32OrZero(string memory json, string memory path) private pure returns (bytes32) {
        return abi.decode(vm.parseJson(json, path), (bytes32));
    }
}
