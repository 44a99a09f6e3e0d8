/**
 * The functions, events and errors of the contract (contracts/interfaces/IFastPay.sol) and of tokens that the SDK uses.
 */

import { parseAbi } from "viem";

const REDEMPTION =
  "struct Redemption { bytes32 sender; address recipient; address asset; uint128 amount; uint128 fee; uint64 sequence; bytes32 memo; }";
const EIP712_DOMAIN =
  "function eip712Domain() view returns (bytes1 fields, string name, string version, uint256 chainId, address verifyingContract, bytes32 salt, uint256[] extensions)";
const AUTHORITY = "struct Authority { bytes32 votingKey; address redemptionKey; }";
const SAFETY_PARAMETERS =
  "struct SafetyParameters { uint32 pauseDuration; uint32 pauseCooldown; uint32 outflowWindow; uint16 outflowShare; uint32 outflowDelay; uint32 votesValidity; uint32 unlockWindow; }";

/** FastPay. */
export const FASTPAY_ABI = /* @__PURE__ */ parseAbi([
  REDEMPTION,
  AUTHORITY,
  SAFETY_PARAMETERS,
  "function depositEther(bytes32 recipient) payable",
  "function depositToken(bytes32 recipient, address asset, uint128 amount)",
  "function depositTokenWithPermit(bytes32 recipient, address asset, uint128 amount, uint256 deadline, uint8 v, bytes32 r, bytes32 s)",
  "function redeem(Redemption redemption, uint64 epoch, bytes votes)",
  "function redeemBatch(Redemption[] redemptions, uint64 epoch, bytes votes)",
  "function executeQueued(Redemption redemption, bytes votes)",
  "function claim(address asset, address to, uint256 amount)",
  "function claimFor(address owner, address asset, uint256 amount)",
  "function epoch() view returns (uint64)",
  "function epochValidUntil(uint64 epoch) view returns (uint256)",
  "function committee(uint64 epoch) view returns (Authority[])",
  "function compromised(uint64 epoch) view returns (bool)",
  "function guardian() view returns (address)",
  "function council() view returns (address)",
  "function safetyParameters() view returns (SafetyParameters)",
  "function pausedUntil() view returns (uint256)",
  "function totalBalance(address asset) view returns (uint256)",
  "function totalClaims(address asset) view returns (uint256)",
  "function totalQueued(address asset) view returns (uint256)",
  "function outflowAvailable(address asset) view returns (uint256)",
  "function queued(bytes32 sender, uint64 sequence) view returns (uint256 executableAt, address relayer, uint64 epoch, bool needsVotes)",
  "function claimOf(address owner, address asset) view returns (uint256)",
  "function lastTransactionIndex() view returns (uint64)",
  "function isRedeemed(bytes32 sender, uint64 sequence) view returns (bool)",
  "function deploymentBlock() view returns (uint256)",
  "event Funded(uint64 indexed index, bytes32 indexed recipient, address indexed asset, uint128 amount, address payer)",
  "event Redeemed(bytes32 indexed sender, address indexed recipient, address indexed asset, uint64 index, uint64 sequence, uint128 amount, uint128 fee, address relayer, bytes32 digest)",
  "event RedemptionQueued(bytes32 indexed sender, address indexed recipient, address indexed asset, uint64 index, uint64 sequence, uint128 amount, uint128 fee, address relayer, bytes32 digest, uint64 epoch, uint256 executableAt)",
  "event RedemptionReleased(bytes32 indexed sender, uint64 index, uint64 sequence, bytes32 digest)",
  "event Claimed(address indexed owner, address indexed asset, address indexed to, uint256 amount)",
  "error PausedUntil(uint256 until)",
  "error ZeroRecipient()",
  "error RecipientIsContract()",
  "error SenderWithoutKey(address sender)",
  "error ZeroAsset()",
  "error AssetWithoutCode(address asset)",
  "error NothingReceived(address asset)",
  "error AssetCapExceeded(address asset, uint256 held, uint256 received, uint256 cap)",
  "error AssetUnderCollateralized(address asset, uint256 held, uint256 owed)",
  "error PermitRefused(address asset, uint256 allowance, uint256 amount)",
  "error AlreadyRedeemed(bytes32 sender, uint64 sequence)",
  "error BalanceTooLow(uint256 item, address asset, uint256 balance, uint128 amount)",
  "error UnknownEpoch(uint64 epoch)",
  "error EpochEnded(uint64 epoch, uint256 endedAt)",
  "error InsufficientGas(uint256 available, uint256 required)",
  "error NotQueued(bytes32 sender, uint64 sequence)",
  "error TooEarly(uint256 executableAt)",
  "error EpochCompromised(uint64 epoch)",
  "error NothingToClaim(address owner, address asset)",
  "error InvalidClaimAmount(address owner, address asset, uint256 claimed, uint256 amount)",
  "error ClaimRefused(address to, address asset, uint256 amount)",
  "error WrongVotesLength(uint256 item, uint256 length, uint256 expected)",
  "error VotesNotAscending(uint256 item, uint256 position, uint8 member)",
  "error UnknownMember(uint256 item, uint256 position, uint8 member)",
  "error MalleableVote(uint256 item, uint256 position, bytes32 s)",
  "error InvalidRecoveryId(uint256 item, uint256 position, uint8 v)",
  "error WrongSigner(uint256 item, uint256 position, uint8 member, address recovered)",
]);

