/** Refusals before anything is sent, for which no network is needed. */

import {
  createPublicClient,
  custom,
  encodeErrorResult,
  RpcRequestError,
  UserRejectedRequestError,
  type EIP1193Provider,
  type WalletClient,
} from "viem";
import { describe, expect, test } from "vitest";

import { FASTPAY_ABI } from "../../src/chain/abi.js";
import {
  ed25519Signer,
  ethereumSigner,
  FastPay,
  isFastPayError,
  signOrder,
  walletError,
  type Hex,
} from "../../src/index.js";
import { redeemOnChain } from "../../src/wallet/payouts.js";
import { PRIVATE_POOL } from "../../src/accounts.js";
import { certificateOf } from "../../src/certificate.js";
import { chainError } from "../../src/wallet-errors.js";
import { authorities, committeeOfKeys, DOMAIN, paymentOf, person, signed } from "../support/committee.js";

const alice = person("alice");
const payment = paymentOf(alice.account, person("bob").account, 5n, 0n);

describe("signers", () => {
  const answering = (signature: string) => ({ request: async () => signature }) as unknown as EIP1193Provider;
  const address: Hex = `0x${"ab".repeat(20)}`;

  test.each([
    ["a contract wallet's signature", `0x${"11".repeat(200)}`],
    ["no signature at all", "0x"],
    ["a signature of another key", `0x${"11".repeat(64)}1b`],
  ])("%s is not used", async (_name, signature) => {
    const signer = ethereumSigner(answering(signature), address);
    const order = signOrder(signer, DOMAIN, { ...payment, sender: signer.account });
    await expect(order).rejects.toMatchObject({ code: "signature-unusable" });
  });

  test("an invalid transfer is never shown to the wallet", async () => {
    let asked = 0;
    const signer = { ...alice, authorize: () => Promise.reject(new Error(String((asked += 1)))) };
    await expect(signOrder(signer, DOMAIN, { ...payment, amount: 0n })).rejects.toMatchObject({
      code: "invalid-transfer",
    });
    // Authorities refuse it, so it would occupy its number.
    await expect(signOrder(signer, DOMAIN, { ...payment, recipient: PRIVATE_POOL })).rejects.toMatchObject({
      code: "invalid-transfer",
      details: { fault: "forbidden-recipient" },
    });
    expect(asked).toBe(0);
  });

  test("a wallet or secret without a key is not a signer", () => {
    const refused = expect.objectContaining({ code: "invalid-argument" });
    expect(() => ethereumSigner({ signTypedData: () => undefined } as unknown as WalletClient)).toThrow(refused);
    expect(() => ed25519Signer(new Uint8Array(31))).toThrow(refused);
    expect(() => ed25519Signer("0x12")).toThrow(refused);
  });
});

describe("options", () => {
  test.each([
    ["no address", "0x12"],
    ["nothing", ""],
  ])("%s is no contract", async (_name, contract) => {
    const options = { publicClient: undefined as never, contract: contract as Hex, chainId: 1, authorities: [] };
    await expect(FastPay.create(options)).rejects.toMatchObject({ code: "invalid-argument" });
  });
});

test("the certificate of a payment is not submitted to the contract", async () => {
  const keys = authorities(4);
  const votes = keys.map((key) => key.vote(0n, payment));
  const certificate = certificateOf(await signed(alice, payment), committeeOfKeys(keys), votes);
  if (certificate === undefined) throw new Error("too few votes");
  const brought = redeemOnChain({} as never, undefined as never, certificate, () => undefined, undefined);
  await expect(brought).rejects.toMatchObject({ code: "invalid-argument" });
});

describe("errors of wallets and nodes", () => {
  const revert = (data: Hex) =>
    new RpcRequestError({ body: {}, url: "http://node", error: { code: 3, message: "execution reverted", data } });

  test("are translated", () => {
    expect(walletError(new UserRejectedRequestError(new Error("no")))).toMatchObject({ code: "signature-rejected" });
    expect(walletError({ code: 4001, message: "no" })).toMatchObject({ code: "signature-rejected" });
    expect(walletError(new Error("locked"))).toMatchObject({ code: "wallet-failed" });
    expect(chainError(new Error("strange"))).toMatchObject({ code: "chain-unreachable" });
    const ours = walletError(new Error("locked"));
    expect(walletError(ours)).toBe(ours);
    expect(isFastPayError(ours, "wallet-failed") && !isFastPayError(ours, "busy")).toBe(true);
  });

  test("distinguish too little ETH for gas from an unreachable node", async () => {
    const message = "insufficient funds for gas * price + value: address 0x00 have 1 want 2";
    const refuse = async () => Promise.reject(Object.assign(new Error(message), { code: -32000 }));
    const client = createPublicClient({ transport: custom({ request: refuse }, { retryCount: 0 }) });
    const said: unknown = await client.call({ to: `0x${"11".repeat(20)}`, value: 2n }).catch((error: unknown) => error);
    expect(chainError(said)).toMatchObject({ code: "insufficient-funds" });
    expect(walletError(said)).toMatchObject({ code: "insufficient-funds" });
  });

  test("name the contract's own errors, whatever wraps them", () => {
    const paused = encodeErrorResult({ abi: FASTPAY_ABI, errorName: "PausedUntil", args: [1_700_000_000n] });
    expect(chainError(revert(paused))).toMatchObject({ code: "paused", details: { until: 1_700_000_000n } });
    const redeemed = encodeErrorResult({ abi: FASTPAY_ABI, errorName: "AlreadyRedeemed", args: [alice.account, 7n] });
    expect(walletError(revert(redeemed))).toMatchObject({ code: "reverted", details: { error: "AlreadyRedeemed" } });
    // An error that no interface of ours has.
    expect(chainError(revert("0x12345678"))).toMatchObject({ code: "reverted", details: { error: "" } });
  });
});
