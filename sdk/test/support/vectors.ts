/** The test vectors, which Rust and Solidity read too. */

import { readFileSync } from "node:fs";

import {
  accountFromBytes32,
  makeCommittee,
  type Authority,
  type Authorization,
  type Checkpoint,
  type CheckpointVote,
  type Committee,
  type Domain,
  type Hex,
  type Output,
  type Payment,
  type Payout,
  type Redemption,
  type Transfer,
  type Vote,
} from "../../src/index.js";

type Fields = Record<"sender" | "recipient" | "asset" | "amount" | "sequence" | "memo", string> & { fee?: string };
interface VectorOutput {
  recipient: Hex;
  amount: string;
  memo: Hex;
}
type PayoutFields = Record<"sender" | "asset" | "sequence" | "memo", string> & { outputs: VectorOutput[] };
type VectorTransfer = { payment: Fields } | { redemption: Fields } | { payout: PayoutFields };
type VectorAuthorization = { ed25519: { key: Hex; signature: Hex } } | { ethereum: { signature: Hex } };
interface VectorVote {
  authority: Hex;
  signature: Hex;
  path: { directions: number; siblings: Hex[] } | null;
}
interface VectorDomain {
  chainId: number;
  verifyingContract: Hex;
}

export interface PaymentVectors {
  domain: VectorDomain;
  epoch: number;
  committee: Authority[];
  identities: { publicKey: Hex | null; address: Hex | null; account: Hex; text: string }[];
  notIdentities: { name: string; text: string }[];
  orders: { name: string; transfer: VectorTransfer; digest: Hex; authorization: VectorAuthorization; valid: boolean }[];
  votes: { name: string; transfer: VectorTransfer; vote: VectorVote; root?: Hex; voteDigest?: Hex; valid: boolean }[];
  certificates: {
    name: string;
    transfer: VectorTransfer;
    authorization: VectorAuthorization;
    epoch: string;
    votes: VectorVote[];
    valid: boolean;
  }[];
  zip215: { name: string; transfer: VectorTransfer; digest: Hex; authorization: VectorAuthorization; valid: boolean }[];
}

export interface PayoutVectors extends Pick<PaymentVectors, "domain" | "epoch" | "committee" | "certificates"> {
  orders: (PaymentVectors["orders"][number] & { outputHashes: Hex[] })[];
  notOutputs: { name: string; outputs: VectorOutput[] }[];
}

export interface RedemptionVectors {
  domain: VectorDomain;
  epoch: number;
  committee: Authority[];
  cases: {
    name: string;
    redemption: Fields;
    epoch: string;
    orderDigest: Hex;
    voteDigest: Hex;
    votes: Hex;
    valid: boolean;
  }[];
  statements: Record<
    | "account" | "sequence" | "epoch" | "orderDigest" | "unlockRequestDigest" | "certificateVoteDigest" | "voidVoteDigest" | "unanimousVoidVoteDigest",
    Hex
  >;
  batches: { name: string; redemptions: Fields[]; epoch: string; voteDigest: Hex; votes: Hex; valid: boolean }[];
}

/** A checkpoint of the committee in the vectors; numbers are JSON numbers. */
export interface VectorCheckpoint extends Record<"previous" | "cut" | "state" | "segment" | "digest", Hex> {
  readonly epoch: number;
  readonly number: number;
  readonly transactionIndex: number;
}

export interface CheckpointVectors {
  domain: VectorDomain;
  committee: Authority[];
  segment: Hex;
  /** The stream of a recovery's segment. */
  recovery: Hex;
  first: VectorCheckpoint;
  checkpoint: VectorCheckpoint;
  leaves: { name: string; leaf: Hex; directions: number; siblings: Hex[]; root: Hex }[];
  certificates: { name: string; checkpoint: VectorCheckpoint; votes: CheckpointVote[]; valid: boolean }[];
}

export interface EndpointVectors {
  domain: VectorDomain;
  /** By epoch. */
  committees: Authority[][];
  endpoints: {
    name: string;
    authority: Hex;
    number: string;
    shards: string[];
    /** Empty: none. */
    http: string;
    /** Empty: none. */
    tlsCa: string;
    digest: Hex;
    signature: Hex;
    valid: boolean;
  }[];
}

export interface ArchiveVectors {
  domain: VectorDomain;
  /** By epoch. */
  committees: Authority[][];
  cases: {
    name: string;
    account: Hex;
    list: { sent: string } | { received: string };
    /** The epochs whose votes count. */
    counting: number[];
    /** In the form of the HTTP API. */
    page: unknown;
    refused: string | null;
  }[];
}

function read(name: string): unknown {
  return JSON.parse(readFileSync(new URL(`../../../vectors/${name}.json`, import.meta.url), "utf8"));
}

export const payments = read("payments") as PaymentVectors;
export const payouts = read("payouts") as PayoutVectors;
export const redemptions = read("redemptions") as RedemptionVectors;
export const archive = read("archive") as ArchiveVectors;
export const checkpoints = read("checkpoints") as CheckpointVectors;
export const endpoints = read("endpoints") as EndpointVectors;

export function checkpointOf({ epoch, number, transactionIndex, previous, cut, state, segment }: VectorCheckpoint): Checkpoint {
  const numbers = { epoch: BigInt(epoch), number: BigInt(number), transactionIndex: BigInt(transactionIndex) };
  return { ...numbers, previous, cut, state, segment };
}

export function domainOf(domain: VectorDomain): Domain {
  return { chainId: BigInt(domain.chainId), contract: domain.verifyingContract };
}

export function committeeOf(
  vectors: { epoch: number; committee: Authority[] },
  epoch = BigInt(vectors.epoch),
): Committee {
  return makeCommittee(epoch, vectors.committee);
}

export function redemptionOf(fields: Fields): Redemption {
  return {
    type: "redemption",
    sender: accountFromBytes32(fields.sender as Hex),
    recipient: fields.recipient as Hex,
    asset: fields.asset as Hex,
    amount: BigInt(fields.amount),
    fee: BigInt(fields.fee ?? "0"),
    sequence: BigInt(fields.sequence),
    memo: fields.memo as Hex,
  };
}

export function outputOf({ recipient, amount, memo }: VectorOutput): Output {
  return { recipient: accountFromBytes32(recipient), amount: BigInt(amount), memo };
}

function payoutOf({ sender, asset, outputs, sequence, memo }: PayoutFields): Payout {
  const fields = { asset: asset as Hex, sequence: BigInt(sequence), memo: memo as Hex };
  return { type: "payout", sender: accountFromBytes32(sender as Hex), ...fields, outputs: outputs.map(outputOf) };
}

export function transferOf(transfer: VectorTransfer): Transfer {
  if ("payout" in transfer) return payoutOf(transfer.payout);
  if ("redemption" in transfer) return redemptionOf(transfer.redemption);
  const { fee: _, ...fields } = redemptionOf({ ...transfer.payment, recipient: transfer.payment.asset });
  return { ...fields, type: "payment", recipient: accountFromBytes32(transfer.payment.recipient as Hex) } as Payment;
}

export function authorizationOf(authorization: VectorAuthorization): Authorization {
  return "ed25519" in authorization
    ? { type: "ed25519", ...authorization.ed25519 }
    : { type: "ethereum", ...authorization.ethereum };
}

export function voteOf({ authority, signature, path }: VectorVote): Vote {
  return path === null
    ? { type: "redemption", authority, signature }
    : { type: "payment", authority, signature, ...path };
}
