/** A number with two signed orders: the contract decides, and the account continues. */

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

import { createWalletClient, custom } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import {
  certificateOf,
  ethereumSigner,
  formatAccount,
  isEd25519Signature,
  memoryStore,
  recoverSigner,
  unlockRequestDigest,
  type Hex,
  type UnlockReceipt,
  type VerifiedCertificate,
  type VerifiedOrder,
} from "../../src/index.js";
import { AuthorityClient } from "../../src/authority.js";
import { encodeCertificate } from "../../src/wire.js";
import type { ChainStep } from "../../src/progress.js";
import { UnlockBallot } from "../../src/quorum/unlock.js";
import { OrderJournal } from "../../src/storage/journal.js";
import { viewAccount } from "../../src/wallet/account.js";
import { operationOf, type ContractContext } from "../../src/wallet/context.js";
import { noteVoid } from "../../src/wallet/finish.js";
import { unlock } from "../../src/wallet/unlock.js";
import { unfinishedTransactions } from "../../src/wallet/transactions.js";
import { BOND, PAYER, TestCouncil, WINDOW_S } from "../support/council.js";
import { DOMAIN, paymentOf, signed } from "../support/committee.js";
import { problem } from "../support/node.js";
import { onContract, Scene } from "../support/scene.js";

let scene: Scene;
let servers: Server[];
let council: TestCouncil;
let context: ContractContext;
let steps: ChainStep[];
/** Ours, which is in the storage, and that of another copy. */
let orders: { readonly ours: VerifiedOrder; readonly theirs: VerifiedOrder };

const alice = () => scene.alice.account;
const journal = () => new OrderJournal(context.store ?? memoryStore(), DOMAIN, alice());

beforeEach(async () => {
  scene = await Scene.open();
  servers = [];
  council = new TestCouncil(scene.nodes, () => scene.context.network.committee);
  context = { ...scene.context, ...onContract(council.contract) };
  steps = [];
  const order = (amount: bigint) => signed(scene.alice, paymentOf(alice(), scene.bob.account, amount, 0n));
  orders = { ours: await order(5n), theirs: await order(6n) };
  await journal().create(orders.ours);
  for (const [number, node] of scene.nodes.entries()) {
    node.account(alice()).pending = number < 2 ? orders.ours : orders.theirs;
  }
});

afterEach(async () => {
  for (const server of servers) server.close().closeAllConnections();
  await scene.close();
});

function run(signal?: AbortSignal, of = context): Promise<UnlockReceipt> {
  return unlock(of, council.walletOf(PAYER), scene.alice, (step) => steps.push(step), signal);
}

/** A relayer at an address of its own, which answers like this. */
async function relayer(status: number, answer: object, onRequest: (body: unknown) => void = () => undefined): Promise<string> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    expect(`${request.method} ${request.url}`).toBe("POST /v1/unlocks");
    onRequest(JSON.parse(Buffer.concat(chunks).toString()));
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(answer));
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const spent = { type: "urn:fastpay:problem:budget-spent", title: "Spent", status: 429, detail: "the budget is spent", code: "budget-spent", action: "Wait.", retry: "later" };

/** Expects Alice's key and signature. */
function isAuthorization(authorization: Hex): void {
  expect(authorization).toHaveLength(2 + 2 * 96);
  const [key, signature] = [authorization.slice(0, 66) as Hex, `0x${authorization.slice(66)}` as Hex];
  expect(isEd25519Signature(signature, unlockRequestDigest(DOMAIN, alice(), 0n), key)).toBe(true);
}

const calls = () => council.sent.map(({ functionName }) => functionName);

/** Votes of a quorum for an order that no authority has as a certificate. */
function certified(order: VerifiedOrder): VerifiedCertificate {
  const votes = scene.nodes.map(({ keys }) => keys.vote(0n, order.transfer));
  return certificateOf(order, scene.context.network.committee, votes) as VerifiedCertificate;
}

/** Waits until the number of votes that authorities gave is this. */
async function votesAre(voiding: number): Promise<void> {
  await expect.poll(() => steps.some((step) => step.type === "unlock-votes" && step.voiding === voiding)).toBe(true);
}

