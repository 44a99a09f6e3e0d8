/**
 * A ledger as the Primary, in place of a contract on Ethereum. Imported as `@fastpay/sdk/ledger`, so that nobody else
 * loads it.
 *
 * ```ts
 * const ledger = openLedger(description);
 * const fastpay = await FastPay.create({ ledger, authorities });
 * ```
 */

import type { AccountId } from "./accounts.js";
import { toBytes, toHex, type Address, type Hex } from "./bytes.js";
import type { Spending } from "./chain/spending.js";
import type { LedgerPrimary } from "./client.js";
import type { Committee } from "./committee.js";
import { hex, list, malformed, object, smallNumber, text } from "./decode.js";
import { FastPayError } from "./errors.js";
import { HTTP_BASE } from "./http.js";
import { BorshReader } from "./ledger/borsh.js";
import { readCommittee, readGenesis, type LedgerFacts } from "./ledger/genesis.js";
import { ClusterMembers } from "./ledger/members.js";
import type { Reading } from "./ledger/read-proof.js";
import { stateKeys } from "./ledger/state-key.js";
import type { ContractOperation, Primary } from "./primary.js";
import { ETHER } from "./transfer.js";
import type { AssetInfo, AssetStatus, ContractStatus, RedemptionStatus, UnlockStatus } from "./views.js";

/**
 * A FastPay committee on a ledger, as `fastpay-ledger describe` prints it. Whoever gives it to you is trusted as whoever
 * gives you a contract's address: compare `contract` with another source. It covers the genesis and the committee's
 * number. Nothing is taken on the word of a member at an address.
 */
export interface LedgerDescription {
  /** The encoded genesis, whose hash every signature of the ledger covers. */
  readonly genesis: Hex;
  /** The committee's number in the genesis. */
  readonly committee: number;
  /** The contract of the committee's EIP-712 domain, which follows from both. */
  readonly contract: Address;
  /** Members of the settlement cluster: n − quorum + 1 of them at least, which is f + 1 for n = 3f + 1; better all. */
  readonly members: readonly {
    /** The member's Ed25519 key. */
    readonly key: Hex;
    /** The base of its HTTP API. */
    readonly http: string;
  }[];
}

/** How each operation of a contract is done on a ledger. */
const INSTEAD: Record<ContractOperation, string> = {
  deposit: "deposit from a reserve on the ledger: `fastpay deposit` signs with the reserve's key",
  payout: "wait for a relayer, or hand the certificate to the ledger with `fastpay redeem --self`",
  queue: "nothing is queued on a ledger",
  claim: "what is paid is in the recipient's reserve: `fastpay-ledger reserve show` prints it",
  unlock: "no program requests it on a ledger yet; ask the committee's operators",
  transaction: "a ledger has no Ethereum transactions",
  balance: "`fastpay-ledger reserve show` prints what is in a reserve",
  gas: "instructions to a ledger cost no gas",
};

/** The same as in the command line. A ledger does not name its assets or their decimals. */
const NATIVE_DECIMALS = 18;
/** Relayers do not wait to form a batch. A height takes about a second, and a credit to another cluster one more. */
const PAYOUT_MS = 3_000;
/** All of an asset can be redeemed at once. */
const ALL_BASIS_POINTS = 10_000;

const description = object<LedgerDescription>({
  genesis: text as (value: unknown, at: string) => Hex,
  committee: smallNumber(0xffff_ffff),
  contract: hex(20),
  members: list(object({ key: hex(32), http: text }), 255),
});

