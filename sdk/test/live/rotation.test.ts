/**
 * Redemptions of before a change of the committee's keys, on a network of their own on which nobody relays. Then a new
 * member, of which no list tells.
 */

import { readFileSync } from "node:fs";
import { createPublicClient, createWalletClient, http, type PublicClient, type WalletClient } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { foundry } from "viem/chains";
import { afterAll, beforeAll, expect, test } from "vitest";

import {
  accountFromEthereum,
  ETHER,
  ethereumSigner,
  FastPay,
  memoryStore,
  type AuthorityEndpoint,
  type ChainProgress,
  type FastPayClient,
  type Hex,
  type Redemption,
  type Signer,
  type VerifiedCertificate,
} from "../../src/index.js";
import { startNetwork, type NetworkFile, type StartedNetwork } from "../support/network.js";
import { theft } from "../support/thief.js";

const ONE = 10n ** 18n;
const POLL_MS = 200;
/** How long the deployment takes votes of an epoch that has ended. */
const VOTES_VALIDITY_S = 6 * 86_400;
const OUT: Hex = "0x00000000000000000000000000000000000000be";

let started: StartedNetwork;
let network: NetworkFile;
let publicClient: PublicClient;
let wallet: WalletClient;
let alice: Signer;

beforeAll(async () => {
  started = await startNetwork(`sdk-rotation-${process.pid}`, false);
  network = JSON.parse(readFileSync(started.file, "utf8")) as NetworkFile;
  const common = { chain: foundry, transport: http(network.rpc), pollingInterval: POLL_MS };
  publicClient = createPublicClient(common);
  wallet = createWalletClient({ ...common, account: privateKeyToAccount(network.accounts[0]?.privateKey as Hex) });
  alice = ethereumSigner(wallet);
});

afterAll(() => started?.stop());

function connect(change: (authorities: AuthorityEndpoint[]) => AuthorityEndpoint[]): Promise<FastPayClient> {
  const { contract, chainId } = network;
  const authorities = change([...network.authorities]);
  return FastPay.create({ publicClient, contract, chainId, authorities, storage: memoryStore() });
}

async function bring(client: FastPayClient, certificate: VerifiedCertificate): Promise<ChainProgress["type"][]> {
  const steps: ChainProgress[] = [];
  const onProgress = (step: ChainProgress): void => void steps.push(step);
  const payout = await client.redeemOnChain(wallet, certificate, { onProgress });
  expect(payout).toMatchObject({ hash: expect.any(String), status: { state: "paid" } });
  return steps.map(({ type }) => type);
}

test("a redemption whose number a thief spent is never shown as paid", async () => {
  const fastpay = await connect((all) => all);
  await fastpay.deposit(wallet, { asset: ETHER, amount: ONE });
  const { certificate } = await fastpay.redeem(alice, { recipient: OUT, asset: ETHER, amount: 50n });
  const own = certificate.order.transfer as Redemption;
  expect(await fastpay.redemptionStatus(own)).toEqual({ state: "open" });
  const stolen: Redemption = { ...own, recipient: "0x0000000000000000000000000000000000000066", amount: 60n };
  const data = await theft(started.file, fastpay.domain, (await fastpay.committee(0n)).members, stolen);
  const account = privateKeyToAccount(network.accounts[0]?.privateKey as Hex);
  const hash = await wallet.sendTransaction({ account, chain: foundry, to: network.contract, data });
  await publicClient.waitForTransactionReceipt({ hash });
  const paid = await fastpay.redemptionStatus(stolen);
  expect(paid).toMatchObject({ state: "paid" });
  expect(await fastpay.redemptionStatus(own)).toEqual({ ...paid, state: "displaced" });
  await expect(fastpay.redeemOnChain(wallet, certificate)).rejects.toMatchObject({ code: "never-paid" });
  // The authorities give the amount back.
  const isBack = async (): Promise<boolean> => {
    const { balances } = await fastpay.account(alice.account);
    return balances.find(({ asset }) => asset === ETHER)?.balance === ONE;
  };
  while (!(await isBack())) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
});

test("a redemption is submitted by its owner alone, also if the keys that certified it have expired", async () => {
  const fastpay = await connect((all) => all);
  await fastpay.deposit(wallet, { asset: ETHER, amount: 5n * ONE });
  const redeem = async (amount: bigint) =>
    (await fastpay.redeem(alice, { recipient: OUT, asset: ETHER, amount })).certificate;
  const [soon, late] = [await redeem(100n), await redeem(200n)];
  expect([soon.epoch, late.epoch]).toEqual([0n, 0n]);

  started.rotate();
  const pay = async () =>
    (await fastpay.pay(alice, { recipient: accountFromEthereum(OUT), asset: ETHER, amount: 1n })).certificate;
  while ((await pay()).epoch < 1n) await new Promise((resolve) => setTimeout(resolve, POLL_MS));

  // For a while the contract takes the old votes.
  expect(await bring(fastpay, soon)).not.toContain("vote");
  expect(await fastpay.balanceOnChain(OUT, ETHER)).toBe(100n);

  await publicClient.request({ method: "evm_increaseTime", params: [VOTES_VALIDITY_S + 1] } as never);
  await publicClient.request({ method: "evm_mine", params: [] } as never);
  // One authority is away: without the three others there is no quorum.
  const without = await connect(([first, ...others]) => [{ ...first, http: "http://127.0.0.1:9" }, ...others]);
  expect((await bring(without, late)).filter((type) => type === "vote").length).toBeGreaterThanOrEqual(3);
  expect(await fastpay.balanceOnChain(OUT, ETHER)).toBe(300n);
  expect(await fastpay.redeemOnChain(wallet, late)).toMatchObject({ hash: undefined, status: { state: "paid" } });
  // A client that knew only the old committee finds the new one.
  const third = await redeem(300n);
  expect(third.epoch).toBe(1n);
  await bring(fastpay, third);
  expect(await fastpay.balanceOnChain(OUT, ETHER)).toBe(600n);
});

test("a running client follows to a new member that no list names, and cannot do without it", async () => {
  // One authority is away, listed by its present name: with the one that leaves, too few are left without the new one.
  const ready = await fetch(`${network.authorities[0]?.http}/ready`);
  const { authority: name } = (await ready.json()) as { authority: Hex };
  const fastpay = await connect(([, ...others]) => [{ http: "http://127.0.0.1:9", name }, ...others]);
  const pay = async () =>
    (await fastpay.pay(alice, { recipient: accountFromEthereum(OUT), asset: ETHER, amount: 1n })).certificate;
  expect((await pay()).epoch).toBe(1n);
  started.replace();
  let certificate = await pay();
  while (certificate.epoch < 2n) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    certificate = await pay();
  }
  const names = async (epoch: bigint) => (await fastpay.committee(epoch)).members.map(({ votingKey }) => votingKey);
  const before = await names(1n);
  const joined = (await names(2n)).filter((member) => !before.includes(member));
  expect(joined).toHaveLength(1);
  expect(certificate.votes.map(({ authority }) => authority)).toContain(joined[0]);
});
