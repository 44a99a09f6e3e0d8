/** A client of one authority's HTTP API. Answers are decoded strictly, but not verified. */

import { formatAccount, type AccountId } from "./accounts.js";
import type { ArchiveList, ArchivePage } from "./archive/page.js";
import { ARCHIVED_ENTRIES_MAX, decodeArchivePage, placeText } from "./archive/wire.js";
import type { Address, Hex } from "./bytes.js";
import type { Certificate } from "./certificate.js";
import { memberOf as memberNamed, type AuthorityName, type Committee } from "./committee.js";
import type { Decoder } from "./decode.js";
import { requestJson } from "./http.js";
import { decodeEndpoints, type MemberEndpoint } from "./member-endpoints.js";
import { ProblemError } from "./problem.js";
import type { AuthorityRef } from "./progress.js";
import type { TransferOrder } from "./transfer.js";
import type { BatchVote } from "./verify.js";
import type { AccountState } from "./views.js";
import {
  decodeAccount,
  decodeBatchVoted,
  decodeCertificate,
  decodeCertificates,
  decodeCommittee,
  decodeConfirmed,
  decodeDepositItem,
  decodeDeposits,
  decodeNewTransfers,
  decodeReceived,
  decodeRedemptions,
  decodeSent,
  decodeStatus,
  decodeTransfer,
  decodeUnlockVote,
  decodeVoted,
  encodeAttested,
  encodeCertificate,
  encodeCertificateNames,
  encodeOrder,
  encodeRedemptionNames,
  encodeUnlockNumber,
  type Confirmed,
  type DepositItem,
  type Page,
  type ReceivedItem,
  type OrderName,
  type SentItem,
  type UnlockVote,
} from "./wire.js";

type Query = Readonly<Record<string, string | undefined>>;

/** The timeout for an authority's name, for which its answers wait. An authority that answers at all takes less. */
const IDENTIFY_MS = 1_000;
/** The delay after a request for the name that was not answered, before the next one. */
const IDENTIFY_AGAIN_MS = 30_000;
/** The same, after a name that does not count. */
const RENAMED_AGAIN_MS = 1_000;

/** Decides whether a name that an authority gives counts. */
export interface Naming {
  /** The clients of the other authorities. */
  readonly others: () => readonly AuthorityClient[];
  /** Whether the name of this authority counts. */
  readonly counts: (name: Hex, authority: AuthorityClient) => boolean;
}

/** A client of one authority. Every method can throw what `requestJson` throws. */
export class AuthorityClient implements AuthorityRef {
  /** Without a slash at its end. */
  readonly url: string;
  readonly name: Hex | undefined;
  readonly #timeoutMs: number;
  readonly #names: Naming | undefined;
  #given: Hex | undefined;
  #asking: Promise<void> | undefined;
  /** The time of the last request for the name, in milliseconds since 1970. */
  #askedAt = 0;