describe("a stuck account", () => {
  test("is seen as stuck, is unlocked by all authorities at once, and pays with the next number", async () => {
    expect(await viewAccount(context, alice(), [])).toMatchObject({ nextSequence: 1n, stuckAt: 0n });
    await expect(scene.pay(7n)).rejects.toMatchObject({ code: "conflict", details: { canEnd: false } });
    expect(await run()).toEqual({ sequence: 0n, outcome: "voided", resumed: [] });
    expect(calls()).toEqual(["requestUnlock", "voidSequence"]);
    expect(council.sent.map(({ value }) => value)).toEqual([BOND, 0n]);
    expect(steps).toContainEqual(expect.objectContaining({ type: "unlock-votes", voiding: 4, attesting: 0, members: 4, quorum: 3 }));
    expect(await journal().entries()).toMatchObject([{ sequence: 0n, state: "voided" }]);
    expect(await viewAccount(context, alice(), [])).toMatchObject({ nextSequence: 1n, stuckAt: undefined, pending: undefined });
    const { certificate } = await scene.pay(5n);
    expect(certificate.order.transfer.sequence).toBe(1n);
    expect(scene.node(3).account(scene.bob.account).balance).toBe(5n);
    await expect(run()).rejects.toMatchObject({ code: "invalid-argument" });
    expect(calls()).toHaveLength(2);
  });

  test("is unlocked by a quorum after the window if one authority does not vote", async () => {
    scene.node(3).lie = ({ path }) => (path === "/v1/unlocks/votes" ? problem(503, "catching-up", {}, "later") : undefined);
    const running = run();
    await votesAre(3);
    expect(calls()).toEqual(["requestUnlock"]);
    council.now += WINDOW_S;
    expect(await running).toMatchObject({ outcome: "voided" });
    expect(council.sent.at(-1)?.args?.[2]).toBe(false);
  });

  test("waits for the window if an immediate unanimous vote is not allowed yet", async () => {
    council.unanimousFrom = council.now + WINDOW_S / 2n;
    const running = run();
    await votesAre(4);
    expect(calls()).toEqual(["requestUnlock"]);
    council.now += WINDOW_S / 2n;
    expect(await running).toMatchObject({ outcome: "voided" });
    expect(council.sent.at(-1)?.args?.[2]).toBe(true);
  });

  test("is unlocked by finishing the order whose certificate one authority shows", async () => {
    const certificate = certified(orders.theirs);
    scene.node(0).freeze(alice());
    scene.node(0).confirm(certificate);
    scene.node(0).account(alice()).frozen = { upheld: undefined, seen: certificate };
    const receipt = await run();
    expect(receipt).toMatchObject({ outcome: "finished", resumed: [{ type: "superseded", order: orders.ours.transfer }] });
    expect(calls()).toEqual(["requestUnlock", "upholdSequence"]);
    expect(council.sent.at(-1)?.args?.[2]).toBe(orders.theirs.digest);
    expect(scene.node(3).account(scene.bob.account).balance).toBe(6n);
    expect(await journal().entries()).toMatchObject([{ sequence: 0n, state: "superseded" }]);
  });

  test("is not unlocked if an order can still be finished", async () => {
    for (const node of scene.nodes) node.account(alice()).pending = orders.ours;
    expect(await run()).toMatchObject({ outcome: "finished", resumed: [{ type: "settled" }] });
    expect(calls()).toEqual([]);
  });

  test("cannot pay before the contract has decided, and the error says so", async () => {
    council.unanimousFrom = 1n << 40n;
    const end = new AbortController();
    const running = run(end.signal);
    await votesAre(4);
    await expect(scene.pay(7n)).rejects.toMatchObject({ code: "frozen" });
    expect(scene.nodes.flatMap((node) => node.orders).every((body) => JSON.parse(body).transfer.sequence === "0")).toBe(true);
    end.abort();
    await expect(running).rejects.toMatchObject({ code: "aborted" });
  });
});