/**
 * The part of the Council that unlocks numbers (contracts/interfaces/ICouncil.sol). `PausedUntil` and the errors of votes are
 * in `FASTPAY_ABI`: reverts are decoded with both.
 */
export const COUNCIL_ABI = /* @__PURE__ */ parseAbi([
  "function requestUnlock(bytes32 account, uint64 sequence, bytes authorization) payable",
  "function upholdSequence(bytes32 account, uint64 sequence, bytes32 digest, bytes votes)",
  "function voidSequence(bytes32 account, uint64 sequence, bool unanimous, bytes votes)",
  "function unlockBond() view returns (uint256)",
  "function unlockOf(bytes32 account, uint64 sequence) view returns (uint8 outcome, uint256 voidableFrom, address payer)",
  "function unanimousFrom() view returns (uint256)",
  "error AlreadyDecided(bytes32 account, uint64 sequence)",
  "error AlreadyRequested(bytes32 account, uint64 sequence)",
  "error NotRequested(bytes32 account, uint64 sequence)",
  "error NotOwner(bytes32 account)",
  "error AuthorizationTooLong(uint256 length, uint256 max)",
  "error WrongBond(uint256 sent, uint256 expected)",
  "error NotVoidable(bytes32 account, uint64 sequence, uint256 voidableFrom)",
  "error BondRefused(address to)",
  "error SequenceSpent(bytes32 account, uint64 sequence)",
]);

/** Identifies a contract of FastPay: `FastPay` by its EIP-712 domain, a Council by its `fastPay()`. */
export const IDENTITY_ABI = /* @__PURE__ */ parseAbi([
  EIP712_DOMAIN,
  "function fastPay() view returns (address)",
]);

/** ERC-20, and ERC-2612 for tokens with permits. */
export const TOKEN_ABI = /* @__PURE__ */ parseAbi([
  "function symbol() view returns (string)",
  "function name() view returns (string)",
  "function decimals() view returns (uint8)",
  "function balanceOf(address owner) view returns (uint256)",
  "function allowance(address owner, address spender) view returns (uint256)",
  "function approve(address spender, uint256 value) returns (bool)",
  "function nonces(address owner) view returns (uint256)",
  "function DOMAIN_SEPARATOR() view returns (bytes32)",
  "function version() view returns (string)",
  EIP712_DOMAIN,
]);
