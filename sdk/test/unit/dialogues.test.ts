/**
 * The conversations of `vectors/conversations.json` that need requests: settling a certificate, with the certificates
 * that an authority lacks, and votes of the current committee on a redemption and on a number to unlock. The tests of
 * `fastpay-client` play the same file. The real client asks authorities that answer when it is their turn.
 */

import { readFileSync } from "node:fs";
import { setImmediate } from "node:timers/promises";

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import type { AuthorityClient } from "../../src/authority.js";
import { verifyCertificate, type VerifiedCertificate } from "../../src/certificate.js";
import type { Committees } from "../../src/chain/committees.js";
import { malformed } from "../../src/decode.js";
import {
  DEFAULT_TIMING,
  ETHER,
  FastPayError,
  isFastPayError,
  NO_MEMO,
  type BatchVote,
  type Committee,
  type Redemption,
  type Transfer,
} from "../../src/index.js";
import { Network } from "../../src/network.js";
import { ProblemError } from "../../src/problem.js";
import type { TransferStep } from "../../src/progress.js";
import type { Operation } from "../../src/quorum/certify.js";
import { settle } from "../../src/quorum/settle.js";
import { voteUnlock } from "../../src/quorum/unlock.js";
import { voteAgain } from "../../src/quorum/vote-again.js";
import type { Confirmed, UnlockVote } from "../../src/wire.js";
import { authorities, committeeOfKeys, DOMAIN, paymentOf, person, signed, type Keys } from "../support/committee.js";

/** An authority's answer to one request. */
interface Line {
  readonly by: number;
  /** The number of the certificate that it is asked to confirm. */
  readonly asked?: number;
  readonly confirms?: number;
  readonly vote?: "own" | "of" | "forged" | "void" | "certificate" | "certificate-of-another-number";
  readonly voter?: number;
  readonly epoch?: number | "none";
  readonly unanimous?: boolean;
  readonly lacks?: boolean;
  readonly refusal?: string;
  readonly expected?: number;
  readonly silent?: boolean;
  readonly rubbish?: boolean;
  readonly means?: string;
}

interface Said {
  readonly name: string;
  readonly authorities?: number;
  readonly epoch?: number;
  readonly kind?: "redemption";
  readonly number?: number;
  readonly unanimous?: boolean;
  readonly stored?: number[];
  readonly says: Line[];
  readonly concludes: unknown;
}

const file = new URL("../../../vectors/conversations.json", import.meta.url);
const vectors = JSON.parse(readFileSync(file, "utf8")) as Record<"settlements" | "batchVotes" | "unlockVotes", Said[]>;
const [alice, bob] = [person("alice"), person("bob")];
/** Kinds that the SDK alone tells apart. */
const COARSE: Record<string, string> = { voided: "refused", frozen: "refused" };

/** A client that has not acted by then waits for something else. */
const TURNS_MAX = 50_000;

function kindOf(kind: string): string {
  return COARSE[kind] ?? kind;
}

/** The error of an authority that refuses, is silent, or answers rubbish; undefined if it answers well. */
function errorOf(line: Line): Error | undefined {
  if (line.rubbish) return malformed("the answer", "sense");
  const code = line.lacks ? "redemptions-missing" : line.refusal;
  if (code === undefined) return line.silent ? new FastPayError("unreachable", "no answer", "") : undefined;
  const known = { type: `urn:fastpay:problem:${code}`, title: code, status: 409, code, action: "" };
  const retry = code === "stopping" || code === "not-requested" ? "later" : code === "invalid" ? "never" : "after-change";
  const facts = line.expected === undefined ? {} : { expectedSequence: String(line.expected) };
  return new ProblemError(409, { ...known, retry, ...facts });
}

interface Request {
  /** The number of the certificate that is to be confirmed; undefined for a vote. */
  readonly confirm: number | undefined;
  readonly answer: (line: Line) => void;
}

/** An authority whose answers are lines of a conversation. */
class Speaker {
  readonly url: string;
  readonly name: string;
  request: Request | undefined;
  readonly #dialogue: Dialogue;

  get member(): string {
    return this.name;
  }

  constructor(dialogue: Dialogue, index: number, name: string) {
    this.#dialogue = dialogue;
    this.url = String(index);
    this.name = name;
  }

  #asked(confirm: number | undefined): Promise<Line> {
    return new Promise((resolve) => (this.request = { confirm, answer: resolve }));
  }

  async confirm(certificate: VerifiedCertificate): Promise<Confirmed> {
    const line = await this.#asked(Number(certificate.order.transfer.sequence));
    const error = errorOf(line);
    if (error !== undefined) throw error;
    if (line.confirms === undefined) throw new Error(`${JSON.stringify(line)} answers no certificate`);
    const epoch = line.epoch === "none" ? undefined : this.#dialogue.epochOf(line);
    return { nextSequence: BigInt(line.confirms), epoch };
  }

  async voteForRedemptions(): Promise<{ epoch: bigint } & BatchVote> {
    const line = await this.#asked(undefined);
    return this.#dialogue.batchVote(line);
  }

  async voteForUnlock(): Promise<UnlockVote> {
    const line = await this.#asked(undefined);
    return this.#dialogue.unlockVote(line);
  }

  certificate(): Promise<never> {
    const known = { type: "urn:fastpay:problem:not-found", title: "", status: 404, action: "", retry: "never" };
    return Promise.reject(new ProblemError(404, { ...known, code: "not-found" }));
  }
}

