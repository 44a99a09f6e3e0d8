/** Converts between the JSON of the nodes' HTTP API (docs/API.md) and the SDK's types. */

import { formatAccount, parseAccount, type AccountId } from "./accounts.js";
import type { Hex } from "./bytes.js";
import type { Certificate } from "./certificate.js";
import { COMMITTEE_SIZE_MAX, type Authority } from "./committee.js";
import {
  flag,
  hex,
  list,
  literal,
  malformed,
  object,
  optional,
  signed,
  smallNumber,
  tagged,
  text,
  unsigned,
  type Decoder,
} from "./decode.js";
import { MERKLE_PATH_LENGTH_MAX } from "./merkle.js";
import type { OutputProof } from "./output-proof.js";
import {
  PAYOUT_OUTPUTS_MAX,
  type Authorization,
  type Output,
  type Payment,
  type Payout,
  type Redemption,
  type Transfer,
  type TransferOrder,
} from "./transfer.js";
import type { BatchVote, Vote } from "./verify.js";
import type { AccountState } from "./views.js";

const u64 = unsigned(64);
const u128 = unsigned(128);
const address = hex(20);

const account: Decoder<AccountId> = (value, at) => {
  try {
    return parseAccount(text(value, at));
  } catch {
    throw malformed(at, "an account");
  }
};

const payment = object<Payment>({
  type: literal("payment"),
  sender: account,
  recipient: account,
  asset: address,
  amount: u128,
  sequence: u64,
  memo: hex(32),
});

const redemption = object<Redemption>({
  type: literal("redemption"),
  sender: account,
  recipient: address,
  asset: address,
  amount: u128,
  fee: u128,
  sequence: u64,
  memo: hex(32),
});

const output = object<Output>({ recipient: account, amount: u128, memo: hex(32) });

const payout = object<Payout>({
  type: literal("payout"),
  sender: account,
  asset: address,
  outputs: list(output, PAYOUT_OUTPUTS_MAX),
  sequence: u64,
  memo: hex(32),
});

const transfer = tagged<Transfer>({ payment, redemption, payout });

const authorization = tagged<Authorization>({
  ed25519: object({ type: literal("ed25519"), key: hex(32), signature: hex(64) }),
  ethereum: object({ type: literal("ethereum"), signature: hex(65) }),
});

/** The maximum number of certificates in one request. */
export const CERTIFICATE_NAMES_MAX = 100;

/** A transfer order, not checked. */
export const decodeOrder: Decoder<TransferOrder> = object<TransferOrder>({ transfer, authorization });

const vote = tagged<Vote>({
  payment: object({
    type: literal("payment"),
    authority: hex(32),
    signature: hex(64),
    directions: smallNumber(0xffff),
    siblings: list(hex(32), MERKLE_PATH_LENGTH_MAX),
  }),
  redemption: object({ type: literal("redemption"), authority: hex(32), signature: hex(65) }),
});

/** A certificate, not checked. */
export const decodeCertificate: Decoder<Certificate> = object<Certificate>({
  order: decodeOrder,
  epoch: u64,
  votes: list(vote, COMMITTEE_SIZE_MAX),
});

/** A proof of an output, not checked. */
const decodeOutputProof = object<OutputProof>({
  sender: account,
  asset: address,
  sequence: u64,
  memo: hex(32),
  position: smallNumber(PAYOUT_OUTPUTS_MAX - 1),
  output,
  hashes: list(hex(32), PAYOUT_OUTPUTS_MAX),
  epoch: u64,
  votes: list(vote, COMMITTEE_SIZE_MAX),
});

/** An authority's answer to a certificate that it has executed. */
export interface Confirmed {
  /** The sender's next number at this authority. */
  readonly nextSequence: bigint;
  /** The authority's epoch; undefined at an authority of an earlier release. */
  readonly epoch: bigint | undefined;
}

/** The answer to an order. */
export const decodeVoted = object({ epoch: u64, vote });

/** The answer to a batch of redemptions. */
export const decodeBatchVoted = object({ epoch: u64, authority: hex(32), signature: hex(65) });

/** An authority's unverified vote about a number to unlock: that a certificate exists, or to void the number. */
export type UnlockVote =
  | ({ readonly type: "void"; readonly epoch: bigint } & BatchVote)
  | ({ readonly type: "certificate"; readonly certificate: Certificate; readonly epoch: bigint } & BatchVote);

