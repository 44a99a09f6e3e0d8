/** Direct access to the tests' network, without the page. */

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import {
  createPublicClient,
  createTestClient,
  createWalletClient,
  defineChain,
  http,
  pad,
  parseAbi,
  parseEther,
  parseUnits,
  publicActions,
  type Address,
  type Chain,
  type Hex,
  type PrivateKeyAccount,
} from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { namehash, normalize } from "viem/ens";

import { accountFromEthereum, ETHER, NO_MEMO } from "@fastpay/sdk";

import type { NetworkFile } from "../../../sdk/test/support/network";
import { theft } from "../../../sdk/test/support/thief";

const FAST_PAY = parseAbi([
  "function depositEther(bytes32 recipient) payable",
  "function pause()",
  "function unpause()",
  "function postpone(uint64 epoch, uint256 extra)",
  "function guardian() view returns (address)",
  "function council() view returns (address)",
  "function epoch() view returns (uint64)",
  "struct Authority { bytes32 votingKey; address redemptionKey; }",
  "function committee(uint64 epoch) view returns (Authority[])",
  "function lastTransactionIndex() view returns (uint64)",
]);
const ERC20 = parseAbi([
  "function transfer(address to, uint256 value) returns (bool)",
  "function balanceOf(address owner) view returns (uint256)",
]);
const MOODY = parseAbi(["function mint(address to, uint256 amount)", "function setMood(uint8 mood)"]);
export const TOKEN_DECIMALS = 6;
/** The localnet's `outflowDelay`, in seconds. */
export const OUTFLOW_DELAY_S = 3 * 86_400;

/** The localnet's network.json. Read on each call, because the set-up puts its path into the environment. */
export function network(): NetworkFile {
  return JSON.parse(readFileSync(process.env.FASTPAY_NETWORK ?? "", "utf8"));
}

export function chainOf({ chainId, rpc }: NetworkFile): Chain {
  return defineChain({
    id: chainId,
    name: "localnet",
    nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
    rpcUrls: { default: { http: [rpc] } },
  });
}

/** A client for reads and for the commands of a test chain. */
export function chainClient(net = network()) {
  return createTestClient({ mode: "anvil", chain: chainOf(net), transport: http(net.rpc), pollingInterval: 200 }).extend(
    publicActions,
  );
}

export function walletOf(account: PrivateKeyAccount, net = network()) {
  return createWalletClient({ account, chain: chainOf(net), transport: http(net.rpc) });
}

/** The key of a localnet user with tokens. */
function rich(): PrivateKeyAccount {
  const [first] = network().accounts;
  if (first === undefined) throw new Error("the localnet names nobody");
  return privateKeyToAccount(first.privateKey);
}

async function mined(hash: Hex): Promise<void> {
  const receipt = await chainClient().waitForTransactionReceipt({ hash });
  if (receipt.status !== "success") throw new Error(`transaction ${hash} failed`);
}

/** Gives an address ETH and tokens on the chain. */
export async function giveOnChain(to: Address, ether: string, tokens = "0"): Promise<void> {
  const net = network();
  await chainClient(net).setBalance({ address: to, value: parseEther(ether) });
  if (tokens === "0") return;
  const args = [to, parseUnits(tokens, TOKEN_DECIMALS)] as const;
  await mined(await walletOf(rich()).writeContract({ address: net.token, abi: ERC20, functionName: "transfer", args }));
}

/** Deposits without the page, by default into the sender's own account. Resolves when the deposit is in a block. */
export async function depositEther(from: PrivateKeyAccount, ether: string, recipient = pad(from.address)): Promise<bigint> {
  const { contract } = network();
  const args = [recipient] as const;
  const value = parseEther(ether);
  await mined(await walletOf(from).writeContract({ address: contract, abi: FAST_PAY, functionName: "depositEther", args, value }));
  return chainClient().readContract({ address: contract, abi: FAST_PAY, functionName: "lastTransactionIndex" });
}