class Dialogue {
  readonly #said: Said;
  readonly #keys: Keys[];
  readonly committee: Committee;
  readonly number: number;
  readonly #certificates: Map<number, VerifiedCertificate>;
  readonly speakers: Speaker[];
  readonly #end = new AbortController();
  readonly #steps: { by: string; kind: string }[] = [];

  private constructor(said: Said, keys: Keys[], certificates: Map<number, VerifiedCertificate>) {
    this.#said = said;
    this.#keys = keys;
    this.committee = committeeOfKeys(keys, BigInt(said.epoch ?? 0));
    this.number = said.number ?? 2;
    this.#certificates = certificates;
    this.speakers = keys.map(({ votingKey }, index) => new Speaker(this, index, votingKey));
  }

  static async of(said: Said): Promise<Dialogue> {
    const keys = authorities(said.authorities ?? 4);
    const committee = committeeOfKeys(keys, BigInt(said.epoch ?? 0));
    const certificates = new Map<number, VerifiedCertificate>();
    for (let number = 0; number <= (said.number ?? 2) + 1; number += 1) {
      const isRedemption = said.kind === "redemption" && number === 2;
      const transfer: Transfer = isRedemption ? redemptionOf(30n) : paymentOf(alice.account, bob.account, 30n, BigInt(number));
      const order = await signed(alice, transfer);
      const votes = keys.slice(0, committee.quorum).map((key) => key.vote(committee.epoch, transfer));
      const { authorization } = order;
      certificates.set(number, verifyCertificate({ order: { transfer, authorization }, epoch: committee.epoch, votes }, committee, DOMAIN));
    }
    return new Dialogue(said, keys, certificates);
  }

  certificate(number = this.number): VerifiedCertificate {
    const certificate = this.#certificates.get(number);
    if (certificate === undefined) throw new Error(`there is no certificate ${number}`);
    return certificate;
  }

  epochOf({ epoch }: Line): bigint {
    return typeof epoch === "number" ? BigInt(epoch) : this.committee.epoch;
  }