/** The answer about a number to unlock. */
export const decodeUnlockVote = tagged<UnlockVote>({
  void: object({ type: literal("void"), epoch: u64, authority: hex(32), signature: hex(65) }),
  certificate: object({
    type: literal("certificate"),
    certificate: decodeCertificate,
    epoch: u64,
    authority: hex(32),
    signature: hex(65),
  }),
});

/** The answer to a certificate. Authorities of an earlier release do not report their epoch. */
export const decodeConfirmed = object<Confirmed>({ nextSequence: u64, epoch: optional(u64) });

/** An account. */
export const decodeAccount: Decoder<AccountState> = object<AccountState>({
  nextSequence: u64,
  pending: optional(decodeOrder),
  holdings: list(object({ asset: address, balance: signed })),
  received: u64,
  deposits: u64,
  truncated: flag,
});

/** An entry of the transfers that an account sent and that are confirmed. */
export interface SentItem {
  readonly sequence: bigint;
  readonly transfer: Transfer;
  readonly digest: Hex;
}

/** An entry of the payments that an account received; `number` is its position in that authority's list. */
export interface ReceivedItem {
  readonly number: bigint;
  /** The payment of one output, with the output's own memo. */
  readonly payment: Payment;
  /** The position of the output in its payout, from 0; undefined for a single payment. */
  readonly output: number | undefined;
  /** The digest of the payment, or of its payout. */
  readonly digest: Hex;
}

/** A deposit as reported by one authority. */
export interface DepositItem {
  readonly index: bigint;
  readonly recipient: AccountId;
  readonly asset: Hex;
  readonly amount: bigint;
}

/** A page of a list. */
export interface Page<T> {
  /** The number of entries in the whole list. */
  readonly total: bigint;
  readonly entries: readonly T[];
}

export const decodeSentItem = object<SentItem>({ sequence: u64, transfer, digest: hex(32) });
export const decodeReceivedItem = object<ReceivedItem>({
  number: u64,
  payment,
  output: optional(smallNumber(PAYOUT_OUTPUTS_MAX - 1)),
  digest: hex(32),
});
export const decodeDepositItem = object<DepositItem>({ index: u64, recipient: account, asset: address, amount: u128 });

export const decodeSent = object({ total: u64, transfers: list(decodeSentItem) });
export const decodeReceived = object({ total: u64, payments: list(decodeReceivedItem) });
export const decodeDeposits = object({ total: u64, deposits: list(decodeDepositItem) });

/** A transfer found by its digest. */
export const decodeTransfer = object({ certificate: decodeCertificate });

/** The newest transfers of an authority, newest first. */
export const decodeNewTransfers = object({
  transfers: list(object<OrderName>({ sender: account, sequence: u64 })),
});

/** Certificates by their names. The answer covers the first `lookedUp` names. */
export const decodeCertificates = object({ certificates: list(decodeCertificate), lookedUp: smallNumber(CERTIFICATE_NAMES_MAX) });

/** A committee as reported by an authority, for display only. The contract is authoritative. */
export const decodeCommittee = object({
  epoch: u64,
  members: list(object<Authority>({ votingKey: hex(32), redemptionKey: address }), COMMITTEE_SIZE_MAX),
});

/** A shard's redemption log. */
export const decodeRedemptions = object({ total: u64, certificates: list(decodeCertificate) });

/** An authority's status. */
export const decodeStatus = object({
  authority: hex(32),
  version: text,
  chainId: u64,
  contract: optional(address),
  epoch: u64,
  votes: flag,
  restored: optional(flag),
  follower: object({ state: text, block: optional(u64), reason: optional(text) }),
  shards: list(object({ totals: list(object({ asset: address, accounts: signed })) })),
});

/** A problem (RFC 9457), with the facts that some problems have. */
export const decodeProblem = object({
  code: text,
  title: optional(text),
  detail: optional(text),
  action: optional(text),
  retry: optional(text),
  retryAfterMs: optional(smallNumber(86_400_000)),
  pending: optional(decodeOrder),
  expectedSequence: optional(u64),
  balance: optional(signed),
  epoch: optional(u64),
  first: optional(u64),
  checkpoint: optional(u64),
});

// ------------------------------------------------------------------------------------------- writing