describe("an interrupted unlock", () => {
  test("after its request was sent continues, and sends it once", async () => {
    council.isHeld = true;
    const end = new AbortController();
    const running = run(end.signal);
    await expect.poll(calls).toEqual(["requestUnlock"]);
    await expect.poll(async () => (await unfinishedTransactions(context, alice())).length).toBe(1);
    end.abort();
    await expect(running).rejects.toMatchObject({ code: "aborted" });
    const again = run();
    setTimeout(() => {
      council.isHeld = false;
      council.finalize();
    }, 50);
    expect(await again).toMatchObject({ outcome: "voided" });
    expect(calls()).toEqual(["requestUnlock", "voidSequence"]);
    expect(await unfinishedTransactions(context, alice())).toEqual([]);
  });

  test("is continued from another storage, which has no transaction of it", async () => {
    council.unanimousFrom = 1n << 40n;
    const end = new AbortController();
    const running = run(end.signal);
    await votesAre(4);
    end.abort();
    await expect(running).rejects.toMatchObject({ code: "aborted" });
    council.unanimousFrom = 0n;
    expect(await run(undefined, { ...context, store: memoryStore() })).toMatchObject({ sequence: 0n, outcome: "voided" });
    expect(calls()).toEqual(["requestUnlock", "voidSequence"]);
  });

  test("by a pause is reported before anything is signed, and continues after the pause", async () => {
    council.pausedUntil = council.now + 1n;
    await expect(run()).rejects.toMatchObject({ code: "paused" });
    expect(calls()).toEqual(["requestUnlock"]);
    council.pausedUntil = 0n;
    expect(await run()).toMatchObject({ outcome: "voided" });
  });
});

describe("the request", () => {
  test("of an Ed25519 key is signed by that key, whoever pays", async () => {
    await run();
    isAuthorization(council.sent[0]?.args?.[2] as Hex);
    expect(steps).toContainEqual({ type: "signing", what: "unlock-request", account: scene.alice.account, sequence: 0n });
  });

  test.each([true, false])("of an Ethereum account is signed unless its owner sends it; sent by the owner: %s", async (isOwner) => {
    const owner = privateKeyToAccount(`0x${"11".repeat(32)}`);
    const signer = ethereumSigner(createWalletClient({ account: owner, transport: custom({ request: async () => undefined }) }));
    const [one, other] = [await signed(signer, paymentOf(signer.account, scene.bob.account, 5n, 0n)), await signed(signer, paymentOf(signer.account, scene.bob.account, 6n, 0n))];
    for (const [number, node] of scene.nodes.entries()) node.account(signer.account).pending = number < 2 ? one : other;
    const wallet = council.walletOf(isOwner ? owner.address : PAYER);
    expect(await unlock(context, wallet, signer, (step) => steps.push(step), undefined)).toMatchObject({ outcome: "voided" });
    const authorization = council.sent[0]?.args?.[2] as Hex;
    if (isOwner) expect(authorization).toBe("0x");
    else expect(recoverSigner(authorization, unlockRequestDigest(DOMAIN, signer.account, 0n))).toBe(owner.address.toLowerCase());
    expect(steps.some((step) => step.type === "signing" && step.what === "unlock-request")).toBe(!isOwner);
  });

  test("of a stranger, which authorities do not follow, is repeated by the owner once, without a bond", async () => {
    council.requestAsStranger(alice(), 0n);
    expect(await run()).toMatchObject({ outcome: "voided" });
    expect(calls()).toEqual(["requestUnlock", "voidSequence"]);
    expect(council.sent[0]?.value).toBe(0n);
  });

  test("that another key signed is not sent", async () => {
    const signer = { ...scene.alice, authorizeUnlock: scene.bob.authorizeUnlock };
    const running = unlock(context, council.walletOf(PAYER), signer, () => undefined, undefined);
    await expect(running).rejects.toMatchObject({ code: "signature-unusable" });
    expect(calls()).toEqual([]);
  });
});

describe("a request by another copy of the wallet", () => {
  test("that authorities have read before our Ethereum node is awaited, and then decided", async () => {
    for (const node of scene.nodes) node.freeze(alice());
    const timing = { ...context.timing, deadlineMs: 2_000 };
    const running = run(undefined, { ...context, timing });
    await expect.poll(() => steps.some((step) => step.type === "waiting" && step.failure.kind === "frozen")).toBe(true);
    await new Promise((resolve) => setTimeout(resolve, 1.5 * timing.deadlineMs));
    expect(calls()).toEqual([]);
    council.requestAsStranger(alice(), 0n);
    expect(await running).toEqual({ sequence: 0n, outcome: "voided", resumed: [] });
    expect(calls()).toEqual(["voidSequence"]);
  });

  test("for a later number is reported once the first one is finished", async () => {
    for (const node of scene.nodes) node.account(alice()).pending = undefined;
    await journal().create(await signed(scene.alice, paymentOf(alice(), scene.bob.account, 5n, 1n)));
    const frozen = problem(409, "frozen", { expectedSequence: "1" });
    for (const node of scene.nodes) {
      node.lie = ({ path, body }) => (path === "/v1/orders" && body.includes('"sequence":"1"') ? frozen : undefined);
    }
    const timing = { ...context.timing, deadlineMs: 10_000 };
    await expect(run(undefined, { ...context, timing })).rejects.toMatchObject({ code: "frozen" });
    expect(await journal().entries()).toMatchObject([{ sequence: 0n, state: "settled" }, { sequence: 1n }]);
    expect(calls()).toEqual([]);
  });
});

