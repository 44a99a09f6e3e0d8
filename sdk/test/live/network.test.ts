/** The whole way through real authorities, a real chain and the contract. The tests build on each other. */

import { readFileSync } from "node:fs";
import { createWalletClient, custom, encodeDeployData, encodeFunctionData, parseAbi, type EIP1193Provider } from "viem";
import { foundry } from "viem/chains";
import { beforeAll, describe, expect, test } from "vitest";

import {
  accountFromEthereum,
  ed25519Signer,
  encodeMemo,
  encodeOutputProof,
  ETHER,
  ethereumSigner,
  formatAccount,
  inspectCertificate,
  memoryStore,
  NO_MEMO,
  parseOutputProof,
  proveOutput,
  signOrder,
  verifyCertificate,
  verifyOutputProof,
  type AccountEvent,
  type ChainProgress,
  type FastPayClient,
  type Hex,
  type Redemption,
  type TransferProgress,
  type VerifiedCertificate,
} from "../../src/index.js";
import { OrderJournal } from "../../src/storage/journal.js";
import { connect, eventually, network, options, publicClient, rich } from "../support/live.js";
import { quickstart } from "./quickstart.js";

const ONE = 10n ** 18n;
const alice = rich("alice");
const bob = rich("bob");
const carol = ed25519Signer(crypto.getRandomValues(new Uint8Array(32)));
/** On the chain, and nobody before. */
const fresh =
  `0x${[...crypto.getRandomValues(new Uint8Array(20))].map((byte) => byte.toString(16).padStart(2, "0")).join("")}` as Hex;

let fastpay: FastPayClient;

beforeAll(async () => {
  fastpay = await connect();
});

async function balance(of: typeof carol.account, asset: Hex = ETHER): Promise<bigint> {
  return (await fastpay.account(of)).balances.find((held) => held.asset === asset)?.balance ?? 0n;
}

describe("deposits", () => {
  test("of ETH: submitted, in a block, final, credited by a quorum", async () => {
    const before = await balance(alice.signer.account);
    const steps: ChainProgress[] = [];
    const onProgress = (step: ChainProgress): void => void steps.push(step);
    const { hash, deposit } = await fastpay.deposit(alice.wallet, { asset: ETHER, amount: 5n * ONE }, { onProgress });
    const kinds = steps.map(({ type }) => type).filter((type) => type !== "finalizing");
    expect(kinds.slice(0, 4)).toEqual(["signing", "submitted", "included", "final"]);
    expect(steps.at(-1)).toMatchObject({ type: "credited", quorum: 3 });
    expect(await balance(alice.signer.account)).toBe(before + 5n * ONE);
    expect(await fastpay.depositStatus(hash)).toMatchObject({ state: "credited", deposit: { index: deposit.index } });
    const found = await eventually(() => fastpay.depositByIndex(deposit.index));
    expect(found).toMatchObject({ amount: 5n * ONE, recipient: alice.signer.account });
  });

  test("of a token with permits: one transaction, no approval", async () => {
    const { decimals, hasPermit, symbol } = await fastpay.assetInfo(network.token);
    expect({ hasPermit, symbol }).toEqual({ hasPermit: true, symbol: "DEMO" });
    const amount = 10n * 10n ** BigInt(decimals);
    const steps: ChainProgress[] = [];
    const onProgress = (step: ChainProgress): void => void steps.push(step);
    const intent = { recipient: carol.account, asset: network.token, amount };
    await fastpay.deposit(bob.wallet, intent, { onProgress });
    expect(steps.filter(({ type }) => type === "signing")).toMatchObject([{ what: "permit" }, { what: "transaction" }]);
    expect(await balance(carol.account, network.token.toLowerCase() as Hex)).toBe(amount);
  });

  test("of a token that takes a fee and has no permits: approved first, and the received amount is credited", async () => {
    const token = await deployFeeToken();
    expect(await fastpay.assetInfo(token)).toMatchObject({ hasPermit: false, decimals: 18, symbol: "ZOO" });
    const steps: ChainProgress[] = [];
    const onProgress = (step: ChainProgress): void => void steps.push(step);
    const { deposit } = await fastpay.deposit(bob.wallet, { asset: token, amount: 1_000n }, { onProgress });
    expect(deposit).toMatchObject({ amount: 990n, asset: token, recipient: bob.signer.account });
    expect(steps.map(({ type }) => type)).toContain("approval-submitted");
  });

  test("that the contract would refuse are refused before anything is signed", async () => {
    const asked: string[] = [];
    const wallet = createWalletClient({ account: alice.address, chain: foundry, transport: custom(provider(asked)) });
    const intoNothing = { recipient: accountFromEthereum(ETHER), asset: ETHER, amount: 1n };
    await expect(fastpay.deposit(wallet, intoNothing)).rejects.toMatchObject({
      code: "reverted",
      details: { error: "ZeroRecipient" },
    });
    for (const asset of [network.token, ETHER]) {
      await expect(fastpay.deposit(wallet, { asset, amount: 10n ** 30n })).rejects.toMatchObject({
        code: "insufficient-funds",
      });
    }
    await expect(fastpay.deposit(wallet, { asset: fresh, amount: 1n })).rejects.toMatchObject({
      code: "invalid-argument",
    });
    expect(asked.filter((method) => /sign|send/i.test(method))).toEqual([]);
  });
});