/** The Primary of a FastPay committee on a ledger. Asks nobody. Throws `invalid-argument` if the description is unfit. */
export function openLedger(given: LedgerDescription): LedgerPrimary {
  const read = readDescription(given);
  const facts = readGenesis(toBytes(read.genesis), read.committee);
  const { settlement, domain } = facts;
  if (domain.contract !== read.contract) {
    throw unfit(`its genesis and committee give ${domain.contract}, and not ${read.contract}`);
  }
  const urls = new Map(read.members.map(({ key, http }) => [key, http.replace(/\/+$/, "")]));
  const stranger = [...urls.keys()].find((key) => !settlement.members.includes(key));
  if (stranger !== undefined) throw unfit(`${stranger} is no member of the settlement cluster`);
  const bad = [...urls.values()].find((url) => !HTTP_BASE.test(url));
  if (bad !== undefined) throw unfit(`${bad} is not the base of an HTTP API`);
  // Each address counts once, so a repeated one would count twice.
  if (urls.size < read.members.length || new Set(urls.values()).size < urls.size) throw unfit("a member is listed twice");
  const needed = ClusterMembers.needed(settlement);
  if (urls.size < needed) throw unfit(`it lists ${urls.size} members; ${needed} must agree`);
  return new Ledger(facts, read.committee, new ClusterMembers(settlement, [...urls.values()]));
}

function readDescription(given: unknown): LedgerDescription {
  try {
    return description(given, "the description");
  } catch (cause) {
    throw unfit("a field is missing or malformed", cause);
  }
}

function unfit(why: string, cause?: unknown): FastPayError {
  const action = "`fastpay-ledger describe` prints it from the ledger's file; correct the addresses alone";
  return new FastPayError("invalid-argument", `the description of the ledger cannot be used: ${why}`, action, { cause });
}

class Ledger implements Primary, LedgerPrimary {
  readonly kind = "ledger";
  readonly domain: LedgerFacts["domain"];
  readonly #first: Committee;
  readonly #keys: ReturnType<typeof stateKeys>;
  readonly #members: ClusterMembers;

  constructor({ first, domain }: LedgerFacts, committee: number, members: ClusterMembers) {
    this.domain = domain;
    this.#first = first;
    this.#keys = stateKeys(committee);
    this.#members = members;
  }

  async check(): Promise<void> {}

  contractFor(operation: ContractOperation): never {
    throw new FastPayError("needs-contract", "the Primary is a ledger, which has no contract on Ethereum", INSTEAD[operation]);
  }