describe("a relayer", () => {
  test("that agrees submits the owner's request and the votes, and the owner needs no wallet", async () => {
    const bodies: unknown[] = [];
    let relaying: Promise<unknown> | undefined;
    const agrees = await relayer(202, { state: "sent", transaction: "0x00" }, (body) => {
      bodies.push(body);
      // It works with its own key and storage.
      relaying ??= unlock({ ...context, store: memoryStore() }, council.walletOf(PAYER), scene.alice, () => undefined, undefined);
    });
    const refuses = await relayer(429, spent);
    const of = { ...context, relayers: [refuses, agrees] };
    const done = await unlock(of, "relayer", scene.alice, (step) => steps.push(step), undefined);
    expect(done).toEqual({ sequence: 0n, outcome: "voided", resumed: [] });
    await relaying;
    const { authorization, ...number } = bodies[0] as { authorization: Hex };
    expect(number).toEqual({ account: formatAccount(alice()), sequence: "0" });
    isAuthorization(authorization);
    // It is signed once, however often it is sent.
    expect(bodies.every((body) => (body as { authorization: Hex }).authorization === authorization)).toBe(true);
    expect(steps.filter(({ type }) => type === "signing")).toHaveLength(1);
    expect(steps).toContainEqual(expect.objectContaining({ type: "relayed", relayer: agrees }));
    expect(await journal().entries()).toMatchObject([{ sequence: 0n, state: "voided" }]);
    expect((await scene.pay(5n)).certificate.order.transfer.sequence).toBe(1n);
  });

  test("that refuses is reported with its reason, and nothing is sent", async () => {
    const of = { ...context, relayers: [await relayer(429, spent)] };
    const refused = unlock(of, "relayer", scene.alice, () => undefined, undefined);
    await expect(refused).rejects.toMatchObject({ code: "no-relayer", message: expect.stringContaining("the budget is spent") });
    const none = unlock({ ...context, relayers: [] }, "relayer", scene.alice, () => undefined, undefined);
    await expect(none).rejects.toMatchObject({ code: "no-relayer", message: expect.stringContaining("no relayer is known") });
    expect(calls()).toEqual([]);
  });
});