describe("payments", () => {
  let paid: VerifiedCertificate;

  test("by an Ethereum account: votes, final, settled; and its certificate is valid offline", async () => {
    const steps: TransferProgress[] = [];
    const onProgress = (step: TransferProgress): void => void steps.push(step);
    const memo = encodeMemo("invoice 7");
    const intent = { recipient: carol.account, asset: ETHER, amount: 2n * ONE, memo };
    const receipt = await fastpay.pay(alice.signer, intent, { onProgress });
    paid = receipt.certificate;
    const aside = ["finishing", "adopted", "waiting", "catching-up"];
    const kinds = steps.map(({ type }) => type).filter((type) => !aside.includes(type));
    expect(kinds.slice(0, 2)).toEqual(["signing", "ordered"]);
    expect(kinds.filter((type) => type === "vote").length).toBeGreaterThanOrEqual(3);
    expect(kinds.indexOf("certified")).toBeGreaterThan(kinds.indexOf("vote"));
    expect(kinds.at(-1)).toBe("settled");
    expect(steps.every(({ afterMs }, i) => afterMs >= (steps[i - 1]?.afterMs ?? 0))).toBe(true);
    const { quorum } = await fastpay.committee();
    expect(paid.votes).toHaveLength(quorum);
    const { order, epoch, votes } = paid;
    verifyCertificate({ order, epoch, votes }, await fastpay.committee(epoch), fastpay.domain);
    expect(await receipt.rest).toBe(4);
    expect(await balance(carol.account)).toBe(2n * ONE);
  });

  test("by an Ed25519 account, of a token", async () => {
    const asset = network.token;
    const { certificate } = await fastpay.pay(carol, { recipient: bob.signer.account, asset, amount: 7n });
    expect(certificate.order).toMatchObject({ authorization: { type: "ed25519" }, transfer: { memo: NO_MEMO } });
  });

  test("by an EIP-1193 wallet, which shows what is signed", async () => {
    const asked: string[] = [];
    const signer = ethereumSigner(provider(asked), bob.address);
    const before = await balance(bob.signer.account);
    await fastpay.deposit(bob.wallet, { asset: ETHER, amount: ONE });
    await fastpay.pay(signer, { recipient: carol.account, asset: ETHER, amount: ONE });
    expect(asked).toContain("eth_signTypedData_v4");
    expect(await balance(bob.signer.account)).toBe(before);
  });

  test("above the balance are refused, and nothing is signed", async () => {
    const intent = { recipient: bob.signer.account, asset: ETHER, amount: 1_000_000n * ONE };
    await expect(fastpay.pay(carol, intent)).rejects.toMatchObject({
      code: "insufficient-funds",
      message: expect.stringMatching(/^account fp1\S+ has [0-9.]+ ETH and needs 1000000 ETH$/),
    });
    const token = { ...intent, asset: network.token, amount: 10n ** 30n };
    await expect(fastpay.pay(carol, token)).rejects.toMatchObject({ message: expect.stringMatching(/has [0-9.]+ DEMO and needs [0-9.]+ DEMO$/) });
    expect(await fastpay.unfinished(carol.account)).toEqual([]);
  });

  test("that are declined in the wallet leave no trace", async () => {
    const declining = {
      request: async ({ method }: { method: string }) => {
        if (method === "eth_chainId") return "0x7a69";
        throw Object.assign(new Error("User rejected the request."), { code: 4001 });
      },
    } as unknown as EIP1193Provider;
    const signer = ethereumSigner(declining, alice.address);
    const intent = { recipient: bob.signer.account, asset: ETHER, amount: 1n };
    await expect(fastpay.pay(signer, intent)).rejects.toMatchObject({ code: "signature-rejected" });
    expect(await fastpay.unfinished(alice.signer.account)).toEqual([]);
  });

  test("that a wallet signs with another key are not sent", async () => {
    const signer = { ...bob.signer, account: alice.signer.account };
    const intent = { recipient: bob.signer.account, asset: ETHER, amount: 1n };
    await expect(fastpay.pay(signer, intent)).rejects.toMatchObject({ code: "signature-unusable" });
  });

  test("that a page left unfinished are finished by the next one, with the same bytes", async () => {
    const storage = memoryStore();
    const left = await connect({ storage });
    const { nextSequence } = await left.account(carol.account);
    const fields = { sender: carol.account, recipient: bob.signer.account, asset: ETHER, amount: 3n, memo: NO_MEMO };
    const order = await signOrder(carol, left.domain, { type: "payment", ...fields, sequence: nextSequence });
    await new OrderJournal(storage, left.domain, carol.account).create(order);
    const [resumed] = await left.resume(carol.account);
    expect(resumed).toMatchObject({ type: "settled", receipt: { certificate: { digest: order.digest } } });
    expect((await left.orders(carol.account))[0]).toMatchObject({ state: "settled", sequence: nextSequence });
    // A storage that knows nothing of it learns it.
    expect(await connect({ storage: memoryStore() }).then((other) => other.resume(carol.account))).toMatchObject([
      { type: "settled", receipt: { certificate: { digest: order.digest } } },
    ]);
  });

  test("are found by digest and by number, with what every authority shows", async () => {
    const evidence = await eventually(async () => {
      const found = await fastpay.evidence(paid.digest);
      return found.answers.every(({ answer }) => answer !== undefined) ? found : undefined;
    });
    expect(evidence.certificate?.digest).toBe(paid.digest);
    expect(evidence.answers.map(({ answer }) => answer?.report?.isValid)).toEqual([true, true, true, true]);
    const { sender, sequence } = paid.order.transfer;
    const named = await fastpay.evidence({ account: sender, sequence });
    expect(named.certificate?.order).toEqual(paid.order);
    const nobody = await fastpay.evidence({ account: carol.account, sequence: 1_000n });
    expect(nobody.certificate).toBeUndefined();
  });

  test("are in the history, proven", async () => {
    const history = await fastpay.history(carol.account, { limit: 2 });
    expect(history.sent.map(({ transfer }) => transfer.sender)).toEqual([
      carol.account,
      carol.account,
    ]);
    expect(history.received.length).toBeGreaterThanOrEqual(1);
    const all = [...history.received];
    for (let { older } = history; older !== undefined;) {
      const page = await fastpay.history(carol.account, { limit: 2, cursor: JSON.parse(JSON.stringify(older)) });
      all.push(...page.received);
      older = page.older;
    }
    expect(all.map(({ digest }) => digest)).toContain(paid.digest);
    const { deposits } = await fastpay.history(carol.account);
    expect(deposits).toMatchObject([{ recipient: carol.account, asset: network.token.toLowerCase() }]);
  });
});

