import type { AccountId, Signer } from "@fastpay/sdk";
import { createContext, useCallback, useContext, useMemo, useState, type JSX, type ReactNode } from "react";

import { useWallets, type ConnectedWallet } from "../ethereum/WalletProvider";
import { useKeys } from "../keys/KeysProvider";
import { LAST_KEY } from "./last";

/** The current owner: an account and its capabilities. */
export interface Owner {
  readonly account: AccountId;
  readonly signer: Signer;
  /** True if an order can be signed now. A wallet signs on the deployment's chain only. */
  readonly canSign: boolean;
  /** True for a browser key, false for an Ethereum wallet. */
  readonly isKey: boolean;
  /** The wallet that sends transactions. A browser key may have none. */
  readonly ethereum: ConnectedWallet | undefined;
}

/** The current owner, and functions to change it. */
export interface Owners {
  readonly owner: Owner | undefined;
  /** Switches to the account of a key of this browser; without a key, to that of the connected wallet. */
  readonly useKey: (account: AccountId | undefined) => void;
}

const OwnerContext = createContext<Owners | undefined>(undefined);

/** The current owner. */
export function useOwners(): Owners {
  const owners = useContext(OwnerContext);
  if (owners === undefined) throw new Error("useOwners outside of OwnerProvider");
  return owners;
}

/** Provides the current owner. A chosen key takes precedence over the connected wallet. */
export function OwnerProvider({ children }: { children: ReactNode }): JSX.Element {
  const { connected } = useWallets();
  const { files, signerOf } = useKeys();
  const [chosen, setChosen] = useState(() => localStorage.getItem(LAST_KEY));
  const key = files.find(({ account }) => account === chosen)?.account;

  const useKey = useCallback((account: AccountId | undefined) => {
    if (account === undefined) localStorage.removeItem(LAST_KEY);
    else localStorage.setItem(LAST_KEY, account);
    setChosen(account ?? null);
  }, []);

  const owner = useMemo((): Owner | undefined => {
    if (key !== undefined) return { account: key, signer: signerOf(key), canSign: true, isKey: true, ethereum: connected };
    if (connected === undefined) return undefined;
    const { account, signer, isOnChain } = connected;
    return { account, signer, canSign: isOnChain, isKey: false, ethereum: connected };
  }, [key, signerOf, connected]);

  const value = useMemo(() => ({ owner, useKey }), [owner, useKey]);
  return <OwnerContext value={value}>{children}</OwnerContext>;
}