function transferJson(of: Transfer): object {
  const { type, sender, asset, sequence, memo } = of;
  const whose = { type, sender: formatAccount(sender), asset: asset.toLowerCase() };
  const rest = { sequence: sequence.toString(), memo: memo.toLowerCase() };
  if (of.type === "payout") return { ...whose, outputs: of.outputs.map(outputJson), ...rest };
  const fields = { ...whose, amount: of.amount.toString(), ...rest };
  return of.type === "payment"
    ? { ...fields, recipient: formatAccount(of.recipient) }
    : { ...fields, recipient: of.recipient.toLowerCase(), fee: of.fee.toString() };
}

function outputJson({ recipient, amount, memo }: Output): object {
  return { recipient: formatAccount(recipient), amount: amount.toString(), memo: memo.toLowerCase() };
}

function orderJson(order: TransferOrder): object {
  const { authorization: by } = order;
  const authorized =
    by.type === "ed25519"
      ? { type: by.type, key: by.key, signature: by.signature }
      : { type: by.type, signature: by.signature };
  return { transfer: transferJson(order.transfer), authorization: authorized };
}

function voteJson(of: Vote): object {
  const { authority, signature } = of;
  if (of.type === "redemption") return { type: of.type, authority, signature };
  return { type: of.type, authority, signature, directions: of.directions, siblings: of.siblings };
}

/** A transfer without its order, not checked. */
export const decodeBareTransfer: Decoder<Transfer> = transfer;

/** The text of a transfer without its order. */
export function encodeBareTransfer(of: Transfer): string {
  return JSON.stringify(transferJson(of));
}

/** The text of an order: always the same for the same order. */
export function encodeOrder(order: TransferOrder): string {
  return JSON.stringify(orderJson(order));
}

/** The text of a certificate. */
export function encodeCertificate({ order, epoch, votes }: Certificate): string {
  return JSON.stringify({ order: orderJson(order), epoch: epoch.toString(), votes: votes.map(voteJson) });
}

/** A certificate with the votes of members of this epoch that it exists. */
export function encodeAttested({ order, epoch, votes }: Certificate, attestedIn: bigint, attesting: readonly BatchVote[]): string {
  const certificate = { order: orderJson(order), epoch: epoch.toString(), votes: votes.map(voteJson) };
  const voteOf = ({ authority, signature }: BatchVote) => ({ epoch: attestedIn.toString(), authority, signature });
  return JSON.stringify({ certificate, votes: attesting.map(voteOf) });
}

/** The text of a proof of an output, which can be handed to others. */
export function encodeOutputProof(proof: OutputProof): string {
  const { sender, sequence, output: paid, epoch, votes, ...rest } = proof;
  const texts = { sender: formatAccount(sender), sequence: sequence.toString(), epoch: epoch.toString() };
  return JSON.stringify({ ...rest, ...texts, output: outputJson(paid), votes: votes.map(voteJson) });
}

/** Parses the text of `encodeOutputProof`. Does not verify the proof. */
export function parseOutputProof(json: string): OutputProof {
  return decodeOutputProof(parseJson(json, "the proof"), "the proof");
}

/** An order by its sender and number. */
export interface OrderName {
  readonly sender: AccountId;
  readonly sequence: bigint;
}

/** The body of a request for a vote on redemptions. */
export function encodeRedemptionNames(names: readonly OrderName[]): string {
  return JSON.stringify({ redemptions: names.map(nameJson) });
}

/** The body of a request for certificates. */
export function encodeCertificateNames(names: readonly OrderName[]): string {
  return JSON.stringify({ names: names.map(nameJson) });
}

/** The body of a request for a vote about a number to unlock. */
export function encodeUnlockNumber({ sender, sequence }: OrderName, unanimous: boolean): string {
  return JSON.stringify({ account: formatAccount(sender), sequence: sequence.toString(), unanimous });
}

function nameJson({ sender, sequence }: OrderName) {
  return { sender: formatAccount(sender), sequence: sequence.toString() };
}

/** Parses the text of `encodeCertificate`, for example from a payer. Does not verify the certificate. */
export function parseCertificate(json: string): Certificate {
  return decodeCertificate(parseJson(json, "the certificate"), "the certificate");
}

/** Parses JSON. Throws `malformed-answer`. */
export function parseJson(json: string, at: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw malformed(at, "JSON");
  }
}
