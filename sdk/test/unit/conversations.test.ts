/**
 * The conversations of `vectors/conversations.json`, which the tests of `fastpay-client` play as well: what authorities
 * say, in order, what each answer means, and what a client concludes. Played by the real `ask` and the real `Tally`, with
 * authorities that answer when it is their turn.
 */

import { readFileSync } from "node:fs";
import { setImmediate } from "node:timers/promises";

import { describe, expect, test } from "vitest";

import type { AuthorityClient } from "../../src/authority.js";
import { verifyCertificate, type VerifiedCertificate } from "../../src/certificate.js";
import type { OrderConflict } from "../../src/quorum/conflict.js";
import { ask } from "../../src/quorum/ask.js";
import type { Operation } from "../../src/quorum/certify.js";
import { Tally, type PeerAnswer, type Verdict } from "../../src/quorum/tally.js";
import { malformed } from "../../src/decode.js";
import {
  DEFAULT_TIMING,
  ETHER,
  FastPayError,
  NO_MEMO,
  type Certificate,
  type Committee,
  type Redemption,
  type Transfer,
  type TransferOrder,
  type VerifiedOrder,
  type Vote,
} from "../../src/index.js";
import { provenBy } from "../../src/network.js";
import { ProblemError } from "../../src/problem.js";
import { agreedBalances, supportedBalance } from "../../src/agreement.js";
import type { AccountState } from "../../src/views.js";
import { encodeOrder, type Confirmed } from "../../src/wire.js";
import { authorities, committeeOfKeys, DOMAIN, paymentOf, person, signed, type Keys } from "../support/committee.js";

type Which = "ours" | "rival" | "earlier" | "later" | "stranger" | "forged";

interface Says {
  readonly by: number;
  readonly vote?: "own" | "of" | "forged";
  readonly voter?: number;
  readonly epoch?: number;
  readonly refusal?: string;
  readonly pending?: Which;
  readonly expected?: number;
  readonly balance?: string;
  readonly waitMs?: number;
  readonly silent?: boolean;
  readonly rubbish?: boolean;
  readonly means: string;
}

interface OrderConversation {
  readonly name: string;
  readonly authorities?: number;
  readonly epoch?: number;
  readonly kind?: "redemption";
  readonly renamed?: number[];
  readonly certificate?: "ours" | "rival";
  readonly earlier?: boolean;
  readonly credits?: number;
  readonly patient?: boolean;
  readonly says: Says[];
  readonly concludes: unknown;
}

interface BalanceConversation {
  readonly name: string;
  readonly states: { next: number; balance: string }[];
  readonly trusted: number;
  readonly agreed: unknown;
  readonly next?: number;
  readonly spent?: Record<string, string>;
  readonly supported?: string | null;
}

const file = new URL("../../../vectors/conversations.json", import.meta.url);
const vectors = JSON.parse(readFileSync(file, "utf8")) as {
  orders: OrderConversation[];
  balances: BalanceConversation[];
};

/** The number of the order. */
const SEQUENCE = 2n;
const [alice, bob] = [person("alice"), person("bob")];

/** As the HTTP API says what to do after a refusal. */
function retryOf({ refusal, expected }: Says): string {
  if (["busy", "stopping", "disk-low", "account-budget", "address-budget"].includes(refusal ?? "")) return "later";
  if (refusal === "not-voting" || (refusal === "catching-up" && expected === undefined)) return "later";
  return refusal === "invalid" || refusal === "malformed" ? "never" : "after-change";
}

/** One authority, which is asked, and answers when the conversation says so. */
class Speaker {
  #asked: ((answer: Promise<{ epoch: bigint; vote: Vote }>) => void) | undefined;
  readonly url: string;
  readonly name: string;

  constructor(url: string, name: string) {
    this.url = url;
    this.name = name;
  }

  get isAsked(): boolean {
    return this.#asked !== undefined;
  }

