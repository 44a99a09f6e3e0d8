/** ENS names as recipients, resolved on the deployment's chain if ENS's registry is there (EIP-137). */

import { accountFromEthereum, type AccountId, type Address, type EthereumClient } from "@fastpay/sdk";
import { useQuery } from "@tanstack/react-query";
import { parseAbi, zeroAddress, type Hex } from "viem";

import { useNetwork } from "../network/NetworkProvider";

/** ENS's registry has the same address on every chain. */
const REGISTRY = "0x00000000000C2E074eC69A0dFb2997BA6C7d2e1e";
const ABI = parseAbi([
  "function resolver(bytes32 node) view returns (address)",
  "function addr(bytes32 node) view returns (address)",
]);
const NAME_LENGTH_MAX = 255;

/** A name's address, or the reason why it has none. */
interface Resolved {
  readonly name: string;
  readonly address: Address | undefined;
  readonly fault: string | undefined;
}

/** The resolution of an ENS name; all undefined for other texts, and while it is being resolved. */
export interface EnsRecipient {
  readonly isName: boolean;
  /** The normalized name (ENSIP-15). */
  readonly name: string | undefined;
  readonly address: Address | undefined;
  readonly account: AccountId | undefined;
  readonly fault: string | undefined;
}

/** True if the text has the form of an ENS name, such as `alice.eth`. */
function isEnsName(text: string): boolean {
  return text.length <= NAME_LENGTH_MAX && /^[^\s./:@#?]+(\.[^\s./:@#?]+)+$/u.test(text) && !/^[0-9.,]+$/.test(text);
}

async function resolve(client: EthereumClient | undefined, text: string): Promise<Resolved> {
  const none = (fault: string, name = text): Resolved => ({ name, address: undefined, fault });
  if (client === undefined) return none("A ledger has no ENS. Give an address or an account.");
  // Loaded on demand: the Unicode tables are large, and most visits need none.
  const { namehash, normalize } = await import("viem/ens");
  let name: string;
  let node: Hex;
  try {
    name = normalize(text);
    node = namehash(name);
  } catch {
    return none("This is not a valid ENS name.");
  }
  const code = await client.getCode({ address: REGISTRY });
  if (code === undefined || code === "0x") return none("This chain has no ENS. Give an address or an account.");
  const resolver = await client.readContract({ address: REGISTRY, abi: ABI, functionName: "resolver", args: [node] });
  if (resolver === zeroAddress) return none("This ENS name has no address.", name);
  const address = await client.readContract({ address: resolver, abi: ABI, functionName: "addr", args: [node] });
  if (address === zeroAddress) return none("This ENS name has no address.", name);
  return { name, address: address.toLowerCase() as Address, fault: undefined };
}

/** Resolves a text that has the form of an ENS name. */
export function useEns(text: string): EnsRecipient {
  const { ethereum } = useNetwork();
  const typed = text.trim();
  const isName = isEnsName(typed);
  const { data, error } = useQuery({
    queryKey: ["chain", "ens", typed],
    queryFn: () => resolve(ethereum, typed),
    enabled: isName,
    staleTime: 60_000,
    retry: false,
  });
  const found = isName ? data : undefined;
  const fault = isName && error !== null ? "The ENS name cannot be read from Ethereum now." : found?.fault;
  const address = found?.address;
  return { isName, name: found?.name, address, account: address && accountFromEthereum(address), fault };
}
