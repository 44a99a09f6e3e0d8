/** Finds wallets: announced by EIP-6963, or an older one at `window.ethereum` (EIP-1193). */

import type { EIP1193Provider } from "viem";

/** A wallet in this browser. Its name and icon are unverified. */
export interface FoundWallet {
  /** Stays the same over visits. */
  readonly id: string;
  readonly name: string;
  /** A data URI, or none. */
  readonly icon: string | undefined;
  readonly provider: EIP1193Provider;
  /** Of a wallet on another device, how it is reached. */
  readonly remote?: {
    /** Calls back with what that device reads as a QR code. Returns how to stop. */
    readonly onUri: (take: (uri: string) => void) => () => void;
    /** Ends the connection. */
    readonly disconnect: () => Promise<void>;
  };
}

interface Announcement {
  readonly info: { readonly uuid: string; readonly name: string; readonly icon: string; readonly rdns: string };
  readonly provider: EIP1193Provider;
}

declare global {
  interface Window {
    readonly ethereum?: EIP1193Provider;
  }
  interface WindowEventMap {
    "eip6963:announceProvider": CustomEvent<Announcement>;
  }
}

/** More wallets than this are not listed: any script of an extension can announce. */
const WALLETS_MAX = 20;
const NAME_LENGTH_MAX = 40;

/** The id of a wallet that does not announce itself. */
const INJECTED = "injected";

/** Calls back with all wallets found so far, whenever there is one more. Returns how to stop. */
export function discoverWallets(onChange: (wallets: readonly FoundWallet[]) => void): () => void {
  const found = new Map<string, FoundWallet>();
  const report = (): void => {
    const { ethereum } = window;
    const isNew = ethereum !== undefined && ![...found.values()].some(({ provider }) => provider === ethereum);
    const legacy: FoundWallet[] =
      isNew && found.size === 0
        ? [{ id: INJECTED, name: "Browser wallet", icon: undefined, provider: ethereum }]
        : [];
    onChange([...found.values(), ...legacy]);
  };
  const announced = ({ detail }: CustomEvent<Announcement>): void => {
    const { info, provider } = detail;
    if (found.size >= WALLETS_MAX || found.has(info.rdns)) return;
    // Only images that are in the announcement itself: none is fetched.
    const icon = info.icon.startsWith("data:image/") ? info.icon : undefined;
    found.set(info.rdns, { id: info.rdns, name: info.name.slice(0, NAME_LENGTH_MAX), icon, provider });
    report();
  };
  window.addEventListener("eip6963:announceProvider", announced);
  window.dispatchEvent(new Event("eip6963:requestProvider"));
  report();
  return () => window.removeEventListener("eip6963:announceProvider", announced);
}