  #key({ voter, by }: Line): Keys {
    const key = this.#keys[voter ?? by];
    if (key === undefined) throw new Error(`there is no authority ${voter ?? by}`);
    return key;
  }

  batchVote(line: Line): { epoch: bigint } & BatchVote {
    const error = errorOf(line);
    if (error !== undefined) throw error;
    const redemption = redemptionOf(line.vote === "forged" ? 31n : 30n);
    return { epoch: this.epochOf(line), ...this.#key(line).batchVote(this.committee.epoch, [redemption]) };
  }

  unlockVote(line: Line): UnlockVote {
    const error = errorOf(line);
    if (error !== undefined) throw error;
    const [key, epoch, number] = [this.#key(line), this.committee.epoch, BigInt(this.number)];
    if (line.vote === "void") {
      const vote = key.voidVote(epoch, alice.account, number, line.unanimous ?? this.#said.unanimous ?? false);
      return { type: "void", ...vote, epoch: this.epochOf(line) };
    }
    const shown = this.certificate(line.vote === "certificate" ? this.number : this.number + 1);
    const certificate = { order: shown.order, epoch: shown.epoch, votes: shown.votes };
    const vote = key.certificateVote(epoch, alice.account, number, shown.digest);
    return { type: "certificate", certificate, ...vote, epoch: this.epochOf(line) };
  }

  operation(): Operation {
    const committees = {
      current: this.committee,
      refresh: async () => false,
      get: async (epoch: bigint) => (epoch === this.committee.epoch ? this.committee : undefined),
    } as unknown as Committees;
    const timing = { ...DEFAULT_TIMING, deadlineMs: 60_000, readMs: 60_000, backoffMinMs: 0, backoffMaxMs: 0 };
    const clients = this.speakers as unknown as AuthorityClient[];
    const report = (step: TransferStep): void => {
      if (step.type === "confirmed") this.#steps.push({ by: step.authority.url, kind: "confirmed" });
      if (step.type === "waiting") this.#steps.push({ by: step.authority.url, kind: kindOf(step.failure.kind) });
    };
    return {
      network: new Network(DOMAIN, committees, clients, timing, this.#end.signal),
      primary: { unlockStatus: async () => ({ state: "none" }) as never, isSpent: async () => false, finalSpending: async () => undefined },
      timing,
      stored: async (_, sequence) => (this.#said.stored?.includes(Number(sequence)) ? this.certificate(Number(sequence)) : undefined),
      report,
      signal: undefined,
    };
  }

  /** Plays the authorities' scripted answers; resolves to the client's conclusion after the last one. */
  async play(client: Promise<unknown>): Promise<unknown> {
    let isOver = false;
    const over = client.finally(() => (isOver = true));
    over.catch(() => undefined);
    const { says } = this.#said;
    for (const [index, line] of says.entries()) {
      const speaker = this.speakers[line.by];
      if (speaker === undefined) throw new Error(`there is no authority ${line.by}`);
      const at = JSON.stringify(line);
      await turns(at, () => isOver || speaker.request !== undefined);
      expect(isOver, `it has concluded before ${at}`).toBe(false);
      const { confirm, answer } = speaker.request as Request;
      const asked = line.asked ?? (line.confirms === undefined ? undefined : this.number);
      if (asked !== undefined) expect(confirm, at).toBe(asked);
      // A client that meets a new epoch now gives up rather than wait for the contract to show it.
      if (index === says.length - 1) vi.setSystemTime(Date.now() + 3_600_000);
      speaker.request = undefined;
      this.#steps.length = 0;
      answer(line);
      if (line.means === undefined) continue;
      const step = () => this.#steps.find(({ by }) => by === speaker.url);
      await turns(at, () => step() !== undefined || speaker.request !== undefined);
      expect(step()?.kind ?? "again", at).toBe(line.means);
    }
    try {
      return await over;
    } catch (error) {
      return explain(error);
    } finally {
      this.#end.abort();
    }
  }
}

/** Lets other tasks go on until this is so. */
async function turns(at: string, isSo: () => boolean): Promise<void> {
  for (let turn = 0; !isSo(); turn += 1) {
    if (turn === TURNS_MAX) throw new Error(`nothing happens at ${at}`);
    await setImmediate();
  }
}

function redemptionOf(amount: bigint): Redemption {
  const recipient = "0x00000000000000000000000000000000000000aa";
  return { type: "redemption", sender: alice.account, recipient, asset: ETHER, amount, fee: 0n, sequence: 2n, memo: NO_MEMO };
}

function explain(error: unknown): unknown {
  if (isFastPayError(error, "new-epoch")) return { newEpoch: Number((error.details as { epoch: bigint }).epoch) };
  if (isFastPayError(error, "voided")) return { unsettled: true };
  if (!isFastPayError(error, "no-quorum")) throw error;
  const { count, timedOut } = error.details as { count: number; timedOut: boolean };
  expect(timedOut).toBe(false);
  return { noQuorum: count };
}

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
afterEach(() => void vi.useRealTimers());

describe("a conversation about settling", () => {
  test.each(vectors.settlements)("$name", async (said) => {
    const dialogue = await Dialogue.of(said);
    const operation = dialogue.operation();
    const confirmed = new Set<number>();
    const report = (step: TransferStep): void => {
      if (step.type === "confirmed") confirmed.add(Number(step.authority.url));
      operation.report(step);
    };
    const settling = settle({ ...operation, report }, dialogue.certificate());
    const concluded = await dialogue.play(settling.then(() => ({ settled: [...confirmed].sort((a, b) => a - b) })));
    expect(concluded).toEqual(said.concludes);
  });
});

describe("a conversation about a redemption of an ended epoch", () => {
  test.each(vectors.batchVotes)("$name", async (said) => {
    const dialogue = await Dialogue.of(said);
    const voting = voteAgain(dialogue.operation(), dialogue.certificate(), redemptionOf(30n));
    // The contract reads a byte with a member's place, and 65 of the signature.
    const votersOf = (votes: string): number[] => (votes.slice(2).match(/.{132}/g) ?? []).map((vote) => Number.parseInt(vote.slice(0, 2), 16));
    const concluded = await dialogue.play(voting.then(({ epoch, votes }) => ({ epoch: Number(epoch), voters: votersOf(votes) })));
    expect(concluded).toEqual(said.concludes);
  });
});

describe("a conversation about unlocking", () => {
  test.each(vectors.unlockVotes)("$name", async (said) => {
    const dialogue = await Dialogue.of(said);
    const number = { sender: alice.account, sequence: BigInt(dialogue.number) };
    const voting = voteUnlock(dialogue.operation(), number, said.unanimous ?? false);
    const summed = voting.then((ballot) => {
      const decision = ballot.decision();
      if (decision?.type === "uphold") expect(decision.digest).toBe(dialogue.certificate().digest);
      const failures = Object.fromEntries([...ballot.failures].map(([url, { kind }]) => [url, kindOf(kind)]));
      return { decision: decision?.type ?? null, ...ballot.counts, failures };
    });
    expect(await dialogue.play(summed)).toEqual(said.concludes);
  });
});