test("an account is watched: each event once, proven, and a new watch continues at the cursor", async () => {
  const dave = ed25519Signer(crypto.getRandomValues(new Uint8Array(32)));
  const watch = fastpay.watch(dave.account);
  const events: AccountEvent[] = [];
  const read = (async () => {
    for await (const event of watch) {
      events.push(event);
      if (events.length === 3) return;
    }
  })();
  // The streams begin where the account stood when they were opened.
  await eventually(async () => (Object.keys(watch.cursor()).length === 4 ? true : undefined));
  await fastpay.pay(alice.signer, { recipient: dave.account, asset: ETHER, amount: 20n });
  await fastpay.pay(dave, { recipient: carol.account, asset: ETHER, amount: 5n });
  await fastpay.deposit(bob.wallet, { recipient: dave.account, asset: ETHER, amount: 9n });
  await read;
  expect(events.map(({ type }) => type).sort()).toEqual(["confirmed", "deposited", "received"]);
  expect(events.find(({ type }) => type === "received")).toMatchObject({ payment: { amount: 20n } });
  const cursor = JSON.parse(JSON.stringify(watch.cursor()));
  const later = fastpay.watch(dave.account, { from: cursor })[Symbol.asyncIterator]();
  await fastpay.pay(alice.signer, { recipient: dave.account, asset: ETHER, amount: 21n });
  let event = await later.next();
  // What some authority had not told before may come again; nothing is left out.
  while (event.value.type !== "received" || event.value.payment.amount !== 21n) event = await later.next();
  await later.return?.(undefined);
});