  /**
   * A name that the authority gives counts if `names.counts` says so, once `names.others` have been asked for theirs;
   * without `names`, always.
   */
  constructor(url: string, name: Hex | undefined, timeoutMs: number, names?: Naming) {
    this.url = url.replace(/\/+$/, "");
    this.name = name;
    this.#names = names;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Identifies the member that answers here, because a member counts once, even if several addresses are listed for it.
   * This is the listed name, or the name that the authority gives, known once it has answered; otherwise the address.
   */
  get member(): string {
    return this.name ?? (this.#isGiven ? (this.#given as Hex) : this.url);
  }

  /** The name that the authority gives, if none is listed. It may not count. */
  get given(): Hex | undefined {
    return this.#given;
  }

  get #isGiven(): boolean {
    return this.#given !== undefined && (this.#names?.counts(this.#given, this) ?? true);
  }

  /** Requests the name if none is listed. Without one that counts, requests it again after a delay. Never rejects. */
  async identify(): Promise<void> {
    if (this.name !== undefined) return;
    const others = this.#names?.others() ?? [];
    await Promise.all([this.#identify(), ...others.map((other) => other.#asking ?? other.#identify())]);
  }

  #identify(): Promise<void> {
    if (this.name !== undefined || this.#isGiven) return Promise.resolve();
    const waitMs = this.#given === undefined ? IDENTIFY_AGAIN_MS : RENAMED_AGAIN_MS;
    if (this.#asking !== undefined && Date.now() < this.#askedAt + waitMs) return this.#asking;
    this.#askedAt = Date.now();
    this.#asking = this.status(AbortSignal.timeout(IDENTIFY_MS))
      .then(({ authority }) => void (this.#given = authority))
      .catch(() => undefined);
    return this.#asking;
  }

  /** Requests a vote on an order. */
  order(order: TransferOrder, signal?: AbortSignal) {
    return this.#post("/v1/orders", encodeOrder(order), decodeVoted, signal);
  }

  /** Submits a certificate. */
  confirm(certificate: Certificate, signal?: AbortSignal): Promise<Confirmed> {
    return this.#post("/v1/certificates", encodeCertificate(certificate), decodeConfirmed, signal);
  }

  /** Submits a certificate with the votes of f + 1 members of this epoch, the current one, that it exists. */
  confirmAttested(certificate: Certificate, epoch: bigint, votes: readonly BatchVote[], signal?: AbortSignal): Promise<Confirmed> {
    return this.#post("/v1/certificates/attested", encodeAttested(certificate, epoch, votes), decodeConfirmed, signal);
  }

  /** Requests a vote under the current epoch for confirmed redemptions, in this order. */
  voteForRedemptions(redemptions: readonly OrderName[], signal?: AbortSignal) {
    return this.#post("/v1/redemptions/votes", encodeRedemptionNames(redemptions), decodeBatchVoted, signal);
  }

  /** Requests the authority's vote, in the current epoch, about a number to unlock. */
  voteForUnlock(number: OrderName, unanimous: boolean, signal?: AbortSignal): Promise<UnlockVote> {
    return this.#post("/v1/unlocks/votes", encodeUnlockNumber(number, unanimous), decodeUnlockVote, signal);
  }

  /** An account's state, with one asset, or with as many assets as fit into an answer. */
  account(account: AccountId, asset?: Address, signal?: AbortSignal): Promise<AccountState> {
    return this.#get(accountPath(account), { asset }, decodeAccount, signal);
  }

  /** The certificate that `account` sent under `sequence`. */
  certificate(account: AccountId, sequence: bigint, signal?: AbortSignal): Promise<Certificate> {
    return this.#get(`${accountPath(account)}/certificates/${sequence}`, {}, decodeCertificate, signal);
  }

  /** The certificates of some of these names, and the number of names, from the first, that the answer covers. */
  certificates(names: readonly OrderName[], signal?: AbortSignal) {
    return this.#post("/v1/certificates/read", encodeCertificateNames(names), decodeCertificates, signal);
  }

  /** Confirmed transfers of the account from number `start` on. */
  async sent(account: AccountId, start: bigint, signal?: AbortSignal): Promise<Page<SentItem>> {
    const query = { start: start.toString() };
    const { total, transfers } = await this.#get(`${accountPath(account)}/sent`, query, decodeSent, signal);
    return { total, entries: transfers };
  }

  /** Payments to the account from its `start`th at this authority on. */
  async received(account: AccountId, start: bigint, signal?: AbortSignal): Promise<Page<ReceivedItem>> {
    const query = { start: start.toString() };
    const { total, payments } = await this.#get(`${accountPath(account)}/received`, query, decodeReceived, signal);
    return { total, entries: payments };
  }

  /** Deposits to the account from its `start`th on. */
  async deposits(account: AccountId, start: bigint, signal?: AbortSignal): Promise<Page<DepositItem>> {
    const query = { start: start.toString() };
    const { total, deposits } = await this.#get(`${accountPath(account)}/deposits`, query, decodeDeposits, signal);
    return { total, entries: deposits };
  }

  /** A page of an account's list in this authority's archive. */
  async archived(account: AccountId, list: ArchiveList, signal?: AbortSignal, limit = ARCHIVED_ENTRIES_MAX): Promise<ArchivePage> {
    const path = `${accountPath(account)}/archived/${list.type}`;
    const from = list.type === "sent" ? { from: list.from.toString() } : { cursor: placeText(list.from) };
    const ask = (query: Query) => this.#get(path, { ...from, limit: limit.toString(), ...query }, decodeArchivePage, signal);
    try {
      return await ask({});
    } catch (error) {
      // A list with what a recovery debited is refused to clients that do not ask for that. Not every authority knows
      // the parameter yet, so it is sent only then.
      if (list.type !== "sent" || !(error instanceof ProblemError) || error.problem !== "not-archived") throw error;
      return ask({ paid: "true" });
    }
  }

  /** Certificates of redemptions in the order in which a shard confirmed them. */
  async redemptions(shard: number, start: bigint, signal?: AbortSignal): Promise<Page<Certificate>> {
    const query = { shard: shard.toString(), start: start.toString() };
    const { total, certificates } = await this.#get("/v1/redemptions", query, decodeRedemptions, signal);
    return { total, entries: certificates };
  }

  /** The transfers that the authority confirmed last, newest first. */
  async newTransfers(signal?: AbortSignal): Promise<readonly OrderName[]> {
    return (await this.#get("/v1/transfers", {}, decodeNewTransfers, signal)).transfers;
  }

  /** The certificate of a transfer by its digest. */
  async transfer(digest: Hex, signal?: AbortSignal): Promise<Certificate> {
    return (await this.#get(`/v1/transfers/${digest}`, {}, decodeTransfer, signal)).certificate;
  }

  /** A deposit by its index. */
  deposit(index: bigint, signal?: AbortSignal): Promise<DepositItem> {
    return this.#get(`/v1/deposits/${index}`, {}, decodeDepositItem, signal);
  }

  /** A committee as reported by this authority. Only the contract is authoritative. */
  committee(epoch?: bigint, signal?: AbortSignal) {
    return this.#get("/v1/committee", { epoch: epoch?.toString() }, decodeCommittee, signal);
  }

  /** The authority's status, with the totals of as many assets as fit into an answer. */
  async status(signal?: AbortSignal) {
    const request = { method: "GET", url: this.#address("/v1/status", {}), timeoutMs: this.#timeoutMs, signal } as const;
    return decodeStatus(await requestJson(request), "the answer");
  }

  /** Where members can be reached, as they say themselves. An earlier release throws `not-found`. */
  async endpoints(signal?: AbortSignal): Promise<readonly MemberEndpoint[]> {
    return (await this.#get("/v1/endpoints", {}, decodeEndpoints, signal)).endpoints;
  }

  /** The URL of an account's event stream. */
  eventsUrl(account: AccountId, cursor: string | undefined): string {
    return this.#address(`${accountPath(account)}/events`, { cursor });
  }

  #address(path: string, query: Query): string {
    const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
    const search = new URLSearchParams(given).toString();
    return search === "" ? `${this.url}${path}` : `${this.url}${path}?${search}`;
  }

  #get<T>(path: string, query: Query, decode: Decoder<T>, signal: AbortSignal | undefined): Promise<T> {
    return this.#ask({ method: "GET", url: this.#address(path, query), timeoutMs: this.#timeoutMs, signal }, decode);
  }

  #post<T>(path: string, body: string, decode: Decoder<T>, signal: AbortSignal | undefined): Promise<T> {
    return this.#ask({ method: "POST", url: this.url + path, body, timeoutMs: this.#timeoutMs, signal }, decode);
  }

  /**
   * Sends a request. Awaits the member's name before it returns an answer or a refusal, because both count by member.
   */
  async #ask<T>(request: Parameters<typeof requestJson>[0], decode: Decoder<T>): Promise<T> {
    const identified = this.identify();
    try {
      const answer = decode(await requestJson(request), "the answer");
      await identified;
      return answer;
    } catch (error) {
      if (error instanceof ProblemError) await identified;
      throw error;
    }
  }
}

/** Identifies the member that answers at a configured authority; see `AuthorityClient.member`. */
export function memberOf(authority: AuthorityRef): string {
  return authority instanceof AuthorityClient ? authority.member : (authority.name ?? authority.url);
}

/** The member of a committee that answers there; undefined if none is known to: it may have left the committee. */
export function memberIn(committee: Committee, authority: AuthorityRef): AuthorityName | undefined {
  return memberNamed(committee, memberOf(authority) as AuthorityName)?.member.votingKey;
}

function accountPath(account: AccountId): string {
  return `/v1/accounts/${formatAccount(account)}`;
}