describe("a void number", () => {
  /** Somebody unlocked the account with another program. */
  async function voided(): Promise<void> {
    for (const node of scene.nodes) {
      node.freeze(alice());
      node.decide(alice(), undefined);
    }
    scene.chain.voided.add(0n);
  }

  test("that another program unlocked is stored, and the next number is used", async () => {
    await voided();
    expect(await scene.resume()).toEqual([{ type: "voided", order: orders.ours.transfer }]);
    const { certificate, rest } = await scene.pay(7n);
    expect(certificate.order.transfer.sequence).toBe(1n);
    await rest;
    expect(scene.nodes.map((node) => node.account(scene.bob.account).balance)).toEqual([7n, 7n, 7n, 7n]);
  });

  test("is skipped by a storage that has no order of it", async () => {
    await voided();
    expect((await scene.pay(7n, { store: memoryStore() })).certificate.order.transfer.sequence).toBe(1n);
  });

  test("is accepted from the contract together with f + 1 authorities, and from neither alone", async () => {
    // The authorities alone.
    await voided();
    scene.chain.voided.clear();
    await expect(scene.pay(7n, { store: memoryStore() })).rejects.toMatchObject({ code: "voided" });
    await expect(scene.resume()).rejects.toMatchObject({ code: "voided" });
    expect(await journal().entries()).toMatchObject([{ state: "created" }]);
  });

  test("reported by the Ethereum node alone frees no number", async () => {
    scene.chain.voided.add(0n);
    await expect(scene.resume()).rejects.toMatchObject({ code: "conflict" });
    expect(await journal().entries()).toMatchObject([{ state: "created" }]);
  });

  test("reported by the Ethereum node alone ends an unlock, with an error", async () => {
    const unlockStatus = async () => ({ state: "voided" });
    const contract = Object.assign(council.contract, { unlockStatus }) as unknown as ContractContext["contract"];
    const timing = { ...context.timing, backoffMaxMs: 2 };
    await expect(run(undefined, { ...context, ...onContract(contract), timing })).rejects.toMatchObject({ code: "too-few-answers" });
    expect(await journal().entries()).toMatchObject([{ state: "created" }]);
  });

  test("reported by the Ethereum node and one authority frees no number", async () => {
    for (const node of scene.nodes) node.account(alice()).pending = undefined;
    scene.node(0).freeze(alice());
    scene.node(0).decide(alice(), undefined);
    scene.chain.voided.add(0n);
    expect((await scene.pay(7n, { store: memoryStore() })).certificate.order.transfer.sequence).toBe(0n);
  });

  test("is not void if somebody has its certificate, unless f + 1 authorities refuse that as void", async () => {
    await voided();
    Object.assign(scene.node(0).account(alice()), { sent: [certified(orders.ours)] });
    const note = (): Promise<boolean> => {
      const timing = { ...context.timing, readMs: 500 };
      return noteVoid({ ...operationOf(scene.context, journal(), () => undefined, undefined), timing }, journal(), 0n);
    };
    for (const node of scene.nodes.slice(2)) {
      node.lie = ({ path }) => (path === "/v1/certificates" ? problem(503, "busy", {}, "later") : undefined);
    }
    expect(await note()).toBe(false);
    expect((await journal().entries()).map(({ state }) => state)).not.toContain("voided");
    scene.node(2).lie = () => undefined;
    expect(await note()).toBe(true);
  });

  describe("whose certificate one authority kept back until then", () => {
    beforeEach(() => {
      const certificate = certified(orders.ours);
      const vote = scene.node(0).keys.certificateVote(0n, alice(), 0n, orders.ours.digest);
      const attested = { type: "certificate", certificate: JSON.parse(encodeCertificate(certificate)), epoch: "0", ...vote };
      scene.node(0).lie = ({ path }) => {
        if (scene.node(0).account(alice()).next === 0n) return undefined;
        if (path.includes("/certificates/")) return { status: 200, body: encodeCertificate(certificate) };
        if (path === "/v1/unlocks/votes") return { status: 200, body: attested };
        if (path === "/v1/certificates") return { status: 200, body: { nextSequence: "1", epoch: "0" } };
        return path === "/v1/orders" ? problem(409, "already-confirmed", { expectedSequence: "1" }) : undefined;
      };
    });

    test("is noted as void, and the next number is used", async () => {
      await voided();
      expect(await scene.resume()).toEqual([{ type: "voided", order: orders.ours.transfer }]);
      expect((await scene.pay(7n)).certificate.order.transfer.sequence).toBe(1n);
    });

    test("is noted as void if that certificate is stored", async () => {
      await journal().certify(certified(orders.theirs));
      await voided();
      expect(await scene.resume()).toEqual([{ type: "voided", order: orders.ours.transfer }]);
      expect((await scene.pay(7n)).certificate.order.transfer.sequence).toBe(1n);
    });

    test("is noted as void by a new storage once a later number is used", async () => {
      await voided();
      await (await scene.pay(7n)).rest;
      const store = memoryStore();
      expect((await scene.pay(8n, { store })).certificate.order.transfer.sequence).toBe(2n);
      const entries = await new OrderJournal(store, DOMAIN, alice()).entries();
      expect(entries.map(({ state }) => state)).toEqual(["voided", "settled", "settled"]);
    });

    test("is unlocked", async () => {
      expect(await run()).toEqual({ sequence: 0n, outcome: "voided", resumed: [] });
      expect(await journal().entries()).toMatchObject([{ state: "voided" }]);
    });
  });

  test("never counts as settled: one liar changes nothing, and f + 1 end it with an error", async () => {
    for (const node of scene.nodes) node.account(alice()).pending = orders.ours;
    const toCertificates = (count: number): void => {
      for (const node of scene.nodes.slice(0, count)) {
        node.lie = ({ path }) => (path === "/v1/certificates" ? problem(409, "voided", { expectedSequence: "1" }, "never") : undefined);
      }
    };
    toCertificates(2);
    await expect(scene.resume()).rejects.toMatchObject({ code: "voided" });
    expect(await journal().entries()).toMatchObject([{ state: "certified" }]);
    for (const node of scene.nodes) node.lie = () => undefined;
    toCertificates(1);
    expect(await scene.resume()).toMatchObject([{ type: "settled" }]);
  });
});