test("a watch from an account's view emits what the view did not show", async () => {
  const erin = ed25519Signer(crypto.getRandomValues(new Uint8Array(32)));
  const { cursor } = await fastpay.account(erin.account);
  const paid = await fastpay.pay(alice.signer, { recipient: erin.account, asset: ETHER, amount: 3n });
  await paid.rest;
  const events = fastpay.watch(erin.account, { from: cursor })[Symbol.asyncIterator]();
  expect((await events.next()).value).toMatchObject({ type: "received", payment: { amount: 3n } });
  await events.return?.(undefined);
});

describe("redemptions", () => {
  test("are submitted by a relayer", async () => {
    const fee = (await fastpay.redemptionCost()).wei * 3n;
    const amount = ONE / 10n;
    expect((await fastpay.assetStatus(ETHER)).outflowAvailable).toBeGreaterThan(amount);
    const { certificate } = await fastpay.redeem(carol, { recipient: fresh, asset: ETHER, amount, fee });
    const redemption = certificate.order.transfer as Redemption;
    await eventually(async () => ((await fastpay.redemptionStatus(redemption)).state === "paid" ? true : undefined));
    expect(await fastpay.balanceOnChain(fresh, ETHER)).toBe(amount - fee);
  });

  test("are submitted by the owner", async () => {
    const { certificate } = await fastpay.redeem(carol, { recipient: fresh, asset: ETHER, amount: 1_000n });
    const before = await fastpay.balanceOnChain(fresh, ETHER);
    const payout = await fastpay.redeemOnChain(alice.wallet, certificate);
    expect(payout.status).toMatchObject({ state: "paid", hash: expect.any(String) });
    expect(await fastpay.balanceOnChain(fresh, ETHER)).toBe(before + 1_000n);
    expect(await fastpay.redeemOnChain(alice.wallet, certificate)).toMatchObject({
      hash: undefined,
      status: { state: "paid" },
    });
    await expect(fastpay.executeQueued(alice.wallet, certificate.order.transfer as never)).resolves.toMatchObject({
      hash: undefined,
    });
  });

  test("without a claim, claiming is refused before anything is signed", async () => {
    expect(await fastpay.claimable(alice.address, ETHER)).toBe(0n);
    await expect(fastpay.claim(alice.wallet, { asset: ETHER })).rejects.toMatchObject({
      code: "reverted",
      details: { error: "NothingToClaim" },
    });
  });
});

