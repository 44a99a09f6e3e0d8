/**
 * A wallet like that of an extension (EIP-1193, EIP-6963). A key outside of the page answers the page's requests, and
 * transactions go to the real chain.
 */

import type { Page } from "@playwright/test";
import { isHex, toHex, type Hex, type PrivateKeyAccount } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";

import { chainClient, network, walletOf } from "./net";

interface Request {
  readonly method: string;
  readonly params?: readonly unknown[];
}
type Answer = { readonly result: unknown } | { readonly error: { readonly code: number; readonly message: string } };

const REJECTED = { code: 4001, message: "User rejected the request." };
const SIGNING = new Set(["eth_requestAccounts", "eth_signTypedData_v4", "eth_sendTransaction"]);

/** The way in which the wallet announces itself to the page. */
export type Announcement = "eip6963" | "window.ethereum";

/** A user's key and wallet. Each test has its own users. */
export class TestWallet {
  readonly key: PrivateKeyAccount = privateKeyToAccount(generatePrivateKey());
  /** The chain that the wallet is on. */
  chainId = network().chainId;
  /** True if the user declines all requests. */
  declines = false;
  /** The number of requests that the user still accepts before declining. */
  declinesAfter: number | undefined;
  /** The next request waits for this promise, like a user who hesitates. */
  thinks: Promise<void> | undefined;
  /** The methods of the requests to connect, sign or send. */
  readonly asked: string[] = [];
  /** The transactions that it sent, newest last. */
  readonly sent: Hex[] = [];
  #isConnected = false;

  /** Injects it into all documents of a page. */
  async inject(page: Page, announcement: Announcement = "eip6963"): Promise<void> {
    await page.exposeFunction("walletAnswers", (request: Request) => this.#answer(page, request));
    await page.addInitScript(injected, announcement);
  }

  async #answer(page: Page, { method, params = [] }: Request): Promise<Answer> {
    if (SIGNING.has(method)) {
      if (method !== "eth_requestAccounts" || !this.#isConnected) this.asked.push(method);
      const thinks = this.thinks;
      this.thinks = undefined;
      await thinks;
      if (this.declines || this.declinesAfter === 0) return { error: REJECTED };
      if (this.declinesAfter !== undefined) this.declinesAfter -= 1;
    }
    try {
      return { result: await this.#do(page, method, params) };
    } catch (error) {
      const code = error instanceof Object && "code" in error && typeof error.code === "number" ? error.code : -32_603;
      return { error: { code, message: error instanceof Error ? error.message : String(error) } };
    }
  }

  async #do(page: Page, method: string, params: readonly unknown[]): Promise<unknown> {
    switch (method) {
      case "eth_requestAccounts":
        this.#isConnected = true;
        return [this.key.address];
      case "eth_accounts":
        return this.#isConnected ? [this.key.address] : [];
      case "eth_chainId":
        return toHex(this.chainId);
      case "wallet_switchEthereumChain": {
        this.chainId = Number((params[0] as { chainId: Hex }).chainId);
        await page.evaluate((id) => window.dispatchEvent(new CustomEvent("wallet-chain", { detail: id })), toHex(this.chainId));
        return null;
      }
      case "eth_signTypedData_v4": {
        const data = JSON.parse(params[1] as string);
        // Like real wallets, refuse to sign for another chain than the selected one. MetaMask does not compare an id of 0.
        if (data.domain.chainId !== 0 && BigInt(data.domain.chainId) !== BigInt(this.chainId)) throw new Error("the chain is another one");
        return this.key.signTypedData(data);
      }
      case "eth_sendTransaction":
        return this.#send(params[0] as { to?: Hex; data?: Hex; value?: Hex; gas?: Hex });
      default:
        return chainClient().request({ method, params } as never);
    }
  }

  async #send({ to, data, value, gas }: { to?: Hex; data?: Hex; value?: Hex; gas?: Hex }): Promise<Hex> {
    const amounts = { ...(isHex(value) && { value: BigInt(value) }), ...(isHex(gas) && { gas: BigInt(gas) }) };
    const call = { ...(to !== undefined && { to }), ...(data !== undefined && { data }), ...amounts };
    const hash = await walletOf(this.key).sendTransaction(call);
    this.sent.push(hash);
    return hash;
  }
}

/** Runs in the page, before its own scripts. */
function injected(announcement: Announcement): void {
  type Listener = (value: unknown) => void;
  const listeners = new Map<string, Set<Listener>>();
  const ask = (request: unknown): Promise<Answer> =>
    (window as unknown as { walletAnswers: (request: unknown) => Promise<Answer> }).walletAnswers(request);
  const provider = {
    async request(request: unknown): Promise<unknown> {
      const answer = await ask(request);
      if ("result" in answer) return answer.result;
      throw Object.assign(new Error(answer.error.message), { code: answer.error.code });
    },
    on(event: string, listener: Listener): void {
      const set = listeners.get(event) ?? new Set();
      listeners.set(event, set.add(listener));
    },
    removeListener(event: string, listener: Listener): void {
      listeners.get(event)?.delete(listener);
    },
  };
  window.addEventListener("wallet-chain", (event) => {
    for (const listener of listeners.get("chainChanged") ?? []) listener((event as CustomEvent).detail);
  });
  if (announcement === "window.ethereum") {
    Object.defineProperty(window, "ethereum", { value: provider });
    return;
  }
  const info = { uuid: "6963", name: "Test wallet", icon: "data:image/svg+xml,<svg/>", rdns: "test.wallet" };
  const announce = (): void => {
    window.dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail: Object.freeze({ info, provider }) }));
  };
  window.addEventListener("eip6963:requestProvider", announce);
  announce();
}