describe("a ballot", () => {
  const number = () => ({ sender: alice(), sequence: 0n });
  const client = (of: number) => new AuthorityClient(`http://authority-${of}.example`, scene.node(of).keys.votingKey, 1_000);
  const ballot = (unanimous = false) => new UnlockBallot(DOMAIN, scene.context.network.committee, number(), unanimous);
  const voidVote = (by: number, unanimous = false, epoch = 0n) =>
    ({ type: "void", epoch, ...scene.node(by).keys.voidVote(epoch, alice(), 0n, unanimous) }) as const;

  test("counts no vote of another kind, epoch, authority or non-member, and none twice", () => {
    const votes = ballot();
    votes.take(client(0), voidVote(0, true), undefined);
    votes.take(client(1), voidVote(1, false, 1n), undefined);
    votes.take(client(2), voidVote(3), undefined);
    votes.take(client(3), { ...voidVote(3), authority: `0x${"77".repeat(32)}` }, undefined);
    expect([votes.counts, votes.failures.size]).toEqual([{ attesting: 0, voiding: 0 }, 4]);
    for (let i = 0; i < 3; i += 1) votes.take(client(0), voidVote(0), undefined);
    expect([votes.counts.voiding, votes.failures.size, votes.decision()]).toEqual([1, 3, undefined]);
  });

  const certificateVote = (by: number, { digest }: VerifiedCertificate) => {
    const { authority, signature } = scene.node(by).keys.certificateVote(0n, alice(), 0n, digest);
    return { type: "certificate", epoch: 0n, authority, signature } as const;
  };

  test("upholds the order that a quorum attests, though one shows a forged certificate of another order first", () => {
    const [votes, exists, forged] = [ballot(), certified(orders.ours), certified(orders.theirs)];
    const take = (by: number, certificate: VerifiedCertificate): void =>
      votes.take(client(by), { ...certificateVote(by, certificate), certificate }, certificate);
    take(0, forged);
    for (const by of [1, 2, 3]) {
      expect(votes.decision()).toBeUndefined();
      take(by, exists);
    }
    const { members, quorum } = votes.committee;
    const signers = [1, 2, 3].map((by) => members.findIndex(({ votingKey }) => votingKey === scene.node(by).keys.votingKey));
    const decision = votes.decision();
    expect(decision).toMatchObject({ type: "uphold", digest: orders.ours.digest });
    const packed = (decision?.votes ?? "0x").slice(2).match(/.{132}/g) ?? [];
    expect(packed.map((vote) => Number.parseInt(vote.slice(0, 2), 16))).toEqual(signers.sort());
    expect(packed).toHaveLength(quorum);
    expect(votes.certificate).toBe(exists);
  });

  test("voids nothing before each certificate was sent to all", () => {
    const [votes, exists, forged] = [ballot(), certified(orders.ours), certified(orders.theirs)];
    const take = (by: number, certificate: VerifiedCertificate): void =>
      votes.take(client(by), { ...certificateVote(by, certificate), certificate }, certificate);
    take(0, forged);
    take(1, exists);
    expect(votes.unbrought).toEqual([forged, exists]);
    votes.bring(forged);
    for (const by of [0, 2, 3]) votes.take(client(by), voidVote(by), undefined);
    expect([votes.decision(), votes.counts]).toEqual([undefined, { attesting: 2, voiding: 3 }]);
    votes.bring(exists);
    expect(votes.decision()?.type).toBe("void");
    // A signer's first certificate counts, so that its others take no more rounds.
    take(0, exists);
    expect([votes.unbrought, votes.counts.attesting]).toEqual([[], 2]);
  });
});