  async epoch(): Promise<bigint> {
    return (await this.#current()).epoch;
  }

  async committee(epoch: bigint): Promise<Committee> {
    if (epoch === 0n) return this.#first;
    const committee = decoded(await this.#members.read(this.#keys.committee(epoch)), readCommittee);
    if (committee?.epoch === epoch) return committee;
    if (committee !== undefined) throw malformed("the ledger's entry", `of epoch ${epoch}`);
    // Another read has shown that the epoch has begun.
    const message = `the members of the ledger that answered do not know of the committee of epoch ${epoch} yet`;
    throw new FastPayError("chain-unreachable", message, "try again", { details: { primary: "ledger" } });
  }

  /** Checkpoints of an earlier epoch do not count on a ledger, as in the command line's wallet. */
  async isClosing(): Promise<boolean> {
    return false;
  }

  async redemptionStatus(sender: AccountId, sequence: bigint, digest: Hex | undefined): Promise<RedemptionStatus> {
    const spent = await this.#spent(sender, sequence);
    if (spent === undefined) return { state: "open" };
    if (spent === "void") return { state: "voided" };
    if (digest === undefined) return { state: "spent" };
    return { state: spent.digest === digest ? "paid" : "displaced", hash: undefined };
  }

  async isSpent(sender: AccountId, sequence: bigint): Promise<boolean> {
    return (await this.finalSpending(sender, sequence)) !== undefined;
  }

  async finalSpending(sender: AccountId, sequence: bigint): Promise<Spending | undefined> {
    const spent = await this.#spent(sender, sequence);
    return spent === "void" ? undefined : spent;
  }

  async unlockStatus(account: AccountId, sequence: bigint): Promise<UnlockStatus> {
    const [entry, current] = await Promise.all([this.#members.read(this.#keys.unlock(account, sequence)), this.#current()]);
    const request = decoded(entry, readUnlock);
    if (request === undefined) return { state: "none" };
    const { voidableFromMs, decision } = request;
    // An order that a compromised epoch upheld may not exist, so the number is open again.
    const holds = decision !== undefined && (decision.state === "voided" || !current.isCompromised(decision.epoch));
    if (holds) return { state: decision.state };
    return { state: "requested", voidableFrom: (voidableFromMs + 999n) / 1_000n, isFinal: true, isDecided: false };
  }

  async isFastPay(address: Address): Promise<boolean> {
    return address.toLowerCase() === this.domain.contract;
  }

  async status(): Promise<ContractStatus> {
    const [{ epoch, guardian }, events] = await Promise.all([this.#current(), this.#members.read(this.#keys.eventIndex)]);
    return {
      epoch,
      pausedUntil: 0n,
      guardian,
      lastTransactionIndex: decoded(events, (read) => read.u64()) ?? 0n,
      outflowShareBasisPoints: ALL_BASIS_POINTS,
      outflowWindow: 0,
      outflowDelay: 0,
      timestamp: events.timeMs / 1_000n,
    };
  }

  async assetStatus(asset: Address): Promise<AssetStatus> {
    const omnibus = decoded(await this.#members.read(this.#keys.omnibus(asset)), (read) => read.bytes(32));
    const total = omnibus === undefined ? 0n : BigInt.asIntN(256, BigInt(toHex(omnibus)));
    return { asset, totalBalance: total, totalClaims: 0n, totalQueued: 0n, outflowAvailable: total };
  }

  async assetInfo(asset: Address): Promise<AssetInfo> {
    const isNative = asset === ETHER;
    return { asset, symbol: isNative ? "native" : "units", decimals: isNative ? NATIVE_DECIMALS : 0, hasPermit: false };
  }

  async payoutMs(): Promise<number> {
    return PAYOUT_MS;
  }

  async #current(): Promise<CurrentEpoch> {
    const current = decoded(await this.#members.read(this.#keys.epoch), readCurrentEpoch);
    if (current !== undefined) return current;
    throw new FastPayError("not-found", "the ledger does not know of its committee", "ask the ledger's operators");
  }

  async #spent(sender: AccountId, sequence: bigint): Promise<Spending | "void" | undefined> {
    return decoded(await this.#members.read(this.#keys.spent(sender, sequence)), readSpent);
  }
}

/** The current epoch of the committee. */
interface CurrentEpoch {
  readonly epoch: bigint;
  readonly guardian: Address;
  readonly isCompromised: (epoch: bigint) => boolean;
}

function readCurrentEpoch(read: BorshReader): CurrentEpoch {
  const epoch = read.u64();
  // When it began, and until when redemption votes of the epoch before count.
  read.u64();
  read.option(() => read.u64());
  const guardian = read.hex(20);
  const compromised = read.list(() => [read.u64(), read.u64()] as const);
  return { epoch, guardian, isCompromised: (of) => compromised.some(([first, end]) => first <= of && of < end) };
}

function readSpent(read: BorshReader): Spending | "void" {
  const kind = read.u8();
  if (kind === 1) return "void";
  if (kind !== 0) throw malformed("the ledger's entry", "of a known kind");
  const digest = read.hex(32);
  // The index of the event, and who got the fee.
  read.u64();
  read.bytes(32);
  return { event: "Redeemed", digest };
}

/** A request to unlock. */
interface UnlockEntry {
  readonly voidableFromMs: bigint;
  /** The decision, and the epoch of the committee that made it. */
  readonly decision: { readonly state: "upheld" | "voided"; readonly epoch: bigint } | undefined;
}

function readUnlock(read: BorshReader): UnlockEntry {
  const voidableFromMs = read.u64();
  // Who paid the bond, until that is paid out.
  read.option(() => read.bytes(32));
  const decision = read.option(() => {
    const kind = read.u8();
    if (kind > 1) throw malformed("the ledger's entry", "of a known kind");
    return { state: kind === 0 ? "upheld" : "voided", epoch: read.u64() } as const;
  });
  return { voidableFromMs, decision };
}

/** The decoded value of an entry; undefined if there is none. Throws `malformed-answer` for a value of another kind. */
function decoded<T>({ value }: Reading, decode: (read: BorshReader) => T): T | undefined {
  if (value === undefined) return undefined;
  const read = new BorshReader(value, "the ledger's entry");
  const found = decode(read);
  read.end();
  return found;
}