async function deploy(owner: PrivateKeyAccount, file: string, name: string, args: readonly unknown[]): Promise<Address> {
  const path = resolve(import.meta.dirname, `../../../out/${file}.sol/${name}.json`);
  const { abi, bytecode } = JSON.parse(readFileSync(path, "utf8"));
  const hash = await walletOf(owner).deployContract({ abi, bytecode: bytecode.object, args });
  const { contractAddress } = await chainClient().waitForTransactionReceipt({ hash });
  if (!contractAddress) throw new Error(`${name} was not deployed`);
  return contractAddress;
}

/** Deploys a token that the page does not know, with any symbol and six decimals. `owner` has all 1,000. */
export function deployToken(owner: PrivateKeyAccount, symbol = "NEW"): Promise<Address> {
  return deploy(owner, "DemoToken", "DemoToken", ["A new token", symbol, TOKEN_DECIMALS, parseUnits("1000", TOKEN_DECIMALS)]);
}

/** Deploys a token without permits, whose transfers can be made to fail. `owner` has 10 ZOO. */
export async function deployMoodyToken(owner: PrivateKeyAccount): Promise<Address> {
  const token = await deploy(owner, "WeirdTokens", "MoodyToken", []);
  const args = [owner.address, parseEther("10")] as const;
  await mined(await walletOf(owner).writeContract({ address: token, abi: MOODY, functionName: "mint", args }));
  return token;
}

/** Makes the transfers of such a token fail, or succeed again. */
export async function setMood(owner: PrivateKeyAccount, token: Address, mood: "good" | "reverts"): Promise<void> {
  const args = [mood === "good" ? 0 : 6] as const;
  await mined(await walletOf(owner).writeContract({ address: token, abi: MOODY, functionName: "setMood", args }));
}

/** A thief with the committee's keys redeems ETH under a number of `sender`. Returns the transaction's hash. */
export async function steal(sender: Address, sequence: bigint, ether: string): Promise<Hex> {
  const { contract, chainId } = network();
  const call = { address: contract, abi: FAST_PAY, functionName: "committee", args: [0n] } as const;
  const members = await chainClient().readContract(call);
  const facts = { recipient: pad("0x66", { size: 20 }), asset: ETHER, amount: parseEther(ether), fee: 0n, memo: NO_MEMO };
  const redemption = { type: "redemption", sender: accountFromEthereum(sender), sequence, ...facts } as const;
  const data = await theft(process.env.FASTPAY_NETWORK ?? "", { chainId: BigInt(chainId), contract }, members, redemption);
  const hash = await walletOf(rich()).sendTransaction({ to: contract, data });
  await mined(hash);
  return hash;
}

/** An address's balance of a token, or of ETH. */
export function balanceOnChain(owner: Address, token?: Address): Promise<bigint> {
  const client = chainClient();
  if (token === undefined) return client.getBalance({ address: owner });
  return client.readContract({ address: token, abi: ERC20, functionName: "balanceOf", args: [owner] });
}

/** Advances the chain's clock. */
export async function passTime(seconds: number): Promise<void> {
  const client = chainClient();
  await client.increaseTime({ seconds });
  await client.mine({ blocks: 1 });
}

/** Stops block production until `act` has ended. Afterwards the chain makes one block each second. */
export async function withoutBlocks(act: () => Promise<void>): Promise<void> {
  const client = chainClient();
  await client.setIntervalMining({ interval: 0 });
  try {
    await act();
  } finally {
    await client.setIntervalMining({ interval: 1 });
  }
}

/** Mines the pending transactions while a contract's code is replaced by code that reverts every call. */
export async function mineReverting(contract: Address): Promise<void> {
  const client = chainClient();
  const code = await client.getCode({ address: contract });
  if (code === undefined) throw new Error(`${contract} is no contract`);
  // PUSH1 0, PUSH1 0, REVERT
  await client.setCode({ address: contract, bytecode: "0x60006000fd" });
  await client.mine({ blocks: 1 });
  await client.setCode({ address: contract, bytecode: code });
}