describe("lists", () => {
  test("many are paid with few orders by a wallet that shows what is signed; each payment is proven separately", async () => {
    const asked: string[] = [];
    const signer = ethereumSigner(provider(asked), bob.address);
    const people = Array.from({ length: 300 }, () => ed25519Signer(crypto.getRandomValues(new Uint8Array(32))).account);
    const text = ["recipient,amount,memo", ...people.map((person, i) => `${formatAccount(person)},0.0001,person ${i}`)].join("\n");
    await fastpay.deposit(bob.wallet, { asset: ETHER, amount: ONE });
    const { name, lines } = await fastpay.readList(text);
    const watching = new AbortController();
    const last = people[299] ?? bob.signer.account;
    const events = fastpay.watch(last, { from: (await fastpay.account(last)).cursor, signal: watching.signal });
    const status = await fastpay.payMany(signer, lines, { name });
    expect(status.orders.map(({ state, outputs }) => [state, outputs.length])).toEqual([
      ["settled", 256],
      ["settled", 44],
    ]);
    expect(asked.filter((method) => method === "eth_signTypedData_v4")).toHaveLength(2);
    for await (const event of events) {
      expect(event).toMatchObject({ type: "received", output: 43, payment: { amount: ONE / 10_000n, memo: encodeMemo("person 299") } });
      break;
    }
    const { received } = await fastpay.history(last);
    const [entry] = received;
    if (entry?.output === undefined || entry.proof.type !== "certificate") throw new Error("nothing was received");
    const proof = parseOutputProof(encodeOutputProof(proveOutput(entry.proof.certificate, entry.output)));
    const proven = verifyOutputProof(proof, await fastpay.committee(proof.epoch), fastpay.domain);
    expect(proven).toEqual({ payment: entry.payment, digest: status.orders[1]?.digest });
    const { sent } = await fastpay.history(bob.signer.account);
    expect(sent.slice(0, 2).map(({ transfer }) => transfer.type)).toEqual(["payout", "payout"]);
    // Once more, from a storage that knows nothing of it.
    const other = await connect({ storage: memoryStore() });
    const again = await other.payMany(signer, lines, { name });
    expect(again.orders).toEqual(status.orders);
    expect(asked.filter((method) => method === "eth_signTypedData_v4")).toHaveLength(2);
    expect(await balance(last)).toBe(ONE / 10_000n);
    // What came as an output can be spent.
    const [first] = people;
    const spent = await fastpay.payMany(signer, [{ recipient: first ?? last, asset: ETHER, amount: 1n }]);
    expect(spent.orders).toMatchObject([{ state: "settled" }]);
  });
});

test("each authority judges altered certificates as this library does", async () => {
  const { certificate } = await fastpay.pay(carol, { recipient: bob.signer.account, asset: ETHER, amount: 1n });
  const { certificate: out } = await fastpay.redeem(carol, { recipient: fresh, asset: ETHER, amount: 2n });
  const line = { recipient: bob.signer.account, asset: ETHER, amount: 1n };
  const { orders } = await fastpay.payMany(carol, [line, line, { ...line, recipient: alice.signer.account }]);
  const payout = await fastpay.certificate(carol.account, orders[0]?.sequence ?? 0n);
  if (payout === undefined) throw new Error("nothing was paid");
  const committee = await fastpay.committee();
  const authority = network.authorities[0]?.http;
  for (const original of [certificate, out, payout]) {
    for (const [name, altered] of alterations(original)) {
      const isValid = inspectCertificate(altered, committee, fastpay.domain).isValid;
      const { encodeCertificate } = await import("../../src/index.js");
      const headers = { "content-type": "application/json" };
      const body = encodeCertificate(altered);
      const answer = await fetch(`${authority}/v1/certificates`, { method: "POST", headers, body });
      // A certificate of an epoch that has not begun is refused for that.
      const verdict = answer.status === 200 ? true : [400, 422, 503].includes(answer.status) ? false : answer.status;
      expect({ name, verdict }).toEqual({ name, verdict: isValid });
    }
  }
});