  order(): Promise<{ epoch: bigint; vote: Vote }> {
    return new Promise((resolve) => (this.#asked = resolve));
  }

  say(answer: () => Promise<{ epoch: bigint; vote: Vote }>): void {
    const asked = this.#asked;
    if (asked === undefined) throw new Error(`${this.url} is not asked`);
    this.#asked = undefined;
    asked(answer());
  }

  confirm(certificate: VerifiedCertificate): Promise<Confirmed> {
    return Promise.resolve({ nextSequence: certificate.order.transfer.sequence + 1n, epoch: undefined });
  }
}

class Conversation {
  readonly #said: OrderConversation;
  readonly #keys: Keys[];
  readonly #committee: Committee;
  readonly #orders: Record<Which, VerifiedOrder>;

  private constructor(said: OrderConversation, orders: Record<Which, VerifiedOrder>) {
    this.#said = said;
    this.#keys = authorities(said.authorities ?? 4);
    this.#committee = committeeOfKeys(this.#keys, BigInt(said.epoch ?? 0));
    this.#orders = orders;
  }

  static async of(said: OrderConversation): Promise<Conversation> {
    const redemption = (amount: bigint): Redemption => {
      const recipient = "0x00000000000000000000000000000000000000aa";
      const sender = alice.account;
      return { type: "redemption", sender, recipient, asset: ETHER, amount, fee: 0n, sequence: SEQUENCE, memo: NO_MEMO };
    };
    const transfer = (amount: bigint, sequence = SEQUENCE): Transfer =>
      said.kind === "redemption" ? redemption(amount) : paymentOf(alice.account, bob.account, amount, sequence);
    return new Conversation(said, {
      ours: await signed(alice, transfer(30n)),
      forged: await signed(alice, transfer(30n)),
      rival: await signed(alice, transfer(31n)),
      earlier: await signed(alice, transfer(5n, SEQUENCE - 1n)),
      later: await signed(alice, transfer(5n, SEQUENCE + 1n)),
      stranger: await signed(bob, paymentOf(bob.account, alice.account, 30n, SEQUENCE)),
    });
  }

  #key(index: number): Keys {
    const key = this.#keys[index];
    if (key === undefined) throw new Error(`there is no authority ${index}`);
    return key;
  }

  #certificate({ transfer, authorization }: TransferOrder): VerifiedCertificate {
    const { epoch, quorum } = this.#committee;
    const votes = this.#keys.slice(0, quorum).map((key) => key.vote(epoch, transfer));
    const certificate: Certificate = { order: { transfer, authorization }, epoch, votes };
    return verifyCertificate(certificate, this.#committee, DOMAIN);
  }

  async #answer(says: Says): Promise<{ epoch: bigint; vote: Vote }> {
    const { epoch } = this.#committee;
    if (says.vote !== undefined) {
      const voter = says.vote === "of" ? (says.voter ?? -1) : says.by;
      const on = says.vote === "forged" ? this.#orders.rival : this.#orders.ours;
      const said = says.epoch === undefined ? epoch : BigInt(says.epoch);
      return { epoch: said, vote: this.#key(voter).vote(epoch, on.transfer) };
    }
    if (says.rubbish) throw malformed("the answer", "sense");
    if (says.refusal === undefined) throw new FastPayError("unreachable", "no answer", "");
    const facts: Record<string, unknown> = { retryAfterMs: says.waitMs ?? 0 };
    if (says.expected !== undefined) facts.expectedSequence = String(says.expected);
    if (says.epoch !== undefined) facts.epoch = String(says.epoch);
    if (says.balance !== undefined) facts.balance = says.balance;
    if (says.pending !== undefined) {
      const pending = JSON.parse(encodeOrder(this.#orders[says.pending]));
      if (says.pending === "forged") pending.transfer.amount = "29";
      facts.pending = pending;
    }
    const code = says.refusal;
    const known = { type: `urn:fastpay:problem:${code}`, title: code, status: 409, code, action: "" };
    throw new ProblemError(409, { ...known, retry: retryOf(says), ...facts });
  }

  /** What there is to help with, by what the conversation says. */
  #operation(speakers: Speaker[]): Operation {
    const said = this.#said;
    const clients = speakers as unknown as AuthorityClient[];
    const credits = Array.from({ length: said.credits ?? 0 }, (_, i) => ({
      number: BigInt(i),
      payment: { sender: bob.account, sequence: BigInt(i) },
    }));
    for (const speaker of speakers) {
      const entries = says(said, "insufficient-balance").includes(speakers.indexOf(speaker)) ? [] : credits;
      Object.assign(speaker, {
        account: async () => ({ received: BigInt(entries.length) }),
        received: async () => ({ total: BigInt(entries.length), entries }),
      });
    }
    const network = {
      domain: DOMAIN,
      committee: this.#committee,
      authorities: clients,
      findCertificate: async (_: string, sequence: bigint) => {
        if (sequence < SEQUENCE) return said.earlier === false ? undefined : this.#earlier(sequence);
        return said.certificate && this.#certificate(this.#orders[said.certificate]);
      },
      findNumber: async () => provenBy(this.#certificate(this.#orders.stranger)),
    };
    return {
      primary: { unlockStatus: async () => ({ state: "none" }), isSpent: async () => false, finalSpending: async () => undefined },
      network: network as unknown as Operation["network"],
      timing: { ...DEFAULT_TIMING, fundsPatienceMs: said.patient === false ? 0 : 3_600_000, backoffMinMs: 0, backoffMaxMs: 0 },
      stored: async () => undefined,
      report: () => undefined,
      signal: undefined,
    };
  }

  /** Only its number matters to who brings it. */
  #earlier(sequence: bigint): VerifiedCertificate {
    const certificate = this.#certificate(this.#orders.earlier);
    const transfer = { ...certificate.order.transfer, sequence };
    return { ...certificate, order: { ...certificate.order, transfer } };
  }

  async play(): Promise<unknown> {
    const speakers = this.#keys.map((key, index) => {
      const isRenamed = this.#said.renamed?.includes(index) ?? false;
      return new Speaker(String(index), isRenamed ? `0x${String(index + 1).repeat(64)}` : key.votingKey);
    });
    const operation = this.#operation(speakers);
    const tally = new Tally(this.#committee, this.#orders.ours, speakers.map(({ url }) => url));
    const end = new AbortController();
    let received: { by: string; received: PeerAnswer } | undefined;
    for (const authority of operation.network.authorities) {
      const take = (answer: PeerAnswer): void => void (received = { by: authority.url, received: answer });
      void ask(operation, authority, this.#committee, this.#orders.ours, take, end.signal);
    }
    try {
      for (const says of this.#said.says) {
        const speaker = speakers[says.by];
        if (speaker === undefined) throw new Error(`there is no authority ${says.by}`);
        while (!speaker.isAsked) await setImmediate();
        received = undefined;
        speaker.say(() => this.#answer(says));
        // Either it is said what the answer means, or the authority is asked again at once.
        while (received === undefined && !speaker.isAsked) await setImmediate();
        const answer = received as { by: string; received: PeerAnswer } | undefined;
        expect(answer === undefined ? "again" : meaningOf(answer.received), JSON.stringify(says)).toBe(says.means);
        if (answer === undefined) continue;
        expect(answer.by).toBe(speaker.url);
        const verdict = tally.take(answer.by, answer.received, speaker.name);
        if (verdict.type !== "wait") return this.#conclude(verdict, tally);
      }
      return this.#explain(tally.failure(true));
    } finally {
      end.abort();
    }
  }

  #conclude(verdict: Verdict, tally: Tally): unknown {
    switch (verdict.type) {
      case "certified": {
        const { digest, votes } = verdict.certificate;
        expect(digest).toBe(this.#orders.ours.digest);
        if (this.#said.certificate !== undefined) return { certified: "ours" };
        return { certified: "ours", voters: votes.map(({ authority }) => this.#indexOf(authority)) };
      }
      case "superseded":
        expect(verdict.certificate.digest).toBe(this.#orders.rival.digest);
        return { superseded: "rival" };
      case "new-epoch":
        return { newEpoch: Number(verdict.epoch) };
      default:
        return this.#explain(tally.failure(false));
    }
  }

  #indexOf(name: string): number {
    return this.#keys.findIndex(({ votingKey }) => votingKey === name);
  }

  #explain(error: FastPayError): unknown {
    const details = error.details as Record<string, unknown>;
    if (error.code === "no-primary") return { noPrimary: true };
    if (error.code === "no-room") return { noRoom: details.whose, retryAfterMs: details.retryAfterMs };
    if (error.code === "insufficient-funds") return { insufficientBalance: String(details.balance) };
    if (error.code === "no-quorum") return { noQuorum: { votes: details.count, timedOut: details.timedOut } };
    expect(error.code).toBe("conflict");
    const conflict = details.conflict as OrderConflict;
    const which = (order: VerifiedOrder | undefined): string | null =>
      order === undefined ? null : order.digest === this.#orders.ours.digest ? "ours" : "rival";
    const held = conflict.contenders().map(({ order, holders }) => [which(order), holders.map((holder) => this.#indexOf(holder)).sort()]);
    return { conflict: { leader: which(conflict.leader()), ...Object.fromEntries(held) } };
  }
}

function says({ says: all }: OrderConversation, refusal: string): number[] {
  return all.filter((one) => one.refusal === refusal).map(({ by }) => by);
}

function meaningOf(received: PeerAnswer): string {
  return received.type === "later" || received.type === "out" ? received.failure.kind : received.type;
}

describe("a conversation about an order", () => {
  test.each(vectors.orders)("$name", async (said) => {
    expect(await (await Conversation.of(said)).play()).toEqual(said.concludes);
  });
});

describe("balances", () => {
  test.each(vectors.balances)("$name", ({ states: said, trusted, agreed, next, spent, supported }) => {
    const states = said.map(({ next: nextSequence, balance }) => {
      const holdings = balance === "0" ? [] : [{ asset: ETHER, balance: BigInt(balance) }];
      return { nextSequence: BigInt(nextSequence), received: 0n, deposits: 0n, holdings } as unknown as AccountState;
    });
    const [first] = agreedBalances(states, trusted);
    expect(first === undefined ? null : { balance: String(first.balance), agreeing: first.agreeing }).toEqual(agreed);
    if (next === undefined) return;
    const moved = (sequence: bigint) => {
      const amount = spent?.[String(sequence)];
      return amount === undefined ? undefined : { asset: ETHER, amount: BigInt(amount) };
    };
    const found = supportedBalance(states, BigInt(next), ETHER, trusted, moved);
    expect(found === undefined ? null : String(found)).toBe(supported ?? null);
  });
});