/** Replaces a pending transaction of `from`, as a wallet does: sped up, or cancelled. */
export async function replaceTransaction(from: PrivateKeyAccount, hash: Hex, how: "sped up" | "cancelled"): Promise<void> {
  const { nonce, to, input, value, gas, maxFeePerGas, maxPriorityFeePerGas } = await chainClient().getTransaction({ hash });
  const call = how === "sped up" ? { to, data: input, value } : { to: from.address, value: 0n };
  const fees = { maxFeePerGas: (maxFeePerGas ?? 0n) * 2n, maxPriorityFeePerGas: (maxPriorityFeePerGas ?? 0n) * 2n + 1n };
  // Use the gas limit of the first transaction, as wallets do: an estimate would assume that the first was included.
  await walletOf(from).sendTransaction({ ...call, ...fees, gas, nonce });
}

/** Resolves when a final block has a transaction of this sender and nonce. */
export async function numberIsTaken(address: Address, nonce: number): Promise<void> {
  while ((await chainClient().getTransactionCount({ address, blockTag: "finalized" })) <= nonce) await sleep(200);
}

/** Waits until a final block has the committee of this epoch. */
export async function epochHasBegun(net: NetworkFile, epoch: bigint): Promise<void> {
  const client = chainClient(net);
  const call = { address: net.contract, abi: FAST_PAY, functionName: "epoch", blockTag: "finalized" } as const;
  while ((await client.readContract(call)) < epoch) await sleep(200);
}

/** Resolves when an epoch has begun in a final block, and all authorities vote in it. */
export async function epochIsFinal(net: NetworkFile, epoch: bigint): Promise<void> {
  await epochHasBegun(net, epoch);
  for (const { http: url } of net.authorities) {
    for (;;) {
      const { epoch: of, votes } = (await (await fetch(`${url}/v1/status`)).json()) as { epoch: string; votes: boolean };
      if (BigInt(of) >= epoch && votes) break;
      await sleep(200);
    }
  }
}

/** The guardian pauses or unpauses the contract. anvil signs for it. */
export async function guardianDoes(what: "pause" | "unpause"): Promise<void> {
  const { net, wallet } = await guardian();
  await mined(await wallet.writeContract({ address: net.contract, abi: FAST_PAY, functionName: what }));
}

/** The guardian postpones the redemptions that were queued with votes of epoch 0. */
export async function postpone(seconds: number): Promise<void> {
  const { net, wallet } = await guardian();
  const args = [0n, BigInt(seconds)] as const;
  await mined(await wallet.writeContract({ address: net.contract, abi: FAST_PAY, functionName: "postpone", args }));
}

async function guardian() {
  const net = network();
  const client = createPublicClient({ chain: chainOf(net), transport: http(net.rpc) });
  const account = await client.readContract({ address: net.contract, abi: FAST_PAY, functionName: "guardian" });
  return { net, wallet: createWalletClient({ account, chain: chainOf(net), transport: http(net.rpc) }) };
}

/** The addresses of FastPay and its Council. */
export async function contracts(): Promise<readonly [Address, Address]> {
  const { contract } = network();
  return [contract, await chainClient().readContract({ address: contract, abi: FAST_PAY, functionName: "council" })];
}

const ENS = parseAbi(["function setAddr(bytes32 node, address to)"]);
/** ENS's registry, at its address on every chain. */
const ENS_REGISTRY = "0x00000000000C2E074eC69A0dFb2997BA6C7d2e1e";

/** Installs ENS on the chain, with one name. */
export async function setEnsName(name: string, to: Address): Promise<void> {
  const { deployedBytecode } = JSON.parse(readFileSync(resolve(import.meta.dirname, "../../../out/Ens.sol/Ens.json"), "utf8"));
  await chainClient().setCode({ address: ENS_REGISTRY, bytecode: deployedBytecode.object });
  const args = [namehash(normalize(name)), to] as const;
  await mined(await walletOf(rich()).writeContract({ address: ENS_REGISTRY, abi: ENS, functionName: "setAddr", args }));
}

/** Removes ENS from the chain. */
export async function removeEns(): Promise<void> {
  await chainClient().setCode({ address: ENS_REGISTRY, bytecode: "0x" });
}