test("another chain, another contract, and too few authorities are refused; one that knows the others suffices", async () => {
  await expect(connect({ chainId: 1 })).rejects.toMatchObject({ code: "wrong-chain" });
  for (const contract of [fresh, network.token]) {
    await expect(connect({ contract })).rejects.toMatchObject({ code: "wrong-contract" });
  }
  const [first] = options.authorities;
  if (first === undefined) throw new Error("there are no authorities");
  const nowhere = { http: "http://127.0.0.1:1" };
  await expect(connect({ authorities: [nowhere] })).rejects.toMatchObject({ code: "invalid-argument" });
  const found = await connect({ authorities: [first] });
  expect(found.authorities.length).toBe(options.authorities.length);
  found.close();
  await expect(connect({ authorities: [first, first, first] })).rejects.toMatchObject({ code: "invalid-argument" });
});

test("while the contract is paused, deposits and payouts are refused and payments continue", async () => {
  const { guardian } = await fastpay.contractStatus();
  const abi = parseAbi(["function pause()", "function unpause()", "function nextPauseAt() view returns (uint256)"]);
  const call = { address: network.contract, abi } as const;
  const wallet = createWalletClient({ account: guardian, chain: foundry, transport: custom(provider([])) });
  const next = await publicClient.readContract({ ...call, functionName: "nextPauseAt" });
  const { timestamp } = await publicClient.getBlock();
  // On a network that was paused by an earlier run.
  if (next > timestamp)
    await publicClient.request({ method: "evm_increaseTime", params: [Number(next - timestamp)] } as never);
  const send = async (functionName: "pause" | "unpause"): Promise<void> => {
    const data = encodeFunctionData({ abi, functionName });
    const hash = await wallet.sendTransaction({ to: network.contract, data });
    await publicClient.waitForTransactionReceipt({ hash });
  };
  await send("pause");
  try {
    expect((await fastpay.contractStatus()).pausedUntil).toBeGreaterThan(0n);
    const deposit = fastpay.deposit(alice.wallet, { asset: ETHER, amount: 1n });
    await expect(deposit).rejects.toMatchObject({ code: "paused" });
    await expect(fastpay.claim(alice.wallet, { asset: ETHER })).rejects.toMatchObject({ code: "paused" });
    await fastpay.pay(alice.signer, { recipient: carol.account, asset: ETHER, amount: 1n });
  } finally {
    await send("unpause");
  }
  expect((await fastpay.contractStatus()).pausedUntil).toBe(0n);
});

test("the quick start of docs/SDK.md is this program, and runs", async () => {
  const page = readFileSync(new URL("../../../docs/SDK.md", import.meta.url), "utf8");
  const program = readFileSync(new URL("./quickstart.ts", import.meta.url), "utf8");
  expect(page).toContain(program.trim());
  const key = network.accounts.find(({ name }) => name === "bob")?.privateKey as Hex;
  const { balances, payout } = await quickstart(network, key);
  expect(balances).toMatchObject([{ asset: ETHER, balance: ONE / 5n, agreeing: expect.any(Number) }]);
  expect(payout.status.state).toBe("paid");
});

/** The chain's node as a browser's wallet: it has the keys of Alice and Bob. `asked` hears what it is asked. */
function provider(asked: string[]): EIP1193Provider {
  const request = async ({ method, params }: { method: string; params?: unknown }): Promise<unknown> => {
    asked.push(method);
    return publicClient.request({ method, params } as never);
  };
  return { request } as unknown as EIP1193Provider;
}

async function deployFeeToken(): Promise<Hex> {
  const artifact = JSON.parse(
    readFileSync(new URL("../../../out/WeirdTokens.sol/FeeToken.json", import.meta.url), "utf8"),
  );
  const data = encodeDeployData({ abi: [], bytecode: artifact.bytecode.object as Hex });
  const send = async (transaction: { to?: Hex; data: Hex }) => {
    const common = { account: bob.wallet.account ?? bob.address, chain: foundry };
    const hash = await bob.wallet.sendTransaction({ ...common, ...transaction });
    return publicClient.waitForTransactionReceipt({ hash });
  };
  const { contractAddress } = await send({ data });
  const token = contractAddress?.toLowerCase() as Hex;
  const abi = parseAbi(["function mint(address to, uint256 amount)"]);
  await send({ to: token, data: encodeFunctionData({ abi, args: [bob.address, 5_000n] }) });
  return token;
}

