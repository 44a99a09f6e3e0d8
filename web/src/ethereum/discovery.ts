/** Finds wallets: those announced by EIP-6963, or else an older one at `window.ethereum` (EIP-1193). */

import type { EIP1193Provider } from "viem";

/** A wallet in this browser. Its name and icon are unverified. */
export interface FoundWallet {
  /** The same at every visit. */
  readonly id: string;
  readonly name: string;
  /** A data URI; undefined if there is none. */
  readonly icon: string | undefined;
  readonly provider: EIP1193Provider;
  /** The connection to a wallet on another device. */
  readonly remote?: {
    /**
     * Calls back with the URI that the other device reads as a QR code. Returns a function that stops the callbacks.
     */
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

/** The maximum number of listed wallets, because any extension's script can announce some. */
const WALLETS_MAX = 20;
const NAME_LENGTH_MAX = 40;

/** The id of a wallet that does not announce itself. */
const INJECTED = "injected";

/** Calls back with all wallets found so far, at once and for each new one. Returns a function that stops it. */
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
    // Accept only images that the announcement contains, so that none is fetched.
    const icon = info.icon.startsWith("data:image/") ? info.icon : undefined;
    found.set(info.rdns, { id: info.rdns, name: info.name.slice(0, NAME_LENGTH_MAX), icon, provider });
    report();
  };
  window.addEventListener("eip6963:announceProvider", announced);
  window.dispatchEvent(new Event("eip6963:requestProvider"));
  report();
  return () => window.removeEventListener("eip6963:announceProvider", announced);
}
