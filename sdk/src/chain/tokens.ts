/**
 * ERC-20 tokens. Their code is untrusted: an invalid answer becomes a typed error, and a symbol is shortened and
 * reduced to plain text.
 */

import { domainSeparator } from "viem";

import type { Address, Hex } from "../bytes.js";
import { FastPayError, isFastPayError } from "../errors.js";
import { plainText } from "../plain-text.js";
import { ETHER } from "../transfer.js";
import type { AssetInfo } from "../views.js";
import { TOKEN_ABI } from "./abi.js";
import type { Contract } from "./contract.js";

/** The maximum number of displayed characters of a symbol. */
const SYMBOL_LENGTH_MAX = 16;
/** 2^256 has 78 digits. */
const DECIMALS_MAX = 77;

/** The EIP-712 domain of a token's permits. */
export interface PermitDomain {
  readonly name: string;
  readonly version: string;
  readonly chainId: bigint;
  readonly verifyingContract: Address;
}

/** An ERC-20 token. */
export class Token {
  readonly address: Address;
  readonly #contract: Contract;

  constructor(contract: Contract, address: Address) {
    this.address = address;
    this.#contract = contract;
  }

  /** Its claimed symbol, its decimals, and whether it has permits. Throws `invalid-argument` if it is no token. */
  async info(): Promise<AssetInfo> {
    const [symbol, decimals, domain] = await Promise.all([
      this.#answer(() => this.#read("symbol"), "symbol"),
      this.#answer(() => this.#read("decimals"), "decimals"),
      this.permitDomain(),
    ]);
    if (decimals > DECIMALS_MAX) throw this.#noToken("decimals");
    const shown = plainText(symbol, SYMBOL_LENGTH_MAX);
    return { asset: this.address, symbol: shown, decimals, hasPermit: domain !== undefined };
  }

  /** The balance of an address. */
  balanceOf(owner: Address): Promise<bigint> {
    return this.#answer(() => this.#ask({ functionName: "balanceOf", args: [owner] }) as Promise<bigint>, "balances");
  }

  /** The amount that FastPay may take from `owner`. */
  allowance(owner: Address): Promise<bigint> {
    const args = [owner, this.#contract.domain.contract] as const;
    return this.#answer(() => this.#ask({ functionName: "allowance", args }) as Promise<bigint>, "allowances");
  }

  /** The nonce of an owner's next permit. */
  nonce(owner: Address): Promise<bigint> {
    return this.#answer(() => this.#ask({ functionName: "nonces", args: [owner] }) as Promise<bigint>, "nonces");
  }

  /**
   * The domain of its permits (ERC-2612): the first candidate whose hash is the token's `DOMAIN_SEPARATOR`. Undefined
   * if the token has no permits, or permits of another kind.
   */
  async permitDomain(): Promise<PermitDomain | undefined> {
    try {
      const { chainId } = this.#contract.domain;
      const verifyingContract = this.address;
      // All at once, so that a batching client sends one request.
      const [separator, described, name, version] = await Promise.all([
        this.#read("DOMAIN_SEPARATOR"),
        this.#read("eip712Domain").catch(() => undefined),
        this.#read("name"),
        this.#read("version").catch(() => "1"),
      ]);
      const candidates: PermitDomain[] = [
        { name, version, chainId, verifyingContract },
        { name, version: "1", chainId, verifyingContract },
      ];
      if (described !== undefined)
        candidates.unshift({ name: described[1], version: described[2], chainId, verifyingContract });
      return candidates.find((domain) => domainSeparator({ domain }) === separator.toLowerCase());
    } catch (error) {
      if (isNoAnswerOfAToken(error)) return undefined;
      throw error;
    }
  }

  #read(functionName: "symbol" | "name" | "version"): Promise<string>;
  #read(functionName: "decimals"): Promise<number>;
  #read(functionName: "DOMAIN_SEPARATOR"): Promise<Hex>;
  #read(functionName: "eip712Domain"): Promise<readonly [Hex, string, string, ...unknown[]]>;
  #read(functionName: string): Promise<unknown> {
    return this.#ask({ functionName, args: [] });
  }

  #ask(call: { functionName: string; args: readonly unknown[] }): Promise<unknown> {
    const { client } = this.#contract;
    const request = { address: this.address, abi: TOKEN_ABI, ...call } as Parameters<typeof client.readContract>[0];
    return this.#contract.ask(() => client.readContract(request));
  }

  async #answer<T>(ask: () => Promise<T>, what: string): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      throw isNoAnswerOfAToken(error) ? this.#noToken(what, error) : error;
    }
  }

  #noToken(what: string, cause?: unknown): FastPayError {
    const message = `${this.address} is not a token: it does not return its ${what}`;
    return new FastPayError("invalid-argument", message, "check the address and the chain", { cause });
  }
}

/** True if the node answered, but the token's answer is invalid. */
function isNoAnswerOfAToken(error: unknown): boolean {
  return isFastPayError(error, "reverted") || isFastPayError(error, "malformed-answer");
}

/** An address's balance of an asset on the chain. */
export function balanceOnChain(contract: Contract, owner: Address, asset: Address): Promise<bigint> {
  if (asset !== ETHER) return new Token(contract, asset).balanceOf(owner);
  return contract.ask(() => contract.client.getBalance({ address: owner }));
}