/** Certificates that differ from one in a single thing each, and the certificate itself. */
function* alterations(original: VerifiedCertificate): Generator<[string, VerifiedCertificate]> {
  const { order, votes } = original;
  const { transfer, authorization } = order;
  yield ["unaltered", original];
  const withTransfer = (changed: object) => ({
    ...original,
    order: { ...order, transfer: { ...transfer, ...changed } },
  });
  if (transfer.type !== "payout") yield ["amount", withTransfer({ amount: transfer.amount + 1n })];
  if (transfer.type === "payout") {
    const { outputs } = transfer;
    const first = outputs[0];
    if (first === undefined) throw new Error("there is no output");
    yield ["an output's amount", withTransfer({ outputs: [{ ...first, amount: 2n }, ...outputs.slice(1)] })];
    yield ["an output's recipient", withTransfer({ outputs: [{ ...first, recipient: carol.account }, ...outputs.slice(1)] })];
    yield ["an output's memo", withTransfer({ outputs: [{ ...first, memo: encodeMemo("x") }, ...outputs.slice(1)] })];
    yield ["an output less", withTransfer({ outputs: outputs.slice(1) })];
    yield ["an output more", withTransfer({ outputs: [...outputs, first] })];
    yield ["outputs in another order", withTransfer({ outputs: [...outputs].reverse() })];
  }
  yield ["sequence", withTransfer({ sequence: transfer.sequence + 1n })];
  yield ["asset", withTransfer({ asset: fresh })];
  yield ["memo", withTransfer({ memo: encodeMemo("other") })];
  yield ["sender", withTransfer({ sender: bob.signer.account })];
  if (transfer.type === "payment") yield ["recipient", withTransfer({ recipient: alice.signer.account })];
  if (transfer.type === "redemption") yield ["recipient", withTransfer({ recipient: alice.address })];
  if (transfer.type === "redemption") yield ["fee", withTransfer({ fee: transfer.fee + 1n })];
  const flip = (hex: Hex, at: number): Hex =>
    `${hex.slice(0, at)}${hex[at] === "0" ? "1" : "0"}${hex.slice(at + 1)}` as Hex;
  for (const at of [2, 40, 66, 129]) {
    const signature = flip(authorization.signature, at);
    yield [`authorization ${at}`, { ...original, order: { ...order, authorization: { ...authorization, signature } } }];
    const altered = votes.map((vote, i) => (i === 1 ? { ...vote, signature: flip(vote.signature, at) } : vote));
    yield [`vote ${at}`, { ...original, votes: altered }];
  }
  yield ["epoch", { ...original, epoch: original.epoch + 1n }];
  yield ["a vote too few", { ...original, votes: votes.slice(1) }];
  yield ["a vote twice", { ...original, votes: [...votes.slice(0, 2), ...votes.slice(1, 2)] }];
  yield ["votes unsorted", { ...original, votes: [...votes].reverse() }];
  const renamed = votes.map((vote, i) => (i === 0 ? { ...vote, authority: flip(vote.authority, 10) } : vote));
  yield ["a stranger's vote", { ...original, votes: renamed }];
  const path = votes.map((vote, i) =>
    i === 0 && vote.type === "payment" ? { ...vote, directions: 1 << vote.siblings.length } : vote,
  );
  if (transfer.type !== "redemption") yield ["a path with a bit that names no sibling", { ...original, votes: path }];
}

test("accounts are shown as in the command line", () => {
  expect(network.accounts.map(({ account }) => account)).toEqual(
    [alice, bob].map(({ signer }) => formatAccount(signer.account)),
  );
});
