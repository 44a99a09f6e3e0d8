import { accountFromEthereum, ethereumSigner, walletError, type AccountId, type Address, type Signer } from "@fastpay/sdk";
import { createContext, useCallback, useContext, useEffect, useMemo, useState, type JSX, type ReactNode } from "react";
import { getAddress, toHex, type WalletClient } from "viem";

import { LAST_WALLET } from "../account/last";
import { useNetwork } from "../network/NetworkProvider";
import { discoverWallets, type FoundWallet } from "./discovery";
import { remoteWallet } from "./remote-wallet";

/** A connected wallet and the address that it lets this page use. */
export interface ConnectedWallet {
  readonly wallet: FoundWallet;
  readonly address: Address;
  /** The FastPay account that this address owns. */
  readonly account: AccountId;
  /** The chain that the wallet is on. */
  readonly chainId: number;
  /** True if it is the deployment's chain. On a ledger, every chain is right: orders name none. */
  readonly isOnChain: boolean;
  readonly signer: Signer;
  readonly walletClient: WalletClient;
}

/** The wallets of this browser, and the connected one. */
export interface Wallets {
  readonly found: readonly FoundWallet[];
  readonly connected: ConnectedWallet | undefined;
  /** True until it is known whether the wallet of an earlier visit is still connected. */
  readonly isRestoring: boolean;
  /** Asks the user to connect. Throws a `FastPayError` if they decline. */
  readonly connect: (wallet: FoundWallet) => Promise<void>;
  readonly disconnect: () => void;
  /** Asks the user to switch to the deployment's chain. Throws like `connect`. */
  readonly switchChain: () => Promise<void>;
}

interface Session {
  readonly wallet: FoundWallet;
  readonly address: Address;
  readonly chainId: number;
  readonly clients: typeof import("./wallet-client");
}

const WalletContext = createContext<Wallets | undefined>(undefined);
/** EIP-3085: the wallet does not know the chain. */
const UNKNOWN_CHAIN = 4902;
/** Extensions announce themselves within milliseconds. */
const RESTORE_PATIENCE_MS = 400;

/** The wallets of this browser. */
export function useWallets(): Wallets {
  const wallets = useContext(WalletContext);
  if (wallets === undefined) throw new Error("useWallets outside of WalletProvider");
  return wallets;
}

async function open(wallet: FoundWallet, method: "eth_requestAccounts" | "eth_accounts"): Promise<Session | undefined> {
  const { provider } = wallet;
  const [address] = await provider.request({ method });
  if (address === undefined) return undefined;
  // Loaded on demand: a first visit has no wallet.
  const clients = await import("./wallet-client");
  const chainId = Number(await provider.request({ method: "eth_chainId" }));
  return { wallet, address: getAddress(address), chainId, clients };
}

/** Finds wallets, connects one, and follows its events. */
export function WalletProvider({ children }: { children: ReactNode }): JSX.Element {
  const { chain, config } = useNetwork();
  const { walletConnectProjectId: projectId } = config;
  const [here, setHere] = useState<readonly FoundWallet[]>([]);
  const remote = useMemo(() => (projectId === undefined ? [] : [remoteWallet(projectId, chain)]), [projectId, chain]);
  const found = useMemo(() => [...here, ...remote], [here, remote]);
  const [session, setSession] = useState<Session>();
  const [isRestoring, setRestoring] = useState(() => localStorage.getItem(LAST_WALLET) !== null);

  useEffect(() => discoverWallets(setHere), []);
  useRestoredSession(found, isRestoring, setSession, setRestoring);
  useSessionEvents(session, setSession);

  const connect = useCallback(async (wallet: FoundWallet) => {
    try {
      const opened = await open(wallet, "eth_requestAccounts");
      setSession(opened);
      if (opened !== undefined) localStorage.setItem(LAST_WALLET, wallet.id);
    } catch (error) {
      throw walletError(error);
    }
  }, []);

  const disconnect = useCallback(() => {
    localStorage.removeItem(LAST_WALLET);
    // A device that cannot be reached learns of it at its next request.
    session?.wallet.remote?.disconnect().catch(() => undefined);
    setSession(undefined);
  }, [session]);

  const switchChain = useCallback(async () => {
    if (session === undefined) return;
    const { provider } = session.wallet;
    const chainId = toHex(chain.id);
    try {
      try {
        await provider.request({ method: "wallet_switchEthereumChain", params: [{ chainId }] });
      } catch (error) {
        if (!(error instanceof Object && "code" in error && error.code === UNKNOWN_CHAIN)) throw error;
        const { name: chainName, nativeCurrency } = chain;
        const params = { chainId, chainName, nativeCurrency, rpcUrls: [...chain.rpcUrls.default.http] };
        await provider.request({ method: "wallet_addEthereumChain", params: [params] });
      }
      const now = Number(await provider.request({ method: "eth_chainId" }));
      setSession((current) => current && { ...current, chainId: now });
    } catch (error) {
      throw walletError(error);
    }
  }, [session, chain]);

  const connected = useMemo((): ConnectedWallet | undefined => {
    if (session === undefined) return undefined;
    const { wallet, address, chainId, clients } = session;
    return {
      wallet,
      address,
      account: accountFromEthereum(address),
      chainId,
      isOnChain: config.ledger !== undefined || chainId === chain.id,
      signer: ethereumSigner(wallet.provider, address),
      walletClient: clients.walletClient(wallet.provider, address, chain),
    };
  }, [session, chain, config]);

  const value = useMemo(
    () => ({ found, connected, isRestoring, connect, disconnect, switchChain }),
    [found, connected, isRestoring, connect, disconnect, switchChain],
  );
  return <WalletContext value={value}>{children}</WalletContext>;
}

/** Reconnects the wallet of an earlier visit without a dialog, if it still allows this page. */
function useRestoredSession(
  found: readonly FoundWallet[],
  isRestoring: boolean,
  setSession: (session: Session | undefined) => void,
  setRestoring: (isRestoring: boolean) => void,
): void {
  useEffect(() => {
    if (!isRestoring) return undefined;
    const wallet = found.find(({ id }) => id === localStorage.getItem(LAST_WALLET));
    if (wallet === undefined) {
      const timer = setTimeout(() => setRestoring(false), RESTORE_PATIENCE_MS);
      return () => clearTimeout(timer);
    }
    let isCurrent = true;
    open(wallet, "eth_accounts")
      .catch(() => undefined)
      .then((session) => {
        if (!isCurrent) return;
        if (session !== undefined) setSession(session);
        setRestoring(false);
      });
    return () => {
      isCurrent = false;
    };
  }, [found, isRestoring, setSession, setRestoring]);
}

/** Follows the wallet's changes of address and chain. */
function useSessionEvents(
  session: Session | undefined,
  setSession: (change: (session: Session | undefined) => Session | undefined) => void,
): void {
  const provider = session?.wallet.provider;
  useEffect(() => {
    if (provider === undefined) return undefined;
    const accounts = ([address]: Address[]): void =>
      setSession((current) => (address === undefined ? undefined : current && { ...current, address: getAddress(address) }));
    const chain = (id: string): void => setSession((current) => current && { ...current, chainId: Number(id) });
    provider.on("accountsChanged", accounts);
    provider.on("chainChanged", chain);
    return () => {
      provider.removeListener("accountsChanged", accounts);
      provider.removeListener("chainChanged", chain);
    };
  }, [provider, setSession]);
}
